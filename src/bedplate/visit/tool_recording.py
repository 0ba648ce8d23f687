"""A run of a tool on the file system itself: its place, what is left to write when it ends, why it failed."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, VisitFailed
from bedplate.model.reason import SCRATCH_DEVICE_FULL, Reason, because, reasons_of
from bedplate.probe.kernel import ProcessProbe
from bedplate.visit.recording import Recording
from bedplate.visit.server import lacking_room

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# What the kernel still holds when a tool has ended is written in a phase of its own: no figure of the tool hides it.
SYNC_PHASE = "sync"

# A disk that writes less than this is not slow but stuck.
_SLOWEST_BYTES_PER_S = 1 << 20
_LEAST_LIMIT_S = _REMOVAL_LIMIT_S = 900.0
_NO_SPACE = os.strerror(errno.ENOSPC)
_FULL = because(
    SCRATCH_DEVICE_FULL,
    "the scratch device is full: no space left; a smaller file_size or size, or a larger image_size gives it room",
)


class RawRecording(Recording):
    """What a run has recorded so far."""

    @contextlib.contextmanager
    def place(self) -> Iterator[Path]:
        """A directory of the tool's own on the scratch device, gone afterwards, whatever the tool left in it."""
        path = self.context.data_directory / "raw"
        try:
            path.mkdir(mode=0o700)
            shutil.chown(path, self.context.account.uid, self.context.account.gid)
        except OSError as error:
            # A file system that has seen an error may be read-only by now.
            raise BedplateError(f"{path} cannot be made: {error.strerror}") from error
        try:
            yield path
        except VisitFailed:
            raise
        except BedplateError as error:
            # Before it goes: what fills the device tells why the tool failed.
            raise BedplateError(*reasons_of(error), *self._why_no_room(error)) from error
        finally:
            # Not by shutil: it calls itself for each folder, and a program of others may make thousands, one in the other.
            argv = ["rm", "--recursive", "--force", "--one-file-system", str(path)]
            self.context.commands.run(argv, check=False, timeout_s=_REMOVAL_LIMIT_S)

    @contextlib.contextmanager
    def watched(self, *, first_phase: str) -> Iterator[None]:
        """Probes beside the tool; its CPU is that of the visit's group."""
        with self.sampled([ProcessProbe("watching", lambda: (os.getpid(),))], first_phase=first_phase):
            yield

    def sync(self, place: Path, *, of_bytes: int) -> None:
        """Write what is left, as a phase of its own; CommandFailed where the device refuses."""
        with self.timed_phase(SYNC_PHASE):
            self.context.commands.run(
                ["sync", "--file-system", str(place)], timeout_s=time_limit_s(of_bytes, times=1)
            )

    def _why_no_room(self, error: BedplateError) -> tuple[Reason, ...]:
        """One more reason where the scratch device has no room left; some tools delete their files as they give up."""
        refused = error.__cause__.errno if isinstance(error.__cause__, OSError) else None
        if _NO_SPACE in error.said or refused == errno.ENOSPC:
            return (_FULL,)
        return lacking_room(self.context.mount_point, _FULL)


def time_limit_s(moved_bytes: int, *, times: int, more_s: float = 0.0) -> float:
    """How long a tool may take: bounded, not timed out by accident."""
    return _LEAST_LIMIT_S + times * moved_bytes / _SLOWEST_BYTES_PER_S + more_s
