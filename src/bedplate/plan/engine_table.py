"""The table of an engine in a plan, `[postgresql]` say: the role `plan` of an engine that has factors of its own."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Self

from bedplate import registry
from bedplate.model.cell import BuildLevels, ClusterLevels
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import EngineSetup
from bedplate.model.source_commit import SourceTree
from bedplate.plan.table import PlanTable

if TYPE_CHECKING:
    from collections.abc import Mapping


class EngineTable(PlanTable):
    """The keys of one engine. `level_names` says how the levels of its cells begin, by the table that a key stands in.

    `section` is what a plan calls the table, where that is not the engine's name.
    """

    section: ClassVar[str | None] = None
    level_names: ClassVar[dict[str, str]] = {}

    @staticmethod
    def level(section: str, level: Scalar) -> Scalar:  # noqa: ARG004 -- of engines that spell values their own way
        """A level of one of its tables as cells have it; ValueError where it is none."""
        return level

    @classmethod
    def level_name(cls, section: str, key: str) -> str:
        """What cells call a key of one of its tables."""
        return cls.level_names[section] + key

    def with_settings(self, settings: Mapping[str, Scalar]) -> Self:  # noqa: ARG002 -- of engines that have settings
        """With these settings, where the plan names none of them."""
        return self

    def build_factors(self) -> tuple[tuple[Any, ...], ...]:
        """The levels of what is compiled in, or chosen when the data are made."""
        raise NotImplementedError

    def cluster_factors(self) -> tuple[tuple[Any, ...], ...]:
        """The levels of what is configured."""
        raise NotImplementedError

    def setup(self) -> EngineSetup:
        """Every combination."""
        raise NotImplementedError

    def count(self) -> int:
        """How many combinations, before they are made."""
        return prod(map(len, (*self.build_factors(), *self.cluster_factors())))


class SettingsTable(EngineTable):
    """Of an engine that is the system's, whose keys are all settings of how its data are opened."""

    engine: ClassVar[str]

    def build_factors(self) -> tuple[tuple[Any, ...], ...]:
        """None: the library is the system's."""
        return ()

    def cluster_factors(self) -> tuple[tuple[Any, ...], ...]:
        """In the order of the keys."""
        return tuple(asked(getattr(self, name)) for name in type(self).model_fields)

    def setup(self) -> EngineSetup:
        """Every combination of what was asked for; what was not is the library's, or the workload's own way."""
        names = tuple(type(self).model_fields)
        clusters = tuple(
            ClusterLevels(
                settings=Levels(
                    {
                        name: _level(level)
                        for name, level in zip(names, levels, strict=True)
                        if level is not None
                    }
                )
            )
            for levels in product(*self.cluster_factors())
        )
        return EngineSetup(self.engine, (BuildLevels.unbuilt(self.engine),), clusters)


def engine_tables() -> dict[str, type[EngineTable]]:
    """Those of all engines that have one, by what a plan calls them."""
    tables: Mapping[str, type[EngineTable]] = registry.engine_parts("plan")
    return {table.section or name: table for name, table in tables.items()}


def section_of(engine: str) -> str:
    """What a plan calls the table of an engine, if it has one."""
    table: type[EngineTable] | None = registry.engine_part_or_none(engine, "plan")
    return (None if table is None else table.section) or engine


def plain_setup(engine: str) -> EngineSetup:
    """Of an engine without a table: there is one way to have it."""
    return EngineSetup(engine, (BuildLevels.unbuilt(engine),), (ClusterLevels(),))


def _level(level: Any) -> Scalar:
    """A tree by the commit that it is asked for by."""
    found: Scalar = level.level if isinstance(level, SourceTree) else level
    return found


def asked(levels: tuple[Any, ...]) -> tuple[Any, ...]:
    """The levels of a factor; None where the key was left out."""
    return levels or (None,)
