"""Whether what is left of a study would only fail as the visits before it did.

A misspelt setting fails every visit alike, and a study of three days shall not find out for three days. Two visits that
failed at the same step with the same words, and none that completed, are enough, unless the cause may be something that
just those two have in common, as a node of a fleet: then a cell that differs is tried first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bedplate.model import codec
from bedplate.model.visit import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bedplate.model.cell import Cell
    from bedplate.model.visit import VisitRecord

_ENOUGH = 2
_SHOWN_CHARACTERS = 300
# Times, process ids and device numbers differ between two tellings of one thing.
_NUMBER = re.compile(r"[0-9]+")


class AlikeFailures:
    """The failures of one start, as long as they are all alike."""

    def __init__(self) -> None:
        self._failed: list[VisitRecord] = []
        self._differ = False

    def add(self, record: VisitRecord) -> None:
        """One more visit that has ended."""
        if record.outcome is Outcome.COMPLETED or (
            self._failed and _signature(record) != _signature(self._failed[0])
        ):
            self._differ = True
        self._failed.append(record)

    def verdict(self, left: Iterable[tuple[Cell, str, str | None]]) -> tuple[str, ...]:
        """Sentences if no visit of these cells, datasets and nodes is worth its time; empty if one is, or none is left."""
        if self._differ or len(self._failed) < _ENOUGH:
            return ()
        left = tuple(left)
        if not left:
            return ()
        common = set.intersection(
            *({*_levels(record.cell, record.key.dataset, _node(record))} for record in self._failed)
        )
        if any(not common <= {*_levels(*each)} for each in left):
            return ()
        first = self._failed[0]
        reason = first.reasons[0].sentence if first.reasons else "no reason was given"
        shown = reason if len(reason) <= _SHOWN_CHARACTERS else f"{reason[:_SHOWN_CHARACTERS]}…"
        return (
            f"the first {len(self._failed)} visits of this start failed alike, at {first.failed_step}: {shown}",
            f"the {len(left)} that are left have all that those had in common, and were not tried",
            "mend the cause first; a plan that was changed needs another --study",
        )


def _signature(record: VisitRecord) -> tuple[str | None, tuple[tuple[str, str], ...]]:
    told = [(reason.code, reason.sentence) for reason in record.reasons]
    if node := _node(record):
        # Every node says its own name.
        told = [(code, re.sub(rf"(?<![\w.-]){re.escape(node)}(?![\w.-])", "", text)) for code, text in told]
    return record.failed_step, tuple((code, _NUMBER.sub("0", text)) for code, text in told)


def _node(record: VisitRecord) -> str | None:
    return record.provenance.get("node")


def _levels(cell: Cell, dataset: str, node: str | None) -> Iterator[tuple[str, str]]:
    """Every level of a cell by its place, as text, its dataset and where it is visited."""
    yield "dataset", dataset
    yield "node", str(node)
    yield from _leaves("", codec.to_json(cell))


def _leaves(place: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(f"{place}.{name}", inner)
    else:
        yield place, repr(value)
