"""What records say of bonnie++'s datasets and runs."""

from __future__ import annotations

from bedplate.model.engines import NO_ENGINE
from bedplate.model.workload import WorkloadModel

WORKLOAD = "bonnie"

MODEL = WorkloadModel(NO_ENGINE, {"bonnie++": "-v"})
