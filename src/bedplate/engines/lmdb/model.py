"""What records say of LMDB."""

from __future__ import annotations

from bedplate.model.engine import EngineModel

MODEL = EngineModel("LMDB", {"cluster.settings.": "lmdb."})
