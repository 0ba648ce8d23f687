"""Whether every page of a server was written untorn that was to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.figures.rule import Spoken, spoken
from bedplate.model.cell import UNTORN_ON

if TYPE_CHECKING:
    from bedplate.model.page_writes import PageFacts


def why_not_untorn(level: str, pages: PageFacts | None) -> Spoken | str | None:
    """Of a cell with that level of `untorn_writes`: what was written otherwise; None where nothing was, and where nothing was asked."""
    if level != UNTORN_ON:
        return None
    counts = None if pages is None else pages.counts
    if counts is None:
        return "untorn_writes = on, and nothing was counted: nothing shows how the pages were written"
    if counts.refusal is not None:
        return spoken(counts.refusal, refused=counts.refusals, pages=counts.atomic + counts.refusals)
    if not counts.atomic:
        return "untorn_writes = on, and no page was written over an older one: nothing could be torn, and nothing shows"
    if counts.no_pages:
        return f"{counts.no_pages:,} writes with direct I/O were no whole pages, and may be torn"
    return None
