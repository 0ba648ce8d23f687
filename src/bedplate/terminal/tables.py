"""Tables of a study for the terminal, readable at 80 columns, and the same as plain records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Group
from rich.text import Text

from bedplate import registry
from bedplate.analysis.parts import WHOLE
from bedplate.analysis.run_heads import TRANSACTIONS, has_speeds, is_meant, makes_transactions, run_type
from bedplate.analysis.search.searched import search_of
from bedplate.analysis.selected import best_first, selected_overviews
from bedplate.analysis.wording import mark, repetitions_sentence, told_of
from bedplate.analysis.workload_view import view_of
from bedplate.errors import PlanError
from bedplate.model.codec import to_json
from bedplate.model.metrics import METRICS, unknown_metric
from bedplate.model.plan import pruned_lines
from bedplate.near_names import unknown_run
from bedplate.terminal.durability_table import durability_table
from bedplate.terminal.part_tables import part_table
from bedplate.terminal.power_cut_tables import power_cut_document, power_cut_table
from bedplate.terminal.run_tables import run_tables, tables_of
from bedplate.terminal.searched_cells import searched_document, searched_tables
from bedplate.terminal.table_parts import (
    mark_lines,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from bedplate.analysis.overview import CellFacts, Overview

Run = tuple[str, str]


class Order(NamedTuple):
    """The metric that cells are sorted by, the best first, and how many of them are shown; all for None."""

    metric: str
    top: int | None = None


def show_tables(
    study_paths: Sequence[Path],
    *,
    workload: str | None = None,
    metric: str | None = None,
    cells: Sequence[str] = (),
    order: Order | None = None,
) -> list[RenderableType]:
    """Every study's tables, each with its footnotes.

    `workload` is the name of a run or a type of workload, `cells` are filters of cells. Without a `metric` each type shows what it is about:
    tps, or TPC-H's load, scores and queries; with one, a table of that metric for each pair of runs and for
    the parts of each run. The last of a study's tables is that of its durability; below it stands what time did
    to the study. With an `order` the cells stand in it. PlanError where no study has the run, nothing knows the metric or a filter selects nothing.
    """
    _require_metric(metric, order)
    shown: list[RenderableType] = []
    names: list[str] = []
    for found in selected_overviews(study_paths, cells):
        names += [run for _, run in found.runs]
        runs = _chosen(found, workload)
        if not runs:
            continue
        search = search_of(found)
        if order is not None:
            found = best_first(found, runs, *order)  # noqa: PLW2901 -- the same study in another order
        title = Text(found.study.facts.title, style="bold")
        shown.append(Group(title, *mark_lines(found)))
        shown += _metric_tables(found, runs, metric) if metric else _default_tables(found, runs)
        cuts = power_cut_table(found)
        if cuts is not None:
            shown.append(cuts)
        if search is not None:
            shown += searched_tables(search)
        durability = durability_table(found)
        if durability is not None:
            shown.append(durability)
        if found.pruned:
            shown.append(Text("\n".join(("", *pruned_lines(found.study.schedule.pruned)))))
        health = found.health.sentences(runs)
        if health:
            shown.append(Text("\n".join(("", *health))))
    if workload is not None and not shown:
        raise PlanError(unknown_run(workload, names))
    return shown


def show_document(
    study_paths: Sequence[Path],
    *,
    workload: str | None = None,
    metric: str | None = None,
    cells: Sequence[str] = (),
    order: Order | None = None,
) -> dict[str, Any]:
    """The same as JSON: one entry per study, cell and run. Absent figures are null."""
    _require_metric(metric, order)
    return {
        "studies": [
            _study_document(found, workload=workload, metric=metric, order=order)
            for found in selected_overviews(study_paths, cells)
        ]
    }


def _require_metric(metric: str | None, order: Order | None) -> None:
    asked = (metric, None if order is None else order.metric)
    unknown = [name for name in asked if name is not None and name not in METRICS]
    if unknown:
        raise PlanError(*(unknown_metric(name) for name in unknown))


def _chosen(found: Overview, workload: str | None) -> list[Run]:
    """The runs of that name, and those of that type of workload."""
    return [run for run in found.runs if is_meant(found, run, workload)]


def _default_tables(found: Overview, runs: Sequence[Run]) -> list[RenderableType]:
    """Those of each workload, in the order of the registry; a run that no visit has begun stands with the transactions."""
    shown: list[RenderableType] = []
    for workload in registry.WORKLOADS:
        own = [run for run in runs if workload == run_type(found, run)]
        if own:
            shown += tables_of(workload)(found, own)
    unknown = [run for run in runs if found.spec(run) is None]
    return [*run_tables(found, unknown, TRANSACTIONS.first), *shown]


def _metric_tables(found: Overview, runs: Sequence[Run], metric: str) -> list[RenderableType]:
    """The whole runs that have the metric, then the parts of each; a metric that nothing has is shown as such."""
    having = {
        (key.dataset, key.run)
        for key in found.summaries
        if key.metric == metric and (key.phase, key.item) == (WHOLE, "")
    }
    parts = [table for run in runs if (table := part_table(found, run, metric)) is not None]
    whole = [run for run in runs if run in having]
    return [*run_tables(found, whole if whole or parts else runs, metric), *parts]


def _study_document(
    found: Overview, *, workload: str | None, metric: str | None, order: Order | None
) -> dict[str, Any]:
    path = str(found.study.directory)
    runs = _chosen(found, workload)
    search = search_of(found)
    if order is not None and runs:
        found = best_first(found, runs, *order)
    return {
        "study": path,
        "title": found.study.facts.title,
        "marks": list(found.marks),
        "selection": found.selection,
        "repetitions": found.repetitions,
        "sentence": repetitions_sentence(
            found.repetitions,
            study=path,
            executor=found.study.facts.executor,
            has_speeds=has_speeds([found]),
        ),
        "health": list(found.health.sentences(runs)),
        "cells": [_cell_document(found, cell, runs, metric) for cell in found.cells.values()],
        "pruned": [{"cell": label.full, "reasons": list(reasons)} for label, reasons in found.pruned],
        **({} if search is None else {"search": searched_document(search)}),
        **{key: said for of in registry.WORKLOADS for key, said in view_of(of).document(found, runs).items()},
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
        "durability": to_json(cell.durability, in_words=True),
        "device_sector_bytes": cell.sector_bytes,
        "device_cache": cell.cache,
        **(
            {"declared": to_json(cell.declared, in_words=True), "power_cuts": power_cut_document(cell)}
            if cell.cuts
            else {}
        ),
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
        "reasons": [each.sentence for each in told_of(found.of(cell.id, run))],
    }
    if makes_transactions(found, run):
        for name in dict.fromkeys((metric or TRANSACTIONS.first, "latency_ms_p99")):
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
