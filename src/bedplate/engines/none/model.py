"""What records say of cells without an engine."""

from __future__ import annotations

from bedplate.model.engine import EngineModel

MODEL = EngineModel("no engine")
