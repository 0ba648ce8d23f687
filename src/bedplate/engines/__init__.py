"""Engines: how a database is built, started, configured and read back.

Here: a folder for each, with a line in `bedplate/registry.py`: PostgreSQL's source, builds, cluster, session and its table in a
plan (`plan`); LMDB's table, rules and the durability of its modes; none. How native drivers are built.
Not here: what is loaded and run (`workloads`), and when a step comes (`visit`).
May import: `host`, `model`; the standard library; `plan` of each also `plan` and pydantic.
Must not import: `filesystem`, `probe`, `visit`, `workloads`.
"""
