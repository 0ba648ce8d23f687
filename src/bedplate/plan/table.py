"""What every table of a plan's schema is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo

from bedplate import registry
from bedplate.model.cell import BuildLevels, ClusterLevels, SourceTree
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import EngineSetup, PlannedWorkload

if TYPE_CHECKING:
    from bedplate.plan.fields import Departures


class PlanTable(BaseModel):
    """A TOML table: frozen, and a key that is not a field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


# Tables by their keys in another.
InnerTables: TypeAlias = Mapping[str, type[PlanTable]]


def keys_of(table: type[PlanTable]) -> Mapping[str, FieldInfo]:
    """The fields of a table by the keys that a plan has; a field has another name where Python's models have its key for themselves."""
    return {field.alias or name: field for name, field in table.model_fields.items()}


def at_least_one(tables: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tables, if there are any; ValueError otherwise."""
    if not tables:
        raise ValueError("allowed are one or more tables")
    return tables


# The levels of factors, by the names that records have for these; none of what the plan leaves out.
Factors: TypeAlias = Mapping[str, tuple[Any, ...]]


def combinations(factors: Factors) -> Iterator[dict[str, Any]]:
    """Every combination of the levels, the last factor's varying fastest; None of what the plan leaves out."""
    for levels in product(*(levels or (None,) for levels in factors.values())):
        yield dict(zip(factors, levels, strict=True))


def combination_count(factors: Factors) -> int:
    """How many these are, without making them."""
    return prod(len(levels) or 1 for levels in factors.values())


_SETTING = "settings."


class EngineTable(PlanTable):
    """The keys of one engine. `level_names` says how the levels of its cells begin, by the table that a key stands in.

    `section` is what a plan calls the table, where that is not the engine's name.
    """

    engine: ClassVar[str]
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

    def build_factors(self) -> Factors:
        """The levels of what is compiled in, or chosen when the data are made, by the fields of BuildLevels; of most engines nothing is."""
        return {}

    def cluster_factors(self) -> Factors:
        """The levels of what is configured, by the fields of ClusterLevels; of its settings by `settings.` and their names."""
        return {}

    def build_levels(self, combination: Mapping[str, Any]) -> BuildLevels:  # noqa: ARG002 -- of those that are built
        """One combination of the factors of builds."""
        return BuildLevels.unbuilt(self.engine)

    def setup(self) -> EngineSetup:
        """Every combination of what was asked for; what was not is the engine's, or the workload's own way."""
        builds = tuple(map(self.build_levels, combinations(self.build_factors())))
        clusters = tuple(map(_cluster_levels, combinations(self.cluster_factors())))
        return EngineSetup(self.engine, builds, clusters)

    def count(self) -> int:
        """How many combinations, before they are made."""
        return combination_count(self.build_factors()) * combination_count(self.cluster_factors())


def of_settings(levels: Factors) -> Factors:
    """Settings by their names, as factors of a cluster."""
    return {f"{_SETTING}{name}": own for name, own in levels.items()}


def _cluster_levels(combination: Mapping[str, Any]) -> ClusterLevels:
    known = {name: level for name, level in combination.items() if level is not None}
    # A tree is the commit that it is asked for by.
    settings = {
        name.removeprefix(_SETTING): level.level if isinstance(level, SourceTree) else level
        for name, level in known.items()
        if name.startswith(_SETTING)
    }
    others = {name: level for name, level in known.items() if not name.startswith(_SETTING)}
    return ClusterLevels(**others, settings=Levels(settings))


class SettingsTable(EngineTable):
    """Of an engine that is the system's, whose keys are all settings of how its data are opened."""

    def cluster_factors(self) -> Factors:
        """In the order of the keys."""
        return of_settings({name: getattr(self, name) for name in type(self).model_fields})


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


class WorkloadTable(PlanTable):
    """The keys of one type, and what they come to.

    `dataset_key` is what tells two datasets of the type apart, as it is written behind `workload[0]`; `runs_key` is what a
    reason against its runs is about. `inner_tables` are the tables within it, by their keys. `loaded_twice` is what to do
    where two workloads have one dataset. `runs_on` are its engines where a plan does not choose them.
    """

    type: str
    dataset_key: ClassVar[str] = ""
    runs_key: ClassVar[str] = "run"
    inner_tables: ClassVar[InnerTables] = {}
    loaded_twice: ClassVar[str] = "put its runs there, so that it is loaded once"
    runs_on: ClassVar[tuple[str, ...]] = ()

    def run_count(self) -> int:
        """How many runs a visit makes, without making them."""
        raise NotImplementedError

    def dataset_factors(self) -> Mapping[str, tuple[Scalar, ...]]:
        """What tells its datasets apart, by the names of their levels; where it is nothing, there is one."""
        return {}

    def dataset_count(self) -> int:
        """How many datasets it loads, each in a visit of its own."""
        return combination_count(self.dataset_factors())

    def datasets(self) -> tuple[Levels, ...]:
        """Every combination of the levels, the last one varying fastest."""
        return tuple(map(Levels, combinations(self.dataset_factors())))

    def engines(self) -> tuple[str, ...]:
        """The engines that it runs on, in the order of the plan."""
        return self.runs_on

    def settings_of_defaults(self) -> Mapping[str, Scalar]:
        """Settings of its engine that its default runs need; the engine gets them where the plan names none of them."""
        return {}

    def suited(self, setups: Sequence[EngineSetup]) -> WorkloadTable:  # noqa: ARG002 -- of those that depend on an engine
        """The table with what follows from how the plan has its engines, where it is silent."""
        return self

    def planned(self, seed: int, defaults: int) -> PlannedWorkload:
        """Its datasets and runs; ValueError where they cannot be. `seed` is the plan's, `defaults` the version of its defaults."""
        raise NotImplementedError

    def cells_named(self) -> tuple[Departures, ...]:
        """The cells that it keeps to; none where it runs in all of them."""
        return ()

    def against(self, tables: Sequence[WorkloadTable]) -> tuple[str, ...]:  # noqa: ARG002 -- of others' tables
        """What speaks against it among all workloads of the plan, each a key with a dot and a sentence."""
        return ()
