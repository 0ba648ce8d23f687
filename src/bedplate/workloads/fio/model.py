"""What records say of fio's datasets and runs."""

from __future__ import annotations

from bedplate.model.engines import NO_ENGINE
from bedplate.model.workload import WorkloadModel

MODEL = WorkloadModel(NO_ENGINE, {"fio": "--version"})
