"""What records alone say of a type of workload: the role `model` of its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate import registry
from bedplate.model.levels import Levels
from bedplate.model.power_cut import ENGINE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.model.cell import RunSpec
    from bedplate.model.levels import Scalar

# Level `pass` of a run that reads: with everything dropped from every cache before it, or as it was left.
COLD = "cold"
WARM = "warm"


@dataclass(frozen=True)
class RecordWords:
    """What a type writes into the records that all types share, in Markdown for docs/STUDY_FORMAT.md; empty: nothing of its own."""

    dataset: str = ""
    """the levels of its datasets"""
    run: str = ""
    """the levels of its runs"""
    phases: str = ""
    """the phases of its records and figures"""
    items: str = ""
    """the items within a phase"""
    facts: str = ""
    """the facts of its runs"""
    files: str = ""
    """the files of its own beside a run's record"""


class WorkloadModel:
    """A type whose datasets are all for one engine, and whose runs stand each for itself; others say so."""

    def __init__(
        self,
        engine: str,
        tools: Mapping[str, str] | None = None,
        *,
        plan_keys: Mapping[str, str] | None = None,
        words: RecordWords | None = None,
        former_metrics: Mapping[str, str] | None = None,
        cuts_power: bool = False,
    ) -> None:
        self._engine = engine
        self.cuts_power = cuts_power
        """Whether its visits measure what a power cut leaves of a cell, and no speed."""
        self.words: RecordWords = words or RecordWords()
        self.tools: Mapping[str, str] = tools or {}
        """Programs of the system that do the work, and the option that makes each say its version."""
        self._plan_keys: Mapping[str, str] = plan_keys or {}
        self.former_metrics: Mapping[str, str] = former_metrics or {}
        """What studies of before call metrics of it, and what those are called today."""

    @property
    def has_own_disk(self) -> bool:
        """Whether the engine stands on a disk of its own in memory, so that the scratch device only shows what its levels come to."""
        return False

    @property
    def has_speed(self) -> bool:
        """Whether its runs have speeds, which need repetitions for a verdict; cases that are counted have one each."""
        return True

    def engine_of(self, dataset: Levels) -> str:  # noqa: ARG002 -- of types whose datasets say which
        """The engine that a dataset is for."""
        return self._engine

    def in_a_plan(self, levels: Levels) -> Mapping[str, Scalar]:
        """The levels of a dataset or a run by the keys of its `[[workload]]`; sizes in bytes, times in seconds."""
        return {key: levels[name] for name, key in self._plan_keys.items() if name in levels}

    def restores(self, dataset: Levels) -> bool:  # noqa: ARG002 -- of types whose load is apart from their runs
        """Whether a dataset is loaded before all runs and outside of them, so that an image of it is as good."""
        return False

    def fills(self, spec: RunSpec) -> bool:  # noqa: ARG002 -- of types whose runs need each other
        """Whether a run makes what later ones of its visit read, so that without it they cannot be."""
        return False


class OwnDiskModel(WorkloadModel):
    """A type whose engine is any that has an oracle, on a recorded disk of its own; its dataset says which."""

    @property
    def has_own_disk(self) -> bool:
        """A recorded one."""
        return True

    @property
    def has_speed(self) -> bool:
        """Cuts and tries are counted."""
        return False

    def engine_of(self, dataset: Levels) -> str:
        """What the dataset says; of those of the first version, which say nothing, the type's own."""
        return dataset.text(ENGINE) or super().engine_of(dataset)


def tools_of_workloads() -> Mapping[str, str]:
    """Those of all workloads."""
    return {
        program: option for name in registry.WORKLOADS for program, option in model_of(name).tools.items()
    }


def model_of(workload: str) -> WorkloadModel:
    """That of a type; PlanError lists the known ones."""
    model: WorkloadModel = registry.part(workload, "model")
    return model
