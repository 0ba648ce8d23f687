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


def count_objects(directory: Path, *, since_ns: int | None = None) -> int:
    """Object files below `directory`, of those that were written `since_ns` where that is given; one that vanishes meanwhile does no harm."""
    if since_ns is None:
        return sum(name.endswith(".o") for _, _, names in os.walk(directory) for name in names)
    return sum(
        _was_written(os.path.join(folder, name), since_ns)  # noqa: PTH118 -- a thousand of them each second
        for folder, _, names in os.walk(directory)
        for name in names
        if name.endswith(".o")
    )


def _was_written(path: str, since_ns: int) -> bool:
    try:
        return os.lstat(path).st_mtime_ns >= since_ns
    except OSError:
        return False


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
