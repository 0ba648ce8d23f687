"""What the cuts of one recording come to: counts by profile and finding, and the classes of durability they show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bedplate.model.durability import (
    BOUNDED_LOSS,
    CLASSES,
    DURABLE,
    FULL_PAGE_WRITES_OFF,
    UNKNOWN,
    UNSAFE,
    worst,
)
from bedplate.model.visit import Durability

if TYPE_CHECKING:
    from collections.abc import Iterable

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
# What is there is whole, and the engine can go on with it.
WHOLE = (OK, NEEDS_FSCK, BOUNDED, LOSS)


@dataclass(frozen=True)
class Tally:
    """How often each finding came up among cuts of one kind; a finding that did not is left out."""

    findings: Mapping[str, int] = field(default_factory=dict)

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
        return sum(count for name, count in self.findings.items() if name not in WHOLE)

    @property
    def worst(self) -> str | None:
        """The gravest finding; None without a cut."""
        return max(self.findings, key=FINDINGS.index, default=None)

    def of(self, *names: str) -> int:
        """How many cuts came to one of these findings."""
        return sum(self.findings.get(name, 0) for name in names)

    @classmethod
    def together(cls, tallies: Iterable[Tally]) -> Tally:
        """Several as one, the findings from best to worst."""
        every = tuple(tallies)
        counts = {name: sum(tally.of(name) for tally in every) for name in FINDINGS}
        return cls({name: count for name, count in counts.items() if count})


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
class Verdict:
    """The verdict on one run of power cuts.

    `volatile_cache` and `protected_cache` are classes of durability, None where no cut asked. Neither is there where the
    verdict is `refused`: the reasons say what in the experiment itself does not hold. `volatile` and `protected` count
    the cuts that are no controls, `profiles` the same by profile. `idle` are those of a volatile cache at which no write
    waited for a flush: whatever a device does to its cache, they find nothing. `tearing` are the
    weighted ones of the others that tear within a page. `waits` says whether commits wait for the device: where none
    does, controls are bad without any lie about a flush. `unreplayed` are those after which the
    repair could not replay the journal. `of_the_cell` is False where a journal that the cell has in memory was kept, so that
    the verdict is one on another journal.
    """

    volatile: Tally
    protected: Tally
    profiles: Mapping[str, Tally]
    controls: Tally
    loss: Loss
    window_bytes: int
    volatile_cache: str | None = None
    protected_cache: str | None = None
    refused: tuple[str, ...] = ()
    of_the_cell: bool = True
    # Of the recording: the size of its disk; whether the type may commit an engine's page by halves on so small a one; how
    # often other programs committed it, None where nobody counted.
    image_bytes: int | None = None
    lacks_metadata_room: bool = False
    foreign_syncs: int | None = None
    journal_lost: bool = False
    unreplayed: int = 0
    idle: int = 0
    tearing: int = 0
    waits: bool = True

    @property
    def all(self) -> Tally:
        """Every cut that is no control."""
        return Tally.together((self.volatile, self.protected))


def cut_words(tally: Tally) -> str:
    """`0 of 150 bad`, and what else was found, the gravest first: `20 of 60 bad: 20 corrupt, silent`."""
    if not tally.cuts:
        return "not cut"
    found = [f"{tally.of(name)} {name}" for name in reversed(FINDINGS) if name != OK and tally.of(name)]
    words = f"{tally.bad} of {tally.cuts} bad"
    return f"{words}: {'; '.join(found)}" if found else words


def measured(verdict: Verdict, declared: Durability | None) -> Durability | None:
    """The class that the cuts show; None where they show none, or speak of another journal than the cell's.

    A side that no cut asked keeps what was declared, and so does one of which the cuts would promise more, as long as they
    are few, or the engine's own settings allow the loss. Where cuts and declaration disagree, the reasons say so.
    """
    if verdict.refused or not verdict.of_the_cell:
        return None
    if verdict.volatile_cache is None and verdict.protected_cache is None:
        return None
    sides = (
        (
            "volatile",
            verdict.volatile_cache,
            verdict.volatile,
            verdict.volatile.cuts - verdict.idle,
            verdict.tearing,
            declared.volatile_cache if declared else UNKNOWN,
        ),
        (
            "protected",
            verdict.protected_cache,
            verdict.protected,
            verdict.protected.cuts,
            # A cache that keeps the order keeps each write whole.
            0,
            declared.protected_cache if declared else UNKNOWN,
        ),
    )
    reasons = []
    classes = []
    # PostgreSQL's manual promises nothing then where a page can be torn, and most cuts tear none.
    can_tear = declared is not None and any(
        reason.startswith(FULL_PAGE_WRITES_OFF) for reason in declared.reasons
    )
    for name, found, tally, telling, tearing, said in sides:
        if found is None:
            classes.append(said)
            reasons.append(f"{name} cache: not cut, so {said} is as declared")
            continue
        reasons.append(f"{name} cache: {cut_words(tally)}")
        stands, why = found, ""
        if declared:
            stands, why = _standing(
                found, said, tearing if can_tear else telling, verdict.loss, can_tear=can_tear
            )
        classes.append(stands)
        if why:
            reasons.append(f"{name} cache: {why}")
        elif said not in (stands, UNKNOWN):
            reasons.append(f"{name} cache: declared {said}, measured {stands}")
    return Durability(classes[0], classes[1], "measured", (*reasons, *_asides(verdict)))


def class_of(tally: Tally) -> str | None:
    """The class that the cuts of one kind of cache show; None without a cut."""
    if not tally.cuts:
        return None
    if tally.of(LOSS) or tally.broken:
        return UNSAFE
    return BOUNDED_LOSS if tally.of(BOUNDED) else DURABLE


def classes_of(volatile: Tally, protected: Tally) -> tuple[str | None, str | None]:
    """Both classes; a volatile cache may keep its order too, so it is no better than a protected one."""
    first, second = class_of(volatile), class_of(protected)
    return (worst(first, second) if first and second else first), second


def _standing(found: str, said: str, telling: int, loss: Loss, *, can_tear: bool) -> tuple[str, str]:
    """The class that stands of what was measured and declared, and why it is not what was measured.

    `telling` are the cuts that could have found something; where pages can be torn for good, those that tear them.
    """
    if found == UNSAFE or CLASSES.index(found) >= CLASSES.index(said):
        return found, ""
    if telling < CUTS_FOR_MORE:
        kind = "weighted cuts that tear a page" if can_tear else "cuts"
        return (
            said,
            f"{said} as declared, as {telling} {kind} are too few to promise more ({CUTS_FOR_MORE} may)",
        )
    if found == DURABLE and (loss.bound_ms is not None or loss.bound_transactions is not None):
        return BOUNDED_LOSS, "no cut lost any, which the engine's settings allow all the same"
    return found, ""


def _asides(verdict: Verdict) -> list[str]:
    found = []
    if verdict.idle:
        found.append(
            f"nothing waited for a flush at {verdict.idle} of the {verdict.volatile.cuts} with a volatile cache"
        )
    if verdict.unreplayed and not verdict.journal_lost:
        found.append(
            f"after {verdict.unreplayed} of {verdict.all.cuts} cuts the repair could not replay the file system's journal and "
            "dropped it: what is missing then is the tool's doing, and on this system as much gone"
        )
    if not verdict.waits and verdict.controls.cuts:
        found.append(
            "no commit waits for the device, so that a loss is what is expected: the controls, bad without any lie about a "
            "flush, prove less here"
        )
    if verdict.journal_lost:
        found.append("the journal stood in memory and was gone after each cut")
    if verdict.all.of(NEEDS_FSCK):
        found.append(f"{verdict.all.of(NEEDS_FSCK)} of {verdict.all.cuts} cuts needed fsck")
    return found
