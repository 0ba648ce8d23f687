"""From the raw record of a run to figures, courses and validity, on the host.

Here: what the makers of all workloads share: windows, latencies, counters, courses, rules of doubt.
Not here: what a workload's own tools wrote (`workloads`), and what several runs say together (`statistics`).
May import: `cuts`, `model`; numpy, polars.
Must not import: `workloads`, `study`, nor what touches a machine (`host`, `filesystem`, `engines`, `probe`, `visit`, `executors`).
"""
