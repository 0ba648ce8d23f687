"""What the cuts of one recording come to: counts by profile and finding, and the classes of durability they show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bedplate.model.device_cache import CACHE_WORDS, CACHES, PROTECTED, VOLATILE_4K, VOLATILE_512
from bedplate.model.durability import (
    BOUNDED_LOSS,
    CLASSES,
    DURABLE,
    UNKNOWN,
    UNSAFE,
    worst,
)
from bedplate.model.levels import Levels
from bedplate.model.power_cut import IN_FLIGHT, SMALL_WINDOW_WRITES
from bedplate.model.reason import PAGES_PASSED_OVER, Reason, because, pages_unmended
from bedplate.model.visit import Durability

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bedplate.model.page_writes import PageFacts, RecoveredPages

OK = "ok"
NEEDS_FSCK = "needs fsck"
BOUNDED = "bounded loss"
LOSS = "loss"
DETECTED = "corrupt, detected"
SILENT = "corrupt, silent"
FILE_SYSTEM_LOST = "file system lost"
# From best to worst.
FINDINGS = (OK, NEEDS_FSCK, BOUNDED, LOSS, DETECTED, SILENT, FILE_SYSTEM_LOST)
# Nothing that was acknowledged is gone or damaged.
GOOD = (OK, NEEDS_FSCK)
# So many cuts without a bad one bound the share of bad ones by 5 % (exact, two-sided 95 %): enough to promise more than
# flushes and settings declare. To promise less, one bad cut is enough.
CUTS_FOR_MORE = 72
TOO_FEW_FOR_MORE = "too-few-cuts-for-more"
# What is there is whole, and the engine can go on with it.
WHOLE = (OK, NEEDS_FSCK, BOUNDED, LOSS)
BROKEN = (DETECTED, SILENT, FILE_SYSTEM_LOST)


@dataclass(frozen=True)
class CutCounts:
    """How often each finding came up among cuts of one kind; a finding that did not is left out.

    Of those that left something broken `unmounted` are those whose file system broke itself: unlike behind good cuts it had to be repaired, was
    lost, or a check of it found errors.
    """

    findings: Mapping[str, int] = field(default_factory=dict)
    unmounted: int = 0

    @property
    def cuts(self) -> int:
        """All of them."""
        return sum(self.findings.values())

    @property
    def bad(self) -> int:
        """Those after which something acknowledged was gone or damaged."""
        return sum(count for name, count in self.findings.items() if name not in GOOD)

    @property
    def broken(self) -> int:
        """Those after which what was left was not whole."""
        return self.of(*BROKEN)

    @property
    def worst(self) -> str | None:
        """The gravest finding; None without a cut."""
        return max(self.findings, key=FINDINGS.index, default=None)

    def of(self, *names: str) -> int:
        """How many cuts came to one of these findings."""
        return sum(self.findings.get(name, 0) for name in names)

    @classmethod
    def together(cls, tallies: Iterable[CutCounts]) -> CutCounts:
        """Several as one, the findings from best to worst."""
        every = tuple(tallies)
        counts = {name: sum(tally.of(name) for tally in every) for name in FINDINGS}
        return cls(
            {name: count for name, count in counts.items() if count}, sum(each.unmounted for each in every)
        )


@dataclass(frozen=True)
class Loss:
    """What was missing after the cuts that lost something and left the rest whole; None where it is not known.

    `bound_ms` and `bound_transactions` are what the engine's settings call bounded, None where they promise nothing.
    """

    transactions_max: int | None = None
    ms_max: float | None = None
    bound_ms: float | None = None
    bound_transactions: int | None = None


@dataclass(frozen=True)
class CacheCuts:
    """The cuts of one kind of device cache that are no controls.

    `drawn` are those whose position chance chose: of them alone is a share a share. `sought` are those where metadata was
    seen to wait, or, where writes were completed late (`is_late`), behind a flush that met some on their way. `recut` are those in the
    recovery from another cut. `shown` is the class that all show, None without a cut or in a verdict that is refused. `idle` are the
    drawn ones at which no write waited for a flush: whatever a device does to its cache, they find nothing. `tearing` are
    the weighted ones of the others that tear within a page. `enumerated` are states that were tried one by one.
    """

    drawn: CutCounts = field(default_factory=CutCounts)
    sought: CutCounts = field(default_factory=CutCounts)
    recut: CutCounts = field(default_factory=CutCounts)
    shown: str | None = None
    idle: int = 0
    tearing: int = 0
    is_late: bool = False
    enumerated: CutCounts = field(default_factory=CutCounts)

    @property
    def all(self) -> CutCounts:
        """All of them."""
        return CutCounts.together((self.drawn, self.sought, self.enumerated, self.recut))


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
    """Of `asked` recoveries from a cut `recorded` were recorded, to be cut again; those of bad cuts are not.

    Where the cuts in them are `refused`, none counts. `not_made` says why none could be recorded at all.
    """

    asked: int
    recorded: int
    refused: tuple[Reason, ...] = ()
    not_made: Reason | None = None

    @property
    def uncounted(self) -> tuple[Reason, ...]:
        """Why no cut in them counts, each a whole sentence; empty where they count."""
        not_made = () if self.not_made is None else (self.not_made.about("cuts in recovery were not made"),)
        return (*not_made, *(reason.about("cuts in recovery do not count") for reason in self.refused))


@dataclass(frozen=True)
class PowerCutVerdict:
    """The verdict on one run of power cuts.

    `caches` has what was found with each kind of device cache (`model.device_cache.CACHES`). No class is shown where
    the verdict is `refused`: the reasons say what in the experiment itself does not hold. `profiles` counts the drawn cuts
    by profile. `waiting` is how many spans of the log had metadata that can be torn, by kind; None where none was looked for.
    `waits` says whether commits wait for the device: where none
    does, controls are bad without any lie about a flush. `unreplayed` are the cuts after which the
    repair could not replay the journal. `of_the_cell` is False where the device was said to write a unit whole, so that the verdict
    is one on such a device, and where a journal that the cell has in memory was kept, so that
    the verdict is one on another journal. `recoveries` is None where no recovery was to be cut again.
    """

    caches: Mapping[str, CacheCuts]
    profiles: Mapping[str, CutCounts]
    controls: CutCounts
    loss: Loss
    window_bytes: int
    refused: tuple[Reason, ...] = ()
    of_the_cell: bool = True
    # Of the recording: the size of its disk; whether the type may commit an engine's page by halves on so small a one; how
    # often other programs committed it, None where nobody counted.
    image_bytes: int | None = None
    lacks_metadata_room: bool = False
    foreign_syncs: int | None = None
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
    def drawn(self) -> CutCounts:
        """Every cut at a position that chance chose."""
        return CutCounts.together(self.cuts(cache).drawn for cache in CACHES)

    @property
    def volatile_drawn(self) -> CutCounts:
        """Those of them with a volatile cache, whatever its sectors."""
        return CutCounts.together(self.cuts(cache).drawn for cache in (VOLATILE_4K, VOLATILE_512))

    @property
    def recut(self) -> CutCounts:
        """Every cut in a recovery."""
        return CutCounts.together(self.cuts(cache).recut for cache in CACHES)

    @property
    def all(self) -> CutCounts:
        """Every cut that is no control."""
        return CutCounts.together(self.cuts(cache).all for cache in CACHES)


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


def measured(verdict: PowerCutVerdict, declared: Durability | None) -> Durability | None:
    """The class that the cuts show; None where they show none, or speak of another journal than the cell's.

    A cache that no cut asked keeps what was declared, and so does one of which the cuts would promise more, as long as they
    are few, or the engine's own settings allow the loss. Where cuts and declaration disagree, the reasons say so.
    """
    if verdict.refused or not verdict.of_the_cell:
        return None
    if all(verdict.cuts(cache).shown is None for cache in CACHES):
        return None
    reasons: list[Reason] = []
    classes: dict[str, str] = {}
    for cache in (VOLATILE_4K, VOLATILE_512, PROTECTED):
        classes[cache], said = _measured_with(cache, verdict, declared)
        reasons += said
    return Durability(
        classes[VOLATILE_4K],
        classes[PROTECTED],
        "measured",
        (*reasons, *_asides(verdict)),
        # A device with small sectors may write a block whole, too.
        volatile_cache_512=worst(classes[VOLATILE_512], classes[VOLATILE_4K]),
    )


def _measured_with(
    cache: str, verdict: PowerCutVerdict, declared: Durability | None
) -> tuple[str, list[Reason]]:
    """The class that stands for one kind of cache, and what is to be said of it."""
    words, found = CACHE_WORDS[cache], verdict.cuts(cache)
    said = declared.class_with(cache) if declared else UNKNOWN
    if found.shown is None:
        return said, [because("not-cut", f"{words}: not cut, so {said} is as declared", cache=cache)]
    counted = f"{words}: {counted_words(found)}"
    reasons = [because("cuts-counted", counted, cache=cache, cuts=found.all.cuts, bad=found.all.bad)]
    if declared is None:
        return found.shown, reasons
    # The manuals promise nothing then where a page can be torn, and most cuts tear none.
    copies = pages_unmended(r for r in declared.reasons if r not in declared.by_runs)
    can_tear = copies is not None
    telling = found.tearing if can_tear else found.drawn.cuts - found.idle
    if copies in PAGES_PASSED_OVER and CLASSES.index(found.shown) < CLASSES.index(said):
        words = f"{words}: {said} as declared, as a checkpoint may pass over a page that no sync covers, which few cuts meet"
        return said, [*reasons, because("pages-passed-over", words, cache=cache, stands=said)]
    stands, why = _standing(found.shown, said, telling, verdict.loss, can_tear=can_tear)
    if why is not None:
        reasons.append(replace(why.about(words), values=why.values.updated(cache=cache)))
    elif said not in (stands, UNKNOWN):
        differ = f"{words}: declared {said}, measured {stands}"
        reasons.append(because("not-as-declared", differ, cache=cache, declared=said, measured=stands))
    return stands, reasons


def counted_words(found: CacheCuts) -> str:
    """`0 of 50 bad; where metadata waits 8 of 12 bad: 8 file system lost; in recovery 0 of 20 bad`."""
    words = [cut_words(found.drawn)] if found.drawn.cuts else []
    if found.sought.cuts:
        where = (
            "where metadata waits or a flush met writes on their way"
            if found.is_late
            else "where metadata waits"
        )
        words.append(f"{where} {cut_words(found.sought)}")
    if found.enumerated.cuts:
        words.append(f"states tried one by one: {cut_words(found.enumerated)}")
    if found.recut.cuts:
        words.append(f"in recovery {cut_words(found.recut)}")
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


def _standing(
    found: str, said: str, telling: int, loss: Loss, *, can_tear: bool
) -> tuple[str, Reason | None]:
    """The class that stands of what was measured and declared, and why it is not what was measured.

    `telling` are the cuts that could have found something; where pages can be torn for good, those that tear them.
    """
    if found == UNSAFE or CLASSES.index(found) >= CLASSES.index(said):
        return found, None
    if telling < CUTS_FOR_MORE:
        kind = "weighted cuts that tear a page" if can_tear else "cuts"
        values = Levels(stands=said, cuts=telling, kind=kind)
        return said, Reason(TOO_FEW_FOR_MORE, too_few_words(values), values)
    if found == DURABLE and (loss.bound_ms is not None or loss.bound_transactions is not None):
        words = "no cut lost any, which the engine's settings allow all the same"
        return BOUNDED_LOSS, because("loss-allowed-by-settings", words)
    return found, None


def too_few_words(values: Levels) -> str:
    """The sentence of `TOO_FEW_FOR_MORE`, by its values, without the kind of cache that it is said of."""
    return (
        f"{values['stands']} as declared, as {values['cuts']} {values['kind']} are too few to promise more "
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
            f"after {verdict.unreplayed} of {verdict.all.cuts} cuts the repair could not replay the file system's journal and "
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
            f"{verdict.remade} of {verdict.all.cuts} cuts were looked at twice, as the first look ended on an error that the second, "
            "at a fresh copy, did not meet; `power-cut points` names them"
        )
        found.append(because("good-at-second-look", words, remade=verdict.remade, cuts=verdict.all.cuts))
    if needed := verdict.all.of(NEEDS_FSCK):
        words = f"{needed} of {verdict.all.cuts} cuts needed fsck"
        found.append(because("fsck-needed", words, needed=needed, cuts=verdict.all.cuts))
    return found
