"""The only code that changes a machine.

Here: commands, mounts, tunables, control groups, locks, and the ledger of all that was taken; how C drivers are compiled.
Not here: why it is done: no type of file system, engine, workload or study is known.
May import: `cuts`, `model`; the standard library.
Must not import: `filesystem`, `engines`, `plan`, `study`, `workloads`.
"""
