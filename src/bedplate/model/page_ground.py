"""On what ground a class of power cuts rests where the engine cannot mend a torn page: who writes pages whole, or that they tear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.model.durability import BOUNDED_LOSS, CLASSES, DURABLE, UNKNOWN, UNSAFE
from bedplate.model.power_cut import Profile
from bedplate.model.power_cut_verdict import CUTS_FOR_MORE, CutCounts
from bedplate.model.reason import PAGES_PASSED_OVER
from bedplate.units import KIB

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.model.page_writes import PageCounts, PageFacts, RecoveredPages

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
    shown: str,
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
    if copies in PAGES_PASSED_OVER and shown in CLASSES and not is_broken:
        return PageGround(UNSAFE, PASSED_OVER)
    if shown == UNSAFE:
        return PageGround(UNSAFE, PAGES_TEAR) if _only_torn(profiles) and not are_untorn(pages) else None
    if shown not in (DURABLE, BOUNDED_LOSS):
        return None
    if unit_bytes is not None:
        ground = _by_device(shown, pages, unit_bytes, recovered)
    elif are_untorn(pages, recovered):
        ground = PageGround(shown, BY_FILE_SYSTEM)
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
    shown: str, pages: PageFacts | None, unit_bytes: int, recovered: Sequence[RecoveredPages]
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
    return PageGround(shown, f"untorn by device ({unit_bytes // KIB} kB)")
