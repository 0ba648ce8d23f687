"""What a search asks, among which cells, and which blocks of visits it came to: `search.json` of a study.

The question is frozen when the study is made; only the budget may grow. A block is written down before its first visit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bedplate.model.durability import BOUNDED_LOSS, CLASSES, DURABLE
from bedplate.model.reason import Reason

# What survives a power cut, as a search asks for it: with the device's volatile cache, with one that survives, with
# no more lost than the last commits. `measured` is as `volatile`, and cells that the search would name get power cuts.
VOLATILE, SURVIVING, BOUNDED, MEASURED, ANY = "volatile", "protected", "bounded", "measured", "any"
NOT_ASKED = "durability-not-asked"
WANTED: Mapping[str, tuple[str, ...]] = {
    VOLATILE: (DURABLE,),
    SURVIVING: (DURABLE,),
    BOUNDED: (DURABLE, BOUNDED_LOSS),
    MEASURED: (DURABLE,),
    ANY: CLASSES,
}


@dataclass(frozen=True)
class NotWorse:
    """A figure that the named cell may give up a part of, at most."""

    metric: str
    """the figure"""
    share: float
    """by how much it may be worse than the baseline's: 0.1 is 10 %"""


@dataclass(frozen=True)
class SearchCandidate:
    """A cell that may be visited."""

    cell: str
    """id of the cell"""
    seconds: float
    """what a visit was reckoned to take, without making its build"""
    build: str = ""
    """digest of the build that it needs; empty where none is made"""


@dataclass(frozen=True)
class SearchLeftOut:
    """A cell that is never visited."""

    cell: str
    """id of the cell"""
    reason: Reason
    """why"""


@dataclass(frozen=True)
class SearchedBlock:
    """Visits that were decided together, in random order. They are one repetition of the schedule."""

    number: int
    """from 0: its repetition less 1"""
    cells: tuple[str, ...]
    """ids of its cells, in the order of their visits"""
    proof: int = 0
    """0 in the search, k in the k-th proof"""
    leader: str | None = None
    """id of the cell that a proof is about; null in the search"""
    stage: int = 0
    """which of the runs it was decided for, from 0 in the order asked; a later run's search begins where an earlier one's ended"""


@dataclass(frozen=True)
class SearchRecord:
    """`search.json`: that a study is a search, what it asks, and its blocks so far."""

    version: int
    """1"""
    best: str
    """the metric whose best cell is looked for"""
    runs: tuple[str, ...]
    """names of the runs that it is a figure of"""
    dataset: str
    """id of the dataset that they run on"""
    durable: str
    """what a power cut must leave: `volatile` (durable with the device's volatile cache), `protected` (durable where the cache survives),
    `bounded` (loses the last commits at most), `measured` (as `volatile`, and power was cut), `any`"""
    budget_s: float
    """seconds of visits that it may take; on a fleet of each node"""
    margin: float
    """what counts as the same: 0.05 is 5 %"""
    candidates: tuple[SearchCandidate, ...]
    """cells that may be visited, in the plan's order"""
    left_out: tuple[SearchLeftOut, ...] = ()
    """cells that are never visited, and why"""
    baseline: str | None = None
    """id of the plan's first cell, which the best one is compared with; null where that is left out"""
    not_worse: tuple[NotWorse, ...] = ()
    """figures that the best cell may not be worse in"""
    builds: Mapping[str, float] = field(default_factory=dict)
    """by digest of a build the seconds that making it was reckoned to take; those that the cache had are not in it"""
    cut_dataset: str | None = None
    """id of the dataset whose visits cut power; null where none does"""
    cut_seconds: float = 0.0
    """what a visit that cuts power was reckoned to take"""
    at_once: int = 1
    """blocks of the search that are decided together: one for each node of a fleet"""
    accepted: tuple[str, ...] = ()
    """words or codes of doubts that were accepted: a suspect run is believed where nothing else speaks against it"""
    blocks: tuple[SearchedBlock, ...] = ()
    """all blocks, in order"""
    extended: int | None = None
    """repetitions of the factorial that the study was extended to; null while it is a search"""


@dataclass(frozen=True)
class SearchStep:
    """What a search does next: `blocks`, or power cuts in the cells `cuts`, or nothing more.

    A block that the search has already gets further attempts at these cells. `words` say where the search is. `spent_s` are the
    seconds of its visits so far. An end that names no cell is one where none could be measured; with
    `has_failed` visits that are due are not worth their time either.
    """

    words: str
    spent_s: float
    blocks: tuple[SearchedBlock, ...] = ()
    cuts: tuple[str, ...] = ()
    names_a_cell: bool = True
    has_failed: bool = False

    @property
    def is_last(self) -> bool:
        """Whether the search has ended."""
        return not self.blocks and not self.cuts
