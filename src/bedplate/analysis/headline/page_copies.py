"""When an engine may do without copies of its pages, by cuts of recordings without them: who writes pages whole, and where they tear.

Said of studies that look at pages (`untorn_writes`, `device_unit`). A verdict on a device with a unit is no class of the cell, and speaks here
all the same: it is the answer for such a device.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bedplate.analysis.headline.copies_saved import saving, saving_words
from bedplate.analysis.power_cut_view import cut_cell_words
from bedplate.model.device_cache import PROTECTED, VOLATILE_4K
from bedplate.model.durability import UNKNOWN, UNSAFE
from bedplate.model.page_ground import PAGES_TEAR, are_untorn, broke_itself, is_broken_otherwise
from bedplate.model.page_writes import ENOSPC, PageCounts
from bedplate.model.power_cut import DEVICE_UNIT
from bedplate.model.power_cut_verdict import CUTS_FOR_MORE
from bedplate.model.reason import FULL_PAGE_WRITES_OFF, INNODB_DOUBLEWRITE_OFF, PAGES_WRITTEN_OTHERWISE
from bedplate.model.template import and_more
from bedplate.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bedplate.analysis.headline.copies_saved import Saving
    from bedplate.analysis.overview import Overview
    from bedplate.analysis.power_cut_view import CutRun
    from bedplate.model.power_cut_verdict import CutCounts

# What each engine calls its copies.
_COPIES = {FULL_PAGE_WRITES_OFF: "page images", INNODB_DOUBLEWRITE_OFF: "double writing"}
_SHOWN = 4


@dataclass(frozen=True)
class WithoutCopies:
    """The recordings of a study that were made without one kind of copies (`page images`), as their cuts came out.

    `whole` are those that may do without, by why their pages are whole; `torn` are unsafe, and so are those that something else than a
    torn page broke (`broken`), or whose file system broke itself (`fallen`); of the others `unknown` says what is missing. Of `no_room` the verdict is refused, as XFS had no room for pages that were to be written whole (ENOSPC), and of `refused` as pages
    were written otherwise for another reason, which it says. `saving` is what one of the first saves.
    """

    copies: str
    whole: Mapping[str, tuple[CutRun, ...]]
    torn: tuple[CutRun, ...]
    unknown: Mapping[str, tuple[CutRun, ...]]
    no_room: tuple[CutRun, ...] = ()
    saving: Saving | None = None
    broken: tuple[CutRun, ...] = ()
    fallen: tuple[CutRun, ...] = ()
    refused: Mapping[str, tuple[CutRun, ...]] = field(default_factory=dict)


def without_copies(found: Overview) -> tuple[WithoutCopies, ...]:
    """One for each kind of copies; none where no recording looked at its pages, or none was cut as sectors of 4 KiB leave it."""
    by_code: dict[str, list[CutRun]] = {}
    for facts in found.cells.values():
        for run in facts.cuts:
            verdict = run.verdict
            is_otherwise = _pages_without_room(run) > 0 or _why_otherwise(run) is not None
            # A visit whose pages were written otherwise may have failed, and promises nothing any more.
            code = run.left_out if is_otherwise else run.unmended
            looked = verdict.pages is not None and not verdict.refused and _volatile(run).cuts > 0
            if code is not None and (looked or is_otherwise):
                by_code.setdefault(code, []).append(run)
    told = (_sorted_out(_COPIES[code], runs) for code, runs in by_code.items())
    return tuple(
        replace(each, saving=saving(found, (run.key.cell for runs in each.whole.values() for run in runs)))
        for each in told
    )


def _sorted_out(copies: str, runs: Sequence[CutRun]) -> WithoutCopies:
    whole: dict[str, tuple[CutRun, ...]] = {}
    unknown: dict[str, tuple[CutRun, ...]] = {}
    refused: dict[str, tuple[CutRun, ...]] = {}
    torn, broken, fallen = [], [], []
    no_room = tuple(run for run in runs if _pages_without_room(run))
    for run in runs:
        ground = run.ground(VOLATILE_4K)
        if run in no_room:
            continue
        if (why := _why_otherwise(run)) is not None:
            refused[why] = (*refused.get(why, ()), run)
        elif ground is not None and ground.words == PAGES_TEAR:
            torn.append(run)
        elif broke_itself(run.verdict.profiles):
            fallen.append(run)
        elif _volatile(run).broken:
            # Where cuts that tear nothing are too few, nobody knows what broke it: that is said of the cell alone.
            if is_broken_otherwise(run.verdict.profiles, run.verdict.pages):
                broken.append(run)
        elif ground is None and (again := run.verdict.cuts(VOLATILE_4K).recut).bad:
            if are_untorn(run.verdict.pages, run.verdict.recovered_pages):
                broken.append(run)
            else:
                words = f"{again.bad} of {again.cuts} cuts in recovery bad"
                unknown[words] = (*unknown.get(words, ()), run)
        elif ground is None and (in_order := run.verdict.cuts(PROTECTED).drawn).broken:
            words = f"{in_order.broken} of {in_order.cuts} cuts in order bad, which no whole page mends"
            unknown[words] = (*unknown.get(words, ()), run)
        elif ground is None:
            tearing = run.verdict.cuts(VOLATILE_4K).tearing
            words = f"{tearing} of {CUTS_FOR_MORE} cuts that could tear a page"
            unknown[words] = (*unknown.get(words, ()), run)
        elif ground.stands in (UNKNOWN, UNSAFE):
            unknown[ground.words] = (*unknown.get(ground.words, ()), run)
        else:
            whole[ground.words] = (*whole.get(ground.words, ()), run)
    return WithoutCopies(
        copies,
        whole,
        tuple(torn),
        unknown,
        no_room,
        broken=tuple(broken),
        fallen=tuple(fallen),
        refused=refused,
    )


def copies_words(told: WithoutCopies, names: Mapping[str, str]) -> Iterable[tuple[str, str, str, int]]:
    """Head, text, how the text begins and rank of each line: where the copies may go, where pages tear without, and what is open."""
    lead, without = f"{told.copies} may go", f"without {told.copies}"
    for ground, runs in told.whole.items():
        yield "Safe", f"{lead} where pages are {ground}: {_listed(runs, names)}.", lead, 0
    if not told.whole:
        yield "Safe", f"{lead} nowhere here: no recording shows that pages are whole {without}.", lead, 0
    if told.saving is not None:
        yield "Saves", saving_words(told.saving, told.copies, names), without, 1
    if told.torn:
        yield "Not", f"{without} pages tear: {_listed(told.torn, names, with_unit=True)}.", without, 1
    if told.broken:
        named = _listed(told.broken, names, with_unit=True)
        yield "Not", f"{without} cuts are bad that no torn page explains: {named}.", without, 1
    if told.fallen:
        named = _listed(told.fallen, names, with_unit=True)
        yield "Not", f"the file system itself broke, which {told.copies} do not mend: {named}.", "", 1
    for run in told.no_room:
        refused, asked = _pages_without_room(run), _pages_asked(run)
        words = (
            f"{without} XFS had no free space in one piece for {refused:,} of {asked:,} pages that were to be whole (ENOSPC): "
            f"{names[run.key.cell]}{_way_out(run)}."
        )
        yield "Not", words, without, 1
    for why, runs in told.refused.items():
        # Their cuts are counted nowhere: they are of pages that were written in two ways.
        named = ", ".join(names[run.key.cell] for run in runs[:_SHOWN])
        yield "Open", f"{without} no verdict on {named}{and_more(len(runs), _SHOWN)}: {why}.", without, 2
    for why, runs in told.unknown.items():
        yield "Open", f"{without} {why}: {_listed(runs, names)}.", without, 2


def _listed(runs: Sequence[CutRun], names: Mapping[str, str], *, with_unit: bool = False) -> str:
    """`xfs untorn_writes=on (bad: 0 of 150, < 2.5 %)`: bad cuts, and the bound of their share; bad ones that have none, as in recovery."""
    named = []
    for run in runs[:_SHOWN]:
        unit = run.spec.levels.integer(DEVICE_UNIT) if with_unit else None
        where = f" on a device that writes {format_size(unit)} whole" if unit else ""
        named.append(f"{names[run.key.cell]}{where} (bad: {cut_cell_words(run.verdict.cuts(VOLATILE_4K))})")
    return f"{', '.join(named)}{and_more(len(runs), _SHOWN)}"


def _pages_without_room(run: CutRun) -> int:
    """Pages that were to be written whole, and were written plainly as XFS found no room for them."""
    return _counts(run).refused.get(ENOSPC, 0)


def _why_otherwise(run: CutRun) -> str | None:
    """Why pages that were to be written whole were not, by the reason that refuses the verdict."""
    found = (reason for reason in run.verdict.refused if reason.code == PAGES_WRITTEN_OTHERWISE)
    return next(map(str, found), None)


def _pages_asked(run: CutRun) -> int:
    counts = _counts(run)
    return counts.atomic + counts.refusals


def _counts(run: CutRun) -> PageCounts:
    """Of the recorded server, and of it in the recoveries that were cut again."""
    pages = run.verdict.pages
    every = (pages.counts if pages else None, *(each.counts for each in run.verdict.recovered_pages))
    return PageCounts.together(filter(None, every))


def _way_out(run: CutRun) -> str:
    pages = run.verdict.pages
    size = format_size(pages.page_bytes).replace(" KiB", "k") if pages is not None else ""
    return f'; cowextsize = "{size}" is the way out'


def _volatile(run: CutRun) -> CutCounts:
    """The drawn cuts with a volatile cache; sectors of 512 bytes tear metadata too, and say nothing of pages alone."""
    return run.verdict.cuts(VOLATILE_4K).drawn
