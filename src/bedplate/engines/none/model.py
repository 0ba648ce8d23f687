"""What records say of cells without an engine."""

from __future__ import annotations

from bedplate.model.cell import EngineModel

MODEL = EngineModel("no engine")
