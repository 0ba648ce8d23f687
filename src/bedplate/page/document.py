"""The data of a page, apart from how it looks: one JSON document that the page's script reads.

Figures stand in columns, one entry per run, since a page of hundreds of cells is mostly figures.
Indices point into `cells`, `runs`, `metrics` and `parts`. What speaks of parts of runs is packed: a study of
TPC-H has a hundred of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bedplate.analysis.comparison.compared import study_names
from bedplate.analysis.effective import effective_document
from bedplate.analysis.part_summaries import PagePart, page_parts, ranked
from bedplate.analysis.rounding import rounded
from bedplate.analysis.run_heads import has_speeds, moved_bytes, run_head, run_kind, writes
from bedplate.analysis.wording import (
    counted,
    durability_class,
    durability_told,
    durability_words,
    repetitions_sentence,
    safety,
    words_on_device,
)
from bedplate.model.codec import to_json
from bedplate.model.durability import CLASSES
from bedplate.model.figure import Better
from bedplate.model.metrics import METRICS
from bedplate.model.reason import sentences
from bedplate.page.choice import choice_document, foreign_levels, surroundings_document, usual_levels
from bedplate.page.courses import packed, packed_runs, precision_for
from bedplate.page.observations import observations_document
from bedplate.page.packed_data import PackedData
from bedplate.page.rules import rules_document
from bedplate.page.workload_page import workload_pages
from bedplate.statistics.comparison import is_speed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.analysis.overview import CellFacts, Overview
    from bedplate.analysis.part_summaries import RankedSummary
    from bedplate.model.figure import Metric
    from bedplate.statistics.summary import SummaryKey

FORMAT_VERSION = 1
_FIGURE_DIGITS = 5


@dataclass(frozen=True)
class _Indices:
    """What the document's columns point into, and the shown summaries of every study, in its order."""

    runs: tuple[tuple[str, str], ...]
    metrics: tuple[str, ...]
    parts: tuple[PagePart, ...]
    summaries: tuple[Mapping[SummaryKey, RankedSummary], ...]

    def part(self, key: SummaryKey) -> int:
        return self._part_of[key.phase, key.item]

    @cached_property
    def _part_of(self) -> Mapping[tuple[str, str], int]:
        return {(part.phase, part.item): index for index, part in enumerate(self.parts)}


def page_document(overviews: Sequence[Overview], packed_data: PackedData | None = None) -> dict[str, Any]:
    """Everything that the script of a page draws from; courses and latencies are put into the packed data."""
    indices = _Indices(
        runs=_runs(overviews),
        metrics=_metrics(overviews),
        parts=page_parts(overviews),
        summaries=tuple(
            {key: ranked(found, key, summary) for key, summary in found.summaries.items()}
            for found in overviews
        ),
    )
    factors, levels = choice_document(overviews)
    within = {
        "summaries": _summaries(overviews, indices, whole=False),
    }
    return {
        "format_version": FORMAT_VERSION,
        "studies": [
            _study(found, name) for found, name in zip(overviews, study_names(overviews), strict=True)
        ],
        "rules": rules_document(),
        "metrics": [_metric(METRICS[name]) for name in indices.metrics],
        "parts": [[part.label, part.group] for part in indices.parts],
        "runs": [_run(overviews, run, indices.metrics) for run in indices.runs],
        "factors": factors,
        "surroundings": surroundings_document(overviews, indices.runs),
        "observations": observations_document(overviews, indices.metrics, indices.parts),
        "cells": _cells(
            overviews, levels, foreign_levels(overviews, factors), usual_levels(overviews, factors)
        ),
        "pruned": [entry for number, found in enumerate(overviews) for entry in _pruned(number, found)],
        "summaries": _summaries(overviews, indices, whole=True),
        "within": packed(within) if len(indices.parts) > 1 else None,
        "ranking": [_ranking(overviews, run) for run in indices.runs],
        "measurements": _measurements(overviews, indices, packed_data or PackedData()),
        "effective": [effective_document(found) for found in overviews],
        **{
            key: part
            for own in workload_pages()
            for key, part in own.document(overviews, indices.runs).items()
        },
    }


def _runs(overviews: Sequence[Overview]) -> tuple[tuple[str, str], ...]:
    return tuple(dict.fromkeys(run for found in overviews for run in found.runs))


def _metrics(overviews: Sequence[Overview]) -> tuple[str, ...]:
    present = {key.metric for found in overviews for key in found.summaries}
    # Without any value there are still squares to explain: the first figure of a run is what they lack.
    present |= {run_head(found, run).first for found in overviews for run in found.runs}
    return tuple(name for name in METRICS if name in (present or {"tps"}))


def _metric(metric: Metric) -> dict[str, Any]:
    """Without what it is taken from, which docs/method/metrics.md says."""
    shown = {name: value for name, value in to_json(metric).items() if name != "source"}
    return {**shown, "is_speed": is_speed(metric), "direction": metric.better.words}


def _run(overviews: Sequence[Overview], run: tuple[str, str], metrics: Sequence[str]) -> dict[str, Any]:
    """`kind` is what it does, `writes` whether it writes, `first` the metric that stands for it.

    `moves` is how a run is drawn that is about bytes in a second; null of any other.
    """
    owner = next(found for found in overviews if run in found.runs)
    return {
        "dataset": run[0],
        "dataset_words": owner.dataset_words(run[0]),
        "run": run[1],
        "kind": run_kind(owner, run),
        "writes": writes(owner, run),
        "moves": None if (moved := moved_bytes(owner, run)) is None else to_json(moved),
        "first": metrics.index(run_head(owner, run).first),
    }


def _study(found: Overview, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "title": found.study.facts.title,
        "directory": found.study.directory.name,
        "marks": list(found.marks),
        "selection": found.selection,
        "repetitions": found.repetitions,
        "sentence": repetitions_sentence(
            found.repetitions, executor=found.study.facts.executor, has_speeds=has_speeds([found])
        ),
    }


def _cells(
    overviews: Sequence[Overview],
    levels: Sequence[Sequence[int]],
    foreign: Sequence[Sequence[int]],
    usual: Sequence[Sequence[int]],
) -> list[dict[str, Any]]:
    cells = [(found, cell, i) for i, found in enumerate(overviews) for cell in found.cells.values()]
    return [
        {
            **_cell(found, cell, number),
            "levels": places,
            "usual": at_usual,
            **({"foreign": others} if others else {}),
        }
        for (found, cell, number), places, others, at_usual in zip(cells, levels, foreign, usual, strict=True)
    ]


def _cell(found: Overview, cell: CellFacts, number: int) -> dict[str, Any]:
    label = cell.label
    return {
        "study": number,
        "id": cell.id,
        "panel": label.panel,
        "row": label.filesystem_block,
        "row_bytes": label.filesystem_block_bytes,
        "column": label.database_block,
        "column_bytes": label.database_block_bytes,
        "throttle": label.emulated_device or None,
        "emulated": cell.emulated,
        "durability": durability_told(cell),
        "durability_class": durability_class(cell.durability, cell.cache),
        "promise": durability_words(cell.durability),
        "promise_here": words_on_device(cell),
        "cache": cell.cache,
        "safety": list(safety(cell)),
        "identical_to": [found.cells[other].label.full for other in cell.identical_to],
        "changing": cell.changing,
    }


def _pruned(number: int, found: Overview) -> list[dict[str, Any]]:
    return [
        {
            "study": number,
            "panel": label.panel,
            "row": label.filesystem_block,
            "row_bytes": label.filesystem_block_bytes,
            "column": label.database_block,
            "column_bytes": label.database_block_bytes,
            "reasons": list(reasons),
        }
        for label, reasons in found.pruned
    ]


def _summaries(overviews: Sequence[Overview], indices: _Indices, *, whole: bool) -> dict[str, list[Any]]:
    """Columns, one entry per cell, run and metric that has something to say, of whole runs or of parts.

    `censored` is how many repetitions were stopped at a limit, `limit` the limit. Those of parts also have `part`.
    """
    # By the names of the columns.
    statistics = {
        "mean": "centre",
        **{name: name for name in ("minimum", "maximum", "variation", "low", "high")},
    }
    names = ("cell", "run", "metric", "n", "basis", *statistics, "reason", "counted", "censored", "limit")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    if not whole:
        columns["part"] = []
    run_of = {run: index for index, run in enumerate(indices.runs)}
    metric_of = {name: index for index, name in enumerate(indices.metrics)}
    first = 0
    for found, shown in zip(overviews, indices.summaries, strict=True):
        cell_of = {cell: first + index for index, cell in enumerate(found.cells)}
        first += len(found.cells)
        for key, entry in shown.items():
            part = indices.part(key)
            if (part == 0) != whole:
                continue
            summary = entry.summary
            columns["cell"].append(cell_of[key.cell])
            columns["run"].append(run_of[key.dataset, key.run])
            columns["metric"].append(metric_of[key.metric])
            columns["n"].append(summary.n)
            columns["basis"].append(summary.basis)
            columns["counted"].append(counted(summary))
            columns["reason"].append(None if summary.n else found.absence(key))
            for name, statistic in statistics.items():
                columns[name].append(rounded(getattr(summary, statistic), _FIGURE_DIGITS))
            columns["censored"].append(summary.censored)
            columns["limit"].append(rounded(entry.limit, _FIGURE_DIGITS))
            if not whole:
                columns["part"].append(part)
    return columns


def _ranking(overviews: Sequence[Overview], run: tuple[str, str]) -> list[int]:
    """The cells with a value in the first figure of a run, those of the strictest class of durability first, then the best."""
    ranked: list[tuple[int, float, int]] = []
    first = 0
    for found in overviews:
        metric = run_head(found, run).first
        sign = 1 if METRICS[metric].better is Better.LOWER else -1
        for index, cell in enumerate(found.cells.values(), start=first):
            centre = found.summary(cell.id, run, metric).centre
            if centre is not None:
                strictness = CLASSES.index(durability_class(cell.durability, cell.cache))
                ranked.append((strictness, sign * centre, index))
        first += len(found.cells)
    return [index for _, _, index in sorted(ranked)]


def _measurements(
    overviews: Sequence[Overview], indices: _Indices, packed_data: PackedData
) -> dict[str, Any]:
    """Columns, one entry per run that was due; canaries too, with the run's index -1.

    `course` and `latencies` are places in the packed data, `steps` how finely a course's transactions were cut.
    """
    names = (
        "study",
        "cell",
        "run",
        "repetition",
        "order",
        "canary",
        "outcome",
        "unreached",
        "emulated",
        "validity",
        "reasons",
        "warmup_s",
        "duration_s",
        "windows",
    )
    columns: dict[str, list[Any]] = {name: [] for name in names}
    figures: list[list[float | None]] = [[] for _ in indices.metrics]
    run_of = {run: index for index, run in enumerate(indices.runs)}
    first = 0
    for number, found in enumerate(overviews):
        cell_of = {cell: first + index for index, cell in enumerate(found.cells)}
        first += len(found.cells)
        for m in found.measurements:
            run = m.figures
            entry = {
                "study": number,
                "cell": cell_of.get(m.cell, -1),
                "run": -1 if m.canary else run_of[m.dataset, m.run],
                "repetition": m.repetition,
                "order": m.order,
                "canary": m.canary,
                "outcome": m.outcome.value,
                "unreached": m.unreached,
                "emulated": m.where is not None and m.where.emulated,
                "validity": m.validity.value,
                "reasons": list(sentences(m.reasons)),
                "warmup_s": rounded(run.warmup_s) if run else None,
                "duration_s": rounded(run.duration_s) if run else None,
                "windows": [[w.kind, rounded(w.start_s), rounded(w.end_s)] for w in run.windows]
                if run
                else [],
            }
            for name, value in entry.items():
                columns[name].append(value)
            for index, metric in enumerate(indices.metrics):
                figures[index].append(rounded(m.value(metric), _FIGURE_DIGITS))
    return {**columns, **_courses(overviews, packed_data), "figures": figures}


def _courses(overviews: Sequence[Overview], packed_data: PackedData) -> dict[str, Any]:
    """Courses are drawn of runs, not of canaries."""
    due = [m for found in overviews for m in found.measurements]
    runs = [m.figures for m in due if m.figures is not None and not m.canary]
    precision = precision_for(sum((run.warmup_s or 0) + (run.duration_s or 0) for run in runs))
    made = packed_runs([None if m.canary else m.directory for m in due], precision)
    return {
        "course": [packed_data.put(course) for course, _ in made],
        "latencies": [packed_data.put(latencies) for _, latencies in made],
        "steps": precision.transactions,
    }
