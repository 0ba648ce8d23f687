"""Counters that are read beside a run, once a second.

Here: those of the kernel and of PostgreSQL, and what reading them costs.
Not here: what comes of them (`figures`); nothing is written where the device under test is.
May import: `host`, `model`; the standard library.
Must not import: `engines`, whose session is handed in, `filesystem`, `visit`, `workloads`.
"""
