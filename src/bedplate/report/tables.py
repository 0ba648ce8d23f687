"""Tables of a study for the terminal, readable at 80 columns, and the same as plain records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from bedplate.errors import PlanError
from bedplate.model import tpch
from bedplate.model.codec import to_json
from bedplate.model.lmdb import WORKLOAD as LMDB
from bedplate.model.metrics import METRICS
from bedplate.model.power_cut import WORKLOAD as POWER_CUT
from bedplate.report.durability_table import durability_table
from bedplate.report.lmdb_tables import lmdb_tables
from bedplate.report.overview import overview
from bedplate.report.page_parts import ranked
from bedplate.report.part_tables import part_table
from bedplate.report.parts import WHOLE
from bedplate.report.power_cut_tables import power_cut_document, power_cut_table
from bedplate.report.raw_tables import WORKLOADS as RAW
from bedplate.report.raw_tables import raw_tables
from bedplate.report.selected import selected_overviews
from bedplate.report.study_health import study_health
from bedplate.report.table_parts import (
    BAR_CELLS,
    MARKS,
    Notes,
    bar,
    cell_name,
    mark_lines,
    plain_table,
    reasons_of,
    shortened,
    state_text,
)
from bedplate.report.tpch_tables import tpch_tables
from bedplate.report.tpch_view import tpch_document
from bedplate.report.wording import durability_words, mark, number, repetitions_sentence, span
from bedplate.statistics.summary import SummaryKey

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from bedplate.report.overview import CellFacts, Overview

Run = tuple[str, str]
# Two runs fit beside each other in 80 columns.
_RUNS_IN_A_TABLE = 2
_TPS = "tps"
_WITHOUT_TRANSACTIONS = (tpch.WORKLOAD, LMDB, POWER_CUT, *RAW)


def show_tables(
    study_paths: Sequence[Path],
    *,
    workload: str | None = None,
    metric: str | None = None,
    cells: Sequence[str] = (),
) -> list[RenderableType]:
    """Every study's tables, each with its footnotes.

    `workload` is the name of a run or a type of workload, `cells` are filters of cells. Without a `metric` each type shows what it is about:
    tps, or TPC-H's load, scores and queries; with one, a table of that metric for each pair of runs and for
    the parts of each run. The last of a study's tables is that of its durability; below it stands what time did
    to the study. PlanError where no study has the run, nothing knows the metric or a filter selects nothing.
    """
    _require_metric(metric)
    shown: list[RenderableType] = []
    names: list[str] = []
    for found in selected_overviews(study_paths, cells):
        names += [run for _, run in found.runs]
        runs = _chosen(found, workload)
        if not runs:
            continue
        title = Text(found.study.facts.title, style="bold")
        shown.append(Group(title, *mark_lines(found)))
        shown += _metric_tables(found, runs, metric) if metric else _default_tables(found, runs)
        cuts = power_cut_table(found)
        if cuts is not None:
            shown.append(cuts)
        durability = durability_table(found)
        if durability is not None:
            shown.append(durability)
        health = study_health(found).sentences(runs)
        if health:
            shown.append(Text("\n".join(("", *health))))
    if workload is not None and not shown:
        raise PlanError(
            f"no run is called {workload!r}; there are {', '.join(dict.fromkeys(names)) or 'none'}"
        )
    return shown


def show_document(
    study_paths: Sequence[Path],
    *,
    workload: str | None = None,
    metric: str | None = None,
    cells: Sequence[str] = (),
) -> dict[str, Any]:
    """The same as JSON: one entry per study, cell and run. Absent figures are null."""
    _require_metric(metric)
    return {
        "studies": [
            _study_document(found, workload=workload, metric=metric)
            for found in selected_overviews(study_paths, cells)
        ]
    }


def two_repetitions_sentence(study: Path) -> str:
    """What the repetitions of this study can and cannot tell, and how to get verdicts."""
    found = overview(study)
    return repetitions_sentence(found.repetitions, study=str(study), executor=found.study.facts.executor)


def _require_metric(metric: str | None) -> None:
    if metric is not None and metric not in METRICS:
        raise PlanError(f"metric {metric!r} is not known; known are {', '.join(sorted(METRICS))}")


def _chosen(found: Overview, workload: str | None) -> list[Run]:
    """The runs of that name, and those of that type of workload."""
    return [run for run in found.runs if workload in (None, run[1], _type(found, run))]


def _type(found: Overview, run: Run) -> str | None:
    spec = found.spec(run)
    return None if spec is None else spec.workload


def _default_tables(found: Overview, runs: Sequence[Run]) -> list[RenderableType]:
    warehouse = [run for run in runs if _type(found, run) == tpch.WORKLOAD]
    raw = [run for run in runs if _type(found, run) in RAW]
    lmdb = [run for run in runs if _type(found, run) == LMDB]
    # The table of power cuts stands with that of durability, for all runs together.
    others = [run for run in runs if run not in (*warehouse, *raw, *lmdb) and _type(found, run) != POWER_CUT]
    return [
        *_run_tables(found, others, _TPS),
        *(tpch_tables(found, warehouse) if warehouse else []),
        *lmdb_tables(found, lmdb),
        *raw_tables(found, raw),
    ]


def _metric_tables(found: Overview, runs: Sequence[Run], metric: str) -> list[RenderableType]:
    """The whole runs that have the metric, then the parts of each; a metric that nothing has is shown as such."""
    having = {
        (key.dataset, key.run)
        for key in found.summaries
        if key.metric == metric and (key.phase, key.item) == (WHOLE, "")
    }
    parts = [table for run in runs if (table := part_table(found, run, metric)) is not None]
    whole = [run for run in runs if run in having]
    return [*_run_tables(found, whole if whole or parts else runs, metric), *parts]


def _run_tables(found: Overview, runs: Sequence[Run], metric: str) -> list[RenderableType]:
    return [
        _run_table(found, runs[start : start + _RUNS_IN_A_TABLE], metric)
        for start in range(0, len(runs), _RUNS_IN_A_TABLE)
    ]


def _run_table(found: Overview, runs: Sequence[Run], metric: str) -> RenderableType:
    notes = Notes()
    several = len({dataset for dataset, _ in found.runs}) > 1
    # Where only some are, the footnote at their names says it.
    measured = [cell for cell in found.cells.values() if any(found.of(cell.id, run) for run in runs)]
    all_emulated = any(cell.emulated for cell in measured)
    with_latency = _has_latency(found, runs)
    table = plain_table()
    table.add_column("cell", min_width=14, max_width=36)
    table.add_column("after a\npower cut", max_width=12)
    for dataset, run in runs:
        # Whole, on lines of its own: two datasets may differ in their last number alone.
        where = f"\n({found.dataset_words(dataset)})" if several else ""
        unit = METRICS[metric].unit
        head = Text(f"{shortened(run)}{where}\n{metric}" + ("" if unit in {"1", "1/s"} else f", {unit}"))
        if all_emulated:
            head.append("\n(emulated)", style="yellow")
        table.add_column(head, justify="right", min_width=13)
    table.add_column("", no_wrap=True, width=BAR_CELLS)
    if with_latency:
        table.add_column("p99\nms", justify="right", no_wrap=True, min_width=5)
    table.add_column("n", no_wrap=True, min_width=5)
    last = runs[-1]
    largest = max((found.summary(cell, last, metric).median or 0.0 for cell in found.cells), default=0.0)
    for cell in found.cells.values():
        row = _row(found, cell, runs, metric=metric, largest=largest, notes=notes)
        table.add_row(*(row if with_latency else [*row[:-2], row[-1]]))
    legend = _legend(runs, metric, with_latency=with_latency)
    return Group(table, legend, *notes.lines())


def _has_latency(found: Overview, runs: Sequence[Run]) -> bool:
    """Queries of a data warehouse are no transactions, nor are stages of bonnie++; they have no percentiles."""
    return any(_type(found, run) not in _WITHOUT_TRANSACTIONS for run in runs)


def _row(
    found: Overview, cell: CellFacts, runs: Sequence[Run], *, metric: str, largest: float, notes: Notes
) -> list[Text]:
    survives = Text(
        durability_words(cell.durability)
        .replace(" / ", " /\n")
        .replace("; ", ";\n")
        .replace(" loss", "\nloss")
    )
    if cell.durability is not None and cell.durability.basis == "measured":
        survives.append("\nmeasured", style="dim")
    for reason in cell.durability.reasons if cell.durability else ():
        survives.append(notes.number(reason), style="dim")
    figures: list[Text] = []
    for run in runs:
        # A run that was stopped somewhere took longer than its sum: that is no time, and no dash either.
        shown = ranked(found, SummaryKey(cell.id, *run, metric), found.summary(cell.id, run, metric))
        summary = shown.summary
        stopped = summary.median is None and shown.limit is not None
        text = Text(f"> {number(shown.limit)}" if stopped else number(summary.median))
        text.append(f"\n{span(summary)}", style="dim")
        figures.append(text)
    last = runs[-1]
    counts = [found.summary(cell.id, run, metric).n for run in runs]
    name = cell_name(found, cell, notes)
    return [
        name,
        survives,
        *figures,
        Text(bar(found.summary(cell.id, last, metric).median, largest), style="cyan"),
        Text(number(found.summary(cell.id, last, "latency_ms_p99").median)),
        state_text(counts, [m for run in runs for m in found.of(cell.id, run)], notes),
    ]


def _legend(runs: Sequence[Run], metric: str, *, with_latency: bool) -> Text:
    words = (
        f"Median of n repetitions, range below it. Bar{' and p99' if with_latency else ''}: {runs[-1][1]}."
    )
    return Text(f"{words}\n{MARKS} {metric}: {METRICS[metric].definition}.", style="dim")


def _study_document(found: Overview, *, workload: str | None, metric: str | None) -> dict[str, Any]:
    path = str(found.study.directory)
    runs = _chosen(found, workload)
    views = [view for view in found.tpch if (view.dataset, view.run) in runs]
    return {
        "study": path,
        "title": found.study.facts.title,
        "marks": list(found.marks),
        "selection": found.selection,
        "repetitions": found.repetitions,
        "sentence": repetitions_sentence(found.repetitions, study=path, executor=found.study.facts.executor),
        "health": list(study_health(found).sentences(runs)),
        "cells": [_cell_document(found, cell, runs, metric) for cell in found.cells.values()],
        **({"tpch": [tpch_document(view) for view in views]} if views else {}),
    }


def _cell_document(
    found: Overview, cell: CellFacts, runs: Sequence[Run], metric: str | None
) -> Mapping[str, Any]:
    return {
        "cell": cell.id,
        "label": cell.label.full,
        "variant": cell.label.panel,
        "filesystem_block_size_bytes": cell.label.filesystem_block_bytes,
        "block_size_bytes": cell.label.database_block_bytes,
        "durability": to_json(cell.durability),
        **({"declared": to_json(cell.declared), "power_cuts": power_cut_document(cell)} if cell.cuts else {}),
        "flushes": [{**to_json(rate), "per_fsync": rate.per_call} for rate in cell.flushes],
        "emulated": cell.emulated,
        "incomparable": list(cell.incomparable),
        "identical_to": list(cell.identical_to),
        "runs": [_run_document(found, cell, run, metric) for run in runs],
    }


def _run_document(found: Overview, cell: CellFacts, run: Run, metric: str | None) -> Mapping[str, Any]:
    document: dict[str, Any] = {
        "dataset": run[0],
        "run": run[1],
        "mark": mark(found.of(cell.id, run)),
        "reasons": reasons_of(found.of(cell.id, run)),
    }
    if _type(found, run) not in _WITHOUT_TRANSACTIONS:
        for name in dict.fromkeys((metric or _TPS, "latency_ms_p99")):
            document[name] = to_json(found.summary(cell.id, run, name))
        return document
    keys = [key for key in found.summaries_of(cell.id, run) if metric in (None, key.metric)]
    whole = [key for key in keys if (key.phase, key.item) == (WHOLE, "")]
    document["metrics"] = {key.metric: to_json(found.summaries[key]) for key in whole}
    document["parts"] = [
        {"phase": key.phase, "item": key.item, "metric": key.metric, **to_json(found.summaries[key])}
        for key in keys
        if key not in whole
    ]
    return document
