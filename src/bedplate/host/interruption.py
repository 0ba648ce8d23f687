"""A signal must not come between taking something and knowing that it was taken, nor into the giving back.

Popen forks first and returns later. An exception that a signal handler raises in between leaves a child
that nobody knows of: a mount(8), say, that mounts after its visit has given everything back. Blocking
the signal itself would be inherited by the child; so the handler is asked to wait instead.

Every handler that raises calls `arrive`. Ctrl-C where nobody has set a handler waits too: `held` puts one in the
place of Python's own for so long, and a program that calls bedplate keeps what it has.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


@dataclass
class _State:
    held: int = 0
    pending: BaseException | None = None


_state = _State()


def arrive(interruption: BaseException) -> None:
    """What a signal handler calls: raises now, or at the end of the outermost `held` block."""
    _state.pending = interruption if _state.held else None
    if not _state.held:
        raise interruption


@contextlib.contextmanager
def held() -> Iterator[None]:
    """An interruption that arrives inside is raised when the block ends, in the main thread.

    Whoever takes something puts the block into the `try` that gives it back: the block's end raises.
    """
    # Python runs handlers in the main thread alone. Another thread must not raise what is meant for that one.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if not _state.held and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    _state.held += 1
    try:
        yield
    finally:
        _state.held -= 1
        if not _state.held:
            _end_outermost()


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """As Python's own handler, outside of a block to the letter: should it ever stay, nobody can tell."""
    arrive(KeyboardInterrupt())


def _end_outermost() -> None:
    if signal.getsignal(signal.SIGINT) is _interrupt:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Also where the block failed: its error may be one that somebody expects, and goes on after.
    if _state.pending is not None:
        pending, _state.pending = _state.pending, None
        raise pending
