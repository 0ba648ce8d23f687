"""The canary of the microbenchmark: two tests on a small database."""

from __future__ import annotations

from bedplate.model.cell import Dataset, RunSpec
from bedplate.model.levels import Levels
from bedplate.model.plan import Load
from bedplate.workloads.microbenchmark.tests import WORKLOAD

CANARY = Load(
    Dataset(WORKLOAD, Levels(entries=200_000, value_bytes=100)),
    (RunSpec("canary", WORKLOAD, Levels(kind="write", tests="fillrandsync,fillseq", batch=1000, threads=1)),),
)
