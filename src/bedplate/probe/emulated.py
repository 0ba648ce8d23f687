"""How punctual an emulated device is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DUE_S, LATE_S = "emulated.due_s", "emulated.late_s"


class EmulatedDeviceProbe:
    """What the requests of an emulated device should have taken, and how late their answers were."""

    name = "emulated device"
    skew = "reads one file of a program in user space"

    def __init__(self, status: Path) -> None:
        self._status = status

    def read(self) -> Mapping[str, float]:
        """Seconds of all requests together, both cumulative."""
        found = json.loads(self._status.read_text(encoding="utf-8", errors="replace"))
        return {DUE_S: found["due_ns"] / 1e9, LATE_S: found["late_ns"] / 1e9}
