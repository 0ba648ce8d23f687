"""The data of a page, apart from how it looks: one JSON document that the page's script reads.

Figures stand in columns, one entry per run, since a page of hundreds of cells is mostly figures.
Indices point into `cells`, `runs` and `metrics`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bedplate.model.codec import to_json
from bedplate.model.metrics import METRICS
from bedplate.report.courses import packed_course, packed_latencies, rounded
from bedplate.report.effective import effective_document
from bedplate.report.wording import counted, durability_words, repetitions_sentence
from bedplate.statistics.heat_map import average_map, common_scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.report.overview import CellFacts, Overview

FORMAT_VERSION = 1
_FIGURE_DIGITS = 5


def page_document(overviews: Sequence[Overview]) -> dict[str, Any]:
    """Everything that the script of a page draws from."""
    runs = _runs(overviews)
    metrics = _metrics(overviews)
    return {
        "format_version": FORMAT_VERSION,
        "studies": [_study(found) for found in overviews],
        "metrics": [to_json(METRICS[name]) for name in metrics],
        "runs": [{"dataset": dataset, "run": run} for dataset, run in runs],
        "cells": [
            _cell(found, cell, number)
            for number, found in enumerate(overviews)
            for cell in found.cells.values()
        ],
        "pruned": [entry for number, found in enumerate(overviews) for entry in _pruned(number, found)],
        "summaries": _summaries(overviews, runs, metrics),
        "heat_maps": _heat_maps(overviews, runs, metrics),
        "measurements": _measurements(overviews, runs, metrics),
        "effective": [effective_document(found) for found in overviews],
    }


def _runs(overviews: Sequence[Overview]) -> list[tuple[str, str]]:
    return list(dict.fromkeys(run for found in overviews for run in found.runs))


def _metrics(overviews: Sequence[Overview]) -> list[str]:
    present = {key.metric for found in overviews for key in found.summaries}
    # Without any value there are still squares to explain: tps is the metric that they lack.
    return [name for name in METRICS if name in present or name == "tps"]


def _study(found: Overview) -> dict[str, Any]:
    return {
        "title": found.study.facts.title,
        "directory": found.study.directory.name,
        "marks": list(found.marks),
        "repetitions": found.repetitions,
        "sentence": repetitions_sentence(found.repetitions),
    }


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
        "throttle": label.throttle,
        "emulated": cell.emulated,
        "durability": durability_words(cell.durability),
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


def _summaries(
    overviews: Sequence[Overview], runs: list[tuple[str, str]], metrics: list[str]
) -> dict[str, list[Any]]:
    """Columns, one entry per cell, run and metric that has something to say."""
    names = (
        "cell",
        "run",
        "metric",
        "n",
        "basis",
        "median",
        "minimum",
        "maximum",
        "variation",
        "low",
        "high",
    )
    columns: dict[str, list[Any]] = {name: [] for name in (*names, "reason", "counted")}
    run_of = {run: index for index, run in enumerate(runs)}
    metric_of = {name: index for index, name in enumerate(metrics)}
    first = 0
    for found in overviews:
        cell_of = {cell: first + index for index, cell in enumerate(found.cells)}
        first += len(found.cells)
        for key, summary in found.summaries.items():
            if key.metric not in metric_of:
                continue
            columns["cell"].append(cell_of[key.cell])
            columns["run"].append(run_of[key.dataset, key.run])
            columns["metric"].append(metric_of[key.metric])
            columns["n"].append(summary.n)
            columns["basis"].append(summary.basis)
            columns["counted"].append(counted(summary))
            columns["reason"].append(None if summary.n else found.absence(key))
            for name in names[5:]:
                columns[name].append(rounded(getattr(summary, name), _FIGURE_DIGITS))
    return columns


def _heat_maps(
    overviews: Sequence[Overview], runs: list[tuple[str, str]], metrics: list[str]
) -> list[dict[str, Any]]:
    """Per study, run and metric: the scale that all its maps share, and the map of the averages."""
    made = []
    for number, found in enumerate(overviews):
        for run_index, run in enumerate(runs):
            for metric_index, metric in enumerate(metrics):
                maps: dict[str, dict[tuple[str, str], float]] = {}
                for cell in found.cells.values():
                    squares = maps.setdefault(cell.label.panel, {})
                    value = found.summary(cell.id, run, metric).median
                    if value is not None:
                        squares[cell.label.filesystem_block, cell.label.database_block] = value
                shown = list(dict.fromkeys(square for squares in maps.values() for square in squares))
                scale = METRICS[metric].scale
                ends = common_scale((v for squares in maps.values() for v in squares.values()), scale)
                if ends is None:
                    continue
                average = average_map(maps, shown, scale)
                made.append(
                    {
                        "study": number,
                        "run": run_index,
                        "metric": metric_index,
                        "low": rounded(ends.low, _FIGURE_DIGITS),
                        "high": rounded(ends.high, _FIGURE_DIGITS),
                        "logarithmic": ends.logarithmic,
                        "average": [[*square, rounded(value, 5)] for square, value in average.values.items()],
                        "n": average.n,
                        "used": list(average.used),
                        "left_out": list(average.left_out),
                    }
                )
    return made


def _measurements(
    overviews: Sequence[Overview], runs: list[tuple[str, str]], metrics: list[str]
) -> dict[str, Any]:
    """Columns, one entry per run that was due; canaries too, with the run's index -1."""
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
        "course",
        "latencies",
    )
    columns: dict[str, list[Any]] = {name: [] for name in names}
    figures: list[list[float | None]] = [[] for _ in metrics]
    run_of = {run: index for index, run in enumerate(runs)}
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
                "reasons": list(m.reasons),
                "warmup_s": rounded(run.warmup_s) if run else None,
                "duration_s": rounded(run.duration_s) if run else None,
                "windows": [[w.kind, rounded(w.start_s), rounded(w.end_s)] for w in run.windows]
                if run
                else [],
                "course": packed_course(m.directory) if m.directory and not m.canary else None,
                "latencies": packed_latencies(m.directory) if m.directory and not m.canary else None,
            }
            for name, value in entry.items():
                columns[name].append(value)
            for index, metric in enumerate(metrics):
                figures[index].append(rounded(m.value(metric), _FIGURE_DIGITS))
    return {**columns, "figures": figures}
