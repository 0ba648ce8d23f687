"""The same visit, here or elsewhere: on this machine, in a guest of QEMU, on the nodes of a Slurm cluster.

Here: the protocol, and a file or folder for each executor.
Not here: which one a plan gets, in what order its visits run, and how they are kept, which is `campaign`.
May import: `visit`, `filesystem`, `host`, `plan`, `study`, `cuts`, `model`; in a guest or on a node the standard
library alone.
Must not import: `engines`, `campaign`, `figures`, `analysis`, `workloads`, `terminal`, `page`, `export`.
"""
