"""Counters that are read beside a run, once a second.

Here: those of the kernel, and what reading them costs.
Not here: what comes of them (`figures`); nothing is written where the device under test is.
May import: `host`, `model`; the standard library.
Must not import: `engines`, each of which has its own, `filesystem`, `visit`, `workloads`.
"""
