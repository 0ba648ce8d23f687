"""What is asked of a device, as the kernel's tracepoints tell it, beside what the recorder below that device is sent."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.support.tools.recorder_lab import recorder_driver

from bedplate.host.command import Commands
from bedplate.host.flush_requests import device_number, request_trace
from bedplate.host.ledger import Ledger
from bedplate.host.recorder import Recorder, RecorderSizes, recorder_reasons
from bedplate.units import KIB, MIB
from bedplate.workloads.power_cut.run.log import FLUSH, FUA, read_log
from bedplate.workloads.power_cut.run.written_through import as_with_fua

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

BLOCK = 4 * KIB
WRITES = 20


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bedplate-flushes-", dir="/dev/shm") as made:
        yield Path(made)


def test_writes_that_go_through_are_told_from_those_that_a_sync_follows(place: Path) -> None:
    if reasons := recorder_reasons():
        pytest.skip("; ".join(reasons))
    with ExitStack() as undo:
        ledger = undo.enter_context(Ledger.open(place / "state", "test"))
        (place / "recording").mkdir()
        recorder = undo.enter_context(
            Recorder.start(
                recorder_driver(),
                place / "recording",
                RecorderSizes(64 * MIB, 64 * MIB),
                ledger=ledger,
                commands=Commands(),
            )
        )
        device = recorder.attach(recorder.disk)
        undo.callback(recorder.detach, device)
        node = Path(device.path)
        before = recorder.status().entries
        with request_trace(
            [device_number(node)], place / "tracefs", ledger=ledger, commands=Commands()
        ) as trace:
            _write(node, os.O_DSYNC, first=1)
            _write(node, 0, first=1 + WRITES)
        recorder.seal()
        log_at = recorder.log
        with read_log(log_at) as log:
            plain = list(log.flags)[before:]
        # Each is followed by a sync, that of a write which syncs itself being the kernel's; before it such a write has a flush for want of FUA.
        assert plain.count(FLUSH) >= 2 * WRITES
        assert WRITES == as_with_fua(log_at, trace)
        with read_log(log_at) as log:
            found = list(log.flags)[before:]
            through = [log.offsets[index] for index in range(len(log)) if log.flags[index] & FUA]
        assert [BLOCK * number for number in range(1, 1 + WRITES)] == through
        assert WRITES == plain.count(FLUSH) - found.count(FLUSH)
        # What a sync was to bring to the medium is followed by its flush as before.
        assert plain[-2 * WRITES :] == found[-2 * WRITES :]
        # The flush behind a write that went through is none, wherever another stands behind it.
        entries = [index for index in range(before, before + len(found)) if found[index - before] == FUA]
        assert {0} == {found[index + 1 - before] for index in entries}
    assert [] == list(place.glob("tracefs*"))


def _write(node: Path, flags: int, *, first: int) -> None:
    """Past the page cache, one after the other; synced by the write itself, or by a call."""
    file = os.open(node, os.O_WRONLY | os.O_DIRECT | flags)
    with mmap.mmap(-1, BLOCK) as block:
        for number in range(first, first + WRITES):
            block[:8] = number.to_bytes(8, "little")
            assert BLOCK == os.pwrite(file, block, number * BLOCK)
            if not flags:
                os.fdatasync(file)
    os.close(file)
