"""A signal must not come between starting a program and knowing that it was started.

Popen forks first and returns later. An exception that a signal handler raises in between leaves a child
that nobody knows of: a mount(8), say, that mounts after its visit has given everything back. Blocking
the signal itself would be inherited by the child; so the handler is asked to wait instead.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class _State:
    held: int = 0
    pending: BaseException | None = None


_state = _State()


def arrive(interruption: BaseException) -> None:
    """What a signal handler calls: raises now, or at the end of the outermost `held` block."""
    if _state.held:
        _state.pending = interruption
        return
    raise interruption


@contextlib.contextmanager
def held() -> Iterator[None]:
    """An interruption that arrives inside is raised when the block ends; keep the block short."""
    _state.held += 1
    try:
        yield
    finally:
        _state.held -= 1
        # Also where the block failed: its error may be one that somebody expects, and goes on after.
        if not _state.held and _state.pending is not None:
            pending, _state.pending = _state.pending, None
            raise pending
