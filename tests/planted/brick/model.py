from __future__ import annotations

from bedplate.model.plan import WorkloadModel

MODEL = WorkloadModel("pile")
