"""In what two cells were measured, and in what their surroundings differ that no factor explains."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from bedplate.analysis.factors import DEFAULT
from bedplate.analysis.fleet import NODE
from bedplate.model.engine import library_levels
from bedplate.model.template import filled
from bedplate.model.visit import LOADED, Outcome
from bedplate.statistics.comparable import differences

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bedplate.analysis.cell_filter import Candidate
    from bedplate.analysis.comparison.matching import Pair
    from bedplate.analysis.overview import Overview
    from bedplate.model.visit import VisitRecord

# What the page's script says too.
VISITS_DIFFER = "visits of {cell} differ: {words}"
RUNS_DIFFER = "{name} of the run {run}: {levels}"
# Which surroundings follow from a factor, by the start of its name.
FOLLOWING = {
    "kernel.": ("kernel",),
    "build.": ("build",),
    "build.engine": ("tools",),
    **dict.fromkeys(sorted(library_levels()), ("tools",)),
}


class Surroundings:
    """Of all completed visits of some studies. `declared` are surroundings that differ on purpose."""

    def __init__(self, overviews: Sequence[Overview], declared: Sequence[str]) -> None:
        self._overviews = overviews
        self._declared = declared
        # By study, cell and dataset: visits of two datasets may have been lived with other tools and protocols, and
        # are never held against each other.
        self._found: dict[tuple[int, str, str], list[Mapping[str, str]]] = defaultdict(list)
        for number, found in enumerate(overviews):
            for visit in found.study.visits:
                record = visit.record
                if not record.key.canary and record.outcome is Outcome.COMPLETED:
                    place = (number, record.key.cell, record.key.dataset)
                    self._found[place].append(surroundings_of(record))

    def of_pair(self, pair: Pair, run: tuple[str, str]) -> tuple[str, ...]:
        """What keeps a pair from being compared in a run; empty where nothing does."""
        sides = (pair.baseline, pair.contender)
        return (*self.of_cells(sides, run), *self._of_runs(sides, run))

    def of_cells(self, cells: Sequence[Candidate], run: tuple[str, str]) -> tuple[str, ...]:
        """In what visits of the run's dataset differ beside the factors of their cells; empty where nothing does."""
        own = [
            filled(VISITS_DIFFER, cell=cell.labels[1], words=words)
            for cell in cells
            for words in self._overviews[cell.study].cells[cell.cell].incomparable
        ]
        known = [each for cell in cells for each in self._found[cell.study, cell.cell, run[0]]]
        explained = {*self._declared, *_explained([cell.levels for cell in cells])}
        groups = [known]
        if len({cell.study for cell in cells}) == 1:
            # Within a study cells meet on one node at a time, and nodes may differ where the plan says so.
            nodes = dict.fromkeys(each.get(NODE) for each in known)
            groups = [[each for each in known if each.get(NODE) == node] for node in nodes]
        told = (words for group in groups for words in differences(group, declared=explained))
        return tuple(dict.fromkeys((*own, *told)))

    def _of_runs(self, cells: Sequence[Candidate], run: tuple[str, str]) -> Iterator[str]:
        """Two plans may call two ways of measuring alike."""
        specs = [self._overviews[cell.study].spec(run) for cell in cells]
        levels = [{} if spec is None else dict(spec.levels) for spec in specs]
        for name in sorted({*levels[0], *levels[1]}):
            asked = [str(found.get(name, DEFAULT)) for found in levels]
            if asked[0] != asked[1]:
                yield filled(RUNS_DIFFER, name=name, run=run[1], levels=", ".join(asked))


def surroundings_between(overviews: Sequence[Overview], declared: Sequence[str] = ()) -> Surroundings:
    """Those of some studies; of one alone they are worked out once."""
    if len(overviews) == 1 and not declared:
        return overviews[0].once(_surroundings_within)
    return Surroundings(overviews, declared)


def _surroundings_within(found: Overview) -> Surroundings:
    return Surroundings([found], ())


def surroundings_of(record: VisitRecord) -> Mapping[str, str]:
    """What a visit says of where it was lived, with its device where the executor did not say it."""
    device = [
        str(record.device_facts[name]) for name in ("kind", "vendor", "model") if name in record.device_facts
    ]
    stack = {"disk": " ".join(device)} if device else {}
    # Before a visit said so, each had loaded its dataset.
    return {**stack, "executor": record.executor, "dataset": LOADED, **record.provenance}


def _explained(levels: Sequence[Mapping[str, object]]) -> frozenset[str]:
    """The surroundings that differ because some factor does."""
    names = {name for found in levels for name in found}
    varying = [name for name in names if len({repr(found.get(name)) for found in levels}) > 1]
    return frozenset(
        key for start, keys in FOLLOWING.items() for name in varying if name.startswith(start) for key in keys
    )
