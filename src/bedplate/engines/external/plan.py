"""`[engine]` in a plan: an own engine, by its folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, PrivateAttr, ValidationInfo, model_validator

from bedplate.engines.external.prepare import (
    DIGEST,
    FILE,
    NAME,
    EngineDescription,
    read_description,
    read_folder,
)
from bedplate.errors import PlanError, StudyError
from bedplate.model import codec, limits
from bedplate.model.levels import Scalar
from bedplate.model.plan import EngineSetup
from bedplate.near_names import unknown_name
from bedplate.plan.fields import Factor, within
from bedplate.plan.table import EngineTable, Factors, of_settings
from bedplate.plan.values import TEXT
from bedplate.plan.words import joined

OWN_ENGINE = "own-engine"

# Beside the frozen plan of a study: what decides its cells. The programs themselves stand in the cache.
_KEPT_TEXT, _KEPT_DIGEST = f"engine/{FILE}", "engine/programs.sha256"

_LONGEST = 500


class Engine:
    """An engine as a plan names it: what its folder says, and the digest of its programs."""

    def __init__(self, text: str, digest: str, folder: Path | None) -> None:
        self.text = text
        self.digest = digest
        self.folder = folder
        self.description: EngineDescription = read_description(text)


def _engine(value: Any, info: ValidationInfo) -> Engine:
    """By its path, relative to the plan or from the root; of a plan that a study keeps by what stands beside it."""
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= _LONGEST:
        raise ValueError(f"allowed is the path of a folder with {FILE} and the programs")
    context = info.context or {}
    directory = Path(context["directory"])
    try:
        kept = directory / _KEPT_DIGEST
        if limits.is_file(kept):
            found = Engine(codec.read_text(directory / _KEPT_TEXT), codec.read_text(kept).strip(), None)
        else:
            folder = read_folder((directory / value).resolve())
            found = Engine(folder.text, folder.digest, folder.path)
    except (PlanError, StudyError) as error:
        raise ValueError(joined(error.reasons)) from None
    except (OSError, RuntimeError) as error:
        raise ValueError(f"the folder cannot be read: {error}") from None
    context["files"] |= {_KEPT_TEXT: found.text, _KEPT_DIGEST: f"{found.digest}\n"}
    return found


def _settings(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("allowed is a table of the engine's own settings")
    return value


class ExternalTable(EngineTable):
    """`[engine]`: an own engine, by its folder (docs/ENGINES.md)."""

    path: Annotated[Engine, within(_engine, form=TEXT)] | None = None
    """cluster | a folder with engine.toml, a writer and a checker, relative to the plan or from the root | required | `"my-engine"`"""
    settings: dict[str, Factor[Any]] = Field(
        default_factory=dict, description="a table of the engine's own settings"
    )
    """cluster | the settings that its engine.toml names, each with its kind and levels | none | `{ sync = { vary = ["on", "off"] } }`"""

    section: ClassVar[str | None] = "engine"
    level_names: ClassVar[dict[str, str]] = {"engine": "cluster.", "engine.settings": "cluster.settings."}
    _levels: dict[str, tuple[Scalar, ...]] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _fits_together(self) -> ExternalTable:
        if self.path is None:
            if self.settings:
                raise ValueError("settings: of which engine? path is missing")
            return self
        known = self.path.description.settings
        reasons = [
            f"settings: {unknown_name('setting', name, known)}" for name in self.settings if name not in known
        ]
        for name, levels in self.settings.items():
            try:
                if name in known:
                    self._levels[name] = tuple(known[name].value(level) for level in levels)
            except ValueError as error:
                reasons.append(f"settings.{name}: {error}")
        if reasons:
            raise ValueError(joined(reasons))
        return self

    engine: ClassVar[str] = OWN_ENGINE

    def cluster_factors(self) -> Factors:
        """Which engine it is, then the settings in the order of the plan."""
        if self.path is None:
            return {}
        named = {NAME: (self.path.description.name,), DIGEST: (self.path.digest,)}
        return {**of_settings({**named, **self._levels}), "configuration": (self.path.text,)}

    def setup(self) -> EngineSetup:
        """With where its programs lie; PlanError without a folder."""
        if self.path is None:
            raise PlanError(
                f'engine.path: missing; engine = "{OWN_ENGINE}" is the one of [engine], path = "my-engine"'
            )
        return replace(super().setup(), folder=None if self.path.folder is None else str(self.path.folder))


PLAN = ExternalTable
