"""The recorder below file systems: made, mounted, written, and the log held against the disk. Here or in a guest.

    recorder_in_guest.py DRIVER DIRECTORY NAME…

Writes one JSON line for each name into DIRECTORY/lines: a type, `TYPE external` with its journal on a second disk, or
`pressure`, which is for a guest of its own. Standard library and bedplate only, since every import
costs seconds in an emulated guest.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.cuts.log import DISCARD, FLUSH, Log, read_log
from bedplate.errors import BedplateError
from bedplate.filesystem.adapter import Site
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.command import Commands
from bedplate.host.ledger import Ledger
from bedplate.host.recorder import Recorder, RecorderSizes
from bedplate.host.requirement import look
from bedplate.model.cell import FilesystemLevels
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

_SIZES = RecorderSizes(disk_bytes=320 * MIB, log_limit_bytes=96 * MIB, journal_bytes=16 * MIB)
_FSYNCS = 20
_MCL_CURRENT = 1


def main(arguments: list[str]) -> int:
    """Each on a recorder of its own."""
    driver, directory = map(Path, arguments[:2])
    with (directory / "lines").open("w") as lines:
        for name in arguments[2:]:
            line: dict[str, Any] = {"name": name}
            started = time.monotonic()
            try:
                line |= _under_pressure(driver) if name == "pressure" else _below(name, driver)
            except (BedplateError, OSError) as error:
                line["error"] = str(error)
            line["seconds"] = time.monotonic() - started
            print(json.dumps(line), file=lines, flush=True)
    return 0


def _below(name: str, driver: Path) -> dict[str, Any]:
    type_, _, external = name.partition(" ")
    levels = FilesystemLevels(type_)
    if external:
        levels = FilesystemLevels(type_, journal="external", journal_device="device")
    lacking = [item.sentence for item in look(filesystem_for(type_).needs) if not item.found]
    return {"lacking": lacking} if lacking else _record(levels, driver)


def _record(levels: FilesystemLevels, driver: Path) -> dict[str, Any]:
    commands, filesystem = Commands(), filesystem_for(levels.type)
    with ExitStack() as undo:
        memory = Path(tempfile.mkdtemp(prefix="bedplate-", dir="/dev/shm"))
        undo.callback(shutil.rmtree, memory)
        ledger = undo.enter_context(Ledger.open(memory / "state", "guest"))
        (memory / "recording").mkdir()
        recorder = undo.enter_context(
            Recorder.start(driver, memory / "recording", _SIZES, ledger=ledger, commands=commands)
        )
        disk = recorder.attach(recorder.disk)
        undo.callback(recorder.detach, disk)
        journal = None
        if levels.journal:
            assert recorder.journal is not None
            journal = recorder.attach(recorder.journal)
            undo.callback(recorder.detach, journal)
        target = memory / "mount"
        target.mkdir()
        site = Site(levels, disk, target, commands, journal)
        filesystem.mkfs(site)
        undo.callback(filesystem.unmount, site)
        filesystem.mount(site)
        before = recorder.status()
        for number in range(_FSYNCS):
            with (target / f"file-{number}").open("wb") as file:
                file.write(os.urandom(3000))
                file.flush()
                os.fsync(file.fileno())
            recorder.write_mark(f"A 0 {number + 1} 1")
        after = recorder.status()
        filesystem.unmount(site)
        if journal is not None:
            recorder.detach(journal)
        recorder.detach(disk)
        recorder.seal()
        with read_log(recorder.log) as log:
            same = [
                _is_replayed(log, device, memory / "recording/store" / name)
                for device, name in enumerate(("disk", "journal"))
            ]
            flushes = sum(bool(log.flags[at] & FLUSH) for at in range(before.entries, after.entries))
        recorder.stop()
        assert ledger.holdings() == ()
        return {
            "same": same,
            "flushes": flushes,
            "entries": after.entries,
            "marks": after.marks,
            "writes": [device.writes for device in after.devices],
            "memory_locked": after.memory_locked,
            "io_flusher": after.io_flusher,
        }


def _under_pressure(driver: Path) -> dict[str, Any]:
    """Cached writes while there is next to no memory left: the kernel has to write them to have any.

    A recorder that waited for memory meanwhile would wait for itself.
    """
    started = time.monotonic()
    commands, filesystem, levels = Commands(), filesystem_for("ext4"), FilesystemLevels("ext4")
    with ExitStack() as undo:
        memory = Path(tempfile.mkdtemp(prefix="bedplate-", dir="/dev/shm"))
        undo.callback(shutil.rmtree, memory)
        ledger = undo.enter_context(Ledger.open(memory / "state", "guest"))
        (memory / "recording").mkdir()
        recorder = undo.enter_context(
            Recorder.start(driver, memory / "recording", _SIZES, ledger=ledger, commands=commands)
        )
        disk = recorder.attach(recorder.disk)
        undo.callback(recorder.detach, disk)
        target = memory / "mount"
        target.mkdir()
        site = Site(levels, disk, target, commands)
        filesystem.mkfs(site)
        filesystem.mount(site)
        undo.callback(filesystem.unmount, site)
        # What the kernel keeps free for itself would be room for all of it: a distribution's keeps 66 MiB.
        Path("/proc/sys/vm/min_free_kbytes").write_text("4096")
        # Only what is written shall be reclaimed: a program that is read again and again takes minutes where it is emulated.
        if ctypes.CDLL(None, use_errno=True).mlockall(_MCL_CURRENT) != 0:
            raise OSError(ctypes.get_errno(), "mlockall")
        size, before, block = 40 * MIB, _reclaimed_pages(), os.urandom(MIB)
        noose = undo.enter_context(_Noose(_available_bytes()))
        with (target / "file").open("wb") as file:
            for to_come in range(size, 0, -MIB):
                # Each byte is in the log and on the disk. What is left beside that is too little to cache it all.
                noose.draw(_available_bytes() - 2 * to_come - 64 * MIB)
                file.write(block)
            os.fsync(file.fileno())
        return {
            "written": recorder.status().devices[0].write_bytes >= size,
            "reclaimed_pages": _reclaimed_pages() - before,
            "available_bytes": _available_bytes(),
            "seconds": time.monotonic() - started,
        }


class _Noose:
    """Memory that is held by a process of its own, which the kernel kills first where it finds none for others.

    On a slow machine it may lose patience with what is being written.
    """

    def __init__(self, limit_bytes: int) -> None:
        asked, self._ask = os.pipe()
        self._answered, answer = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._ask)
            os.close(self._answered)
            try:
                _hold(asked, answer, limit_bytes)
            finally:
                os._exit(0)
        os.close(asked)
        os.close(answer)
        self._is_there = True

    def draw(self, more_bytes: int) -> None:
        """Hold so much more, unless the kernel needed it all back."""
        if more_bytes > 0 and self._is_there:
            with suppress(BrokenPipeError):
                os.write(self._ask, more_bytes.to_bytes(8, "little"))
            self._is_there = os.read(self._answered, 1) != b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._ask)
        os.waitpid(self._pid, 0)
        os.close(self._answered)


def _hold(asked: int, answer: int, limit_bytes: int) -> None:
    """Until nobody asks any more."""
    Path("/proc/self/oom_score_adj").write_text("1000")
    # The kernel fills them: an emulated Python would touch one page after the other for half a minute.
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    held, left_bytes = [], limit_bytes
    while more := os.read(asked, 8):
        length = min(int.from_bytes(more, "little"), left_bytes)
        if length:
            held.append(mmap.mmap(-1, length, flags))
            left_bytes -= length
        os.write(answer, b".")


def _available_bytes() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")) * 1024


def _reclaimed_pages() -> int:
    words = (line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return sum(int(count) for name, count in words if name in {"pgsteal_kswapd", "pgsteal_direct"})


def _is_replayed(log: Log, device: int, path: Path) -> bool:
    """Whether the disk holds what the log says. Untouched memory takes no room: the guest has little."""
    size = path.stat().st_size
    with mmap.mmap(-1, size) as image, path.open("rb") as disk:
        touched = set(_with_data(disk.fileno(), size))
        for index in range(len(log)):
            entry = log.entry(index)
            end = entry.offset + entry.length
            if entry.device != device:
                continue
            if log.is_write(index):
                image[entry.offset : end] = log.data(index)
                touched.update(range(entry.offset // MIB, (end - 1) // MIB + 1))
            elif entry.flags & DISCARD:
                _zero(image, entry.offset, end)
        return all(
            image[at * MIB : (at + 1) * MIB] == os.pread(disk.fileno(), MIB, at * MIB) for at in touched
        )


def _with_data(disk: int, size: int) -> Iterator[int]:
    """The numbers of the MiB that are not a hole."""
    at = 0
    while at < size:
        try:
            start = os.lseek(disk, at, os.SEEK_DATA)
        except OSError:
            return  # holes up to the end
        at = os.lseek(disk, start, os.SEEK_HOLE)
        yield from range(start // MIB, (at - 1) // MIB + 1)


def _zero(image: mmap.mmap, start: int, end: int) -> None:
    for at in range(start, end, MIB):
        part = min(MIB, end - at)
        if image[at : at + part] != bytes(part):
            image[at : at + part] = bytes(part)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
