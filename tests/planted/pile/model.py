from __future__ import annotations

from bedplate.model.cell import EngineModel

MODEL = EngineModel("a pile", {"cluster.settings.": "pile."}, block_level="cluster.settings.stone_bytes")
