"""Which figures of a study's runs are summarised, and of what each summary is made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.analysis.scores import score_summaries
from bedplate.analysis.workload_view import view_of
from bedplate.model.metrics import METRICS
from bedplate.statistics.summary import Summaries, Summary, SummaryKey, summarise

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from bedplate.analysis.overview import CellFacts, Measurement
    from bedplate.analysis.scores import ScoreView
    from bedplate.model.cell import RunSpec


def summaries_of_runs(
    plain: Sequence[Measurement],
    specs: Mapping[tuple[str, str], RunSpec],
    cells: Mapping[str, CellFacts],
    views: Sequence[ScoreView],
) -> Summaries:
    """Of all figures of the runs, and of scores over cells. Cells whose visits are not comparable have no interval."""
    scores = {key: summary for view in views for key, summary in score_summaries(view).items()}
    groups: dict[tuple[str, str, str], list[Measurement]] = {}
    for m in plain:
        groups.setdefault((m.cell, m.dataset, m.run), []).append(m)

    def make(key: SummaryKey) -> Summary:
        found = scores.get(key)
        if found is None:
            runs = groups[key.cell, key.dataset, key.run]
            observations = (m.observation(key.metric, key.phase, key.item) for m in runs)
            found = summarise(observations, METRICS[key.metric].scale)
        return replace(found, low=None, high=None) if cells[key.cell].incomparable else found

    return Summaries((*_keys(plain, specs, groups), *scores), make)


def _keys(
    plain: Sequence[Measurement],
    specs: Mapping[tuple[str, str], RunSpec],
    groups: Iterable[tuple[str, str, str]],
) -> Iterator[SummaryKey]:
    """Every figure that any run of the same kind has is due in all of them, so that it may be missed.

    Kinds, since a load has no figure of a query: it does not lack it.
    """
    kinds = {run: _kind(run, specs) for run in {(m.dataset, m.run) for m in plain}}
    whole: dict[object, set[str]] = {}
    parts: dict[tuple[str, str], dict[tuple[str, str, str], None]] = {}
    for m in plain:
        run = (m.dataset, m.run)
        whole.setdefault(kinds[run], set()).update(m.by_metric)
        parts.setdefault(run, {}).update(dict.fromkeys(m.parts))
    due = {kind: [name for name in METRICS if name in names] for kind, names in whole.items()}
    for cell, dataset, name_of_run in groups:
        place = (dataset, name_of_run)
        yield from (SummaryKey(cell, *place, name) for name in due[kinds[place]])
        yield from (SummaryKey(cell, *place, name, phase, item) for phase, item, name in parts[place])


def _kind(run: tuple[str, str], specs: Mapping[tuple[str, str], RunSpec]) -> tuple[str, str | None] | None:
    spec = specs.get(run)
    if spec is None:
        return None
    return (spec.workload, view_of(spec.workload).alike(spec))
