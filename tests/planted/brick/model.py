from __future__ import annotations

from bedplate.model.workload import WorkloadModel

MODEL = WorkloadModel("pile")
