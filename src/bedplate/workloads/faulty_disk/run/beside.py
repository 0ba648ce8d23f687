"""What fails while clients write, and when: a thread beside them that orders it, and looks at what it hit."""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from bedplate.errors import BedplateError, CommandFailed, CommandNotStarted
from bedplate.model.fault_order import CLEAR_LINE, RANGES_MOST, FaultOperation, FaultOrder, moved_line
from bedplate.workloads.faulty_disk.faults import DiskFault, FullFilesystem, Place
from bedplate.workloads.faulty_disk.run.full import BallastTooLong, Filler
from bedplate.workloads.faulty_disk.run.places import PlaceUnknown
from bedplate.workloads.power_cut.run.power_bench import RecordedSetup

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from bedplate.model.fault_order import ByteRange
    from bedplate.visit.cut_engine import Checkpoints
    from bedplate.workloads.faulty_disk.faults import Fault
    from bedplate.workloads.faulty_disk.run.places import DiskMap

# Of the duration, between which the moment is drawn at which something fails, and marks of clients: there is something to lose by then,
# and time enough to meet it. On a busy machine a library has not made its database at that moment; the first marks say where the clients began.
_MOMENT_SHARES = (0.25, 0.55)
_MARKS_LEAST = 12
_LOOK_EVERY_S = 0.05
_PROVOKE_EVERY_S = 0.5
# What clients do after the hit may mend it, so that they soon end; of a disk that fails for good more is seen later.
_GRACE_ONCE_S = 0.3
_GRACE_ON_S = 1.5
_FULL_FOR_S = 1.0
_ANSWER_LIMIT_S, _END_LIMIT_S = 10.0, 120.0
# Beside what ages a file system, which has the plain name (`filesystem/ballast.py`).
BALLAST = "ballast-of-the-fault"


@dataclass
class FaultSetup(RecordedSetup):
    """A recorded file system whose clients end once they have seen enough, `is_over`."""

    is_over: Callable[[], bool] = field(default=lambda: False)
    is_paced: bool = True
    """whether what the log gains is dealt out to the clients; ballast that is written is none of theirs"""
    is_quiet: bool = False
    """whether the fault is one that the disk says nothing of"""

    def pace(self, duration_s: float) -> Callable[[], float]:
        """At the recording's as long as `is_paced`."""
        pause_s = super().pace(duration_s)
        return lambda: pause_s() if self.is_paced else 0.0

    def is_log_nearly_full(self) -> bool:
        """Or whatever else ends the clients."""
        return self.is_over() or super().is_log_nearly_full()

    def settle(self) -> None:
        """An error behind a hit is the disk's: syncfs(2) gives it to whoever asks first, and that is not the engine.

        A disk that is quiet gives none.
        """
        try:
            super().settle()
        except CommandFailed as error:
            is_of_disk = error.status is not None and not isinstance(error, CommandNotStarted)
            if self.is_quiet or not is_of_disk or not self.recorder.status().fault_hits:
                raise


class _TooManyPieces(PlaceUnknown):
    """A place that no order can name as a whole."""

    def __init__(self, fault: DiskFault, pieces: int) -> None:
        super().__init__(
            f"{fault.words}: {fault.place.value} is in {pieces:,} pieces of the disk, and an order takes {RANGES_MOST:,}; a younger file system "
            "or a shorter `duration` has fewer"
        )


class FaultBeside:
    """Entered while clients write: orders the fault at its moment, and takes it back where they end."""

    def __init__(
        self,
        setup: FaultSetup,
        fault: Fault,
        disk: DiskMap,
        *,
        seed: int,
        duration_s: float,
        checkpoints: AbstractContextManager[Checkpoints] | None,
    ) -> None:
        self._setup, self._fault, self._disk = setup, fault, disk
        self._moment_s = drawn_moment_s(seed, duration_s)
        self._checkpoints = checkpoints
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="the fault", daemon=True)
        self._current: Checkpoints | None = None
        self._filled = self._is_abandoned = False
        # Whether the file system had to be told that the disk works again: clients that wait for it cannot even be ended.
        self.was_resumed = False
        self._hit_s: float | None = None
        self.unplaced: str | None = None
        # What the engine said, and what went wrong here before anything was hit.
        self.complaints: list[BedplateError] = []
        self.problem: str | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._hold()
        self._stop.set()
        # What waits for the disk can end then.
        self._clear()
        self._thread.join(_ANSWER_LIMIT_S)
        # What its server does not answer must not keep the run, and is no complaint of the engine's.
        if self._thread.is_alive() and self._current is not None:
            self._is_abandoned = True
            self._current.abandon()
        self._thread.join(_END_LIMIT_S)
        # It may have been about to order.
        self._clear()

    def _clear(self) -> None:
        if isinstance(self._fault, DiskFault) and not self._fault.stays:
            self._setup.recorder.order_fault(CLEAR_LINE)

    def _hold(self) -> None:
        """A disk that fails for good goes on failing while an engine that stopped tries to recover."""
        if isinstance(self._fault, DiskFault) and not self._fault.hits and self.hits:
            while not self.is_over():
                self._stop.wait(_LOOK_EVERY_S)

    @property
    def hits(self) -> int:
        """How often it was met so far."""
        if isinstance(self._fault, FullFilesystem):
            return int(self._filled)
        return self._setup.recorder.status().fault_hits if isinstance(self._fault, DiskFault) else 0

    @property
    def first_hit(self) -> ByteRange | None:
        """Where it was met first; None of none, and of what has no place."""
        return self._setup.recorder.status().first_hit if isinstance(self._fault, DiskFault) else None

    def is_over(self) -> bool:
        """Whether clients have seen enough of it."""
        if self._hit_s is None:
            if not self.hits:
                return False
            self._hit_s = time.monotonic()
        return time.monotonic() - self._hit_s > self._grace_s

    @property
    def _grace_s(self) -> float:
        if isinstance(self._fault, DiskFault):
            return _GRACE_ONCE_S if self._fault.hits else _GRACE_ON_S
        return 2 * _FULL_FOR_S

    def _work(self) -> None:
        try:
            if not self._has_something_to_lose():
                return
            if isinstance(self._fault, DiskFault):
                self._fail(self._fault)
            elif isinstance(self._fault, FullFilesystem):
                self._fill()
        except (BedplateError, OSError) as error:
            # Behind a hit a file system may answer nothing any more; before it nothing has failed but us.
            if not self.hits and not self._stop.is_set():
                self.problem = f"{self._fault.words}: it could not be ordered: {error}"

    def _has_something_to_lose(self) -> bool:
        """Wait for the moment; whether it came before the clients ended."""
        left_s = self._moment_s
        while not self._stop.wait(left_s):
            if self._setup.mark_count() >= _MARKS_LEAST:
                return True
            left_s = _LOOK_EVERY_S
        self.unplaced = "too little was acknowledged before the clients ended; make `duration` longer"
        return False

    def _fail(self, fault: DiskFault) -> None:
        with contextlib.ExitStack() as stack:
            # Connected before anything fails: a session needs files too.
            if fault.place is Place.DATA and self._checkpoints is not None:
                self._current = stack.enter_context(self._checkpoints)
            if fault.operation is FaultOperation.READ:
                self._setup.settle()
            is_ordered, provoked_s = False, 0.0
            while not self._stop.is_set():
                if self.is_over() and self._setup.resume(self._clear):
                    self.was_resumed = True
                    return
                is_ordered = self._order(fault, is_ordered=is_ordered)
                if fault.operation is FaultOperation.READ:
                    self._forget()
                if time.monotonic() - provoked_s > _PROVOKE_EVERY_S:
                    if not self._provoke(fault):
                        return
                    provoked_s = time.monotonic()
                self._stop.wait(_LOOK_EVERY_S)

    def _provoke(self, fault: DiskFault) -> bool:
        """False once the engine has not written a checkpoint; what it says instead is its own complaint, once the disk has failed.

        What the file system keeps for itself it writes at a sync of all it has.
        """
        if fault.place in (Place.JOURNAL, Place.METADATA):
            self._setup.settle()
        if self._current is None:
            return True
        try:
            self._current.checkpoint()
        except BedplateError as error:
            if not self.hits:
                raise
            if not self._is_abandoned:
                self.complaints.append(error)
            return False
        return True

    def _order(self, fault: DiskFault, *, is_ordered: bool) -> bool:
        """Once; then again where files are somewhere else by now."""
        if is_ordered and fault.place is Place.ANYWHERE:
            return True
        try:
            ranges = self._ranges(fault)
        except _TooManyPieces as error:
            self.unplaced = str(error)
            # An order for where they were before would be met at some of the places alone.
            if is_ordered and not self.hits:
                self._clear()
                return False
            return is_ordered
        except PlaceUnknown as error:
            self.unplaced = str(error)
            return is_ordered
        self.unplaced = None
        order = FaultOrder(
            fault.operation,
            fault.effect,
            fault.hits,
            ranges=ranges,
            on_journal=self._disk.is_on_journal(fault.place),
        )
        self._setup.recorder.order_fault(moved_line(ranges) if is_ordered else order.line())
        return True

    def _ranges(self, fault: DiskFault) -> tuple[ByteRange, ...]:
        """All of them, as a part would be another fault."""
        found = self._disk.ranges(fault.place, is_written=fault.operation is FaultOperation.WRITE)
        if len(found) > RANGES_MOST:
            raise _TooManyPieces(fault, len(found))
        return found

    def _forget(self) -> None:
        """What is clean of the data in the page cache, of these files alone: else nothing is read from the disk."""
        for path in self._disk.files(Place.DATA):
            try:
                file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                # Engines delete files while they work.
                continue
            try:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(file)

    def _fill(self) -> None:
        """For as long as it is said, whatever clients do then: room that the engine gives back meanwhile is taken too."""
        ballast = self._setup.data_directory.parent / BALLAST
        file, never = (
            os.open(ballast, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600),
            threading.Event(),
        )
        filler = Filler(file, writable_bytes=self._begin_to_write)
        try:
            if not filler.fill(self._stop.is_set):
                # Clients that found no room end before the last small piece is taken.
                if filler.leaves_nothing:
                    self._filled = True
                    return
                self.unplaced = "the clients ended before the file system was full; make `duration` longer, or `image_size` smaller"
                return
            self._filled, until_s = True, time.monotonic() + _FULL_FOR_S
            while time.monotonic() < until_s:
                never.wait(_LOOK_EVERY_S)
                filler.fill(lambda: time.monotonic() >= until_s)
        except BallastTooLong as error:
            self.unplaced = str(error)
        finally:
            os.close(file)
            ballast.unlink()

    def _begin_to_write(self) -> int:
        """What may be written of ballast, which counts no more as the clients' from now on."""
        self._setup.is_paced = False
        return self._setup.log_for_clients_bytes() - self._setup.log.stat().st_size


def drawn_moment_s(seed: int, duration_s: float) -> float:
    """When something fails, after the clients began; tries with other seeds meet other moments."""
    return duration_s * random.Random(f"moment of {seed}").uniform(*_MOMENT_SHARES)  # noqa: S311 -- chance, not secrecy
