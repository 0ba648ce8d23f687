"""What an engine saves that does without copies of its pages: bytes for each transaction, beside the same cell with copies.

Speeds are compared as any others are (`comparison/`). Bytes are those of the work, and the same on any device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.analysis.wording import figure
from bedplate.model.reason import pages_unmended
from bedplate.statistics.summary import TRUSTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bedplate.analysis.overview import CellFacts, Overview
    from bedplate.model.levels import Scalar
    from bedplate.statistics.summary import Summary

# What is written, and where it goes.
_WRITTEN = (
    ("device_written_kib_per_transaction", "to the device"),
    ("wal_kib_per_transaction", "of log"),
)
# A cell with copies of its pages and one without may differ in these alone; they are named behind the table of their engine.
_OF_COPIES = frozenset({"full_page_writes", "innodb_doublewrite", "untorn_writes"})


@dataclass(frozen=True)
class Saved:
    """One kind of bytes for each transaction, in KiB; `where` says which."""

    where: str
    without: Summary
    with_copies: Summary

    @property
    def words(self) -> str:
        """`16.4 KiB to the device (-34 %)`."""
        share = (self.without.centre or 0.0) / (self.with_copies.centre or 1.0) - 1
        return f"{figure(self.without).mean} KiB {self.where} ({100 * share:+.0f} %)"


@dataclass(frozen=True)
class Saving:
    """A cell without copies beside the one with them, in a run that measured both."""

    cell: str
    beside: str
    run: str
    saved: tuple[Saved, ...]


def saving(found: Overview, cells: Iterable[str]) -> Saving | None:
    """Of the first of these cells, which do without copies, that has a like one with them in some run; None where none has."""
    for cell in cells:
        for beside, facts in found.cells.items():
            if _keeps_copies(facts) and _is_like(found, cell, beside):
                for run in found.runs:
                    saved = tuple(_saved(found, run, cell, beside))
                    if saved:
                        return Saving(cell, beside, run[1], saved)
    return None


def saving_words(told: Saving, copies: str, names: Mapping[str, str]) -> str:
    """Of one such pair, and in which run."""
    written = " and ".join(each.words for each in told.saved)
    return f"without {copies} {written} for each transaction: {names[told.cell]} beside {names[told.beside]}, {told.run}."


def _keeps_copies(facts: CellFacts) -> bool:
    return facts.declared is not None and pages_unmended(facts.declared.reasons) is None


def _is_like(found: Overview, one: str, other: str) -> bool:
    """Whether they differ in what makes copies needless, and in nothing else."""
    return one != other and _levels(found, one) == _levels(found, other)


def _levels(found: Overview, cell: str) -> Mapping[str, Scalar]:
    asked = found.study.schedule.cells[cell].levels
    return {name: level for name, level in asked.items() if name.rpartition(".")[2] not in _OF_COPIES}


def _saved(found: Overview, run: tuple[str, str], cell: str, beside: str) -> Iterable[Saved]:
    for metric, where in _WRITTEN:
        own, its = (found.summary(each, run, metric) for each in (cell, beside))
        if own.centre is not None and its.centre and {own.basis, its.basis} == {TRUSTED}:
            yield Saved(where, own, its)
