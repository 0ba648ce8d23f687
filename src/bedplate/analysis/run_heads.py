"""Which figures stand for a run where there is room for two: by what the run does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from bedplate import registry
from bedplate.errors import PlanError, StudyError
from bedplate.model.cell import RunSpec
from bedplate.model.plan import model_of
from bedplate.model.visit import Durability

if TYPE_CHECKING:
    from bedplate.analysis.overview import CellFacts, Overview, Scoring


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
    """A line of a study's answer: `head` is `Safe`, `Unsafe`, `Less safe` or `Open`, `lead` how the text begins, and the line with the largest `rank` goes first."""

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


# Also of a run that no visit has begun: nothing is said at its head.
TRANSACTIONS = RunHead("tps", "tps", "latency_ms_p99", "p99 ms")


class TransactionView(WorkloadView):
    """Of a type whose runs make transactions."""

    makes_transactions: ClassVar[bool] = True
    heads: ClassVar[Mapping[str, RunHead]] = {"": TRANSACTIONS}
    headlines: ClassVar[tuple[str, ...]] = ("tps",)


def runs_of(found: Overview, workload: str) -> list[tuple[str, str]]:
    """Those of a type of workload, by whatever name they were recorded."""
    return [run for run in found.runs if run_type(found, run) == registry.type_today(workload)]


def cells_due(found: Overview, runs: Iterable[tuple[str, str]]) -> list[CellFacts]:
    """The cells in which any of these runs is due: those of another engine have none of them."""
    asked = list(runs)
    return [cell for cell in found.cells.values() if any(found.of(cell.id, run) for run in asked)]


def runs_together(found: Overview) -> list[tuple[list[tuple[str, str]], list[CellFacts]]]:
    """Runs with the cells in which they are due, apart where no cell has runs of both: those of servers, and those of libraries."""
    due = {cell: frozenset(run for run in found.runs if found.of(cell, run)) for cell in found.cells}
    groups: list[frozenset[tuple[str, str]]] = []
    for own in due.values():
        others = [group for group in groups if own.isdisjoint(group)]
        groups = [*others, own.union(*(group for group in groups if group not in others))]
    return [
        (
            [run for run in found.runs if run in group],
            [cell for cell in found.cells.values() if due[cell.id] and due[cell.id] <= group],
        )
        for group in sorted(groups, key=lambda group: [run not in group for run in found.runs])
        if group
    ]


def run_type(found: Overview, run: tuple[str, str]) -> str | None:
    """The type of a run as it is called today; None of one that no visit has begun."""
    spec = found.spec(run)
    return None if spec is None else registry.type_today(spec.workload)


def is_meant(found: Overview, run: tuple[str, str], workload: str | None) -> bool:
    """Whether a reader who names a run or a type, or neither, means this one: a type where no run is called so."""
    if workload is None or workload in {name for _, name in found.runs}:
        return workload in (None, run[1])
    return registry.type_today(workload) == run_type(found, run)


def run_kind(found: Overview, run: tuple[str, str]) -> str | None:
    """What a run does, where runs of its type do different things or have no transactions; None for any other."""
    spec = found.spec(run)
    return None if spec is None else view_of(spec.workload).kind(spec)


def run_head(found: Overview, run: tuple[str, str]) -> RunHead:
    """The two figures of a run of a study."""
    spec = found.spec(run)
    return TRANSACTIONS if spec is None else view_of(spec.workload).head(spec)


def run_told(found: Overview, run: tuple[str, str]) -> str:
    """What a run is called in its study: of several of one name each with the words of its dataset that another one lacks."""
    if sum(other[1] == run[1] for other in found.runs) < 2:
        return run[1]
    words = {dataset: found.dataset_words(dataset).split() for dataset, _ in found.runs}
    shared = set.intersection(*map(set, words.values()))
    own = words[run[0]]
    # A number alone says nothing: the name before it stays.
    told = [
        word
        for place, word in enumerate(own)
        if word not in shared
        or (place + 1 < len(own) and own[place + 1][:1].isdigit() and own[place + 1] not in shared)
    ]
    return f"{run[1]} ({' '.join(told or own)})"


def writes(found: Overview, run: tuple[str, str]) -> bool:
    """Whether a run writes to a file system that is measured, by what its workload does and not by its name."""
    spec = found.spec(run)
    return spec is not None and view_of(spec.workload).writes(found, run, spec)


def answers_first(found: Overview, run: tuple[str, str], metric: str) -> tuple[bool, int]:
    """What runs are sorted by: those that write first; of one type those that its folder puts first, as TPC-H's queries before its load."""
    spec = found.spec(run)
    headlines = () if spec is None else view_of(spec.workload).headlines
    return not writes(found, run), headlines.index(metric) if metric in headlines else len(headlines)


def has_speed(found: Overview, run: tuple[str, str]) -> bool:
    """Whether cells differ by the speed of a run, and not by a verdict."""
    spec = found.spec(run)
    return spec is None or model_of(spec.workload).has_speed


def has_speeds(overviews: Sequence[Overview]) -> bool:
    """Whether any run has a speed; without any run the page is that of speeds."""
    told = [has_speed(found, run) for found in overviews for run in found.runs]
    return not told or any(told)


def promised(spec: RunSpec | None, durability: Durability | None, phase: str, item: str) -> Durability | None:
    """The class that stands beside a figure of a part of a run: its own where its workload has one, else its cell's."""
    return durability if spec is None else view_of(spec.workload).promised(durability, phase, item)


def makes_transactions(found: Overview, run: tuple[str, str]) -> bool:
    """Whether a run makes transactions, or would, where no visit has begun it."""
    spec = found.spec(run)
    return spec is None or view_of(spec.workload).makes_transactions


def has_transactions(overviews: Sequence[Overview]) -> bool:
    """Whether any run makes transactions; without any run the page is that of transactions."""
    made = [makes_transactions(found, run) for found in overviews for run in found.runs]
    return not made or any(made)


def moved_bytes(found: Overview, run: tuple[str, str]) -> MovedBytes | None:
    """What a run is that is about bytes in a second; None of any other."""
    spec = found.spec(run)
    return None if spec is None else view_of(spec.workload).moved_bytes(spec)


def has_raw(overviews: Sequence[Overview]) -> bool:
    """Whether any run is about bytes in a second."""
    return any(moved_bytes(found, run) for found in overviews for run in found.runs)
