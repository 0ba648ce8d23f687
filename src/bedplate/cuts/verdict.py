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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bedplate.cuts.points import (
    BOUNDED,
    BROKEN,
    FINDINGS,
    LOSS,
    NEEDS_FSCK,
    OK,
    WHOLE,
    CutCounts,
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
from bedplate.cuts.records import (
    CACHE_OF_PROFILE,
    COMPLETIONS,
    DEVICE_UNIT,
    EXHAUSTIVE,
    IMAGE_BYTES,
    IN_FLIGHT,
    LATE,
    RECUT,
    RECUTS_EACH,
    SHORT_OF_METADATA,
    SMALL_WINDOW_WRITES,
    PageCounts,
    PageFacts,
    Placement,
    PointOutcome,
    PointRecord,
    Profile,
    RecordingFacts,
    RecoveredPages,
    recoveries_for,
)
from bedplate.model.cell import JOURNAL_IN_RAM, UNTORN_OFF, engine_model
from bedplate.model.device_cache import CACHE_WORDS, CACHES, PROTECTED, VOLATILE_4K, VOLATILE_512
from bedplate.model.durability import (
    BOUNDED_LOSS,
    CLASSES,
    DURABLE,
    MEASURED,
    UNKNOWN,
    UNSAFE,
    worst,
)
from bedplate.model.filesystem import flushed_by_nothing
from bedplate.model.levels import Levels
from bedplate.model.plan import model_of
from bedplate.model.reason import PAGES_PASSED_OVER, Reason, because, pages_unmended
from bedplate.model.rules import INPUT_UNREADABLE, NOT_COMPLETED, Rule, Spoken, judge, spoken
from bedplate.model.visit import Durability, FlushCount, Outcome, RunRecord, Validity, VisitRecord
from bedplate.units import KIB, format_count, percent

# So many cuts without a bad one bound the share of bad ones by 5 % (exact, two-sided 95 %): enough to promise more than
# flushes and settings declare. To promise less, one bad cut is enough.
CUTS_FOR_MORE = 72

TOO_FEW_FOR_MORE = "too-few-cuts-for-more"


@dataclass(frozen=True)
class Loss:
    """What was missing after the cuts that lost something and left the rest whole; None where it is not known.

    `bound_ms` and `bound_transactions` are what the engine's settings call bounded, None where they promise nothing.
    """

    transactions_max: int | None = None
    """the most acknowledged transactions that one cut took and left the rest whole"""
    ms_max: float | None = None
    """the longest time before such a cut at which the first missing transaction was acknowledged"""
    bound_ms: float | None = None
    bound_transactions: int | None = None


@dataclass(frozen=True)
class CacheCuts:
    """The cuts of one kind of device cache that are no controls.

    `drawn` are those whose position chance chose: of them alone is a share a share. `sought` are those that were placed where something can
    happen: where metadata was seen to wait, where the order of what the engine does shows (`has_order`), or, where writes were completed
    late (`is_late`), behind a flush that met some on their way. `recut` are those in the
    recovery from another cut, and `exhaustive` those of them behind each write of a short one, where chance chose nothing. `shown` is the class that all show, None without a cut or in a verdict that is refused. `idle` are the
    drawn ones at which no write waited for a flush: whatever a device does to its cache, they find nothing. `tearing` are
    the weighted ones of the others that tear within a page. `enumerated` are states that were tried one by one. `weaker` are the bad cuts of
    devices that ask more, which were bad with this one too: they show that it can happen, and are no sample.
    """

    drawn: CutCounts = field(default_factory=CutCounts)
    sought: CutCounts = field(default_factory=CutCounts)
    recut: CutCounts = field(default_factory=CutCounts)
    shown: str | None = None
    idle: int = 0
    tearing: int = 0
    is_late: bool = False
    enumerated: CutCounts = field(default_factory=CutCounts)
    weaker: CutCounts = field(default_factory=CutCounts)
    has_order: bool = False
    exhaustive: CutCounts = field(default_factory=CutCounts)

    @property
    def first_hand(self) -> CutCounts:
        """Those that were made with such a cache."""
        return CutCounts.together((self.drawn, self.sought, self.enumerated, self.recut, self.exhaustive))

    @property
    def all_cuts(self) -> CutCounts:
        """All by which it is judged."""
        return CutCounts.together((self.first_hand, self.weaker))


@dataclass(frozen=True)
class TriedStates:
    """The states that were tried one by one: of windows between two flushes with few writes, and of larger ones.

    `small_states` is how many the former have, whether tried or not.
    """

    small: CutCounts
    large: CutCounts
    small_states: int

    @property
    def words(self) -> str:
        """`all 6,050 states of windows up to 12 writes and 3,000 of larger ones: none bad`."""
        tried = self.small.cuts
        share = "all" if tried == self.small_states else f"{tried:,} of"
        named = [f"{share} {self.small_states:,} states of windows up to {SMALL_WINDOW_WRITES} writes"]
        if not self.small_states:
            named = []
        if self.large.cuts:
            named.append(f"{self.large.cuts:,} {'of larger ones' if named else 'states of larger windows'}")
        found = CutCounts.together((self.small, self.large))
        return f"{' and '.join(named)}: {f'{found.bad:,} bad ({finding_words(found)})' if found.bad else 'none bad'}"


@dataclass(frozen=True)
class Recoveries:
    """How many recoveries from a cut were `asked` for; those of bad cuts are not recorded.

    Where the cuts in them are `refused`, none counts. `not_made` says why none could be recorded at all.
    """

    asked: int
    recorded: int
    """recoveries from a cut that were recorded and cut again; empty where none was asked for"""
    refused: tuple[Reason, ...] = ()
    not_made: Reason | None = None
    exhausted: int = 0
    """those of them that were cut behind every write"""
    exhausted_writes: int = 0
    """and how many writes they have together"""
    third: int = 0
    """recoveries from second cuts that were cut behind every write, for third cuts"""
    left_out: int = 0
    """recoveries that were to be cut behind every write and are longer than that is done for, or than the plan has cuts for"""
    left_out_writes: int = 0
    """the fewest writes of one of these"""

    @property
    def every_words(self) -> str:
        """`2 recoveries behind each of their 61 writes, and 7 recoveries from second cuts`; and which were not. Empty where none was to be."""
        words = []
        if self.exhausted:
            words.append(
                f"{format_count(self.exhausted, 'recovery', 'recoveries')} behind each of {format_count(self.exhausted_writes, 'write')}"
            )
        if self.third:
            words.append(f"{format_count(self.third, 'recovery', 'recoveries')} from second cuts")
        if self.left_out:
            words.append(
                f"not {format_count(self.left_out, 'recovery', 'recoveries')} of {self.left_out_writes:,} writes or more"
            )
        return ", ".join(words)

    @property
    def uncounted(self) -> tuple[Reason, ...]:
        """Why no cut in them counts, each a whole sentence; empty where they count."""
        not_made = () if self.not_made is None else (self.not_made.about("cuts in recovery were not made"),)
        return (*not_made, *(reason.about("cuts in recovery do not count") for reason in self.refused))


@dataclass(frozen=True)
class PowerCutVerdict:
    """The verdict on one run of power cuts.

    `caches` has what was found with each kind of device cache (`model.device_cache.CACHES`). No class is shown where
    it is `refused`, as something in the experiment itself does not hold. `profiles` counts the drawn cuts
    by profile. `waiting` is how many spans of the log had metadata that can be torn, by kind; None where none was looked for.
    `waits` says whether commits wait for the device: where none
    does, controls are bad without any lie about a flush. `unreplayed` are the cuts after which the
    repair could not replay the journal. `lacks_metadata_room`: the type may commit an engine's page by halves on so small a disk.
    """

    caches: Mapping[str, CacheCuts]
    profiles: Mapping[str, CutCounts]
    controls: CutCounts
    loss: Loss
    window_bytes: int
    """the most that the device's cache held"""
    weaker: Mapping[str, CutCounts] = field(default_factory=dict)
    refused: tuple[Reason, ...] = ()
    """why there is no verdict; joined by `; `"""
    never_synced: Reason | None = None
    """that an engine acknowledged far more commits than it sent flushes, and what cuts took for it; null of others"""
    without_cut: Reason | None = None
    """what is missing or damaged though nothing was cut, against the engine's promise; null of others"""
    of_the_cell: bool = True
    """false where a journal in RAM was kept, or the device was said to write a unit whole, so that the verdict is no class of the
    cell as it is"""
    image_bytes: int | None = None
    """size of the recorded disk"""
    lacks_metadata_room: bool = False
    foreign_syncs: int | None = None
    """calls of sync(2) by any program while it was recorded; empty where they were not counted"""
    journal_lost: bool = False
    unreplayed: int = 0
    waits: bool = True
    waiting: Mapping[str, int] | None = None
    # None where none were asked for, or there was nothing to enumerate.
    states: TriedStates | None = None
    # None where no recovery was to be cut again.
    recoveries: Recoveries | None = None
    # How the server's pages came to the file system; None where nobody looked.
    pages: PageFacts | None = None
    # The same of each recovery that left no damage; none of which nobody looked.
    recovered_pages: tuple[RecoveredPages, ...] = ()
    # Cuts whose first look ended on an error that the second, at a fresh copy, did not meet.
    remade: int = 0

    def cuts(self, cache: str) -> CacheCuts:
        """Those with one kind of cache; none where no cut asked."""
        return self.caches.get(cache, CacheCuts())

    @property
    def drawn_cuts(self) -> CutCounts:
        """Every cut at a position that chance chose."""
        return CutCounts.together(self.cuts(cache).drawn for cache in CACHES)

    @property
    def volatile_drawn(self) -> CutCounts:
        """Those of them with a volatile cache, whatever its sectors."""
        return CutCounts.together(self.cuts(cache).drawn for cache in (VOLATILE_4K, VOLATILE_512))

    @property
    def doubts_promise(self) -> bool:
        """Whether what was promised tells nothing more: something was lost, or the engine was not seen to flush what it promised to."""
        is_bad = self.without_cut is not None or self.all_cuts.grave > 0
        return is_bad or any(reason.code == FLUSHES_DIFFER.code for reason in self.refused)

    @property
    def recut(self) -> CutCounts:
        """Every cut in a recovery that chance placed."""
        return CutCounts.together(self.cuts(cache).recut for cache in CACHES)

    @property
    def exhaustive(self) -> CutCounts:
        """Every cut behind each write of a recovery."""
        return CutCounts.together(self.cuts(cache).exhaustive for cache in CACHES)

    @property
    def all_cuts(self) -> CutCounts:
        """Every cut that is no control."""
        return CutCounts.together(self.cuts(cache).first_hand for cache in CACHES)

    @property
    def by_device(self) -> Mapping[str, CutCounts]:
        """The drawn cuts by profile, with those of other profiles that were bad with this one too."""
        names = dict.fromkeys((*self.profiles, *self.weaker))
        return {
            name: CutCounts.together(
                counts[name] for counts in (self.profiles, self.weaker) if name in counts
            )
            for name in names
        }


def cut_words(tally: CutCounts) -> str:
    """`0 of 150 bad`, and what else was found, the gravest first: `20 of 60 bad: 20 corrupt, silent`."""
    if not tally.cuts:
        return "not cut"
    words = f"{tally.bad} of {tally.cuts} bad"
    found = finding_words(tally)
    return f"{words}: {found}" if found else words


def finding_words(tally: CutCounts) -> str:
    """`20 corrupt, silent; 3 needs fsck`: what was found but `ok`, the gravest first."""
    return "; ".join(
        f"{tally.of(name)} {name}" for name in reversed(FINDINGS) if name != OK and tally.of(name)
    )


def measured_durability(verdict: PowerCutVerdict, declared: Durability | None) -> Durability | None:
    """The class that the cuts show; None where they show none, or speak of another journal than the cell's.

    A cache that no cut asked keeps what was declared, and so does one of which the cuts would promise more, as long as they
    are few, or the engine's own settings allow the loss. Where cuts and declaration disagree, the reasons say so.
    """
    if verdict.refused or not verdict.of_the_cell:
        return None
    if verdict.without_cut is not None:
        return Durability(UNSAFE, UNSAFE, MEASURED, (verdict.without_cut,))
    if all(verdict.cuts(cache).shown is None for cache in CACHES):
        return None
    reasons: list[Reason] = [] if verdict.never_synced is None else [verdict.never_synced]
    classes: dict[str, str] = {}
    for cache in (VOLATILE_4K, VOLATILE_512, PROTECTED):
        classes[cache], said = _measured_with(cache, verdict, declared)
        reasons += said
    return Durability(
        classes[VOLATILE_4K],
        classes[PROTECTED],
        MEASURED,
        (*reasons, *_asides(verdict)),
        # A device with small sectors may write a block whole, too.
        volatile_cache_512=worst(classes[VOLATILE_512], classes[VOLATILE_4K]),
    )


def without_promise(declared: Durability) -> Durability:
    """What is left of a declaration that is in doubt: what it called unsafe, and nothing better."""
    left = {
        cache: UNSAFE if declared.class_with(cache) == UNSAFE else UNKNOWN
        for cache in (VOLATILE_4K, VOLATILE_512, PROTECTED)
    }
    return replace(
        declared,
        volatile_cache=left[VOLATILE_4K],
        protected_cache=left[PROTECTED],
        volatile_cache_512=None if declared.volatile_cache_512 is None else left[VOLATILE_512],
    )


def _measured_with(
    cache: str, verdict: PowerCutVerdict, declared: Durability | None
) -> tuple[str, list[Reason]]:
    """The class that stands for one kind of cache, and what is to be said of it."""
    words, found = CACHE_WORDS[cache], verdict.cuts(cache)
    said = declared.class_with(cache) if declared else UNKNOWN
    if found.shown is None and verdict.doubts_promise and said != UNSAFE:
        # Such a device can behave as each that asks less.
        is_bad = any(verdict.cuts(less).all_cuts.grave for less in CACHES[: CACHES.index(cache)])
        stands = UNSAFE if is_bad else UNKNOWN
        words = f"{words}: not cut, and {stands}, as cuts with another device were bad"
        return stands, [because("not-cut", words, cache=cache)]
    if found.shown is None:
        return said, [because("not-cut", f"{words}: not cut, so {said} is as declared", cache=cache)]
    counted = f"{words}: {counted_words(found)}"
    reasons = [
        because("cuts-counted", counted, cache=cache, cuts=found.all_cuts.cuts, bad=found.all_cuts.bad)
    ]
    if declared is None:
        return found.shown, reasons
    # The manuals promise nothing then where a page can be torn, and most cuts tear none.
    copies = pages_unmended(r for r in declared.reasons if r not in declared.by_runs)
    can_tear = copies is not None
    telling = found.tearing if can_tear else found.drawn.cuts - found.idle
    if copies in PAGES_PASSED_OVER and CLASSES.index(found.shown) < CLASSES.index(said):
        words = f"{words}: {said} as declared, as a checkpoint may pass over a page that no sync covers, which few cuts meet"
        return said, [*reasons, because("pages-passed-over", words, cache=cache, stands=said)]
    stands, why = _class_that_stands(found.shown, said, telling, verdict.loss, can_tear=can_tear)
    if why is not None:
        reasons.append(replace(why.about(words), values=why.values.updated(cache=cache)))
    elif said not in (stands, UNKNOWN):
        differ = f"{words}: declared {said}, measured {stands}"
        reasons.append(because("not-as-declared", differ, cache=cache, declared=said, measured=stands))
    return stands, reasons


def counted_words(cuts: CacheCuts) -> str:
    """`0 of 50 bad; where metadata waits 8 of 12 bad: 8 file system lost; in recovery 0 of 20 bad`."""
    words = [cut_words(cuts.drawn)] if cuts.drawn.cuts else []
    if cuts.sought.cuts:
        late = " or a flush met writes on their way" if cuts.is_late else ""
        order = " or the order of changes shows" if cuts.has_order else ""
        words.append(f"where metadata waits{late}{order} {cut_words(cuts.sought)}")
    if cuts.enumerated.cuts:
        words.append(f"states tried one by one: {cut_words(cuts.enumerated)}")
    if cuts.recut.cuts:
        words.append(f"in recovery {cut_words(cuts.recut)}")
    if cuts.exhaustive.cuts:
        words.append(f"at every write of recoveries {cut_words(cuts.exhaustive)}")
    if cuts.weaker.cuts:
        words.append(f"bad with a device that asks more, and with this one too: {finding_words(cuts.weaker)}")
    return "; ".join(words)


def class_of(tally: CutCounts) -> str | None:
    """The class that the cuts of one kind of cache show; None without a cut."""
    if not tally.cuts:
        return None
    if tally.of(LOSS) or tally.broken:
        return UNSAFE
    return BOUNDED_LOSS if tally.of(BOUNDED) else DURABLE


def classes_of(tallies: Mapping[str, CutCounts]) -> dict[str, str | None]:
    """The class with each kind of cache: one can behave as each that asks less, and so is no better than those."""
    found: dict[str, str | None] = {}
    least: str | None = None
    for cache in CACHES:
        own = class_of(tallies.get(cache, CutCounts()))
        if own is not None:
            least = own if least is None else worst(own, least)
        found[cache] = least if own is not None else None
    return found


def _class_that_stands(
    measured_class: str, declared_class: str, telling: int, loss: Loss, *, can_tear: bool
) -> tuple[str, Reason | None]:
    """The class that stands of what was measured and declared, and why it is not what was measured.

    `telling` are the cuts that could have found something; where pages can be torn for good, those that tear them.
    """
    if measured_class == UNSAFE or CLASSES.index(measured_class) >= CLASSES.index(declared_class):
        return measured_class, None
    if telling < CUTS_FOR_MORE:
        kind = "weighted cuts that tear a page" if can_tear else "cuts"
        values = Levels(stands=declared_class, cuts=telling, kind=kind)
        return declared_class, Reason(TOO_FEW_FOR_MORE, too_few_words(values), values)
    if measured_class == DURABLE and (loss.bound_ms is not None or loss.bound_transactions is not None):
        words = "no cut lost any, which the engine's settings allow all the same"
        return BOUNDED_LOSS, because("loss-allowed-by-settings", words)
    return measured_class, None


def too_few_words(levels: Levels) -> str:
    """The sentence of `TOO_FEW_FOR_MORE`, by its values, without the kind of cache that it is said of."""
    return (
        f"{levels['stands']} as declared, as {levels['cuts']} {levels['kind']} are too few to promise more "
        f"({CUTS_FOR_MORE} may)"
    )


def _asides(verdict: PowerCutVerdict) -> list[Reason]:
    found: list[Reason] = []
    idle = sum(verdict.cuts(cache).idle for cache in CACHES)
    if idle:
        cuts = verdict.volatile_drawn.cuts
        words = f"nothing waited for a flush at {idle} of the {cuts} cuts with a volatile cache"
        found.append(because("cuts-at-empty-cache", words, idle=idle, cuts=cuts))
    if verdict.waiting is not None and not verdict.waiting.keys() - {IN_FLIGHT}:
        words = "at no position of this recording did metadata wait that a cut can tear"
        found.append(because("no-metadata-waited", words))
    if verdict.recoveries is not None:
        found += verdict.recoveries.uncounted
    if verdict.unreplayed and not verdict.journal_lost:
        words = (
            f"after {verdict.unreplayed} of {verdict.all_cuts.cuts} cuts the repair could not replay the file system's journal and "
            "dropped it: what is missing then is the tool's doing, and on this system as much gone"
        )
        found.append(because("journal-not-replayed", words, unreplayed=verdict.unreplayed))
    if not verdict.waits and verdict.controls.cuts:
        words = (
            "no commit waits for the device, so that a loss is what is expected: the controls, bad without any lie about a "
            "flush, prove less here"
        )
        found.append(because("controls-prove-less", words))
    if verdict.journal_lost:
        words = "the journal was in memory and gone after each cut"
        found.append(because("journal-lost", words))
    if verdict.remade:
        words = (
            f"{verdict.remade} of {verdict.all_cuts.cuts} cuts were looked at twice, as the first look ended on an error that the second, "
            "at a fresh copy, did not meet; `power-cut points` names them"
        )
        found.append(because("good-at-second-look", words, remade=verdict.remade, cuts=verdict.all_cuts.cuts))
    if needed := verdict.all_cuts.of(NEEDS_FSCK):
        words = f"{needed} of {verdict.all_cuts.cuts} cuts needed fsck"
        found.append(because("fsck-needed", words, needed=needed, cuts=verdict.all_cuts.cuts))
    return found


BY_FILE_SYSTEM = "untorn by file system"
PAGES_TEAR = "pages tear"
PASSED_OVER = "a checkpoint may pass over a page that no sync covers"

# What tears a page and leaves a block of metadata whole, and what tears nothing. Sectors of 512 bytes tear metadata too.
_TEARS_PAGES = (Profile.SUBSET_4K, Profile.UNTORN_8K, Profile.UNTORN_16K)

_TEARS_NOTHING = (Profile.LOST, Profile.WHOLE, Profile.ORDERED)


@dataclass(frozen=True)
class PageGround:
    """Why a class is what it is; `stands` is the class, which is unknown where the ground does not bear what the cuts show."""

    stands: str
    words: str

    @property
    def verdict(self) -> str:
        """`durable · untorn by file system`."""
        return f"{self.stands} · {self.words}"


def page_ground(
    measured_class: str,
    profiles: Mapping[str, CutCounts],
    pages: PageFacts | None,
    unit_bytes: int | None,
    *,
    tearing: int,
    copies: str,
    recovered: Sequence[RecoveredPages] = (),
) -> PageGround | None:
    """The ground of a class that cuts show of an engine without copies of its pages; None where nothing is known of it.

    `profiles` are the drawn cuts by profile; `unit_bytes` is what the cut device was said to write whole; `tearing` are the
    cuts that could have torn a page. Fewer than `CUTS_FOR_MORE` of them are no ground. `copies` are those that are left out, by the
    code of the reason. `recovered` are the recoveries that were cut again: a ground has to hold for their pages too.
    """
    is_broken = any(each.broken for each in profiles.values())
    if copies in PAGES_PASSED_OVER and measured_class in CLASSES and not is_broken:
        return PageGround(UNSAFE, PASSED_OVER)
    if measured_class == UNSAFE:
        return PageGround(UNSAFE, PAGES_TEAR) if _only_torn(profiles) and not are_untorn(pages) else None
    if measured_class not in (DURABLE, BOUNDED_LOSS):
        return None
    if unit_bytes is not None:
        ground = _by_device(measured_class, pages, unit_bytes, recovered)
    elif are_untorn(pages, recovered):
        ground = PageGround(measured_class, BY_FILE_SYSTEM)
    else:
        return None
    if ground.stands != UNKNOWN and tearing < CUTS_FOR_MORE:
        return PageGround(UNKNOWN, f"{tearing} of {CUTS_FOR_MORE} cuts that could tear a page")
    return ground


def is_broken_otherwise(profiles: Mapping[str, CutCounts], pages: PageFacts | None) -> bool:
    """Whether cuts broke something that no torn page explains: they tear nothing, each page was written whole, or it is the file system itself."""
    torn = _together(profiles, _TEARS_PAGES)
    is_otherwise = torn.unmounted > 0 or (torn.broken > 0 and are_untorn(pages))
    return is_otherwise or _together(profiles, _TEARS_NOTHING).broken > 0


def broke_itself(profiles: Mapping[str, CutCounts]) -> bool:
    """Whether all that cuts broke is the file system itself, which copies of the engine's pages would not mend."""
    every = CutCounts.together(profiles.values())
    return 0 < every.broken == every.unmounted


def are_untorn(pages: PageFacts | None, recovered: Sequence[RecoveredPages] = ()) -> bool:
    """Whether each page was written whole over an older one, and in these recoveries too."""
    counts = None if pages is None else pages.counts
    is_whole = counts is not None and counts.atomic > 0 and _is_whole(counts)
    return is_whole and all(_is_whole(each.counts) for each in recovered)


def _only_torn(profiles: Mapping[str, CutCounts]) -> bool:
    """Whether cuts that tear pages broke something, and those that tear nothing, of which there were some, were all good.

    What broke the file system itself is its own block, and no page of the engine's.
    """
    torn, other = (_together(profiles, kinds) for kinds in (_TEARS_PAGES, _TEARS_NOTHING))
    return torn.broken > torn.unmounted and other.cuts > 0 and other.bad == 0


def _together(profiles: Mapping[str, CutCounts], kinds: tuple[Profile, ...]) -> CutCounts:
    return CutCounts.together(profiles[kind.value] for kind in kinds if kind.value in profiles)


def _is_whole(counts: PageCounts | None) -> bool:
    """Whether no page was written that may be torn; a recovery may have had none to write over an older one."""
    return counts is not None and not (counts.plain or counts.refusals or counts.no_pages)


def _by_device(
    measured_class: str, pages: PageFacts | None, unit_bytes: int, recovered: Sequence[RecoveredPages]
) -> PageGround:
    """A device's promise is one for writes of a power of two, aligned to themselves and no longer than the unit."""
    if pages is None:
        return PageGround(UNKNOWN, "nobody looked where the pages lie")
    found = pages.after
    if not pages.direct_files or not found.pages:
        return PageGround(UNKNOWN, "pages through the page cache, which joins them to longer writes")
    if unit_bytes < pages.page_bytes:
        return PageGround(
            UNKNOWN, f"a page of {pages.page_bytes // KIB} kB is more than {unit_bytes // KIB} kB"
        )
    if found.unmapped == found.pages:
        return PageGround(UNKNOWN, "the file system does not say where its pages lie on the device")
    if found.misplaced:
        return PageGround(UNKNOWN, f"{found.misplaced:,} of {found.pages:,} pages not aligned")
    if pages.uncovered_writes is None:
        return PageGround(UNKNOWN, "nobody counted the writes of pages beyond the unit")
    # Pages side by side, joined to one aligned write, are none of it either: of a longer one AWUPF promises nothing, for no page in it.
    if pages.uncovered_writes:
        return PageGround(
            UNKNOWN, f"{pages.uncovered_writes:,} of {pages.writes or 0:,} writes of pages beyond the unit"
        )
    if not all(each.direct_files for each in recovered):
        return PageGround(UNKNOWN, "nobody saw where the pages of a recovery lie")
    worst = max((each.after for each in recovered), key=lambda layout: layout.misplaced, default=found)
    if worst.misplaced:
        return PageGround(
            UNKNOWN, f"{worst.misplaced:,} of {worst.pages:,} pages not aligned after a recovery"
        )
    # Older records counted none in recovery, and say what they said.
    if uncovered := sum(each.uncovered_writes or 0 for each in recovered):
        writes = sum(each.writes or 0 for each in recovered)
        return PageGround(
            UNKNOWN, f"{uncovered:,} of {writes:,} writes of pages beyond the unit in recoveries"
        )
    return PageGround(measured_class, f"untorn by device ({unit_bytes // KIB} kB)")


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
class CutEvidence:
    """What the rules look at. Nothing is timed, and the kernel complains of what was cut: that is left out.

    `asked` counts the cuts that the plan wants, `cuts` those that were judged, neither with those that were sought or
    enumerated; of these `sought` were chosen and `found` judged. Of the recoveries to be cut again `unrecovered` have no record.
    `promised` is the declared class with a
    protected cache, and `protected` leaves out the cuts whose journal the repair could not replay: what is missing after
    those is neither the recording's fault nor the declaration's; `in_order` counts them too. `visit_flushes` are flushes per sync as the visit counted them on its own device, by pattern, of
    data and journal device together; `waits` says whether the engine waits for the device at a commit.
    """

    problems: tuple[str, ...]
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
        controls=controls_of(cuts.points, cuts.recording),
        loss=_loss((*cuts.points, *_counted_recuts(cuts)), cuts.recording),
        window_bytes=cuts.recording.window_bytes,
        refused=refused,
        never_synced=None if refused else _never_synced(evidence, cuts),
        without_cut=_without_cut(cuts.recording),
        of_the_cell=run.spec.levels.get(DEVICE_UNIT) is None
        and (visit.cell.filesystem.journal_device != JOURNAL_IN_RAM or cuts.recording.loses_journal),
        image_bytes=cuts.recording.image_bytes,
        lacks_metadata_room=visit.cell.filesystem.type in SHORT_OF_METADATA
        and cuts.recording.image_bytes < IMAGE_BYTES,
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
        controls=controls_of(cuts.points, recording) if recording else CutCounts(),
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
    every = run.spec.levels.integer(EXHAUSTIVE) or 0
    shared_by = recoveries_for(every)
    if cuts.recording.recoveries:
        firsts = [record for record in _wholes(cuts) if record.point.second is None]
        found = Recoveries(len(cuts.recording.recoveries), len(firsts), recoveries_not_whole(cuts))
        to_be = cuts.recording.recoveries[:shared_by]
        return _with_every_write(found, cuts, [each for each in firsts if each.point.recovery_of in to_be])
    asked = max(-(-(run.spec.levels.integer(RECUT) or 0) // RECUTS_EACH), shared_by)
    return Recoveries(asked, 0, not_made=_not_made(visit)) if asked else None


def _with_every_write(recoveries: Recoveries, cuts: Cuts, firsts: Iterable[PointRecord]) -> Recoveries:
    """With those recoveries, by the record of each as a whole, that were to be cut behind every write."""
    every = [record.point for record in cuts.recuts if record.point.placement is Placement.EVERY]
    cut = {point.recovery_of for point in every if point.second is None}
    good = [record for record in firsts if not record.outcome.is_bad]
    # One without a write, or with a single one, has none between its beginning and its end.
    done = [each for each in good if each.point.recovery_of in cut or (each.recovery_writes or 0) < 2]
    others = [each.recovery_writes or 0 for each in good if each not in done]
    return replace(
        recoveries,
        exhausted=len(done),
        exhausted_writes=sum(each.recovery_writes or 0 for each in done),
        third=len({(point.recovery_of, point.second) for point in every if point.second is not None}),
        left_out=len(others),
        left_out_writes=min(others, default=0),
    )


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
            f"nothing cut the {record.point.recovery_words}, and what it left is found {record.outcome.value}: "
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
            recut=tally((each for each in recuts[cache] if not is_placed(Placement.EVERY, each)), recording),
            exhaustive=tally((each for each in recuts[cache] if is_placed(Placement.EVERY, each)), recording),
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


def controls_of(records: Iterable[PointRecord], recording: RecordingFacts) -> CutCounts:
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


def controls_see_losses(controls: CutCounts) -> bool:
    """Whether enough of them were bad: what finds no loss where one must be proves nothing."""
    return controls.bad > CONTROLS_BAD_MIN * controls.cuts


def _controls_pass(evidence: CutEvidence) -> Spoken | str | None:
    controls = evidence.controls
    if not controls.cuts:
        return "no control was cut: that the oracle sees a loss is not shown"
    if controls_see_losses(controls):
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
