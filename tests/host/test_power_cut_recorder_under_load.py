"""Whether a loop device above the recorder hands every request through, once and in order, under many threads.

What is written names itself: each sector says which thread wrote it, as what, and where it belongs. So a request
that is lost, doubled, torn, moved or late is seen on the device, on the disk below it and in the log.
"""

from __future__ import annotations

import mmap
import os
import random
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.tools.recorder_lab import RecorderLab, counts_of, recorder_driver, recorder_lab, replayed

from bedplate.cuts.log import FLUSH, Log, read_log
from bedplate.host.recorder import Recorder, RecorderSizes
from bedplate.host.scratch_device import AttachedDevice
from bedplate.units import MIB

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

SECTOR = 512
THREADS = 8
OWN_BYTES = 2 * MIB
SHARED_AT = THREADS * OWN_BYTES
SIZES = RecorderSizes(disk_bytes=20 * MIB, log_limit_bytes=512 * MIB)
_NAME = struct.Struct("<8sQQQ")


@pytest.fixture(scope="module")
def driver() -> Path:
    return recorder_driver()


@pytest.fixture
def lab(driver: Path) -> Iterator[RecorderLab]:
    with recorder_lab(driver) as found:
        yield found


def named(thread: int, number: int, sector: int) -> bytes:
    return _NAME.pack(b"bedplate", thread, number, sector) * (SECTOR // _NAME.size)


def name_of(data: bytes | memoryview, *, may_change: bool = False) -> tuple[int, int, int] | None:
    """Which thread wrote a sector, as what, and for where; None for one that was never written.

    A page of the cache `may_change` while it is written back, as no loop device asks for stable pages. The older name counts then.
    """
    content = bytes(data)
    if content == bytes(SECTOR):
        return None
    magic, thread, number, sector = min(_NAME.iter_unpack(content))
    assert b"bedplate" == magic
    if may_change:
        assert {(magic, thread, sector)} == {
            (each[0], each[1], each[3]) for each in _NAME.iter_unpack(content)
        }
    else:
        assert named(thread, number, sector) == content, "a sector is torn"
    return thread, number, sector


@dataclass
class Writer:
    """One thread: its part of the device is its own, another part is everybody's."""

    thread: int
    device: AttachedDevice
    recorder: Recorder
    direct: bool
    operations: int
    own: dict[int, int] = field(default_factory=dict)
    shared: set[tuple[int, int]] = field(default_factory=set)
    flushes: int = 0
    # What it had written, by the number of its mark: the flush before the mark has made that durable.
    promised: dict[int, dict[int, int]] = field(default_factory=dict)

    def run(self) -> None:
        random_ = random.Random(self.thread)
        flags = os.O_RDWR | (os.O_DIRECT if self.direct else 0)
        file, mark = os.open(self.device.path, flags), os.open(self.recorder.mark, os.O_WRONLY)
        since: dict[int, int] = {}
        try:
            with mmap.mmap(-1, 128 * SECTOR) as buffer:
                for number in range(1, self.operations + 1):
                    chance = random_.random()
                    if chance < 0.08:
                        os.fsync(file)
                        self.flushes += 1
                        os.write(mark, f"A {self.thread} {number} 1\n".encode())
                        self.promised[number], since = since, {}
                    elif chance < 0.16:
                        self._read(file, buffer, random_)
                    else:
                        since |= self._write(file, buffer, random_, number)
        finally:
            os.close(file)
            os.close(mark)

    def _write(self, file: int, buffer: mmap.mmap, random_: random.Random, number: int) -> dict[int, int]:
        is_shared = random_.random() < 0.2
        # Cached writes of less than a page would read and write back what is others'.
        grain = 1 if self.direct or not is_shared else 8
        start, end = (
            (SHARED_AT, SIZES.disk_bytes)
            if is_shared
            else (self.thread * OWN_BYTES, (self.thread + 1) * OWN_BYTES)
        )
        count = random_.choice((1, 1, 2, 8, 8, 16, 128)) * grain
        count = min(count, 128)
        sector = random_.randrange(start // SECTOR // grain, (end // SECTOR - count) // grain + 1) * grain
        content = b"".join(named(self.thread, number, at) for at in range(sector, sector + count))
        buffer[: len(content)] = content
        with memoryview(buffer) as whole, whole[: len(content)] as part:
            assert len(content) == os.pwritev(file, [part], sector * SECTOR)
        if is_shared:
            self.shared |= {(number, at) for at in range(sector, sector + count)}
            return {}
        written = dict.fromkeys(range(sector, sector + count), number)
        self.own |= written
        return written

    def _read(self, file: int, buffer: mmap.mmap, random_: random.Random) -> None:
        sector = self.thread * OWN_BYTES // SECTOR + random_.randrange(OWN_BYTES // SECTOR - 128)
        assert len(buffer) == os.preadv(file, [buffer], sector * SECTOR)
        for at in range(128):
            found = name_of(buffer[at * SECTOR : (at + 1) * SECTOR])
            number = self.own.get(sector + at)
            assert found == (None if number is None else (self.thread, number, sector + at))


def loop_counts(device: AttachedDevice) -> tuple[int, int]:
    """Bytes written and flushes, as the block layer counts them (Documentation/block/stat.rst)."""
    fields = device.stat.read_text().split()
    return int(fields[6]) * SECTOR, int(fields[15])


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "cached"])
def test_many_threads_of_writes_are_handed_through(lab: RecorderLab, direct: bool) -> None:
    with lab.start(SIZES) as recorder:
        device = recorder.attach(recorder.disk)
        # To attach a loop device is a flush of its file already, and no request of the device.
        before, attached = loop_counts(device), counts_of(recorder.status(), "disk")
        writers = [Writer(thread, device, recorder, direct, 1500) for thread in range(THREADS)]
        with ThreadPoolExecutor(THREADS) as pool:
            for running in [pool.submit(writer.run) for writer in writers]:
                running.result()
        file = os.open(device.path, os.O_RDWR)
        os.fsync(file)
        os.close(file)
        written_bytes, flushes = (
            after - first for after, first in zip(loop_counts(device), before, strict=True)
        )
        status = recorder.status()
        on_device = _read_direct(device.path)
        on_disk = recorder.disk.read_bytes()
        recorder.detach(device)
    counts = counts_of(status, "disk")
    # Neither more nor less than the block layer sent: what is merged or split stays the same number of bytes.
    assert (written_bytes, flushes) == (
        counts.write_bytes - attached.write_bytes,
        counts.flushes - attached.flushes,
    )
    # Flushes of several threads at once may be one.
    assert 1 <= flushes <= sum(writer.flushes for writer in writers) + 1
    with read_log(recorder.log) as log:
        assert on_device == on_disk
        assert replayed(log, 0, SIZES.disk_bytes) == on_disk
        _require_promises(log, writers, direct=direct)
    _require_names(on_disk, writers)


def _read_direct(path: str) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, SIZES.disk_bytes) as buffer:
            assert SIZES.disk_bytes == os.preadv(file, [buffer], 0)
            return buffer[:]
    finally:
        os.close(file)


def _require_names(content: bytes, writers: list[Writer]) -> None:
    for at in range(SIZES.disk_bytes // SECTOR):
        found = name_of(content[at * SECTOR : (at + 1) * SECTOR])
        if at * SECTOR >= SHARED_AT:
            assert found is None or (found[2] == at and (found[1], at) in writers[found[0]].shared)
        else:
            thread = at * SECTOR // OWN_BYTES
            number = writers[thread].own.get(at)
            assert found == (None if number is None else (thread, number, at))


def _require_promises(log: Log, writers: list[Writer], *, direct: bool) -> None:
    """Before each mark stands a flush, and before that everything that its thread had written by then."""
    logged: dict[int, int] = {}
    waiting: dict[int, int] = {}
    promises = 0
    for index in range(len(log)):
        mark = log.mark(index)
        if mark is not None:
            _, client, sequence, _ = mark.split()
            promised = writers[int(client)].promised[int(sequence)]
            late = [sector for sector, wanted in promised.items() if logged.get(sector, 0) < wanted]
            assert late == []
            promises += 1
        elif log.flags[index] & FLUSH:
            logged |= waiting
            waiting = {}
        else:
            data = log.data(index)
            for at in range(0, len(data), SECTOR):
                found = name_of(data[at : at + SECTOR], may_change=not direct)
                if found is not None:
                    _, number, sector = found
                    assert sector * SECTOR == log.offsets[index] + at, "a write is not where it belongs"
                    if sector * SECTOR < SHARED_AT:
                        waiting[sector] = number
    assert promises == sum(len(writer.promised) for writer in writers)


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "cached"])
def test_every_flush_of_one_thread_is_one_flush_in_the_log(lab: RecorderLab, direct: bool) -> None:
    with lab.start(SIZES) as recorder:
        device = recorder.attach(recorder.disk)
        file = os.open(device.path, os.O_RDWR | (os.O_DIRECT if direct else 0))
        before = counts_of(recorder.status(), "disk")
        with mmap.mmap(-1, 4096) as buffer:
            for number in range(200):
                buffer[:] = named(0, number, number * 8) * 8
                os.pwritev(file, [buffer], number * 4096)
                (os.fsync if number % 2 else os.fdatasync)(file)
        after = counts_of(recorder.status(), "disk")
        os.close(file)
        recorder.detach(device)
    assert (200, 200 * 4096) == (after.flushes - before.flushes, after.write_bytes - before.write_bytes)
    with read_log(recorder.log) as log:
        kinds = [bool(log.flags[index] & FLUSH) for index in range(len(log))]
        first = kinds.index(False)
        assert [False, True] * 200 == kinds[first : first + 400]


def test_a_device_that_writes_through_asks_for_no_flush(lab: RecorderLab) -> None:
    with lab.start(SIZES) as recorder:
        device = recorder.attach(recorder.disk, write_back=False)
        file = os.open(device.path, os.O_RDWR)
        before = counts_of(recorder.status(), "disk").flushes
        for number in range(50):
            os.pwrite(file, named(0, number, number), number * SECTOR)
            os.fsync(file)
        assert before == counts_of(recorder.status(), "disk").flushes
        os.close(file)
        recorder.detach(device)
        # The switch outlives the loop device: it was given back with it.
        assert "write back" == (device.queue / "write_cache").read_text().strip()
