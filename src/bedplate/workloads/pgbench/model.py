"""What records say of pgbench's datasets and runs."""

from __future__ import annotations

from bedplate.model.engines import POSTGRESQL
from bedplate.model.workload import WorkloadModel

MODEL = WorkloadModel(POSTGRESQL)
