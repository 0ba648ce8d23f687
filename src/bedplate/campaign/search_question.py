"""What a search asks, held against a plan: its runs, its figure, the cells that may win, what a visit of each is reckoned to take."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bedplate.campaign.engine_preparation import preparations
from bedplate.campaign.preparation import builds_to_make
from bedplate.errors import PlanError
from bedplate.model.cell import JOURNAL_IN_RAM, digest
from bedplate.model.durability import OF_FLUSHES, UNKNOWN, FilesystemPromise
from bedplate.model.figure import Better, Scale
from bedplate.model.filesystem import TRAITS
from bedplate.model.metrics import METRICS, unknown_metric
from bedplate.model.reason import because
from bedplate.model.search import (
    ANY,
    MEASURED,
    NOT_ASKED,
    SURVIVING,
    WANTED,
    NotWorse,
    SearchCandidate,
    SearchLeftOut,
    SearchRecord,
)
from bedplate.model.visit import FlushCount
from bedplate.model.workload import model_of
from bedplate.near_names import unknown_run
from bedplate.plan.estimate import BOOT_S, visit_seconds
from bedplate.plan.platforms import QEMU
from bedplate.study.search import SEARCH_VERSION
from bedplate.units import format_duration
from bedplate.visit.declaration import durability_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from bedplate.campaign.planning import PlannedStudy
    from bedplate.model.cell import Cell
    from bedplate.model.plan import Load, PlannedCell
    from bedplate.model.reason import Reason
    from bedplate.model.visit import Durability


# What counts as the same, of a search as of any comparison.
MARGIN = 0.05
DURABLE_DEFAULT = "volatile"


@dataclass(frozen=True)
class SearchAsked:
    """What a call asks; None, or nothing, where it leaves it to a search that was begun."""

    best: str | None = None
    runs: tuple[str, ...] = ()
    durable: str | None = None
    budget_s: float | None = None
    not_worse: tuple[NotWorse, ...] = ()
    accepted: tuple[str, ...] = ()


def search_record(asked: SearchAsked, found: PlannedStudy) -> SearchRecord:
    """The question, frozen; PlanError with every reason why it cannot be asked of this plan."""
    wrong = [*_lacking(asked), *_wrong_metrics(asked)]
    dataset, reasons = _dataset(asked.runs, found)
    wrong += reasons
    durable = asked.durable or DURABLE_DEFAULT
    cuts, reasons = _cuts(found) if durable == MEASURED else (None, [])
    wrong += reasons
    if wrong or dataset is None or asked.best is None or asked.budget_s is None:
        raise PlanError(*wrong)
    candidates, left_out = _sorted_out(found, dataset, durable, cuts)
    if len(candidates) < 2:
        causes = dict.fromkeys(each.reason.sentence for each in left_out)
        raise PlanError(
            f"a search needs two cells, and {len(candidates)} of this plan's {len(found.expansion.cells)} can be visited; "
            "`bedplate run` measures one",
            *causes,
        )
    fleet = found.plan.fleet if found.executor.fleet is not None else None
    first = found.expansion.cells[0].cell.id
    if asked.not_worse and all(planned.cell.id != first for planned, _ in candidates):
        words = next(each.reason for each in left_out if each.cell == first)
        raise PlanError(
            f"--not-worse compares with the plan's first cell, {first}, which is left out: {words}",
            "put a cell first that may be visited, or leave --not-worse out",
        )
    builds = {
        digest(levels): preparations()[levels.engine].seconds(levels)
        for levels in builds_to_make(found.cells)
    }
    made = tuple(_candidate(found, planned, load) for planned, load in candidates)
    return SearchRecord(
        version=SEARCH_VERSION,
        best=asked.best,
        runs=asked.runs,
        dataset=dataset,
        durable=durable,
        budget_s=asked.budget_s,
        margin=MARGIN,
        candidates=made,
        left_out=tuple(left_out),
        baseline=first if any(each.cell == first for each in made) else None,
        not_worse=asked.not_worse,
        builds={each.build: builds[each.build] for each in made if each.build in builds},
        cut_dataset=cuts,
        cut_seconds=0.0
        if cuts is None
        else _cut_seconds(found, cuts, [planned for planned, _ in candidates]),
        at_once=len(fleet.nodes) if fleet is not None else 1,
        accepted=asked.accepted,
    )


def asked_again(asked: SearchAsked, record: SearchRecord) -> SearchRecord:
    """The search that is gone on with: only its budget may grow. PlanError names what was asked otherwise."""
    known = (
        ("--best", asked.best, record.best),
        ("--run", asked.runs or None, record.runs),
        ("--durable", asked.durable, record.durable),
        ("--not-worse", asked.not_worse or None, record.not_worse),
        ("--accept", asked.accepted or None, record.accepted),
    )
    changed = [
        f"{name}: the study was begun with {_words(had)}, not {_words(now)}"
        for name, now, had in known
        if now is not None and now != had
    ]
    budget_s = record.budget_s if asked.budget_s is None else asked.budget_s
    if budget_s < record.budget_s:
        changed.append(
            f"--budget: the study was begun with {format_duration(record.budget_s)}, and a budget only grows"
        )
    if changed:
        raise PlanError(*changed, "leave these options out, or name another --study")
    return replace(record, budget_s=budget_s)


def _words(value: object) -> str:
    if isinstance(value, tuple):
        return " and ".join(map(_words, value)) or "none"
    return f"{value.metric}:{100 * value.share:g}%" if isinstance(value, NotWorse) else str(value)


def _lacking(asked: SearchAsked) -> Iterator[str]:
    for name, value, words in (
        ("--best METRIC", asked.best, "the figure whose best cell is looked for"),
        ("--run RUN", asked.runs, "the run that it is a figure of"),
        ("--budget TIME", asked.budget_s, "how long the search may take, such as 4h"),
    ):
        if not value:
            yield f"a search needs {name}: {words}"
    if asked.budget_s is not None and not 0 < asked.budget_s < math.inf:
        yield f"--budget: expected a time above 0, found {asked.budget_s:g} s"


def _wrong_metrics(asked: SearchAsked) -> Iterator[str]:
    for name in (*((asked.best,) if asked.best else ()), *(each.metric for each in asked.not_worse)):
        metric = METRICS.get(name)
        if metric is None:
            yield unknown_metric(name)
        elif metric.scale is not Scale.RATIO or metric.better is Better.NEITHER:
            yield (
                f"{name} has no best: name a figure with a better direction that is compared as a ratio, such as tps or latency_ms_p99"
            )
    for each in asked.not_worse:
        if not 0 < each.share < 1:
            yield f"--not-worse {each.metric}: expected a share between 0 and 100 %, found {each.share:.4g}"
        if each.metric == asked.best:
            yield f"--not-worse {each.metric}: that is the figure whose best cell is looked for"


def _loads(found: PlannedStudy) -> Iterator[Load]:
    return (load for planned in found.expansion.cells for load in planned.loads)


def _dataset(runs: Sequence[str], found: PlannedStudy) -> tuple[str | None, list[str]]:
    """The one dataset that has all the runs."""
    names = dict.fromkeys(run.name for load in _loads(found) for run in load.runs)
    unknown = [unknown_run(name, names) for name in runs if name not in names]
    if unknown or not runs:
        return None, unknown
    having = {load.dataset: None for load in _loads(found) if set(runs) <= {run.name for run in load.runs}}
    if len(having) == 1:
        return next(iter(having)).id, []
    if not having:
        return None, [
            f"no dataset of the plan has all of {', '.join(runs)}; a search is of runs on one dataset"
        ]
    words = ", ".join(dataset.words for dataset in having)
    return None, [
        f"{' and '.join(runs)}: {len(having)} datasets of the plan have such a run ({words}); a search is of one, so keep one in its plan"
    ]


def _cuts(found: PlannedStudy) -> tuple[str | None, list[str]]:
    having = {load.dataset: None for load in _loads(found) if model_of(load.dataset.workload).cuts_power}
    if len(having) == 1:
        return next(iter(having)).id, []
    if not having:
        return None, [
            '--durable measured cuts power: give the plan a [[workload]] of type = "power_cut", or ask for --durable volatile'
        ]
    return None, [
        f"--durable measured: the plan has {len(having)} datasets that cut power, and a search takes one"
    ]


def _sorted_out(
    found: PlannedStudy, dataset: str, durable: str, cuts: str | None
) -> tuple[list[tuple[PlannedCell, Load]], list[SearchLeftOut]]:
    candidates: list[tuple[PlannedCell, Load]] = []
    left_out: list[SearchLeftOut] = []
    for planned in found.expansion.cells:
        loads = {load.dataset.id: load for load in planned.loads}
        reason = _never(planned.cell, durable)
        if dataset not in loads:
            reason = because("run-not-in-cell", "the run is not due in it")
        elif cuts is not None and cuts not in loads:
            reason = because("cut-not-in-cell", "the plan cuts no power in it")
        if reason is None:
            candidates.append((planned, loads[dataset]))
        else:
            left_out.append(SearchLeftOut(planned.cell.id, reason))
    return candidates, left_out


def _never(cell: Cell, durable: str) -> Reason | None:
    """Why a cell cannot be of the class, whatever its visits would count; None where it may."""
    if durable == ANY:
        return None
    best = _best_class(cell)
    own = best.protected_cache if durable == SURVIVING else best.volatile_cache
    if own in WANTED[durable] or own == UNKNOWN:
        return None
    # Nothing was counted yet: the options alone say this.
    told = [each.sentence for each in best.reasons if each.code not in OF_FLUSHES]
    if len(told) < len(best.reasons):
        told.insert(0, "without barriers no sync flushes a volatile cache")
    return because(NOT_ASKED, f"{own} after a power cut: {'; '.join(told)}", durability=own)


def _best_class(cell: Cell) -> Durability:
    """The class that a cell declares if every sync that its options leave is flushed; what its visits count can only lower it."""
    traits = TRAITS[cell.filesystem.type]
    flushes = 0 if cell.filesystem.barrier is False else 1
    features = cell.filesystem.features
    journals_data = features.get("data") == "journal"
    delayed = features.get("sync") == "disabled"
    promise = FilesystemPromise(
        tuple(FlushCount("data", pattern, 1, flushes) for pattern in ("appending", "logging", "overwriting")),
        journal_holds_data=traits.journal_holds_data or journals_data,
        journal_in_memory=cell.filesystem.journal_device == JOURNAL_IN_RAM,
        rolls_back_whole=traits.rolls_back_whole,
        flushes_when_delayed=cell.filesystem.barrier is not False if delayed else None,
        keeps_write_order=traits.rolls_back_whole or journals_data,
    )
    shown = {name: _shown(value) for name, value in cell.cluster.settings.items()}
    return durability_of(cell).declare(cell.cluster.settings, shown, promise)


def _shown(value: object) -> str:
    """A setting as a server shows it."""
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _candidate(found: PlannedStudy, planned: PlannedCell, load: Load) -> SearchCandidate:
    executor = found.choice.executor
    seconds = visit_seconds(found.plan, planned.cell, load, executor=executor)
    if executor == QEMU:
        seconds += BOOT_S / found.plan.guest.visits_per_boot
    build = planned.cell.build
    return SearchCandidate(planned.cell.id, seconds, digest(build) if build.is_built else "")


def _cut_seconds(found: PlannedStudy, cuts: str, candidates: Iterable[PlannedCell]) -> float:
    """What the longest visit that cuts power is reckoned to take."""
    return max(
        visit_seconds(found.plan, planned.cell, load, executor=found.choice.executor)
        for planned in candidates
        for load in planned.loads
        if load.dataset.id == cuts
    )
