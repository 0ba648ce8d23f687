"""What records say of somebody's own engine."""

from __future__ import annotations

from collections.abc import Mapping

from bedplate.model.cell import EngineModel
from bedplate.model.durability import DURABLE
from bedplate.model.levels import Levels

# What a visit notes of the promise that the author makes for the settings of its cell.
PROMISE = "engine.promise"


class ExternalModel(EngineModel):
    """Its author says when a commit waits."""

    def waits(self, settings: Levels, in_force: Mapping[str, str]) -> bool:  # noqa: ARG002 -- settings are the author's own
        """Where commits are promised to be durable."""
        return in_force.get(PROMISE) == DURABLE


MODEL = ExternalModel(
    "own engine",
    # Of what `path` names a cell has the text, and the digest among the settings.
    {"cluster.configuration": "engine.path", "cluster.settings.": "engine.settings.", "cluster.": "engine."},
    block_level="cluster.settings.page_size",
    configuration_words="engine.toml",
    unnamed_settings=frozenset({"programs"}),
    cuts_per_s=3.0,
)
