"""Where a long command stands: it is followed by counting what it has written."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_INTERVAL_S = 1.0


@dataclass(frozen=True)
class BuildProgress:
    """Where a build stands: `done` of `total` within `step`, both None where that is not known."""

    step: str
    done: int | None = None
    total: int | None = None


def count_objects(directory: Path) -> int:
    """Object files below `directory`; one that vanishes meanwhile does no harm."""
    return sum(name.endswith(".o") for _, _, names in os.walk(directory) for name in names)


@contextmanager
def watched(
    count: Callable[[], int], report: Callable[[int], None], *, interval_s: float = _INTERVAL_S
) -> Iterator[None]:
    """Call `report` with the count about once a second from another thread, until the block ends.

    A compiler says to nobody when an object is done, so that its folder is looked at: `count_objects` takes about
    10 ms of CPU. `report` is never called after the block.
    """
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(interval_s):
            report(count())

    thread = threading.Thread(target=watch, name="count of progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
