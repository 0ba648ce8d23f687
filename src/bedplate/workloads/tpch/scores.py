"""TPC-H's scores over the cells of a study, one view for each pass, with the plans that were chosen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bedplate.analysis.overview import Measurement, Overview, ScoreView
from bedplate.model import codec, limits
from bedplate.model.cell import RunSpec
from bedplate.model.figure import Figure, Status
from bedplate.model.metrics import figure
from bedplate.model.reason import Reason, because, joined, sentences
from bedplate.model.visit import Outcome, Validity
from bedplate.statistics.summary import TRUSTED
from bedplate.statistics.tpch_scores import QueryRun, scores
from bedplate.workloads.tpch import model as tpch
from bedplate.workloads.tpch.figures import NOT_AUDITED, WITHOUT_REFRESH, TpchFigure, composite, power
from bedplate.workloads.tpch.query_plan import PLANS_FILE, QueryPlans

# What the page's script says too.
NONE_TRUSTED = "No cell has a trusted run, so these scores are suspect throughout."

SOME_UNTRUSTED = "No trusted run, so that they set no best time and drop no query: {cells}."

_QUERY = "query_s"
_COMPOSITE = "tpch_composite"
_NO_POWER_RUN = because("no-power-run", "no power run came before it in its visit")


def pass_views(
    plain: Sequence[Measurement], cells: Sequence[str], specs: Mapping[tuple[str, str], RunSpec]
) -> tuple[ScoreView, ...]:
    """A view for each power run that has a time anywhere; `plain` are measurements without canaries, `specs` TPC-H's runs."""
    by_run: dict[tuple[str, str], list[Measurement]] = {}
    for m in plain:
        if _is_kind(specs.get((m.dataset, m.run)), tpch.POWER):
            by_run.setdefault((m.dataset, m.run), []).append(m)
    return tuple(_view(run, found, cells) for run, found in by_run.items() if any(m.parts for m in found))


def _view(run: tuple[str, str], measurements: Sequence[Measurement], cells: Sequence[str]) -> ScoreView:
    completed = [m for m in measurements if m.outcome is Outcome.COMPLETED]
    plans_of = {(m.cell, m.repetition): plan_hashes(m) for m in completed}
    rows = [row for m in completed for row in _query_runs(m, plans_of[m.cell, m.repetition])]
    made = scores(rows, cells)
    plans: dict[str, dict[str, dict[str, None]]] = {}
    for m in sorted(completed, key=lambda m: m.repetition):
        for query, hashed in plans_of[m.cell, m.repetition].items():
            plans.setdefault(m.cell, {}).setdefault(query, {})[hashed] = None
    bases = {cell.cell: cell.basis for cell in made.cells}
    counting: dict[str, set[int]] = {cell: set() for cell in bases}
    for row in rows:
        if row.cell in bases and _counts(row, bases[row.cell]):
            counting[row.cell].add(row.repetition)
    return ScoreView(
        dataset=run[0],
        run=run[1],
        scores=made,
        plans={cell: {q: tuple(found) for q, found in queries.items()} for cell, queries in plans.items()},
        repetitions={cell: len(numbers) for cell, numbers in counting.items()},
        query_runs=tuple(rows),
    )


def _counts(query_run: QueryRun, basis: str) -> bool:
    return basis != TRUSTED or query_run.validity.is_trusted


def plan_hashes(m: Measurement) -> dict[str, str]:
    """The hash of every query's plan in one run; empty where none were kept. StudyError for a damaged file."""
    plans = read_plans(m)
    return {} if plans is None else {plan.item: plan.hash for plan in plans.plans}


def read_plans(m: Measurement) -> QueryPlans | None:
    """`plans.json` of one run; None where there is none. StudyError for a damaged file."""
    path = None if m.directory is None else m.directory / PLANS_FILE
    return codec.read(QueryPlans, path) if path is not None and limits.is_file(path) else None


def _query_runs(m: Measurement, plans: Mapping[str, str]) -> Iterator[QueryRun]:
    for (phase, item, metric), row in m.parts.items():
        if phase == tpch.QUERIES and metric == _QUERY and item:
            yield QueryRun(
                cell=m.cell,
                repetition=m.repetition,
                query=item,
                time_s=_positive(row.value) if row.status is Status.MEASURED else None,
                limit_s=_positive(row.limit) if row.status is Status.CENSORED else None,
                plan=plans.get(item),
                validity=m.validity,
            )


def _positive(value: float | None) -> float | None:
    """No query takes no time; a study that says so does not know it."""
    return value if value is not None and value > 0 else None


def with_composites(
    measurements: Iterable[Measurement], specs: Mapping[tuple[str, str], RunSpec]
) -> Iterator[Measurement]:
    """The measurements, each throughput run with TPC-H's composite, which no single run can know.

    Its power is that of the last power run before it in the same visit: the one that it followed.
    """
    powers: dict[tuple[str, str, int, bool], Measurement] = {}
    for m in measurements:
        visit = (m.cell, m.dataset, m.repetition, m.canary)
        spec = specs.get((m.dataset, m.run))
        if _is_kind(spec, tpch.POWER):
            powers[visit] = m
        if _is_kind(spec, tpch.THROUGHPUT) and m.figures is not None:
            yield replace(m, by_metric={**m.by_metric, _COMPOSITE: _composite(powers.get(visit), m)})
        else:
            yield m


def _composite(power: Measurement | None, throughput: Measurement) -> Figure:
    if power is None:
        return figure(_COMPOSITE, None, reason=_NO_POWER_RUN)
    if power.outcome is not Outcome.COMPLETED:
        words = f"its power run {power.run!r} did not complete"
        return figure(_COMPOSITE, None, reason=because("power-run-not-completed", words))
    if throughput.validity.is_trusted and not power.validity.is_trusted:
        what = "is suspect" if power.validity is Validity.SUSPECT else "is of unknown validity"
        words = f"its power run {power.run!r} {what}"
        return figure(_COMPOSITE, None, reason=because("power-run-not-trusted", words))
    made = composite(_tpch_figure(power, "tpch_power"), _tpch_figure(throughput, "tpch_throughput"))
    why = None if made.value is not None else joined(made.reasons)
    return figure(_COMPOSITE, made.value, reason=why)


def _tpch_figure(m: Measurement, metric: str) -> TpchFigure:
    found = m.by_metric.get(metric)
    known = found.reason if found else None
    reason = known or because("no-figure", f"{m.run!r} has no {metric}")
    value = m.value(metric)
    return TpchFigure(value, (), () if value is not None else (reason,))


def power_notes(overview: Overview, cell: str, run: tuple[str, str]) -> tuple[str, ...]:
    """What sets the power of one cell apart beyond what holds of all: coarse or raised intervals, in any repetition."""
    scale = overview.study.schedule.datasets[run[0]].levels.number("scale_factor")
    if scale is None:
        return ()
    notes: dict[Reason, None] = {}
    for m in overview.of(cell, run):
        times = {
            int(item): row.value
            for (phase, item, metric), row in m.parts.items()
            if (phase, metric) == (tpch.QUERIES, _QUERY) and item.isdecimal() and _positive(row.value)
        }
        known = {query: seconds for query, seconds in times.items() if seconds is not None}
        if m.value("tpch_power") is not None and known:
            notes |= dict.fromkeys(power(known, scale).notes)
    return sentences(note for note in notes if note not in (NOT_AUDITED, WITHOUT_REFRESH))


def _is_kind(spec: RunSpec | None, kind: str) -> bool:
    return spec is not None and spec.levels.text("kind") == kind


def plan_letters(view: ScoreView) -> dict[str, dict[str, str]]:
    """A letter for every plan of every query, by hash: `A` is the one that its first cell chose."""
    found: dict[str, dict[str, str]] = {}
    for cell in view.scores.cells:
        for query, hashes in view.plans.get(cell.cell, {}).items():
            letters = found.setdefault(query, {})
            for hashed in hashes:
                letters.setdefault(hashed, _letters(len(letters)))
    return found


def _letters(number: int) -> str:
    """0 is `A`, 25 is `Z`, 26 is `AA`."""
    before, place = divmod(number, 26)
    return (_letters(before - 1) if before else "") + chr(ord("A") + place)


def tpch_document(view: ScoreView) -> dict[str, Any]:
    """A view as JSON; a score that is absent is null and has its reasons."""
    scores_ = view.scores
    return {
        "dataset": view.dataset,
        "run": view.run,
        "note": NOT_AUDITED.sentence,
        **codec.json_fields(scores_, "queries kept dropped causes left_out only_suspect"),
        "cells": [
            {**codec.to_json(cell), "repetitions": view.repetitions[cell.cell]} for cell in scores_.cells
        ],
        "plans": codec.to_json(view.plans),
        "plan_letters": plan_letters(view),
    }
