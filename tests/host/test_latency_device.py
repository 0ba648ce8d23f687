"""The emulated device as it is built and run: in what order it answers, and never sooner than was drawn.

A busy machine answers later than it should; so there are lower bounds of times and upper bounds of counts, and no others.
"""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.support.tools.patience import AT_MOST_S
from tests.support.tools.recorder_lab import SOURCES, RecorderLab, recorder_driver, recorder_lab

from bedplate.errors import RequirementMissing
from bedplate.filesystem.adapter import Site
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.block_tree import attached_to, backing_file
from bedplate.host.command import Commands
from bedplate.host.ledger import release_orphans
from bedplate.host.mount import find_mount
from bedplate.host.process import start_time, wait_until
from bedplate.host.recorder import LatencyDevice, WayThere, parse_status, probe_device, way_there
from bedplate.host.requirement import look
from bedplate.model.cell import FilesystemLevels
from bedplate.model.devices import Disk, Latency, Law
from bedplate.plan.values import LATENCIES, faster
from bedplate.units import MIB
from bedplate.workloads.fio.prepare import DEPTHS, FIO, MEASURED_DISK, law_of

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

# Nothing is subtracted, and nothing refused.
NO_WAY = WayThere(0, 0, 0, 1e9, 1e9)
BLOCK = 4096


@pytest.fixture(scope="module")
def driver() -> Path:
    return recorder_driver()


@pytest.fixture
def place(driver: Path) -> Iterator[RecorderLab]:
    with recorder_lab(driver) as found:
        yield found


@pytest.fixture
def undo(place: RecorderLab) -> Iterator[ExitStack]:
    assert place.folder.is_dir()
    with ExitStack() as stack:
        yield stack


def started(
    place: RecorderLab, undo: ExitStack, latency: Latency, *, size_bytes: int = 64 * MIB, name: str = "device"
) -> LatencyDevice:
    folder = place.base / name
    folder.mkdir()
    device = LatencyDevice.start(
        place.driver,
        folder,
        latency,
        size_bytes,
        NO_WAY,
        seed=7,
        ledger=place.ledger,
        commands=place.commands,
    )
    undo.callback(device.stop)
    # A visit sets it. Here a loop device may have what a killed test of anybody's left, and then no flush arrives.
    (device.device.queue / "write_cache").write_text("write back")
    return device


class Direct:
    """A device that is read and written past all caches, one block at a time."""

    def __init__(self, path: str, undo: ExitStack) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_DIRECT)
        undo.callback(os.close, self._file)
        self._block = undo.enter_context(mmap.mmap(-1, BLOCK))

    def read_s(self, number: int) -> float:
        began = time.monotonic()
        assert BLOCK == os.preadv(self._file, [self._block], number * BLOCK)
        return time.monotonic() - began

    def write_s(self, number: int) -> float:
        began = time.monotonic()
        assert BLOCK == os.pwritev(self._file, [self._block], number * BLOCK)
        return time.monotonic() - began

    def flush_s(self) -> float:
        began = time.monotonic()
        os.fsync(self._file)
        return time.monotonic() - began


def test_nothing_is_answered_sooner_than_it_was_drawn(place: RecorderLab, undo: ExitStack) -> None:
    latency = Latency("x", "uniform 5ms 6ms", "8ms", "12ms", queue_depth=4)
    device = started(place, undo, latency)
    assert (True, " ".join(latency.options)) == (device.read_back.matches, device.read_back.effective)
    with ExitStack() as files:
        direct = Direct(device.device.path, files)
        assert min(direct.write_s(number * 7) for number in range(10)) >= 0.008
        assert min(direct.read_s(number * 7) for number in range(10)) >= 0.005
        flushes = []
        for number in range(5):
            direct.write_s(number)
            flushes.append(direct.flush_s())
        assert min(flushes) >= 0.012


def test_what_goes_on_where_another_ended_has_a_time_of_its_own(place: RecorderLab, undo: ExitStack) -> None:
    latency = Latency("x", "1ms", "1ms", "1ms", queue_depth=4, sequential="15ms")
    with ExitStack() as files:
        direct = Direct(started(place, undo, latency).device.path, files)
        direct.read_s(100)
        assert min(direct.read_s(101 + number) for number in range(5)) >= 0.015


def test_no_more_are_served_at_once_than_there_are_places(place: RecorderLab, undo: ExitStack) -> None:
    latency = Latency("x", "20ms", "20ms", "20ms", queue_depth=2)
    device = started(place, undo, latency)
    found = probe_device(place.driver, device.device.path, "read", 8, place.commands)
    # Two every 20 ms, and those that were under way when the time was over.
    assert found.count <= 2 * (found.seconds / 0.02 + 1)
    # Eight with two places: each waits for three others.
    assert found.ns_p50 >= 3 * 20e6


def test_a_limit_of_requests_is_kept_by_reads_and_writes_together(
    place: RecorderLab, undo: ExitStack
) -> None:
    latency = Latency("x", "1ms", "1ms", "1ms", queue_depth=32, iops=100)
    device = started(place, undo, latency)
    found = probe_device(place.driver, device.device.path, "write", 16, place.commands)
    assert found.count <= 100 * found.seconds + 2


def test_a_limit_of_bytes_is_kept(place: RecorderLab, undo: ExitStack) -> None:
    latency = Latency("x", "1ms", "1ms", "1ms", queue_depth=32, bytes_per_s=100 * BLOCK)
    device = started(place, undo, latency)
    found = probe_device(place.driver, device.device.path, "read", 16, place.commands)
    assert found.count <= 100 * found.seconds + 2


def test_nothing_is_answered_within_a_stall(place: RecorderLab, undo: ExitStack) -> None:
    latency = Latency("x", "1ms", "1ms", "1ms", stall="300ms every 500ms")
    device = started(place, undo, latency)
    with ExitStack() as files:
        direct = Direct(device.device.path, files)
        taken, began = list[float](), time.monotonic()
        # Whoever reads all the time meets every stall, unless it is kept from its processor where one begins.
        while sum(each >= 0.29 for each in taken) < 2 and time.monotonic() - began < AT_MOST_S:
            taken.append(direct.read_s(3))
    assert sum(each >= 0.29 for each in taken) == 2


def test_a_flush_begins_when_all_before_it_is_answered(place: RecorderLab, undo: ExitStack) -> None:
    device = started(place, undo, Latency("x", "1ms", "300ms", "200ms"))
    with ExitStack() as files:
        direct, other = Direct(device.device.path, files), Direct(device.device.path, files)
        began = time.monotonic()
        writing = threading.Thread(target=direct.write_s, args=(1,))
        writing.start()
        assert wait_until(lambda: _writes(device) == 1, deadline_s=AT_MOST_S)
        other.flush_s()
        assert time.monotonic() - began >= 0.5
        writing.join()


def _writes(device: LatencyDevice) -> int:
    return parse_status(device.status_file.read_text()).devices[0].writes


def test_what_is_late_is_counted(place: RecorderLab, undo: ExitStack) -> None:
    device = started(place, undo, Latency("x", "300ms", "1ms", "1ms"))
    with ExitStack() as files:
        direct = Direct(device.device.path, files)
        # A process that stands still answers late, and knows it. Whoever stops it too late tries again.
        for number in range(1, 11):
            before = _reads(device)
            reading = threading.Thread(target=direct.read_s, args=(9 * number,))
            reading.start()
            wait_until(lambda before=before: _reads(device) > before, deadline_s=AT_MOST_S)  # type: ignore[misc]
            os.kill(device.pid, signal.SIGSTOP)
            threading.Event().wait(0.4)
            os.kill(device.pid, signal.SIGCONT)
            reading.join()
            status = parse_status(device.status_file.read_text())
            if status.late:
                break
    assert status.served >= number
    assert status.late >= 1
    assert status.late_ns_max > 0.05 * 300e6


def _reads(device: LatencyDevice) -> int:
    return parse_status(device.status_file.read_text()).devices[0].reads


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_file_systems_stand_on_it_and_their_flushes_reach_it(
    place: RecorderLab, undo: ExitStack, kind: str
) -> None:
    device = started(place, undo, Latency("x", "0.5ms", "0.5ms", "1ms"), size_bytes=512 * MIB)
    target = place.base / "mount"
    target.mkdir()
    site = Site(FilesystemLevels(kind), device.device, target, place.commands)
    filesystem = filesystem_for(kind)
    if missing := [found.sentence for found in look(filesystem.needs) if not found.found]:
        pytest.skip("; ".join(missing))
    filesystem.mkfs(site)
    filesystem.mount(site)
    try:
        before = parse_status(device.status_file.read_text()).devices[0].flushes
        content = os.urandom(3 * MIB)
        with (target / "file").open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        assert parse_status(device.status_file.read_text()).devices[0].flushes > before
        filesystem.unmount(site)
        filesystem.mount(site)
        assert content == (target / "file").read_bytes()
    finally:
        filesystem.unmount(site)


def test_a_modelled_disk_takes_its_turns(place: RecorderLab, undo: ExitStack) -> None:
    turn_s, seek_s = 60 / 7200, Disk().seek_track_ms / 1e3
    latency = LATENCIES["hdd-7200-2011"]
    device = started(place, undo, latency)
    assert (True, " ".join(latency.options)) == (device.read_back.matches, device.read_back.effective)
    with ExitStack() as files:
        direct = Direct(device.device.path, files)
        # Who appends and flushes waits for the same angle again and again.
        began = time.monotonic()
        for number in range(30):
            direct.write_s(number)
            direct.flush_s()
        assert time.monotonic() - began >= 28 * turn_s
        # The heads have to go there.
        began = time.monotonic()
        for number in range(30):
            direct.read_s(16_383 - 409 * number)
        assert time.monotonic() - began >= 30 * seek_s
    status = parse_status(device.status_file.read_text())
    assert status.devices[0].flushes >= 30


def test_a_modelled_disk_holds_what_was_written(place: RecorderLab, undo: ExitStack) -> None:
    path = started(place, undo, faster(LATENCIES["hdd-7200-2011"], 16)).device.path
    content = os.urandom(4 * MIB)
    with Path(path).open("r+b") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        file.seek(64 * MIB - len(content))
        file.write(content[::-1])
    with Path(path).open("rb") as file:
        assert content == file.read(len(content))
        file.seek(64 * MIB - len(content))
        assert content[::-1] == file.read()


def test_two_at_once_do_not_know_of_each_other(place: RecorderLab, undo: ExitStack) -> None:
    devices = [
        started(place, undo, Latency("x", "1ms", "1ms", "1ms"), name=f"device-{number}")
        for number in range(2)
    ]
    for number, device in enumerate(devices):
        with Path(device.device.path).open("r+b") as file:
            file.write(bytes([number + 1]) * MIB)
            file.flush()
            os.fsync(file.fileno())
    for number, device in enumerate(devices):
        with Path(device.device.path).open("rb") as file:
            assert bytes([number + 1]) * MIB == file.read(MIB)
        device.stop()
        assert not attached_to(Path(device.device.image or ""))


def test_the_way_there_is_measured_and_leaves_nothing(place: RecorderLab) -> None:
    way = way_there(place.driver, place.folder, ledger=place.ledger, commands=place.commands)
    assert min(way.read_ns, way.write_ns, way.flush_ns, way.reads_per_s, way.writes_per_s) > 0
    assert () == place.ledger.holdings()
    assert find_mount(place.folder / "recorder") is None


def test_what_the_way_there_forbids_never_starts(place: RecorderLab) -> None:
    with pytest.raises(RequirementMissing, match="asks for answers within"):
        LatencyDevice.start(
            place.driver,
            place.folder,
            Latency("fast", "0.01ms", "1ms", "1ms", queue_depth=1),
            64 * MIB,
            WayThere(50_000, 50_000, 50_000, 1e6, 1e6),
            seed=1,
            ledger=place.ledger,
            commands=place.commands,
        )
    assert [] == [path for path in place.folder.iterdir() if path.name != "errors"]


def test_a_killed_start_leaves_nothing(place: RecorderLab) -> None:
    script = f"""
import os, pathlib, signal
from bedplate.host.command import Commands
from bedplate.host.recorder import LatencyDevice, WayThere
from bedplate.host.ledger import Ledger
from bedplate.model.devices import Latency, Law
base, commands = pathlib.Path({str(place.base)!r}), Commands()
ledger = Ledger.open(base / "orphans", "killed")
device = LatencyDevice.start(pathlib.Path({str(place.driver)!r}), base / "recording", Latency("x", "1ms", "1ms", "1ms"), {64 * MIB},
    WayThere(0, 0, 0, 1e9, 1e9), seed=1, ledger=ledger, commands=commands)
commands.run(["mkfs.ext4", "-q", "-E", "nodiscard", device.device.path])
print(device.pid, device.device.name, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(SOURCES / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert -signal.SIGKILL == done.returncode, done.stderr
    assert () == release_orphans(place.base / "orphans", Commands()).problems
    pid, loop = done.stdout.split()
    assert find_mount(place.folder / "recorder") is None
    # It may be another program's by now.
    assert str(place.base) not in (backing_file(loop) or "")
    assert start_time(int(pid)) is None


def test_a_disk_is_measured_as_the_line_of_a_plan(place: RecorderLab, undo: ExitStack) -> None:
    if missing := [found.sentence for found in look([FIO]) if not found.found]:
        pytest.skip("; ".join(missing))
    device = started(place, undo, Latency("x", "8ms", "8ms", "12ms", queue_depth=4))
    found = MEASURED_DISK.measure(device.device.path, ("read", "flush"), 1, place.commands)
    assert [("read", depth) for depth in DEPTHS] + [("flush", 1)] == [
        (each.kind, each.depth) for each in found
    ]
    # Never sooner than it answers, and never more than its places.
    assert all(each.p50_us >= (8000 if each.kind == "read" else 12_000) * 0.99 for each in found)
    assert all(0 < each.per_s <= 4 / 0.008 + 4 * each.depth for each in found)
    assert "write" not in MEASURED_DISK.plan_line(found)
    assert Law.parse("8ms").first_ns * 0.99 <= law_of(found[0]).first_ns
