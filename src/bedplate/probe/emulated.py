"""How punctual an emulated device is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SERVED, LATE = "emulated.served", "emulated.late"


class EmulatedDeviceProbe:
    """Requests that an emulated device answered at a moment of their own, and those of them that came too late."""

    name = "emulated device"
    skew = "reads one file of a program in user space"

    def __init__(self, status: Path) -> None:
        self._status = status

    def read(self) -> Mapping[str, float]:
        """Both cumulative."""
        found = json.loads(self._status.read_text(encoding="utf-8", errors="replace"))
        return {SERVED: float(found["served"]), LATE: float(found["late"])}
