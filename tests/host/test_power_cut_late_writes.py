"""A writer that promises before its write is complete: cuts find it where the recorder answers late, and never else."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.tools.recorder_lab import RecorderLab, recorder_driver, recorder_lab, replayed

from bedplate.cuts.log import Log, read_log
from bedplate.cuts.records import CutPoint, Placement, Profile
from bedplate.host.recorder import Recorder, RecorderSizes
from bedplate.units import MIB
from bedplate.workloads.power_cut.bench import ImageBuilder
from bedplate.workloads.power_cut.tearing import flushes_in_flight

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

SIZES = RecorderSizes(disk_bytes=4 * MIB, log_limit_bytes=2 * MIB)
PAGE = 4096
ROUNDS = 50
# asm/unistd.h: io_setup, io_destroy, io_submit, io_getevents, which glibc has no functions for.
CALLS = {"x86_64": (206, 207, 209, 208), "aarch64": (0, 1, 2, 4)}
# linux/aio_abi.h: struct iocb, and IOCB_CMD_PWRITE.
IOCB = struct.Struct("<QIIHhIQQqQII")
PWRITE = 1


@pytest.fixture
def place() -> Iterator[RecorderLab]:
    with recorder_lab(recorder_driver()) as found:
        yield found


class Submitted:
    """Writes of one page that are handed to the kernel and not waited for."""

    def __init__(self, file: int, numbers: tuple[int, int, int, int]) -> None:
        self._file = file
        self._setup, self._destroy, self._submit, self._events = numbers
        self._page = mmap.mmap(-1, PAGE)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._page))
        self._context = ctypes.c_ulong(0)
        self._call(self._setup, 1, ctypes.byref(self._context))

    def write(self, data: bytes, offset: int) -> None:
        self._page[:] = data
        request = ctypes.create_string_buffer(
            IOCB.pack(0, 0, 0, PWRITE, 0, self._file, self._address, PAGE, offset, 0, 0, 0), IOCB.size
        )
        requests = (ctypes.c_void_p * 1)(ctypes.addressof(request))
        assert 1 == self._call(self._submit, self._context, 1, requests)

    def wait(self) -> None:
        event = ctypes.create_string_buffer(32)
        assert 1 == self._call(self._events, self._context, 1, 1, event, None)
        assert PAGE == struct.unpack_from("<q", event, 16)[0]

    def close(self) -> None:
        self._call(self._destroy, self._context)

    def _call(self, number: int, *arguments: object) -> int:
        libc = ctypes.CDLL(None, use_errno=True)
        found: int = libc.syscall(number, *arguments)
        assert found >= 0, os.strerror(ctypes.get_errno())
        return found


@contextmanager
def submitting(path: str) -> Iterator[tuple[int, Submitted]]:
    if platform.machine() not in CALLS:
        pytest.skip(f"the numbers of the kernel's calls on {platform.machine()} are not known here")
    file = os.open(path, os.O_RDWR | os.O_DIRECT)
    try:
        submitted = Submitted(file, CALLS[platform.machine()])
        yield file, submitted
        submitted.close()
    finally:
        os.close(file)


def promise(recorder: Recorder, *, waits: bool) -> bytes:
    """Write pages, flush and promise each; what the disk holds then."""
    device = recorder.attach(recorder.disk)
    with submitting(device.path) as (file, submitted):
        for number in range(1, ROUNDS + 1):
            submitted.write(bytes([number]) * PAGE, number * PAGE)
            if waits:
                submitted.wait()
            os.fsync(file)
            recorder.write_mark(f"ack 0 {number}")
            if not waits:
                submitted.wait()
    recorder.detach(device)
    return recorder.disk.read_bytes()


def broken_promises(log: Log, folder: Path) -> int:
    """Right behind how many marks a device whose cache is lost lacks what was promised."""
    broken = 0
    with ImageBuilder(log, folder, (SIZES.disk_bytes,), window_bytes=MIB) as builder:
        for index in range(len(log)):
            text = log.mark(index)
            if text is None:
                continue
            number = int(text.split()[-1])
            built = builder.build(CutPoint(0, index + 1, Profile.LOST, Placement.UNIFORM, seed=0), folder)
            with built.disk.open("rb") as image:
                image.seek(number * PAGE)
                broken += image.read(PAGE) != bytes([number]) * PAGE
    return broken


@pytest.mark.parametrize(
    ("late_us", "waits", "least", "most"),
    [
        (20_000, False, ROUNDS // 2, ROUNDS),
        (2_000, False, ROUNDS // 2, ROUNDS),
        (20_000, True, 0, 0),
        (0, False, 0, 0),
    ],
)
def test_who_does_not_wait_is_found_where_writes_are_late(
    late_us: int, least: int, most: int, place: RecorderLab, *, waits: bool
) -> None:
    with place.start(SIZES, late_us=late_us) as recorder:
        held = promise(recorder, waits=waits)
    with read_log(recorder.log) as log:
        assert held == replayed(log, 0, SIZES.disk_bytes)
        broken = broken_promises(log, place.base)
        # The counts of docs/FINDINGS.md.
        print(
            f"late by up to {late_us} us, {'waits' if waits else 'does not wait'}: {broken} of {ROUNDS} broken"
        )
        assert least <= broken <= most
        assert broken == len(flushes_in_flight(log, measured_from=0, until=len(log)))


def test_writes_under_way_are_in_the_log_when_it_is_sealed(place: RecorderLab) -> None:
    with place.start(SIZES, late_us=1_000_000) as recorder:
        device = recorder.attach(recorder.disk)
        with submitting(device.path) as (file, submitted):
            submitted.write(b"u" * PAGE, PAGE)
            # The recorder has the write once it has the flush behind it.
            os.fsync(file)
            assert 1 == recorder.seal().devices[0].writes
            submitted.wait()
        recorder.detach(device)
    with read_log(recorder.log) as log:
        (write,) = filter(log.is_write, range(len(log)))
        # The last entry before it is that flush.
        assert (write,) == log.histories[0].in_flight(write)
        assert b"u" * PAGE == bytes(log.data(write))
