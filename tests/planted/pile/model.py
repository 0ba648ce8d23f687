from __future__ import annotations

from bedplate.model.engine import EngineModel

MODEL = EngineModel("a pile", {"cluster.settings.": "pile."})
