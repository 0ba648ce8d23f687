"""What a recording has that lasts seconds, and a system that lasts for months has too: a steady pace and other writers.

Pace: a fast engine would fill the log in a few seconds, too few for what a file system does now and then. So the log's room
is dealt out by the second; clients work at full speed until a second's part is used up, and then wait for the next.

Pressure: in the last part a neighbour makes, renames and removes files beside the engine's and never syncs, the kernel is
asked to write back what the engine has dirty, and the metadata that the file system keeps in the page cache of its device
(ext2 to ext4), which the kernel does by itself once that is 30 s old; and an engine that has
checkpoints makes one every second.

Pressed dirty pages, where a plan asks for them: from the beginning the kernel writes back what the engine has dirty, all the while. What
an engine never syncs would else not reach the disk within seconds, and such a fault would show as plain loss alone.
"""

from __future__ import annotations

import ctypes
import math
import os
import random
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from bedplate.errors import BedplateError
from bedplate.host.file_lock import file_lock
from bedplate.host.files import folders_below
from bedplate.host.tunables import tuned
from bedplate.units import KIB, MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from bedplate.host.ledger import Ledger
    from bedplate.visit.cut_engine import Checkpoints

# The mark in the log where pressure begins, and the part of the recording that has none.
PRESSURE = "pressure"
CALM_SHARE = 0.6
# What the clients may add to a log that can hold more: as much as is cut and replayed in the time of a visit.
ROOM_BYTES = 512 * MIB
_STEP_S = 0.02
_PUSH_EVERY_S = 1.0
_PRESS_EVERY_S = 0.03
_FOLDERS = 4
_FILES_MOST = 64
_SIZES = (0, KIB, 4 * KIB, 20 * KIB, 150 * KIB)
# A neighbour that fills the disk would end the engine.
_LEFT_BYTES = 32 * MIB
# fcntl.h: SYNC_FILE_RANGE_WRITE, which begins to write and waits for nothing.
_BEGIN_TO_WRITE = 2
_END_LIMIT_S = 60.0
# How often XFS writes its metadata back, in hundredths of a second (Documentation/admin-guide/xfs.rst).
_XFS_PERIOD = Path("/proc/sys/fs/xfs/xfssyncd_centisecs")
_PERIOD_S_MOST = 60.0
# From the mount to the first client: 1 to 2 s on idle cores, and time is left.
_PREPARED_S = 2.5


@dataclass(frozen=True)
class Pace:
    """Of a log that had `first_bytes` at the monotonic time `began_s`: `room_bytes` for all of `duration_s`."""

    log: Path
    first_bytes: int
    room_bytes: int
    began_s: float
    duration_s: float

    @classmethod
    def begin(cls, log: Path, most_bytes: int, duration_s: float) -> Pace:
        """From now on; in a log that may become so large."""
        first_bytes = log.stat().st_size
        room_bytes = max(1, min(ROOM_BYTES, most_bytes - first_bytes))
        return cls(log, first_bytes, room_bytes, time.monotonic(), duration_s)

    def pause_s(self) -> float:
        """How long to wait before the next transaction; 0 while this second's part of the log has room."""
        elapsed_s = time.monotonic() - self.began_s
        seconds = int(elapsed_s) + 1
        dealt_bytes = self.room_bytes * seconds / max(1, math.ceil(self.duration_s))
        if self.log.stat().st_size - self.first_bytes < dealt_bytes:
            return 0.0
        return seconds - elapsed_s


class Pressure:
    """From `with` to its end, but for the first `calm_s`: the neighbour in `folder`, the engine's files in `files`, on `disk`.

    The log is marked as it begins. A neighbour that cannot go on ends by itself: `trouble` says why. `checkpoints`
    are the engine's, if it has any. `pressed`: what the engine has dirty is written back all the while.
    """

    def __init__(
        self,
        folder: Path,
        files: Path,
        disk: Path,
        *,
        calm_s: float,
        seed: int,
        mark_file: Path,
        checkpoints: AbstractContextManager[Checkpoints] | None = None,
        pressed: bool = False,
    ) -> None:
        self.trouble: str | None = None
        self._folder = folder
        self._files = files
        self._disk = disk
        self._calm_s = calm_s
        self._mark_file = mark_file
        self._checkpoints = checkpoints
        self._draw = random.Random(f"neighbour {seed}")  # noqa: S311 -- chance, not secrecy
        self._is_over = threading.Event()
        self._crew = [
            threading.Thread(target=self._guarded, args=(work,), daemon=True)
            for work in (self._work, *((self._checkpoint,) if checkpoints is not None else ()))
        ]
        if pressed:
            self._crew.append(threading.Thread(target=self._press, daemon=True))
        self._checkpointer: Checkpoints | None = None
        self._undo = ExitStack()
        self._made: list[Path] = []
        self._libc = ctypes.CDLL(None, use_errno=True)

    def __enter__(self) -> Self:
        try:
            if self._checkpoints is not None:
                self._checkpointer = self._undo.enter_context(self._checkpoints)
            for thread in self._crew:
                thread.start()
            return self  # noqa: TRY300 -- behind the `try` nobody would end it
        except BaseException as error:
            # A thread that goes on keeps the recorded file system busy.
            self.__exit__(type(error))
            raise

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._is_over.set()
        if kind is not None and self._checkpointer is not None:
            self._checkpointer.abandon()
        for thread in self._crew:
            if thread.ident is not None:
                thread.join(_END_LIMIT_S)
        self._undo.close()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            if not self._is_over.wait(self._calm_s):
                work()
        except (BedplateError, OSError) as error:
            if not self._is_over.is_set():
                self.trouble = f"the pressure on the recorded file system ended early: {error}"

    def _press(self) -> None:
        while not self._is_over.wait(_PRESS_EVERY_S):
            self._write_back(self._files, since_s=0.0)

    def _checkpoint(self) -> None:
        assert self._checkpointer is not None  # noqa: S101 -- entered before this thread began
        while not self._is_over.wait(_PUSH_EVERY_S):
            self._checkpointer.checkpoint()

    def _work(self) -> None:
        # Not by way of the stand, whose marks are for the thread that signals interrupt.
        self._mark_file.write_text(PRESSURE)
        self._folder.mkdir()
        for number in range(_FOLDERS):
            (self._folder / str(number)).mkdir()
        number, pushed_s = 0, time.monotonic()
        while not self._is_over.wait(_STEP_S):
            number += 1
            self._step(number)
            if time.monotonic() - pushed_s >= _PUSH_EVERY_S:
                self._push(time.time() - 2 * _PUSH_EVERY_S)
                pushed_s = time.monotonic()

    def _step(self, number: int) -> None:
        """A new file, another name or another length for one that is there, or one less."""
        draw = self._draw
        deed = draw.random()
        if not self._made or (deed < 0.5 and len(self._made) < _FILES_MOST):
            path = self._a_name(number)
            if _free_bytes(self._folder) > _LEFT_BYTES:
                path.write_bytes(draw.randbytes(draw.choice(_SIZES)))
                self._made.append(path)
            return
        at = draw.randrange(len(self._made))
        if deed < 0.7:
            self._made[at] = self._made[at].rename(self._a_name(number))
        elif deed < 0.8:
            os.truncate(self._made[at], draw.choice(_SIZES))
        else:
            self._made.pop(at).unlink()

    def _a_name(self, number: int) -> Path:
        return self._folder / str(self._draw.randrange(_FOLDERS)) / f"{number:08}-of-a-neighbour"

    def _push(self, since_s: float) -> None:
        """What the engine or the neighbour has changed since then, in the order of the folders and not in theirs; and metadata."""
        for top in (self._files, self._folder):
            self._write_back(top, since_s)
        with suppress(OSError):
            self._begin_to_write(self._disk)

    def _write_back(self, top: Path, since_s: float) -> None:
        for _, entries in folders_below(top):
            for entry in entries:
                # A file may go, and some file systems refuse: it is only asked for.
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime >= since_s:
                        self._begin_to_write(Path(entry.path))

    def _begin_to_write(self, path: Path) -> None:
        # A pipe of the engine's would else be waited for.
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            self._libc.sync_file_range(file, ctypes.c_int64(0), ctypes.c_int64(0), _BEGIN_TO_WRITE)
        finally:
            os.close(file)


def _free_bytes(folder: Path) -> int:
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize


@dataclass(frozen=True)
class OwnWriteback:
    """When a file system writes its metadata back by itself: `first_s` after its mount, and then every `period_s`.

    The mount begins at the monotonic time `mounted_s`.
    """

    mounted_s: float
    first_s: float
    period_s: float

    def pause_s(self, elapsed_s: float, duration_s: float) -> float:
        """How long to wait, `elapsed_s` after the mount, so that one of these times falls into a recording.

        It comes in the last part, unless it does so without waiting.
        """
        missed = max(0, math.ceil((elapsed_s + duration_s / 10 - self.first_s) / self.period_s))
        next_s = self.first_s + self.period_s * missed
        if next_s <= elapsed_s + duration_s * 0.9:
            return 0.0
        return next_s - elapsed_s - duration_s * 0.75


@contextmanager
def own_writeback(
    type: str,  # noqa: A002 - the plan's word
    duration_s: float,
    *,
    ledger: Ledger,
    setting: Path = _XFS_PERIOD,
) -> Iterator[OwnWriteback | None]:
    """Mount a file system within it whose recording of `duration_s` is about to be prepared. None of a type that has no such time.

    XFS pushes all its metadata to the disk at a fixed time after the mount, and else hardly ever in seconds. It reads the
    setting when it is mounted, so for that moment it is such that the first time falls into the recording, which else would
    wait for it. Another XFS that reads it in that moment writes back earlier, once. The file is its own lock: of two that
    set it, the second would take the value of the first for the machine's. Where nobody may set it (a container), the
    recording waits.
    """
    try:
        period_s = int(setting.read_text()) / 100
    except (OSError, ValueError):
        period_s = math.inf
    if type != "xfs" or period_s > _PERIOD_S_MOST:
        yield None
        return
    first_s = min(period_s, _PREPARED_S + 0.75 * duration_s)
    with ExitStack() as undo:
        if first_s < period_s:
            try:
                undo.enter_context(file_lock(setting))
                undo.enter_context(tuned(ledger, {setting: str(round(100 * first_s))}))
            except (OSError, BedplateError):
                first_s = period_s
        yield OwnWriteback(time.monotonic(), first_s, period_s)
