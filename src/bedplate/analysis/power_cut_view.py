"""The power cuts of a study: verdicts by cell, and the class that stands beside a cell's speeds because of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from bedplate.figures.power_cut_points import Cuts, read_cuts, recovery_s
from bedplate.figures.power_cut_verdict import verdict_of
from bedplate.model.device_cache import CACHE_WORDS, PROTECTED, VOLATILE_4K, VOLATILE_512
from bedplate.model.durability import promised, worst, worst_with_512
from bedplate.model.power_cut import JOURNAL_LOST, RAM_JOURNAL, WORKLOAD, PointOutcome
from bedplate.model.power_cut_verdict import CacheCuts, CutCounts, PowerCutVerdict, measured
from bedplate.model.reason import distinct
from bedplate.statistics.proportions import proportion

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from bedplate.model.cell import Dataset, RunSpec
    from bedplate.model.visit import Durability, VisitKey
    from bedplate.study.stored import StoredVisit


@dataclass(frozen=True)
class CutRun:
    """One run of power cuts with its verdict; `declared` is what the visit's flushes and settings promise.

    `lost_transactions` says how many each cut lost that lost some and left the rest whole, `recovery_s` how long each took
    until the engine answered, of those after which it did; both without the controls.
    """

    key: VisitKey
    dataset: Dataset
    spec: RunSpec
    directory: Path
    verdict: PowerCutVerdict
    declared: Durability | None
    lost_transactions: tuple[int, ...]
    recovery_s: tuple[float, ...]

    @cached_property
    def cuts(self) -> Cuts:
        """Every point, read when it is asked for."""
        return read_cuts(self.directory)

    @property
    def measured(self) -> Durability | None:
        """The class that the cuts show; None where they show none of this cell."""
        return measured(self.verdict, self.declared)

    def class_with(self, cache: str) -> str:
        """The class with a kind of cache: as it stands for the cell, else as its cuts alone show it, `–` where none did."""
        found = self.measured
        return found.class_with(cache) if found else self.verdict.cuts(cache).shown or "–"


def cut_runs(visits: Iterable[StoredVisit]) -> dict[str, tuple[CutRun, ...]]:
    """The runs of power cuts by cell, of the latest attempt at each visit; a run whose files are gone has none."""
    latest: dict[tuple[str, str, int], StoredVisit] = {}
    for visit in sorted(visits, key=lambda visit: visit.record.key.attempt):
        key = visit.record.key
        if visit.record.dataset.workload == WORKLOAD and not key.canary:
            latest[key.cell, key.dataset, key.repetition] = visit
    found: dict[str, list[CutRun]] = {}
    for visit in latest.values():
        for figures, directory in zip(visit.runs, visit.run_directories, strict=True):
            if figures.workload == WORKLOAD and (run := _run(visit, directory)) is not None:
                found.setdefault(visit.record.key.cell, []).append(run)
    return {cell: tuple(runs) for cell, runs in found.items()}


def durability_by_cuts(declared: Durability | None, runs: Sequence[CutRun]) -> Durability | None:
    """The measured class of a cell, the worst of its recordings; what was declared where no verdict was made.

    A verdict that was refused is told among the reasons. Commits that do not wait keep what was declared of them.
    """
    verdicts = [found for run in runs if (found := run.measured) is not None]
    refused = distinct(
        reason.about("power cuts: verdict refused") for run in runs for reason in run.verdict.refused
    )
    if not verdicts:
        if declared is None or not refused:
            return declared
        return replace(declared, reasons=(*declared.reasons, *refused))
    reasons = [reason for found in verdicts for reason in found.reasons]
    together = verdicts[0]
    for found in verdicts[1:]:
        together = replace(
            together,
            volatile_cache=worst(together.volatile_cache, found.volatile_cache),
            protected_cache=worst(together.protected_cache, found.protected_cache),
            volatile_cache_512=worst_with_512(together, found),
        )
    if declared is not None and declared.by_runs:
        # The cuts asked about the transactions of their own recordings, not about those of these runs.
        together = replace(
            together,
            volatile_cache=worst(together.volatile_cache, declared.volatile_cache),
            protected_cache=worst(together.protected_cache, declared.protected_cache),
            volatile_cache_512=worst_with_512(together, declared),
            by_runs=declared.by_runs,
        )
        reasons += declared.by_runs
    return replace(
        together,
        reasons=(*distinct(reasons), *refused),
        without_waiting=declared.without_waiting if declared else None,
    )


def disagreement(declared: Durability | None, found: Durability | None) -> str | None:
    """Where the cuts show another class than flushes and settings declare; None where they agree or there are none."""
    if declared is None or found is None or found.basis != "measured":
        return None
    names = {VOLATILE_4K: "volatile cache", PROTECTED: "protected cache"}
    if declared.tells_sectors or found.tells_sectors:
        names = {cache: CACHE_WORDS[cache] for cache in (VOLATILE_4K, VOLATILE_512, PROTECTED)}
    words = [
        f"with a {name} declared {said}, measured {shown}"
        for cache, name in names.items()
        if (said := declared.class_with(cache)) != (shown := found.class_with(cache))
    ]
    return "; ".join(words) or None


def upper_share(tally: CutCounts) -> float | None:
    """The upper end of the exact 95 % interval of the share of bad cuts; None without a cut."""
    return proportion(tally.bad, tally.cuts).high if tally.cuts else None


def bound_words(tally: CutCounts) -> str:
    """`0 of 150, < 2.5 %`: bad cuts, and how many in a hundred such cuts may be, at the most."""
    high = upper_share(tally)
    if high is None:
        return "–"
    if tally.bad == tally.cuts:
        return f"{tally.bad} of {tally.cuts}"
    return f"{tally.bad} of {tally.cuts}, < {percent_from_above(high)} %"


def percent_from_above(share: float) -> str:
    """Two digits of a percentage that is above 0; rounded up, as a bound that is rounded down is none."""
    percent = 100 * share
    step = 10.0 ** (math.floor(math.log10(percent)) - 1)
    upwards = math.ceil(round(percent / step, 6)) * step
    return f"{upwards:.0f}" if upwards >= 10 else f"{upwards:.2g}"


def pooled(runs: Sequence[CutRun], cache: str) -> CacheCuts:
    """The cuts of several recordings of a cell with one kind of cache together."""
    every = [run.verdict.cuts(cache) for run in runs]
    return CacheCuts(
        drawn=CutCounts.together(found.drawn for found in every),
        sought=CutCounts.together(found.sought for found in every),
        idle=sum(found.idle for found in every),
        tearing=sum(found.tearing for found in every),
    )


def told_apart(run: CutRun, runs: Sequence[CutRun]) -> tuple[str, ...]:
    """What tells a recording from the others of its cell: repetition, its journal in RAM; nothing where there is one."""
    words = []
    if len({other.key.repetition for other in runs}) > 1:
        words.append(f"repetition {run.key.repetition}")
    journals = [other.dataset.levels.get(RAM_JOURNAL, JOURNAL_LOST) for other in runs]
    if len(set(journals)) > 1:
        words.append(f"journal {run.dataset.levels.get(RAM_JOURNAL, JOURNAL_LOST)}")
    return tuple(words)


def _run(visit: StoredVisit, directory: Path) -> CutRun | None:
    record = visit.cut_records.get(directory)
    if record is None:
        return None
    cuts = read_cuts(directory)
    verdict = verdict_of(visit.record, record, cuts)
    if verdict is None:
        return None
    points = [each for each in cuts.points if not each.point.control]
    return CutRun(
        key=visit.record.key,
        dataset=visit.record.dataset,
        spec=record.spec,
        directory=directory,
        verdict=verdict,
        declared=promised(visit.record),
        lost_transactions=tuple(
            each.lost_transactions for each in points if each.outcome is PointOutcome.LOST
        ),
        recovery_s=tuple(seconds for each in points if (seconds := recovery_s(each)) is not None),
    )
