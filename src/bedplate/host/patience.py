"""Waiting for what the kernel has no event for: a device or a group that is no longer busy."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def wait_until(
    done: Callable[[], bool],
    *,
    deadline_s: float,
    pause_s: float = 0.01,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Ask again until it is done: True; False if it is not at the deadline. Asks at least once."""
    give_up = clock() + deadline_s
    while not done():
        if clock() >= give_up:
            return False
        sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.2)
    return True
