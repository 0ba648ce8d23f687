"""What records say of PostgreSQL."""

from __future__ import annotations

from bedplate.model.engine import EngineModel

MODEL = EngineModel("PostgreSQL", {"build.": "postgresql.", "cluster.": "postgresql."})
