"""`[[workload]]`: what every type answers of its table; a type's own table is the role `plan` of its folder."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, ClassVar

from bedplate.model.levels import Levels
from bedplate.plan.table import InnerTables, PlanTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.model.levels import Scalar
    from bedplate.model.plan import EngineSetup, PlannedWorkload
    from bedplate.plan.chosen_cells import Departures


class WorkloadTable(PlanTable):
    """The keys of one type, and what they come to.

    `dataset_key` is what tells two datasets of the type apart, as it is written behind `workload[0]`; `runs_key` is what a
    reason against its runs is about. `inner_tables` are the tables within it, by their keys. `loaded_twice` is what to do
    where two workloads have one dataset.
    """

    type: str
    dataset_key: ClassVar[str] = ""
    runs_key: ClassVar[str] = "run"
    inner_tables: ClassVar[InnerTables] = {}
    loaded_twice: ClassVar[str] = "put its runs there, so that it is loaded once"

    def run_count(self) -> int:
        """How many runs a visit makes, without making them."""
        raise NotImplementedError

    def dataset_count(self) -> int:
        """How many datasets it loads, each in a visit of its own."""
        raise NotImplementedError

    def engines(self) -> tuple[str, ...]:
        """The engines that it runs on, in the order of the plan."""
        raise NotImplementedError

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

    def against(self, others: Sequence[WorkloadTable]) -> tuple[str, ...]:  # noqa: ARG002 -- of others' tables
        """What speaks against it among all workloads of the plan, each a key with a dot and a sentence."""
        return ()


def datasets(**factors: tuple[Scalar, ...]) -> tuple[Levels, ...]:
    """Every combination of the levels, the last one varying fastest."""
    return tuple(Levels(dict(zip(factors, levels, strict=True))) for levels in product(*factors.values()))
