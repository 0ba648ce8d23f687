"""A signal must not come between taking something and knowing that it was taken, nor into the giving back.

Popen forks first and returns later. An exception that a signal handler raises in between leaves a child
that nobody knows of: a mount(8), say, that mounts after its visit has given everything back. Blocking
the signal itself would be inherited by the child; so the handler is asked to wait instead.

Every handler that raises calls `arrive`. Ctrl-C where nobody has set a handler waits too: `defer_interruptions` puts one in the
place of Python's own for so long, and a program that calls bedplate keeps what it has.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


@dataclass
class _State:
    held: int = 0
    pending: BaseException | None = None


_state = _State()


def arrive(interruption: BaseException) -> None:
    """What a signal handler calls: raises now, or at the end of the outermost `defer_interruptions` block."""
    _state.pending = interruption if _state.held else None
    if not _state.held:
        raise interruption


@contextlib.contextmanager
def defer_interruptions() -> Iterator[None]:
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


_INPUT, _OUTPUT, _ERROR = range(3)


class SpokenDescriptor(io.RawIOBase):
    """A descriptor for what is said: a write that fails is a write to nowhere, and `lost` has the first reason."""

    def __init__(self, descriptor: int, *, may_break: bool) -> None:
        self._descriptor = descriptor
        self._may_break = may_break
        self.lost: OSError | None = None

    def write(self, buffer: ReadableBuffer, /) -> int:
        """Write some of it, all of it where that fails."""
        try:
            return os.write(self._descriptor, buffer)
        except BlockingIOError:
            # A caller's descriptor that does not wait, as a terminal is that another program had; its reader is only slow.
            select.select((), (self._descriptor,), ())
            return self.write(buffer)
        except BrokenPipeError:
            if self._may_break:
                raise
        except OSError as error:
            self.lost = self.lost or error
        return memoryview(buffer).nbytes

    def fileno(self) -> int:
        """That of the descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Whether a terminal is behind it."""
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        """Always."""
        return True


def open_closed_descriptors() -> None:
    """Put nothing where a standard descriptor is closed: the next file that is opened would get its number, and what is said would be written there."""
    for descriptor in (_INPUT, _OUTPUT, _ERROR):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest that is free is this one.
            os.open(os.devnull, os.O_RDWR)
    for name, descriptor, mode in (("stdin", _INPUT, "r"), ("stdout", _OUTPUT, "w"), ("stderr", _ERROR, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(descriptor, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 -- for good


def open_said() -> SpokenDescriptor:
    """Make standard output and error streams that nothing can make fail; what is known of standard output."""
    output, error = SpokenDescriptor(_OUTPUT, may_break=True), SpokenDescriptor(_ERROR, may_break=False)
    for name, said in (("stdout", output), ("stderr", error)):
        before = getattr(sys, name)
        encoding = before.encoding if isinstance(before, io.TextIOWrapper) else "utf-8"
        # A terminal of another encoding loses a character, not a study.
        stream = io.TextIOWrapper(
            io.BufferedWriter(said),
            encoding,
            "replace",
            line_buffering=name == "stderr" or said.isatty(),
        )
        setattr(sys, name, cast("io.TextIOWrapper", stream))
    return output
