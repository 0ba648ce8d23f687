"""The figures of a run of power cuts: of all its cuts, and of those of each profile."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from bedplate.figures.power_cut_points import Cuts, read_cuts, recovery_s
from bedplate.figures.power_cut_verdict import judged, verdict_of
from bedplate.figures.protocol import Made
from bedplate.model import codec
from bedplate.model.device_cache import CACHES
from bedplate.model.figure import RunFigures
from bedplate.model.metrics import figure
from bedplate.model.power_cut_verdict import NEEDS_FSCK
from bedplate.model.visit import FORMAT_VERSION, Outcome, RunRecord, Validity, VisitRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from bedplate.model.figure import Figure
    from bedplate.model.power_cut import PointRecord, RecordingFacts
    from bedplate.model.power_cut_verdict import Tally, Verdict

_VISIT = "visit.json"
_RECORD = "record.json"
# Drawn cuts by profile and by the kind of device cache; those that were sought by the latter.
CUT, CACHE, SOUGHT = "cut", "cache", "sought"


class PowerCutFigures:
    """Makes the figures of runs whose workload is `power_cut`; the points stay, as they are what can be cut again."""

    bulky: tuple[str, ...] = ()

    def make(self, visit_directory: Path, run_directory: Path) -> Made:
        """Read the raw record of a run and make everything of it."""
        record = codec.read(RunRecord, run_directory / _RECORD)
        visit = codec.read(VisitRecord, visit_directory / _VISIT)
        cuts = read_cuts(run_directory)
        verdict = verdict_of(visit, record, cuts)
        if verdict is None or cuts.recording is None:
            validity, reasons = Validity.UNKNOWN, ("nothing was measured", *cuts.problems)
            return Made(_frame(record, validity, reasons, (), None), {})
        if record.outcome is not Outcome.COMPLETED:
            validity, reasons = Validity.UNKNOWN, ("the run did not complete", *cuts.problems)
            return Made(_frame(record, validity, reasons, (), cuts.recording), {})
        validity, reasons = judged(visit, record, cuts)
        return Made(_frame(record, validity, reasons, _figures(verdict, cuts), cuts.recording), {})


def _frame(
    record: RunRecord,
    validity: Validity,
    reasons: tuple[str, ...],
    figures: Iterable[Figure],
    recording: RecordingFacts | None,
) -> RunFigures:
    return RunFigures(
        format_version=FORMAT_VERSION,
        run=record.spec.name,
        run_id=record.spec.id,
        workload=record.spec.workload,
        outcome=record.outcome,
        reasons=record.reasons,
        validity=validity,
        validity_reasons=reasons,
        measure_start_wall_s=record.phases[0].start_wall_s if record.phases else None,
        warmup_s=None,
        duration_s=recording.seconds if recording else None,
        figures=tuple(figures),
    )


def _figures(verdict: Verdict, cuts: Cuts) -> Iterator[Figure]:
    points = [record for record in cuts.points if not record.point.control]
    yield figure("power_cuts", verdict.all.cuts)
    # A protected cache is another machine: its cuts stand under their profile.
    yield from _bad(verdict.volatile_drawn, reason="no cut of a volatile cache was asked for")
    yield figure("power_cuts_repaired", verdict.all.of(NEEDS_FSCK))
    yield from _losses(verdict)
    yield from _recovery(points)
    if cuts.recording is not None:
        yield from _recorded(cuts.recording)
    for profile, tally in verdict.profiles.items():
        yield figure("power_cuts", tally.cuts, phase=CUT, item=profile)
        yield from _bad(tally, phase=CUT, item=profile)
        yield figure("power_cuts_repaired", tally.of(NEEDS_FSCK), phase=CUT, item=profile)
    for cache in CACHES:
        found = verdict.cuts(cache)
        if found.drawn.cuts:
            yield figure("power_cuts", found.drawn.cuts, phase=CACHE, item=cache)
            yield from _bad(found.drawn, phase=CACHE, item=cache)
        if found.sought.cuts:
            # No share: they were sought where they are bad, if anywhere.
            yield figure("power_cuts", found.sought.cuts, phase=SOUGHT, item=cache)
            yield figure("power_cuts_bad", found.sought.bad, phase=SOUGHT, item=cache)


def _bad(tally: Tally, *, phase: str = "measure", item: str = "", reason: str = "") -> Iterator[Figure]:
    there = tally.cuts > 0
    yield figure(
        "power_cuts_bad", tally.bad if there else None, phase=phase, item=item, reason=reason or "no such cut"
    )
    share = tally.bad / tally.cuts if there else None
    yield figure("power_cut_bad_share", share, phase=phase, item=item, reason=reason or "no such cut")


def _losses(verdict: Verdict) -> Iterator[Figure]:
    loss = verdict.loss
    yield figure(
        "lost_transactions_max", loss.transactions_max, reason="every cut that took something broke the rest"
    )
    yield figure("lost_ms_max", loss.ms_max, reason="no cut lost a transaction whose time is known")


def _recovery(points: Iterable[PointRecord]) -> Iterator[Figure]:
    points = tuple(points)
    whole = [seconds for record in points if (seconds := recovery_s(record)) is not None]
    never = "the engine never answered again"
    yield figure("recovery_s_median", median(whole) if whole else None, reason=never)
    yield figure("recovery_s_max", max(whole, default=None), reason=never)
    for metric, times in (
        ("recovery_mount_s", [record.mount_s for record in points]),
        ("recovery_fsck_s", [record.fsck_s for record in points]),
        ("recovery_engine_s", [record.engine_start_s for record in points]),
    ):
        known = [seconds for seconds in times if seconds is not None]
        yield figure(metric, median(known) if known else None, reason="it happened after no cut")


def _recorded(recording: RecordingFacts) -> Iterator[Figure]:
    acknowledged = recording.acknowledged
    flushes = recording.flushes + (recording.journal_flushes or 0)
    yield figure(
        "recorded_commits_per_s",
        acknowledged / recording.seconds if recording.seconds > 0 else None,
        reason="the recording has no length",
    )
    yield figure(
        "recorded_flushes_per_commit",
        flushes / acknowledged if acknowledged else None,
        reason="no transaction was acknowledged",
    )
