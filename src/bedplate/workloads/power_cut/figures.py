"""The figures of a run of power cuts: of all its cuts, and of those of each profile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median

from bedplate.cuts.points import NEEDS_FSCK, CutCounts, Cuts, read_cuts, recovery_s
from bedplate.cuts.records import WAL_BYTES, WAL_PAGE_IMAGES, PageFacts, PointRecord, RecordingFacts
from bedplate.cuts.verdict import POWER_CUT_RULES, CutEvidence, PowerCutVerdict, judge_cuts, verdict_of
from bedplate.figures.facts import free_space_figures
from bedplate.figures.run import FigureMaker, Made, run_figures
from bedplate.model import codec
from bedplate.model.device_cache import CACHES
from bedplate.model.figure import Figure, RunFigures
from bedplate.model.metrics import CACHE, CUT, EXHAUSTIVE, PAGES, RECUT, SOUGHT, figure
from bedplate.model.reason import Reason, because
from bedplate.model.rules import NOT_COMPLETED, NOTHING_MEASURED, RunRules, unreadable
from bedplate.model.visit import Outcome, RunRecord, Validity, VisitRecord
from bedplate.units import KIB, MIB

_VISIT = "visit.json"

_NO_SUCH_CUT = because("no-such-cut", "no such cut")

_NO_VOLATILE_CUT = because("no-such-cut", "no cut of a volatile cache was asked for")

_NO_LOSS_COUNTED = because("no-loss-counted", "every cut that took something broke the rest")

_NO_LOSS_TIMED = because("no-loss-timed", "no cut lost a transaction whose time is known")

_NEVER_RECOVERED = because("never-recovered", "the engine never answered again")

_AFTER_NO_CUT = because("after-no-cut", "it happened after no cut")

_WITHOUT_LENGTH = because("no-time-passed", "the recording has no length")

_NO_PAGES = because("no-direct-files", "the server had no data file open with O_DIRECT")

_NOTHING_ACKNOWLEDGED = because("nothing-acknowledged", "no transaction was acknowledged")


class PowerCutFigures:
    """Makes the figures of runs whose workload is `power_cut`; the points stay, as they are what can be cut again."""

    bulky: tuple[str, ...] = ()

    def make(self, visit_directory: Path, run_directory: Path, record: RunRecord) -> Made:
        """Read the raw record of a run and make everything of it."""
        visit = codec.read(VisitRecord, visit_directory / _VISIT)
        cuts = read_cuts(run_directory)
        verdict = verdict_of(visit, record, cuts)
        if verdict is None or cuts.recording is None:
            reasons = (NOTHING_MEASURED, *unreadable(cuts.problems))
            return Made(_frame(record, Validity.UNKNOWN, reasons, (), None), {})
        if record.outcome is not Outcome.COMPLETED:
            reasons = (NOT_COMPLETED, *unreadable(cuts.problems))
            return Made(_frame(record, Validity.UNKNOWN, reasons, (), cuts.recording), {})
        validity, reasons = judge_cuts(visit, record, cuts)
        return Made(_frame(record, validity, reasons, _figures(verdict, cuts), cuts.recording), {})


def _frame(
    record: RunRecord,
    validity: Validity,
    reasons: tuple[Reason, ...],
    figures: Iterable[Figure],
    recording: RecordingFacts | None,
) -> RunFigures:
    return run_figures(
        record,
        (validity, reasons),
        figures,
        start_wall_s=record.phases[0].start_wall_s if record.phases else None,
        duration_s=recording.seconds if recording else None,
    )


def _figures(verdict: PowerCutVerdict, cuts: Cuts) -> Iterator[Figure]:
    points = [record for record in cuts.points if not record.point.control]
    yield figure("power_cuts", verdict.all_cuts.cuts)
    # A protected cache is another machine: its cuts stand under their profile.
    yield from _bad(verdict.volatile_drawn, reason=_NO_VOLATILE_CUT)
    yield figure("power_cuts_repaired", verdict.all_cuts.of(NEEDS_FSCK))
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
        for phase, tally in ((SOUGHT, found.sought), (EXHAUSTIVE, found.exhaustive)):
            if tally.cuts:
                # No share: chance did not place them.
                yield figure("power_cuts", tally.cuts, phase=phase, item=cache)
                yield figure("power_cuts_bad", tally.bad, phase=phase, item=cache)
        if found.recut.cuts:
            yield figure("power_cuts", found.recut.cuts, phase=RECUT, item=cache)
            yield from _bad(found.recut, phase=RECUT, item=cache)


def _bad(
    tally: CutCounts, *, phase: str = "measure", item: str = "", reason: Reason = _NO_SUCH_CUT
) -> Iterator[Figure]:
    there = tally.cuts > 0
    yield figure("power_cuts_bad", tally.bad if there else None, phase=phase, item=item, reason=reason)
    share = tally.bad / tally.cuts if there else None
    yield figure("power_cut_bad_share", share, phase=phase, item=item, reason=reason)


def _losses(verdict: PowerCutVerdict) -> Iterator[Figure]:
    loss = verdict.loss
    why = _NO_LOSS_COUNTED if verdict.all_cuts.cuts else _NO_SUCH_CUT
    yield figure("lost_transactions_max", loss.transactions_max, reason=why)
    yield figure("lost_ms_max", loss.ms_max, reason=_NO_LOSS_TIMED)


def _recovery(points: Iterable[PointRecord]) -> Iterator[Figure]:
    points = tuple(points)
    whole = [seconds for record in points if (seconds := recovery_s(record)) is not None]
    yield figure("recovery_s_median", median(whole) if whole else None, reason=_NEVER_RECOVERED)
    yield figure("recovery_s_max", max(whole, default=None), reason=_NEVER_RECOVERED)
    for metric, times in (
        ("recovery_mount_s", [record.mount_s for record in points]),
        ("recovery_fsck_s", [record.fsck_s for record in points]),
        ("recovery_engine_s", [record.engine_start_s for record in points]),
    ):
        known = [seconds for seconds in times if seconds is not None]
        yield figure(metric, median(known) if known else None, reason=_AFTER_NO_CUT)


def _recorded(recording: RecordingFacts) -> Iterator[Figure]:
    acknowledged = recording.acknowledged
    flushes = recording.flushes + (recording.journal_flushes or 0)
    yield figure(
        "recorded_commits_per_s",
        acknowledged / recording.seconds if recording.seconds > 0 else None,
        reason=_WITHOUT_LENGTH,
    )
    yield figure(
        "recorded_flushes_per_commit",
        flushes / acknowledged if acknowledged else None,
        reason=_NOTHING_ACKNOWLEDGED,
    )
    for metric, amount in (
        ("recorded_kib_per_commit", recording.write_bytes / KIB),
        ("recorded_wal_kib_per_commit", _fact(recording, WAL_BYTES, KIB)),
        ("page_images_per_transaction", _fact(recording, WAL_PAGE_IMAGES)),
    ):
        if amount is not None:
            share = amount / acknowledged if acknowledged else None
            yield figure(metric, share, reason=_NOTHING_ACKNOWLEDGED)
    yield from free_space_figures(recording.free_space)
    if recording.pages is not None:
        yield from _pages(recording.pages)


def _fact(recording: RecordingFacts, name: str, unit: int = 1) -> float | None:
    """None of an engine whose server does not count it."""
    found = recording.facts.get(name)
    return found / unit if isinstance(found, int) else None


def _pages(pages: PageFacts) -> Iterator[Figure]:
    counts = pages.counts
    if counts is not None:
        yield figure("untorn_writes", counts.atomic)
        yield figure("untorn_refused", counts.refusals)
        yield figure("page_extensions", counts.extensions)
    for item, layout in (("before", pages.before), ("after", pages.after)):
        size_mib = layout.pages * pages.page_bytes / MIB
        extents = layout.extents / size_mib if size_mib else None
        misplaced = layout.misplaced if layout.pages else None
        yield figure("unaligned_pages", misplaced, phase=PAGES, item=item, reason=_NO_PAGES)
        yield figure("extents_per_mib", extents, phase=PAGES, item=item, reason=_NO_PAGES)


FIGURES: FigureMaker = PowerCutFigures()

VALIDITY: RunRules[CutEvidence] = RunRules("power cuts", POWER_CUT_RULES)
