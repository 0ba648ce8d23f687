"""Control groups: where this machine has them, and those that a visit makes, limits, asks and removes.

Here: the hierarchies of both versions, one group, the page cache that it is charged for.
Not here: which processes belong in it (`visit/`).
May import: `host`; the standard library.
Must not import: `filesystem`, `engines`, `plan`, `study`, `workloads`.
"""
