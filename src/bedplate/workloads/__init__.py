"""The workloads: a folder each, and a line each in `bedplate/registry.py`.

Here: `ROLES` of each says which of its files has which role. `model` is what records alone say of it, `plan` its table in
a plan, `estimate` its time and room, `canary` a load of seconds, `inputs` makes what it needs beforehand, `run` loads and
measures, `figures` makes figures of what it recorded, `analysis` says what stands for its runs, `terminal` shows them,
`page` has its sections, `export` its tables.
Not here: what several workloads share, which is in the rooms below.
May import: every room; each file what its role may (pyproject.toml).
Must not import: `cli`, nor another workload.
"""
