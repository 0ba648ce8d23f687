"""What records alone say of an engine: the role `model` of its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bedplate import registry


@dataclass(frozen=True)
class EngineModel:
    """`label` is what a person calls it; `plan_words` says how a plan begins the names of its cells' levels, by how cells do."""

    label: str
    plan_words: Mapping[str, str] = field(default_factory=dict)


def engine_model(engine: str) -> EngineModel:
    """That of an engine; PlanError lists the known ones."""
    model: EngineModel = registry.engine_part(engine, "model")
    return model
