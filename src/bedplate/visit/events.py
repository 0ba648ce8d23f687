"""What a visit says while it lives: one JSON object a line on standard output.

    {"event": "step", "step": "mkfs"}
    {"event": "run", "run": "read-write", "index": 2, "of": 2}
    {"event": "second", "run": …, "phase": "measure", "phase_s": 45, "transactions": 512, …}
    {"event": "item", "run": "cold", "phase": "queries", "item": "14", "done": 3, "of": 22}
    {"event": "image", "done_bytes": …, "of_bytes": …}

The executor shows them; nothing is ever computed from them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TextIO

from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bedplate.model.levels import Scalar

# An image is written at some GiB a second; a display has use for a few events a second.
_IMAGE_EVENT_BYTES = 256 * MIB


class EventStream:
    """Writes events; a reader that went away is no reason to stop a visit."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._broken = False

    def emit(self, event: Mapping[str, Scalar]) -> None:
        """Write one event and flush it."""
        if self._broken:
            return
        try:
            self._stream.write(json.dumps(event) + "\n")
            self._stream.flush()
        except (BrokenPipeError, ValueError):
            self._broken = True


def image_progress(
    emit: Callable[[Mapping[str, Scalar]], None], of_bytes: int | None
) -> Callable[[int], None]:
    """What is told while an image is written: how far it is, of how much."""
    told_bytes = 0

    def tell(done_bytes: int) -> None:
        nonlocal told_bytes
        if done_bytes - told_bytes >= _IMAGE_EVENT_BYTES or done_bytes == of_bytes:
            told_bytes = done_bytes
            emit({"event": "image", "done_bytes": done_bytes, "of_bytes": of_bytes or 0})

    return tell
