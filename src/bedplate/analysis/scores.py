"""Scores over the cells of a study, one view for each run of a workload that is scored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from bedplate.analysis.workload_view import view_of
from bedplate.statistics.summary import Summary, SummaryKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from bedplate.analysis.overview import Measurement
    from bedplate.model.cell import RunSpec
    from bedplate.statistics.tpch_scores import QueryRun, Score, Scores

    RunSpecs: TypeAlias = Mapping[tuple[str, str], RunSpec]

# Made over all cells together, not over the repetitions of one.
SCORES = ("time", "score", "m_time", "m_score")


@dataclass(frozen=True)
class ScoreView:
    """The scores of one power run over all cells of a study.

    `plans` are the hashes that a query had in a cell, each once, in the order of the repetitions.
    `repetitions` counts the runs behind a cell's scores, `query_runs` are what these are made of.
    """

    dataset: str
    run: str
    scores: Scores
    plans: Mapping[str, Mapping[str, tuple[str, ...]]]
    repetitions: Mapping[str, int]
    query_runs: tuple[QueryRun, ...] = ()


@dataclass(frozen=True)
class Scoring:
    """What a workload does that scores its runs over all cells. Both get measurements of any run, and which are its own.

    `views` gets those without canaries; `completed` adds the figures that no run can know alone.
    """

    views: Callable[[Sequence[Measurement], Sequence[str], RunSpecs], Sequence[ScoreView]]
    completed: Callable[[Iterable[Measurement], RunSpecs], Iterable[Measurement]]


def score_views(plain: Sequence[Measurement], cells: Sequence[str], specs: RunSpecs) -> tuple[ScoreView, ...]:
    """The views of every workload that scores its runs; `plain` are the measurements without canaries."""
    return tuple(view for scoring, own in _scored(specs) for view in scoring.views(plain, cells, own))


def completed_by_others(measurements: Iterable[Measurement], specs: RunSpecs) -> Iterable[Measurement]:
    """The measurements, with the figures that no run can know alone."""
    for scoring, own in _scored(specs):
        measurements = scoring.completed(measurements, own)
    return measurements


def _scored(specs: RunSpecs) -> list[tuple[Scoring, RunSpecs]]:
    return [
        (scoring, {run: spec for run, spec in specs.items() if spec.workload == kind})
        for kind in dict.fromkeys(spec.workload for spec in specs.values())
        if (scoring := view_of(kind).scoring) is not None
    ]


def score_summaries(view: ScoreView) -> dict[SummaryKey, Summary]:
    """The scores as summaries of the run, so that they are drawn and listed as every other metric is."""
    found = {}
    for cell in view.scores.cells:
        for metric in SCORES:
            score: Score = getattr(cell, metric)
            count = view.repetitions[cell.cell]
            known = score.value is not None
            found[SummaryKey(cell.cell, view.dataset, view.run, metric)] = Summary(
                n=count if known else 0,
                basis=cell.basis if known else None,
                centre=score.value,
                low=score.low,
                high=score.high,
                absent=0 if known else count,
            )
    return found


def score_reasons(view: ScoreView) -> dict[SummaryKey, str]:
    """Why a cell has no score, by the key of the summary that lacks it."""
    found = {
        SummaryKey(cell, view.dataset, view.run, metric): reason
        for cell, reason in view.scores.left_out.items()
        for metric in SCORES
    }
    for cell in view.scores.cells:
        for metric in SCORES:
            score: Score = getattr(cell, metric)
            if score.reasons:
                found[SummaryKey(cell.cell, view.dataset, view.run, metric)] = "; ".join(score.reasons)
    return found
