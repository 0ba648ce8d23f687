"""Engines: how a database is built, started, configured and read back.

Here: a folder for each, with a line in `bedplate/registry.py`, and in it a few files for the roles that rooms ask for: what a plan may
say, what is made beforehand, the server or library of a visit, the oracle after a cut.
Not here: what is loaded and run (`workloads`), and when a step comes (`visit`).
May import: whatever declares a role: `visit`, `probe`, `campaign`, `figures`, `plan` with pydantic; `host`, `cuts`, `model`; the standard library.
Must not import: `workloads`, `cli`.
"""
