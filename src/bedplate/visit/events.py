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

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.model.levels import Scalar


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
