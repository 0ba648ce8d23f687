from __future__ import annotations

from bedplate.model.engine import EngineModel

MODEL = EngineModel("a pile", {"cluster.settings.": "pile."}, block_level="cluster.settings.stone_bytes")
