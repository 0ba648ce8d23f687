"""What the reader of a writer's pipe says when a run ends."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood

if TYPE_CHECKING:
    from pathlib import Path

SUMMARY_FILE = "acks.out"
_SUMMARY = re.compile(r"end (\d+) (\d+\.\d+) (\d+) (\d+\.\d+)\n")


@dataclass(frozen=True)
class AcksSummary:
    """Of the measured window: `together` are lines that came in one read with another of their client.

    `quiet_s` is the longest time without any line. Nobody connects.
    """

    transactions: int
    duration_s: float
    together: int
    quiet_s: float
    initial_connection_ms: float | None = None


def read_summary(logs: Path) -> AcksSummary:
    """From a run's folder of outputs; OutputNotUnderstood where the reader did not come to its end."""
    text = (logs / SUMMARY_FILE).read_text(encoding="utf-8", errors="replace")
    found = _SUMMARY.fullmatch(text)
    if found is None:
        raise OutputNotUnderstood(
            "the reader of the writer's pipe", expected="`end ACKS SECONDS TOGETHER QUIET_S`", found=text
        )
    return AcksSummary(int(found[1]), float(found[2]), int(found[3]), float(found[4]))
