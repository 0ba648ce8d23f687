"""What about a recording of power cuts makes its verdict harsher or kinder than it would be elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    return words
