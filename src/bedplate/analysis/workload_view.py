"""What a study says of the runs of a type of workload: the role `analysis` of its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from bedplate import registry
from bedplate.errors import PlanError, StudyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bedplate.analysis.overview import Overview
    from bedplate.analysis.scores import Scoring
    from bedplate.model.cell import RunSpec
    from bedplate.model.visit import Durability


@dataclass(frozen=True)
class RunHead:
    """Two metrics of the whole run, each with the words that stand at it.

    The second has a column of its own, or stands `beneath` the first: a visit of TPC-H has four runs.
    """

    first: str
    first_words: str
    second: str
    second_words: str
    beneath: bool = False


@dataclass(frozen=True)
class MovedBytes:
    """What a run is that is about bytes in a second: by which `tool`, and which of its `stages` are drawn beside each other.

    A run without stages is drawn beside the tool's other runs on its dataset.
    """

    tool: str
    stages: tuple[str, ...] = ()


@dataclass(frozen=True)
class AnswerLine:
    """A line of a study's answer: `head` is `Safe`, `Not` or `Open`, `lead` how the text begins, and the line with the largest `rank` goes first."""

    head: str
    text: str
    lead: str
    rank: int


class WorkloadView:
    """What readers ask of a run. `makes_transactions`: its runs have rates and percentiles of them over their time.

    `heads` are the two figures that stand for a run where there is room for two, by its kind; "" is that of a type without kinds.
    `headlines` are the figures that every run of the type has which measured anything: how many values there are, so
    many repetitions there are. `looked_at` is the phase and
    the metric of parts that are looked at one at a time. `scoring` is that of types whose runs are scored over all cells.
    """

    makes_transactions: ClassVar[bool] = False
    looked_at: ClassVar[tuple[str, str] | None] = None
    heads: ClassVar[Mapping[str, RunHead]] = {}
    headlines: ClassVar[tuple[str, ...]] = ()
    scoring: ClassVar[Scoring | None] = None

    def head(self, spec: RunSpec) -> RunHead:
        """That of a run; StudyError where its kind is none that is known."""
        kind = self.kind(spec) or ""
        if kind not in self.heads:
            raise StudyError(
                f"run {spec.name}: kind {kind!r} is not known; known are {', '.join(self.heads)}. "
                "The study was made by another version of bedplate"
            )
        return self.heads[kind]

    def writes(self, found: Overview, run: tuple[str, str], spec: RunSpec) -> bool:
        """Whether a run writes to the file system that is measured, by what it does and not by its name."""
        raise NotImplementedError

    def moved_bytes(self, spec: RunSpec) -> MovedBytes | None:  # noqa: ARG002 -- of those that do
        """Of a run that is about bytes in a second, and what a GiB of them took of the processor; None of any other."""
        return None

    def promised(self, durability: Durability | None, phase: str, item: str) -> Durability | None:  # noqa: ARG002 -- of parts unlike the cell
        """The class that stands beside a figure of a part of a run, from that of its cell."""
        return durability

    def item_words(self, phase: str, item: str) -> str | None:  # noqa: ARG002 -- of those with numbered items
        """What an item of a phase is called where it is a number; None where its name says it."""
        return None

    def document(self, found: Overview, runs: Sequence[tuple[str, str]]) -> Mapping[str, Any]:  # noqa: ARG002 -- of most nothing
        """What `show --json` says of these runs beside their figures, by its keys."""
        return {}

    def answer(self, found: Overview, names: Mapping[str, str]) -> Iterable[AnswerLine]:  # noqa: ARG002 -- of those that have verdicts
        """What a study's answer says of all its runs of the type, whose cells are called by `names`, by their id."""
        return ()

    def kind(self, spec: RunSpec) -> str | None:
        """What a run does, where runs of the type do different things; runs of one kind have figures alike."""
        return spec.levels.text("kind")

    def alike(self, spec: RunSpec) -> str | None:
        """What runs have in common whose parts are looked at together."""
        return self.kind(spec)


def view_of(workload: str) -> WorkloadView:
    """That of a type; StudyError lists the known ones."""
    try:
        view: WorkloadView = registry.part(workload, "analysis")
    except PlanError as error:
        raise StudyError(*error.reasons, "the study was made by another version of bedplate") from None
    return view
