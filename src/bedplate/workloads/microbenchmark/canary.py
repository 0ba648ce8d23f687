"""The canary of LMDB's microbenchmark: two tests on a small database."""

from __future__ import annotations

from bedplate.model.cell import Dataset, RunSpec
from bedplate.model.levels import Levels
from bedplate.model.lmdb import WORKLOAD
from bedplate.model.plan import Load

CANARY = Load(
    Dataset(WORKLOAD, Levels(entries=200_000, value_bytes=100)),
    (RunSpec("canary", WORKLOAD, Levels(kind="write", tests="fillrandsync,fillseq", batch=1000, threads=1)),),
)
