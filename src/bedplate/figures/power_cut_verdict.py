"""What the cuts of a run come to, and whether that may be believed.

A verdict is worth as much as the experiment that it comes from, so three things are asked of the experiment first: that
what must fail did fail (controls, in which the device lies about its flushes), that what must pass did pass (the cuts in
order, where a protected cache was declared to suffice), and that the recorded device was flushed as the cell's own was.
Where one does not hold, the verdict is refused with the reason, and makes no class.

These are guards against an experiment that sees too little, or too much. A cut that was found bad outranks the first kind: an
oracle that was seen to find a loss needs no control for that. The second kind asks whether the recorder dropped what was written
or the flushes that were sent; it stands only where nothing in the recording itself answers that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from bedplate.figures.facts import Rule, Spoken, judge, spoken
from bedplate.figures.power_cut import (
    Cuts,
    as_weaker,
    finding_of,
    is_drawn,
    is_placed,
    is_sought,
    tallies,
    tally,
    tears_pages,
    why_not_untorn,
    with_unmounted,
)
from bedplate.figures.samples import RunEvidence
from bedplate.figures.validity import INPUT_UNREADABLE, NOT_COMPLETED
from bedplate.model import power_cut as recorded
from bedplate.model.cell import JOURNAL_IN_RAM, UNTORN_OFF, engine_model
from bedplate.model.device_cache import CACHE_OF_PROFILE, CACHES
from bedplate.model.durability import (
    BOUNDED_LOSS,
    BROKEN,
    DURABLE,
    LOSS,
    WHOLE,
    CacheCuts,
    CutCounts,
    Loss,
    PowerCutVerdict,
    Recoveries,
    TriedStates,
    classes_of,
)
from bedplate.model.filesystem import flushed_by_nothing
from bedplate.model.plan import model_of
from bedplate.model.power_cut import (
    COMPLETIONS,
    LATE,
    SMALL_WINDOW_WRITES,
    PageFacts,
    Placement,
    PointOutcome,
    PointRecord,
    Profile,
    RecordingFacts,
    RecoveredPages,
)
from bedplate.model.reason import Reason, because, pages_unmended
from bedplate.model.visit import FlushCount, Outcome, RunRecord, Validity, VisitRecord
from bedplate.units import format_count, percent

# One control in some 80 is whole by chance, with barriers off as well (all that matters had just been written back).
CONTROLS_BAD_MIN = 0.5

# An engine's own fsync reaches a device that is said to be flushed by none: unmounting, syncfs.
STRAY_FLUSHES_MAX = 16

STRAY_FLUSHES_SHARE_MAX = 0.01

# Sessions share a flush, and so there are fewer than commits; half of one for each session's is far too few.
FLUSHES_SHARE_MIN = 0.5

# An engine may sync twice for a commit, and a file system may have syncs of its own; where fewer syncs than one in so many flushed
# in the visit, a flush for each commit is another device.
FLUSHES_SHARE_MAX = 4.0

_ANOTHER_RUN_FAILED = because(
    "another-run-failed", "another run of its visit failed, and only completed visits have a class"
)


@dataclass(frozen=True, kw_only=True)
class CutEvidence(RunEvidence):
    """What the rules look at. Nothing is timed, and the kernel complains of what was cut: that is left out.

    `asked` counts the cuts that the plan wants, `cuts` those that were judged, neither with those that were sought or
    enumerated; of these `sought` were chosen and `found` judged. Of the recoveries to be cut again `unrecovered` have no record.
    `promised` is the declared class with a
    protected cache, and `protected` leaves out the cuts whose journal the repair could not replay: what is missing after
    those is neither the recording's fault nor the declaration's; `in_order` counts them too. `visit_flushes` are flushes per sync as the visit counted them on its own device, by pattern, of
    data and journal device together; `waits` says whether the engine waits for the device at a commit.
    """

    asked: int
    cuts: int
    sought: int
    found: int
    unrecovered: int
    acknowledged: int
    clients: int
    controls: CutCounts
    protected: CutCounts
    in_order: int
    promised: str | None
    visit_flushes: Mapping[str, float]
    flushes: int
    waits: bool
    untorn: str = UNTORN_OFF
    pages: PageFacts | None = None
    recovered: tuple[RecoveredPages | None, ...] = ()
    grave: int = 0
    """cuts that took something, or damaged it, beyond what the engine's settings allow; and what was so without any cut"""
    was_flushed: bool = False
    """whether the log has a flush at all, so that the recorder is known to see those that are sent"""


def verdict_of(visit: VisitRecord, run: RunRecord, cuts: Cuts) -> PowerCutVerdict | None:
    """The verdict on a run; None where nothing was recorded. Refused ones have their reasons and no classes."""
    if cuts.recording is None or not (cuts.points or cuts.recording.without_cut):
        return None
    evidence = _evidence(visit, run, cuts)
    validity, reasons = _judgement(evidence)
    refused = reasons if validity is not Validity.VALID else ()
    # What was found bad stays so, whatever became of the rest.
    if run.outcome is not Outcome.COMPLETED and not evidence.grave:
        refused = (NOT_COMPLETED, *refused)
    elif visit.outcome is not Outcome.COMPLETED and not evidence.grave:
        refused = (*(visit.doubts or (_ANOTHER_RUN_FAILED,)), *refused)
    return PowerCutVerdict(
        caches=_caches(cuts, cuts.recording, visit, is_refused=bool(refused)),
        profiles=with_unmounted(cuts.points, cuts.recording),
        weaker=tallies([as_weaker(each) for each in cuts.points if each.weaker is not None], cuts.recording),
        controls=_controls(cuts.points, cuts.recording),
        loss=_loss((*cuts.points, *_counted_recuts(cuts)), cuts.recording),
        window_bytes=cuts.recording.window_bytes,
        refused=refused,
        never_synced=None if refused else _never_synced(evidence, cuts),
        without_cut=_without_cut(cuts.recording),
        of_the_cell=run.spec.levels.get(recorded.DEVICE_UNIT) is None
        and (visit.cell.filesystem.journal_device != JOURNAL_IN_RAM or cuts.recording.loses_journal),
        image_bytes=cuts.recording.image_bytes,
        lacks_metadata_room=visit.cell.filesystem.type in recorded.SHORT_OF_METADATA
        and cuts.recording.image_bytes < recorded.IMAGE_BYTES,
        foreign_syncs=cuts.recording.foreign_syncs,
        journal_lost=cuts.recording.loses_journal,
        unreplayed=sum(
            each.replay_failed for each in (*cuts.points, *_counted_recuts(cuts)) if not each.point.control
        ),
        waits=_waits(visit),
        # Nobody looked where nothing was to be sought.
        waiting=None
        if cuts.recording.sought is None or run.spec.levels.get("sought") == 0
        else cuts.recording.waiting,
        states=_tried(cuts.points, cuts.recording),
        recoveries=recoveries_of(visit, run, cuts),
        pages=cuts.recording.pages,
        recovered_pages=tuple(filter(None, _recovered_pages(cuts))),
        remade=sum(
            each.failed_once is not None
            for each in (*cuts.points, *_counted_recuts(cuts))
            if not each.point.control
        ),
    )


def judge_cuts(visit: VisitRecord, run: RunRecord, cuts: Cuts) -> tuple[Validity, tuple[Reason, ...]]:
    """Whether the experiment holds, with every reason why it does not."""
    return _judgement(_evidence(visit, run, cuts))


def _judgement(evidence: CutEvidence) -> tuple[Validity, tuple[Reason, ...]]:
    rules = [rule for rule in POWER_CUT_RULES if not evidence.grave or rule not in OUTRANKED]
    return judge(evidence, rules)


def _never_synced(evidence: CutEvidence, cuts: Cuts) -> Reason | None:
    """Of an engine that waits for the device: that it sent far fewer flushes than it promised commits, and what cuts took for it."""
    if not evidence.grave or _too_few_flushes(evidence) is None:
        return None
    points = [record for record in cuts.points if not record.point.control]
    bad = sum(record.outcome.is_bad for record in points)
    flushed = f"flushed {format_count(evidence.flushes, 'time')}" if evidence.flushes else "never flushed"
    what = (
        "lost some"
        if all(record.outcome is PointOutcome.LOST for record in points if record.outcome.is_bad)
        else "were bad"
    )
    words = f"it acknowledged {format_count(evidence.acknowledged, 'commit')} and {flushed}; {bad:,} of {format_count(len(points), 'cut')} {what}"
    return because(
        "acknowledged-and-not-flushed", words, commits=evidence.acknowledged, flushes=evidence.flushes
    )


def _without_cut(recording: RecordingFacts) -> Reason | None:
    """What is missing or damaged where nothing was cut, in its first words."""
    if not recording.without_cut:
        return None
    words = recording.without_cut[0]
    return because("bad-without-cut", f"without any cut: {words}", acknowledged=recording.acknowledged)


def _evidence(visit: VisitRecord, run: RunRecord, cuts: Cuts) -> CutEvidence:
    recording = cuts.recording
    by_profile = tallies(cuts.points, recording) if recording else {}
    return CutEvidence(
        duration_s=recording.seconds if recording else 0.0,
        windows=(),
        complaints=(),
        kernel_messages=(),
        clock_step_s=None,
        steal_share=None,
        course_problem=None,
        problems=cuts.problems,
        asked=run.spec.levels.integer("points") or 0,
        cuts=sum(tally.cuts for tally in by_profile.values()),
        sought=((recording.sought or 0) + (recording.placed or 0) + (recording.states or 0))
        if recording
        else 0,
        found=sum(not is_drawn(record) for record in cuts.points if not record.point.control),
        unrecovered=len(_recoveries_to_cut(cuts) - {record.point.recovery_of for record in _wholes(cuts)}),
        acknowledged=recording.acknowledged if recording else 0,
        clients=recording.clients if recording else 1,
        controls=_controls(cuts.points, recording) if recording else CutCounts(),
        protected=_replayed_in_order(cuts.points, recording) if recording else CutCounts(),
        in_order=by_profile.get(Profile.ORDERED.value, CutCounts()).cuts,
        promised=_promised_in_order(visit, recording),
        visit_flushes=_per_sync(visit.flush_counts),
        flushes=(recording.flushes + (recording.journal_flushes or 0)) if recording else 0,
        waits=_waits(visit),
        untorn=_untorn_wanted(visit),
        pages=recording.pages if recording else None,
        recovered=_recovered_pages(cuts),
        grave=_grave(cuts),
        was_flushed=recording is not None and bool(recording.flushes or recording.all_flushes),
    )


def _grave(cuts: Cuts) -> int:
    """Of the recording and of recoveries that count; a loss that the engine's settings allow is what they say."""
    records = (*(each for each in cuts.points if not each.point.control), *_counted_recuts(cuts))
    without_cut = cuts.recording is not None and bool(cuts.recording.without_cut)
    return without_cut + sum(finding_of(record, cuts.recording) in (LOSS, *BROKEN) for record in records)


def _untorn_wanted(visit: VisitRecord) -> str:
    """How pages have to come to the file system; however they like where the engine keeps images that mend them."""
    if visit.durability is not None and pages_unmended(visit.durability.reasons) is None:
        return UNTORN_OFF
    return visit.cell.cluster.untorn_writes


def _promised_in_order(visit: VisitRecord, recording: RecordingFacts | None) -> str | None:
    """The class that cuts in order are held against; None where a log that nothing cut has shown that the recording is whole.

    What is bad in order is then the engine's doing, and no longer a doubt about the recording.
    """
    if visit.durability is None or (recording is not None and recording.whole_log is not None):
        return None
    return visit.durability.protected_cache


def recoveries_of(visit: VisitRecord, run: RunRecord, cuts: Cuts) -> Recoveries | None:
    """What became of the recoveries that were to be cut again; None where none was."""
    if cuts.recording is None:
        return None
    if cuts.recording.recoveries:
        return Recoveries(len(cuts.recording.recoveries), len(_wholes(cuts)), recoveries_not_whole(cuts))
    asked = -(-(run.spec.levels.integer(recorded.RECUT) or 0) // recorded.RECUTS_EACH)
    return Recoveries(asked, 0, not_made=_not_made(visit)) if asked else None


def _not_made(visit: VisitRecord) -> Reason:
    """Why a recording has no recovery to be cut again."""
    if flushed_by_nothing(visit.cell.filesystem):
        words = "a switch of the device keeps its flushes away, and a recovery would be recorded with the flushes that it lacks"
        return because("recovery-without-switch", words)
    return because("no-recovery-chosen", "the recording has no cut to recover from")


def recoveries_not_whole(cuts: Cuts) -> tuple[Reason, ...]:
    """Of each recovery that nothing cut what it left damaged; no cut in a recovery counts then."""
    return tuple(
        because(
            "recovery-not-whole",
            f"nothing cut the recovery from cut {record.point.recovery_of}, and what it left is found {record.outcome.value}: "
            f"{'; '.join(record.problems)}",
        )
        for record in _wholes(cuts)
        if record.outcome.is_bad
    )


def _wholes(cuts: Cuts) -> list[PointRecord]:
    """Of each recovery that was recorded, what was found behind all of it."""
    return [record for record in cuts.recuts if record.point.placement is Placement.WHOLE]


def _recovered_pages(cuts: Cuts) -> tuple[RecoveredPages | None, ...]:
    """Of each recovery that left no damage, so that the cuts in it may count."""
    return tuple(record.pages for record in _wholes(cuts) if not record.outcome.is_bad)


def _counted_recuts(cuts: Cuts) -> list[PointRecord]:
    """The cuts in recovery; none where a recovery that nothing cut was not whole."""
    if recoveries_not_whole(cuts):
        return []
    return [record for record in cuts.recuts if record.point.placement is not Placement.WHOLE]


def _recoveries_to_cut(cuts: Cuts) -> set[int]:
    """The cuts whose recovery is to be cut again: those that were not bad themselves."""
    bad = {record.point.number for record in cuts.points if record.outcome.is_bad}
    return set(cuts.recording.recoveries if cuts.recording else ()) - bad


def _caches(
    cuts: Cuts, recording: RecordingFacts, visit: VisitRecord, *, is_refused: bool
) -> dict[str, CacheCuts]:
    """The cuts by the kind of cache that their profile stands for."""
    mine = _by_cache(record for record in cuts.points if not record.point.control)
    recuts = _by_cache(_counted_recuts(cuts))
    weaker = _by_cache(
        as_weaker(record)
        for record in (*(each for each in cuts.points if not each.point.control), *_counted_recuts(cuts))
        if record.weaker is not None
        and CACHE_OF_PROFILE[record.weaker.profile] != CACHE_OF_PROFILE[record.point.profile]
    )
    page_bytes = visit.cell.database_block_bytes or 0
    found = {
        cache: CacheCuts(
            drawn=tally((each for each in records if is_drawn(each)), recording),
            sought=tally((each for each in records if is_sought(each)), recording),
            enumerated=tally((each for each in records if is_placed(Placement.ENUMERATED, each)), recording),
            recut=tally(recuts[cache], recording),
            weaker=tally(weaker[cache], recording),
            idle=sum(map(_is_idle, records)),
            tearing=sum(tears_pages(each, page_bytes) for each in records),
            has_order=any(is_placed(Placement.ORDER, each) for each in records),
            is_late=visit.dataset.levels.get(COMPLETIONS) == LATE,
        )
        for cache, records in mine.items()
    }
    shown = {} if is_refused else classes_of({cache: each.all_cuts for cache, each in found.items()})
    return {cache: replace(each, shown=shown.get(cache)) for cache, each in found.items()}


def _by_cache(records: Iterable[PointRecord]) -> dict[str, list[PointRecord]]:
    found: dict[str, list[PointRecord]] = {cache: [] for cache in CACHES}
    for record in records:
        found[CACHE_OF_PROFILE[record.point.profile]].append(record)
    return found


def _tried(records: Iterable[PointRecord], recording: RecordingFacts) -> TriedStates | None:
    """The states that were enumerated, by how many writes their window has."""
    tried = [record for record in records if is_placed(Placement.ENUMERATED, record)]
    if not tried:
        return None
    small = [record for record in tried if record.volatile_changes <= SMALL_WINDOW_WRITES]
    large = [record for record in tried if record.volatile_changes > SMALL_WINDOW_WRITES]
    return TriedStates(tally(small, recording), tally(large, recording), recording.small_states or 0)


def _replayed_in_order(records: Iterable[PointRecord], recording: RecordingFacts) -> CutCounts:
    replayed = [record for record in records if not record.replay_failed]
    return tallies(replayed, recording).get(Profile.ORDERED.value, CutCounts())


def _is_idle(record: PointRecord) -> bool:
    point = record.point
    return is_drawn(record) and point.profile is not Profile.ORDERED and record.volatile_changes == 0


def _controls(records: Iterable[PointRecord], recording: RecordingFacts) -> CutCounts:
    """Of the controls those that could fail: nothing is missing where nothing was acknowledged yet."""
    controls = [record for record in records if record.point.control and record.acknowledged]
    return tally(controls, recording)


def _loss(records: Iterable[PointRecord], recording: RecordingFacts) -> Loss:
    """What is counted in what is not whole says nothing; nor is it 0 without a cut, or where every cut that took something broke the rest."""
    judged_points = [record for record in records if not record.point.control]
    lost = [record for record in judged_points if record.outcome is PointOutcome.LOST]
    broke = any(finding_of(record, recording) not in WHOLE for record in judged_points)
    none_lost = 0 if judged_points and not broke else None
    times = [record.lost_ms for record in lost if record.lost_ms is not None]
    return Loss(
        transactions_max=max((record.lost_transactions for record in lost), default=none_lost),
        ms_max=max(times, default=None),
        bound_ms=recording.bound_ms,
        bound_transactions=recording.bound_transactions,
    )


def _per_sync(counts: Iterable[FlushCount]) -> dict[str, float]:
    flushes: Counter[str] = Counter()
    calls: dict[str, int] = {}
    for count in counts:
        flushes[count.pattern] += count.flushes
        calls[count.pattern] = max(calls.get(count.pattern, 0), count.calls)
    return {pattern: flushes[pattern] / number for pattern, number in calls.items() if number}


def _waits(visit: VisitRecord) -> bool:
    """Whether a commit waits for a sync, by what the visit read back, else by what the cell asks for."""
    engine = model_of(visit.dataset.workload).engine_of(visit.dataset.levels)
    read = {item.name: str(item.effective) for item in visit.comparisons}
    return engine_model(engine).waits(visit.cell.cluster.settings, read)


def _missing_cuts(evidence: CutEvidence) -> Spoken | None:
    if evidence.unrecovered and evidence.cuts >= evidence.asked and evidence.found >= evidence.sought:
        words = f"{evidence.unrecovered} recoveries were not cut again: those that are missing may be the bad ones"
        return spoken(words, cuts=evidence.cuts, asked=evidence.asked)
    if evidence.cuts >= evidence.asked and evidence.found >= evidence.sought:
        return None
    judged = f"{evidence.cuts} of {evidence.asked} cuts"
    if evidence.sought:
        judged += f" and {evidence.found} of {evidence.sought} that were sought or enumerated"
    words = f"{judged} were judged: those that are missing may be the bad ones"
    return spoken(words, cuts=evidence.cuts, asked=evidence.asked)


def _nothing_acknowledged(evidence: CutEvidence) -> str | None:
    return None if evidence.acknowledged else "no transaction was acknowledged while it was recorded"


def _controls_pass(evidence: CutEvidence) -> Spoken | str | None:
    controls = evidence.controls
    if not controls.cuts:
        return "no control was cut: that the oracle sees a loss is not shown"
    if controls.bad > CONTROLS_BAD_MIN * controls.cuts:
        return None
    return spoken(
        f"{controls.bad} of {controls.cuts} controls were bad, in which the device lies about its flushes: the oracle may "
        "not see what is lost",
        bad=controls.bad,
        controls=controls.cuts,
    )


def _order_fails(evidence: CutEvidence) -> Spoken | str | None:
    tally = evidence.protected
    if evidence.promised not in (DURABLE, BOUNDED_LOSS):
        return None
    if not evidence.in_order and evidence.grave:
        return None
    if not evidence.in_order:
        return (
            f"no cut was made in order, where a protected cache was declared {evidence.promised}: nothing shows that the "
            "recording itself is whole"
        )
    wrong = tally.broken if evidence.promised == BOUNDED_LOSS else tally.bad
    if not wrong:
        return None
    return spoken(
        f"{wrong} of {tally.cuts} cuts in order were bad ({tally.worst}), where a protected cache was declared "
        f"{evidence.promised}: the recording, or what was declared, is wrong",
        bad=wrong,
        cuts=tally.cuts,
    )


def _flushes_differ(evidence: CutEvidence) -> str | None:
    rates = evidence.visit_flushes
    # The recorder sees flushes: that few came, or that cuts were bad though many came, is what was found.
    if evidence.grave and evidence.was_flushed:
        return None
    if not rates:
        return "the visit counted no flushes, so those of the recording cannot be held against them"
    stray = _stray_flushes(evidence)
    if not any(rates.values()):
        if evidence.flushes > stray:
            return f"{evidence.flushes} flushes were recorded, where syncs in the visit reached its device without one"
        return None
    most = max(rates.values())
    if most < 1 and evidence.flushes > FLUSHES_SHARE_MAX * most * evidence.acknowledged + stray:
        return f"{_recorded_words(evidence)}, where {most:.2g} of a sync in the visit flushed its device at the most"
    return _too_few_flushes(evidence)


def _recorded_words(evidence: CutEvidence) -> str:
    return f"{evidence.flushes} flushes were recorded for {evidence.acknowledged} commits of {evidence.clients} sessions"


def _stray_flushes(evidence: CutEvidence) -> float:
    return max(STRAY_FLUSHES_MAX, STRAY_FLUSHES_SHARE_MAX * evidence.acknowledged)


def _too_few_flushes(evidence: CutEvidence) -> str | None:
    """Of an engine whose commits wait for the device, on a file system whose syncs were counted to flush it."""
    rates = evidence.visit_flushes
    if not evidence.waits or not any(rates.values()):
        return None
    fewest = min(1.0, *rates.values())
    least = FLUSHES_SHARE_MIN * fewest * evidence.acknowledged / max(1, evidence.clients)
    # So many may have come by themselves, in the visit too.
    if evidence.flushes < (least if fewest == 1 else least - _stray_flushes(evidence)):
        what = "every sync" if fewest == 1 else f"{fewest:.2g} of a sync"
        return f"{_recorded_words(evidence)}, where {what} in the visit flushed its device"
    return None


CUTS_MISSING: Rule[CutEvidence] = Rule(
    "cuts missing",
    "fewer cuts were judged than the plan asks for, or fewer recoveries cut again",
    "what did not end well may be what is missing",
    _missing_cuts,
)

NOTHING_ACKNOWLEDGED: Rule[CutEvidence] = Rule(
    "nothing acknowledged",
    "no transaction was acknowledged in the recording",
    "nothing can be lost then",
    _nothing_acknowledged,
)

CONTROLS_PASS: Rule[CutEvidence] = Rule(
    "controls pass",
    f"no more than {percent(CONTROLS_BAD_MIN)} of the controls are bad, of those with an acknowledged transaction",
    "an oracle that finds nothing wrong must have been seen to find something; the limit is a convention of bedplate",
    _controls_pass,
)

ORDER_FAILS: Rule[CutEvidence] = Rule(
    "cuts in order fail",
    "no cut in order, or a bad one, where a protected cache was declared durable; none, or one that is not whole, where it was bounded loss. "
    "Those whose journal the repair could not replay do not count. With an engine of your own the oracle reads the whole log, which nothing cut, "
    "before any cut",
    "what was written in order is what a machine that was killed leaves",
    _order_fails,
)

FLUSHES_DIFFER: Rule[CutEvidence] = Rule(
    "flushes differ",
    f"more than {STRAY_FLUSHES_MAX} flushes, and than {percent(STRAY_FLUSHES_SHARE_MAX)} of the commits, where the visit counted "
    f"none; where commits wait, fewer than {FLUSHES_SHARE_MIN:g} × commits / sessions where it counted one per sync. Where it counted less than one "
    f"per sync, fewer than that share of it, or more than {FLUSHES_SHARE_MAX:g} times as many per commit, stray ones (as above) aside",
    "a queue's write-cache switch outlives its loop device; the limits are conventions of bedplate",
    _flushes_differ,
)

PAGES_WRITTEN_OTHERWISE: Rule[CutEvidence] = Rule(
    "pages written otherwise",
    "`untorn_writes` is on, the engine keeps no images of its pages, and the kernel refused a page, none was written so, or a write was no whole page. "
    "So it is in the recoveries that were cut again, all of them together",
    "what is refused is written plainly all the same, and may be torn",
    lambda evidence: why_not_untorn(evidence.untorn, evidence.pages, evidence.recovered),
)

POWER_CUT_RULES: tuple[Rule[CutEvidence], ...] = (
    INPUT_UNREADABLE,
    CUTS_MISSING,
    NOTHING_ACKNOWLEDGED,
    CONTROLS_PASS,
    ORDER_FAILS,
    FLUSHES_DIFFER,
    PAGES_WRITTEN_OTHERWISE,
)

# Guards against an experiment that sees too little: a cut that was found bad was seen.
OUTRANKED = (INPUT_UNREADABLE, CUTS_MISSING, NOTHING_ACKNOWLEDGED, CONTROLS_PASS)
