"""Engines: how a database is built, started, configured and read back.

Here: a folder for each, with a line in `bedplate/registry.py`, and in it a file for each role that a room asks for: PostgreSQL's
builds, server and table in a plan; LMDB's table, rules and the durability of its modes; none.
Not here: what is loaded and run (`workloads`), and when a step comes (`visit`).
May import: whatever declares a role: `visit`, `campaign`, `figures`, `plan` with pydantic; `host`, `model`; the standard library.
Must not import: `workloads`, `cli`.
"""
