"""The log of a run, packed for the study, and unpacked again.

A database writes the same pages again and again: a window of megabytes finds the one before, where deflate with its 32
KiB does not. A log of LMDB of 869 MB was packed to 12 MB in 17 s; deflate made 371 MB of it in 10 s.
"""

from __future__ import annotations

import lzma
import os
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from bedplate.errors import StudyError
from bedplate.host.command import Commands
from bedplate.host.devices.journal_device import MEMORY_DIRECTORY
from bedplate.host.interruption import held
from bedplate.host.ledger import Holding, Ledger
from bedplate.host.state import state_directory
from bedplate.model import codec
from bedplate.model.power_cut import LOG_FILE, RECORDING_FILE, RecordingFacts
from bedplate.units import MIB
from bedplate.workloads.power_cut.run.cut_room import LOG_BYTES_MOST, free_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_WINDOW_BYTES = 16 * MIB
_PIECE_BYTES = 4 * MIB
_LOOK_EVERY_S = 0.05


@dataclass(frozen=True)
class UnpackedLog:
    """The log of a run in memory, and a ledger for what is done with it."""

    log: Path
    memory: Path
    ledger: Ledger


class LogPacking:
    """Packs a log (xz) in a thread of its own from `with` on, beside whatever uses the processors meanwhile.

    Where the packed log reaches `limit_bytes`, the thread waits until it is `wanted` whatever its size. `finish` leaves the
    whole of it at `target`, or nothing; so does the end of the block without it.
    """

    def __init__(self, log: Path, target: Path, *, limit_bytes: int | None = None) -> None:
        self._log = log
        self._target = target
        self._part = target.with_name(f".{target.name}.part")
        self._limit_bytes = limit_bytes
        # Set once no limit holds any more, or nothing is to be packed any further.
        self._decided = threading.Event()
        self._is_over = False
        self._is_whole = False
        self._trouble: BaseException | None = None
        self._thread = threading.Thread(target=self._guarded, name="packing", daemon=True)

    def __enter__(self) -> Self:
        if self._limit_bytes is None:
            self._decided.set()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._decided.set()
        self._thread.join()
        self._part.unlink(missing_ok=True)

    def want(self) -> None:
        """From now on whatever its size."""
        self._decided.set()

    def finish(self) -> bool:
        """Wait until it is packed; False where it would be larger than its limit. OSError where it cannot be written."""
        while self._thread.is_alive() and not self._is_held_back():
            self._thread.join(_LOOK_EVERY_S)
        if self._trouble is not None:
            raise self._trouble
        if not self._is_whole:
            return False
        self._part.replace(self._target)
        return True

    def _is_held_back(self) -> bool:
        return not self._decided.is_set() and self._is_too_large()

    def _is_too_large(self) -> bool:
        return (
            self._limit_bytes is not None
            and self._part.exists()
            and self._part.stat().st_size > self._limit_bytes
        )

    def _guarded(self) -> None:
        try:
            self._pack()
        except BaseException as error:  # noqa: BLE001 -- of a thread; whoever waits for it raises it
            self._trouble = error

    def _pack(self) -> None:
        # Some interpreters are built without it, and most runs need it not.

        fastest = {
            "id": lzma.FILTER_LZMA2,
            "mode": lzma.MODE_FAST,
            "mf": lzma.MF_HC3,
            "nice_len": 64,
            "depth": 2,
            "dict_size": _WINDOW_BYTES,
        }
        with self._log.open("rb") as source, lzma.open(self._part, "wb", filters=[fastest]) as packed:
            while not self._is_over and (piece := source.read(_PIECE_BYTES)):
                packed.write(piece)
                if self._is_too_large():
                    self._decided.wait()
        # The end of the stream, which is written when it is closed, may be what is too much.
        if self._is_too_large():
            self._decided.wait()
        self._is_whole = not self._is_over


def unpack_log(kept: Path, target: Path, most_bytes: int) -> None:
    """The log as it was; StudyError if the packed one is damaged, or comes to more than a log may have."""
    left_bytes = most_bytes
    try:
        with codec.opened(kept) as file, lzma.open(file) as packed, target.open("wb") as log:
            while piece := packed.read(_PIECE_BYTES):
                left_bytes -= len(piece)
                if left_bytes < 0:
                    raise StudyError(
                        f"{kept} is not unpacked: it comes to more than {most_bytes:,} bytes, which is what its recording.json says, the "
                        f"most that a recording has ({LOG_BYTES_MOST:,}), or three quarters of what is free in {MEMORY_DIRECTORY}"
                    )
                log.write(piece)
    except (lzma.LZMAError, EOFError) as error:
        raise StudyError(f"{kept} is damaged: {error}") from error


def most_unpacked_bytes(folder: Path) -> int:
    """How large the log of a run may be: what was recorded, and what there is room for beside the images of its cuts."""
    recording = codec.read(RecordingFacts, folder / RECORDING_FILE)
    recorded = () if recording.log_bytes is None else (recording.log_bytes,)
    return min(LOG_BYTES_MOST, free_bytes(MEMORY_DIRECTORY) * 3 // 4, *recorded)


@contextmanager
def unpacked(folder: Path) -> Iterator[UnpackedLog]:
    """The log of a run, unpacked for the time of the block."""
    memory = MEMORY_DIRECTORY / f"bedplate-{os.getpid()}-{os.urandom(4).hex()}"
    with Ledger.open(state_directory(), f"{os.getpid()}-replay") as ledger:
        try:
            ledger.note(Holding("log_directory", str(memory)))
            memory.mkdir(mode=0o755)
            unpack_log(folder / LOG_FILE, memory / "log", most_unpacked_bytes(folder))
            yield UnpackedLog(memory / "log", memory, ledger)
        finally:
            with held():
                ledger.release(Commands())
