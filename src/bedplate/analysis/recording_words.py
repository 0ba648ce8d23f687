"""What about a recording of power cuts makes its verdict harsher or kinder than it would be elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.page_writes import PageCounts
from bedplate.model.power_cut import COMPLETIONS, DEVICE_UNIT, HAS_FUA, IN_FLIGHT, LATE, LATE_US
from bedplate.units import format_size

if TYPE_CHECKING:
    from bedplate.analysis.power_cut_view import CutRun


def recording_words(run: CutRun) -> list[str]:
    """A sentence for each such thing."""
    words = []
    size, syncs = run.verdict.image_bytes, run.verdict.foreign_syncs
    if size is not None and run.verdict.lacks_metadata_room:
        words.append(
            f"recorded on a disk of {format_size(size)}: there Btrfs may have little room for metadata, and then commits an "
            "engine's page by halves, in order too"
        )
    if syncs:
        calls = "once" if syncs == 1 else f"{syncs} times"
        words.append(
            f"another program called sync(2) {calls} meanwhile, which committed the recorded file system too"
        )
    if run.dataset.levels.get(COMPLETIONS) == LATE:
        waiting = run.verdict.waiting
        met = "" if waiting is None else f", and {waiting.get(IN_FLIGHT, 0)} flushes met some on their way"
        words.append(f"writes were complete up to {LATE_US / 1000:g} ms late{met}")
    if run.dataset.levels.get(HAS_FUA) is True and run.recording is not None:
        words.append(
            f"{run.recording.through_writes or 0:,} writes went past the cache (FUA), without a flush of all else"
        )
    unit = run.spec.levels.get(DEVICE_UNIT)
    recording = run.recording
    if isinstance(unit, int) and recording is not None:
        words.append(
            f"cut as a device would leave it that writes {format_size(unit)} whole: no class of the cell on another. It does not "
            f"cover {recording.uncovered_writes or 0:,} of {recording.long_writes or 0:,} writes above 4 KiB, which were longer, "
            "no power of two or not aligned to themselves"
        )
    if recording is not None and (unseen := recording.facts.get("writers")):
        words.append(f"which processes wrote was {unseen}")
    words += _sought_words(run)
    words += _page_words(run)
    if run.verdict.states is not None:
        words.append(run.verdict.states.words)
    return words


def _sought_words(run: CutRun) -> list[str]:
    """How many cuts were to be sought and were not made, and why; nothing where all were."""
    recording = run.recording
    if recording is None or not recording.sought_left_out:
        return []
    why = (
        "none of the profiles tears a write"
        if recording.waiting
        else "no metadata waited that a cut can tear"
    )
    return [f"{recording.sought_left_out:,} cuts that were to be sought were not made: {why}"]


def _page_words(run: CutRun) -> list[str]:
    """How the pages came to the file system, and where they lay; nothing where nobody looked."""
    pages = run.verdict.pages
    if pages is None:
        return []
    before, after = pages.before, pages.after
    words = []
    if pages.counts is not None:
        words.append(f"the server wrote {_counted_words(pages.counts)}")
    recovered = [each.counts for each in run.verdict.recovered_pages if each.counts is not None]
    if recovered:
        counted = _counted_words(PageCounts.together(recovered))
        words.append(f"as it recovered, to be cut again, it wrote {counted}, in {len(recovered)} recoveries")
    if pages.direct_files:
        words.append(
            f"{after.misplaced:,} of {after.pages:,} pages do not lie at a multiple of their size; the data files were in "
            f"{before.extents:,} pieces before the clients and in {after.extents:,} after them"
        )
    else:
        words.append("the server had no data file open with direct I/O")
    return words


def _counted_words(counts: PageCounts) -> str:
    how = f"{counts.atomic:,} pages untorn" if counts.atomic else f"{counts.plain:,} pages plainly"
    return (
        f"{how} over older ones, {counts.refusals:,} refused, and {counts.extensions:,} behind a file's end"
    )
