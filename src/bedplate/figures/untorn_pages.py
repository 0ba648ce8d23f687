"""Whether every page of a server was written untorn that was to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.figures.rule import Spoken, spoken
from bedplate.model.cell import UNTORN_ON
from bedplate.model.page_writes import PageCounts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.model.page_writes import PageFacts, RecoveredPages


def why_not_untorn(
    level: str, pages: PageFacts | None, recovered: Sequence[RecoveredPages | None] = ()
) -> Spoken | str | None:
    """Of a cell with that level of `untorn_writes`: what was written otherwise; None where nothing was, and where nothing was asked.

    `recovered` are the recoveries that were cut again, each None of which nothing is known.
    """
    if level != UNTORN_ON:
        return None
    counts = None if pages is None else pages.counts
    if counts is None:
        return "untorn_writes = on, and nothing was counted: nothing shows how the pages were written"
    return _why_not(counts, "") or _why_not_in_recovery(recovered)


def _why_not_in_recovery(recovered: Sequence[RecoveredPages | None]) -> Spoken | str | None:
    """Of all of them together: one alone may have had no page to write over an older one."""
    if not recovered:
        return None
    counted = [each.counts for each in recovered if each is not None and each.counts is not None]
    together = PageCounts.together(counted)
    missing = len(recovered) - len(counted)
    if missing or together.is_empty:
        return (
            f"untorn_writes = on, and nothing was counted in {missing or len(recovered)} of {len(recovered)} recoveries: nothing "
            "shows how their pages were written"
        )
    return _why_not(together, "in recovery: ")


def _why_not(counts: PageCounts, where: str) -> Spoken | str | None:
    if counts.refusal is not None:
        words = f"{where}{counts.refusal}"
        return spoken(words, refused=counts.refusals, pages=counts.atomic + counts.refusals)
    if not counts.atomic:
        return f"{where}untorn_writes = on, and no page was written over an older one: nothing could be torn, and nothing shows"
    if counts.no_pages:
        return f"{where}{counts.no_pages:,} writes with direct I/O were no whole pages, and may be torn"
    return None
