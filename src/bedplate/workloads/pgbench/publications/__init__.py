"""The role `publications`: forms in which runs of pgbench were published, a file each."""

from __future__ import annotations

from collections.abc import Sequence

from bedplate.imported.published import Adapter
from bedplate.workloads.pgbench.publications.kernel_bench import KernelBench
from bedplate.workloads.pgbench.publications.pg_fs_benchmark import PgFsBenchmark
from bedplate.workloads.pgbench.publications.postgresbench import PostgresBench

PUBLICATIONS: Sequence[Adapter] = (PgFsBenchmark(), KernelBench(), PostgresBench())
