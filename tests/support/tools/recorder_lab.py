"""A recorder of one's own in memory, and the plainest way from its log to the content of a disk."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bedplate.cuts.log import DISCARD, Log
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory
from bedplate.host.ledger import Ledger
from bedplate.host.native_driver import LIBFUSE3, ensure_driver, library_requirement
from bedplate.host.recorder import (
    DRIVER,
    RecordedDevice,
    Recorder,
    RecorderSizes,
    RecorderStatus,
    recorder_reasons,
)
from bedplate.units import MIB

SOURCES = Path(__file__).resolve().parents[3]
SIZES = RecorderSizes(disk_bytes=64 * MIB, log_limit_bytes=128 * MIB, journal_bytes=16 * MIB)


def recorder_driver() -> Path:
    """The recorder, built where the cache lacks it; skips the test where it cannot run."""
    requirement = library_requirement(LIBFUSE3, reason="the power-cut recorder", commands=Commands())
    if not requirement.found:
        pytest.skip(requirement.sentence)
    if reasons := recorder_reasons():
        pytest.skip("; ".join(reasons))
    return ensure_driver(
        DRIVER,
        source=SOURCES / "drivers" / f"{DRIVER}.c",
        cache_directory=cache_directory() / "drivers",
        commands=Commands(),
        libraries=(LIBFUSE3,),
    )


class RecorderLab:
    """A folder on tmpfs and a ledger, and what was started in them."""

    def __init__(self, base: Path, driver: Path) -> None:
        self.base = base
        self.driver = driver
        self.commands = Commands()
        self.ledger = Ledger.open(base / "state", "test")
        self.folder = base / "recording"
        self.folder.mkdir()

    def start(self, sizes: RecorderSizes = SIZES, *, late_us: int = 0) -> Recorder:
        return Recorder.start(
            self.driver,
            self.folder,
            sizes,
            ledger=self.ledger,
            commands=self.commands,
            late_us=late_us,
        )


@contextmanager
def recorder_lab(driver: Path) -> Iterator[RecorderLab]:
    """A lab that is swept afterwards; a test that leaves anything in its ledger fails."""
    base = Path(tempfile.mkdtemp(prefix="bedplate-test-recorder-", dir="/dev/shm"))
    found = RecorderLab(base, driver)
    try:
        yield found
        assert () == found.ledger.holdings()
    finally:
        found.ledger.release(Commands())
        found.ledger.close()
        shutil.rmtree(base)


def replayed(log: Log, device: int, size: int) -> bytes:
    """What the log says that a disk holds."""
    image = bytearray(size)
    for index in range(len(log)):
        entry = log.entry(index)
        if entry.device != device:
            continue
        if log.is_write(index):
            image[entry.offset : entry.offset + entry.length] = log.data(index)
        elif entry.flags & DISCARD:
            image[entry.offset : entry.offset + entry.length] = bytes(entry.length)
    return bytes(image)


def counted(log: Log, flag: int, device: int) -> int:
    return sum(bool(log.flags[index] & flag) and log.devices[index] == device for index in range(len(log)))


def counts_of(status: RecorderStatus, name: str) -> RecordedDevice:
    return next(device for device in status.devices if device.name == name)
