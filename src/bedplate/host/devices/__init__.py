"""Block devices: what they are, who holds them, how one is taken for a visit and given back.

Here: nodes and their tree, holders, signatures, loop devices, the scratch and the journal device, ZFS's pools and partitions.
Not here: what is mounted on them (`host/mount.py`), how a queue is tuned (`host/tunables.py`).
May import: `model`; the standard library.
Must not import: `filesystem`, `engines`, `plan`, `study`, `workloads`.
"""
