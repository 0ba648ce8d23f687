"""What is asked of a device, as the kernel's tracepoints tell it, beside what the recorder below that device is sent."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.tools.recorder_lab import recorder_driver

from bedplate.cuts.blame import WritingProcess
from bedplate.cuts.log import FLUSH, FUA, read_log
from bedplate.host.block_requests import RequestTrace, device_number, request_trace
from bedplate.host.command import Commands
from bedplate.host.ledger import Ledger
from bedplate.host.process import wait_until
from bedplate.host.recorder import Recorder, RecorderSizes, recorder_reasons
from bedplate.units import KIB, MIB
from bedplate.workloads.power_cut.tearing import as_with_fua, note_writers

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

# PROC_PID_INIT_INO of include/linux/proc_ns.h.
FIRST_PID_NAMESPACE = f"pid:[{0xEFFFFFFC}]"
BLOCK = 4 * KIB
WRITES = 20

WRITER = """
import ctypes, mmap, os, sys
path, letter = sys.argv[1:]
file = os.open(path, os.O_WRONLY | os.O_CREAT | (os.O_DIRECT if letter == "d" else 0))
block = mmap.mmap(-1, 65536)
block[:] = letter.encode() * 65536
PR_SET_NAME = 15
ctypes.CDLL(None).prctl(PR_SET_NAME, f"writer-{letter}".encode())
os.pwrite(file, block, 0)
if letter == "s":
    os.fsync(file)
print("written", flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Recorded:
    """A disk that is recorded, and the device over it."""

    place: Path
    recorder: Recorder
    node: Path
    ledger: Ledger
    undo: ExitStack

    def trace(self, *, with_done: bool = False) -> RequestTrace:
        number = device_number(self.node)
        return request_trace(
            [number], self.place / "tracefs", ledger=self.ledger, commands=Commands(), with_done=with_done
        )


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bedplate-flushes-", dir="/dev/shm") as made:
        yield Path(made)


@pytest.fixture
def recorded(place: Path) -> Iterator[Recorded]:
    if reasons := recorder_reasons():
        pytest.skip("; ".join(reasons))
    with ExitStack() as undo:
        ledger = undo.enter_context(Ledger.open(place / "state", "test"))
        (place / "recording").mkdir()
        recorder = undo.enter_context(
            Recorder.start(
                recorder_driver(),
                place / "recording",
                RecorderSizes(64 * MIB, 128 * MIB),
                ledger=ledger,
                commands=Commands(),
            )
        )
        device = recorder.attach(recorder.disk)
        undo.callback(recorder.detach, device)
        yield Recorded(place, recorder, Path(device.path), ledger, undo)
    assert [] == list(place.glob("tracefs*"))


def test_writes_that_go_through_are_told_from_those_that_a_sync_follows(recorded: Recorded) -> None:
    recorder, node = recorded.recorder, recorded.node
    before = recorder.status().entries
    with recorded.trace(with_done=True) as trace:
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


def test_each_write_of_a_recording_has_the_process_that_asked_for_it(recorded: Recorded) -> None:
    """One writes past the page cache, one syncs what it wrote, and one leaves it to the kernel."""
    device = str(recorded.node)
    subprocess.run(["mkfs.ext4", "-q", device], check=True)
    mounted = recorded.place / "mounted"
    mounted.mkdir()
    subprocess.run(["mount", device, str(mounted)], check=True)
    recorded.undo.callback(subprocess.run, ["umount", str(mounted)], check=True)
    pids = {}
    with recorded.trace() as trace, ExitStack() as alive:
        for letter in "dsk":
            argv = [sys.executable, "-c", WRITER, str(mounted / letter), letter]
            pipe = subprocess.PIPE
            process = alive.enter_context(subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True))
            assert process.stdout is not None
            assert "written\n" == process.stdout.readline()
            pids[letter] = process.pid
        subprocess.run(["sync", "--file-system", str(mounted)], check=True)
        assert wait_until(lambda: set(pids.values()) - {pids["k"]} <= set(trace.titles), deadline_s=60.0)
    recorded.recorder.seal()
    assert note_writers(recorded.recorder.log, trace) > len(pids)
    whose: dict[str, set[WritingProcess]] = {letter: set() for letter in pids}
    others: set[WritingProcess] = set()
    with read_log(recorded.recorder.log) as log:
        for entry in filter(log.is_write, range(len(log))):
            data, who = bytes(log.data(entry)), log.writers(entry) or ()
            letter = chr(data[0])
            whole = letter in whose and data == letter.encode() * len(data)
            (whose[letter] if whole else others).update(who)
    assert {WritingProcess(pids["d"], "writer-d", is_kernel=False)} == whose["d"]
    assert {WritingProcess(pids["s"], "writer-s", is_kernel=False)} == whose["s"]
    # Threads of the kernel are outside of a container.
    is_kernel = True if str(Path("/proc/self/ns/pid").readlink()) == FIRST_PID_NAMESPACE else None
    # The device is not asked by whoever left it in the page cache.
    assert {(is_kernel, "kworker")} == {(each.is_kernel, each.name.partition("/")[0]) for each in whose["k"]}
    assert any(each.is_kernel is is_kernel and each.name.startswith("jbd2/") for each in others)


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
