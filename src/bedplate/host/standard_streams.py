"""Standard input, output and error, whatever a caller made of them: closed, on a full disk, on a terminal that is gone.

What is measured must not depend on who watches, so nothing that is said can fail. What could not be said is known afterwards (`lost`), and
`cli` says so at the end. Only a reader that went away (`| head`) is an error still: BrokenPipeError, at which `cli` ends a command that only shows.
"""

from __future__ import annotations

import io
import os
import select
import sys
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_INPUT, _OUTPUT, _ERROR = range(3)


class SpokenDescriptor(io.RawIOBase):
    """A descriptor for what is said: a write that fails is a write to nowhere, and `lost` has the first reason."""

    def __init__(self, descriptor: int, *, may_break: bool) -> None:
        self._descriptor = descriptor
        self._may_break = may_break
        self.lost: OSError | None = None

    def write(self, data: ReadableBuffer, /) -> int:
        """Write some of it, all of it where that fails."""
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            # A caller's descriptor that does not wait, as a terminal is that another program had; its reader is only slow.
            select.select((), (self._descriptor,), ())
            return self.write(data)
        except BrokenPipeError:
            if self._may_break:
                raise
        except OSError as error:
            self.lost = self.lost or error
        return memoryview(data).nbytes

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
