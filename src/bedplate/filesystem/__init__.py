"""File systems: what each type is told, and what it says back.

Here: a file for each type with mkfs, mount, reading back and checking; the count of flushes that proves barriers.
Not here: devices (`host`), and when a step comes (`visit`).
May import: `host`, `cuts`, `model`; the standard library.
Must not import: `engines`, `probe`, `visit`, `workloads`.
"""
