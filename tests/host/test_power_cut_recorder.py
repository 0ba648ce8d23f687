"""The recorder as it is built and run: what loop devices and file systems do above it, and every end it can come to."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.tools.patience import AT_MOST_S
from tests.support.tools.recorder_lab import (
    SIZES,
    SOURCES,
    RecorderLab,
    counted,
    recorder_driver,
    recorder_lab,
    replayed,
)

from bedplate.cuts.log import DISCARD, FLUSH, JOURNAL, read_log
from bedplate.errors import DeviceInUse, RequirementMissing
from bedplate.host.block_tree import attached_to, backing_file
from bedplate.host.command import Commands
from bedplate.host.ledger import release_orphans
from bedplate.host.mount import find_mount, unmount
from bedplate.host.process import start_time, wait_until_gone
from bedplate.host.recorder import Recorder, RecorderFailed, RecorderSizes
from bedplate.host.scratch_device import AttachedDevice
from bedplate.units import MIB

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

# linux/loop.h
_LOOP_CTL_ADD, _LOOP_CTL_REMOVE = 0x4C80, 0x4C81


@pytest.fixture(scope="module")
def driver() -> Path:
    return recorder_driver()


@pytest.fixture
def place(driver: Path) -> Iterator[RecorderLab]:
    with recorder_lab(driver) as found:
        yield found


def test_what_is_written_to_both_disks_stands_in_one_log(place: RecorderLab) -> None:
    with place.start() as recorder:
        assert recorder.journal is not None
        for number, path in enumerate((recorder.disk, recorder.journal, recorder.disk)):
            file = os.open(path, os.O_RDWR)
            os.pwrite(file, bytes([number + 1]) * 4096, number * 8192)
            os.fsync(file)
            os.close(file)
            recorder.write_mark(f"A 0 {number}")
        status = recorder.status()
        found = recorder.disk.read_bytes()
    with read_log(recorder.log) as log:
        assert [(e.device, e.offset, e.length, e.flags) for e in map(log.entry, range(len(log)))] == [
            *((0, 0, 4096, 0), (0, 0, 0, FLUSH), (0, 0, 5, 8)),
            *((JOURNAL, 8192, 4096, 0), (JOURNAL, 0, 0, FLUSH), (0, 0, 5, 8)),
            *((0, 16384, 4096, 0), (0, 0, 0, FLUSH), (0, 0, 5, 8)),
        ]
        assert log.mark(2) == b"A 0 0"
        times = [log.entry(index).time_ns or 0 for index in range(len(log))]
        assert times == sorted(times)
        assert times[0] > 0
        assert replayed(log, 0, SIZES.disk_bytes) == found
    assert (9, 3) == (status.entries, status.marks)
    assert not (place.folder / "store").exists()


def attach_with_discard(recorder: Recorder) -> AttachedDevice:
    """A loop device that discards. One whose `discard_max_bytes` somebody set to 0 keeps that until it is removed."""
    for _ in range(8):
        device = recorder.attach(recorder.disk)
        if (device.queue / "discard_max_bytes").read_text().strip() != "0":
            return device
        recorder.detach(device)
        number = int(device.name.removeprefix("loop"))
        # Another program may have taken it meanwhile: then it stays, and the next free one is tried.
        with contextlib.suppress(OSError), Path("/dev/loop-control").open("rb") as control:
            fcntl.ioctl(control, _LOOP_CTL_REMOVE, number)
            fcntl.ioctl(control, _LOOP_CTL_ADD, number)
    pytest.skip("discard_max_bytes is 0 on 8 loop devices, and removing and adding them did not help")


def test_a_file_system_on_the_recorder_is_in_the_log_from_the_first_write_of_mkfs(place: RecorderLab) -> None:
    target = place.base / "mount"
    target.mkdir()
    with place.start() as recorder:
        device = attach_with_discard(recorder)
        place.commands.run(["mkfs.ext4", "-q", "-E", "nodiscard", device.path])
        place.commands.run(["mount", device.path, str(target)])
        for number in range(50):
            with (target / f"file-{number}").open("wb") as file:
                file.write(os.urandom(5000))
                os.fsync(file.fileno())
        (target / "file-1").unlink()
        place.commands.run(["fstrim", str(target)])
        place.commands.run(["umount", str(target)])
        recorder.detach(device)
        status = recorder.seal()
        found = recorder.disk.read_bytes()
    with read_log(recorder.log) as log:
        assert status.entries == len(log)
        assert replayed(log, 0, SIZES.disk_bytes) == found
        assert 1 <= counted(log, DISCARD, 0)
        assert 100 <= counted(log, FLUSH, 0)
    image = place.base / "image"
    image.write_bytes(found)
    place.commands.run(["e2fsck", "-f", "-n", str(image)])


def test_nothing_of_the_disks_is_kept_in_the_page_cache_another_time(place: RecorderLab) -> None:
    with place.start() as recorder:
        device = recorder.attach(recorder.disk)
        # The loop device's own direct I/O, and the file's, which holds without it too.
        assert "1" == (Path("/sys/block") / device.name / "loop/dio").read_text().strip()
        with Path(device.path).open("r+b") as file:
            file.write(bytes(range(256)) * 4096 * 8)
            file.flush()
            os.fsync(file.fileno())
        words = ["fincore", "--bytes", "--noheadings", "--output", "RES", str(recorder.disk)]
        assert "0" == place.commands.run(words).stdout.strip()
        recorder.detach(device)


def test_a_sealed_log_takes_nothing_more_and_the_disks_go_on(place: RecorderLab) -> None:
    with place.start() as recorder:
        recorder.disk.open("r+b").write(b"before" + bytes(506))
        sealed = recorder.seal()
        recorder.disk.open("r+b").write(b"behind" + bytes(506))
        recorder.write_mark("A 0 1")
        assert recorder.disk.open("rb").read(6) == b"behind"
        assert sealed.is_sealed
    with read_log(recorder.log) as log:
        assert 1 == len(log) == sealed.entries
        assert bytes(log.data(0, 0, 6)) == b"before"


def test_a_full_log_names_itself_and_fails_what_comes_after(place: RecorderLab) -> None:
    recorder = place.start(RecorderSizes(disk_bytes=64 * MIB, log_limit_bytes=1 * MIB))
    file = os.open(recorder.disk, os.O_RDWR)
    for number in range(227):
        os.pwrite(file, bytes([7]) * 4096, number * 4096)
    with pytest.raises(OSError, match="Input/output error"):
        os.pwrite(file, bytes(4096), 0)
    with pytest.raises(OSError, match="Input/output error"):
        os.fsync(file)
    os.close(file)
    with pytest.raises(OSError, match="Input/output error"):
        recorder.write_mark("A 0 1")
    with pytest.raises(
        RecorderFailed, match=r"recording/log reached its limit of 1048576 bytes after 227 entries"
    ):
        recorder.stop()
    with read_log(recorder.log) as log:
        assert 227 == len(log)


@pytest.fixture
def little_room(place: RecorderLab) -> Iterator[RecorderLab]:
    """A tmpfs of 5 MiB in the place of the folder."""
    place.commands.run(["mount", "-t", "tmpfs", "-o", "size=5m", "tmpfs", str(place.folder)])
    try:
        yield place
    finally:
        # A test that failed may have left the recorder in it.
        place.ledger.release(place.commands)
        place.commands.run(["umount", str(place.folder)])


_LITTLE = RecorderSizes(disk_bytes=64 * MIB, log_limit_bytes=2 * MIB)


def test_a_full_tmpfs_is_told_as_such(little_room: RecorderLab) -> None:
    recorder = little_room.start(_LITTLE)
    (little_room.folder / "another").write_bytes(bytes(4 * MIB))
    with recorder.disk.open("r+b", buffering=0) as file:
        assert MIB // 4 == file.write(bytes(MIB // 4))
        with pytest.raises(OSError, match="Input/output error"):
            file.writelines([bytes(MIB // 4)] * 4)
    with pytest.raises(
        RecorderFailed, match=r"recording/.* cannot be written after .*: No space left on device"
    ):
        recorder.stop()
    with read_log(recorder.log) as log:
        assert MIB // 4 == log.lengths[0]


def test_a_tmpfs_that_fills_up_behind_the_seal_does_not_concern_the_log(little_room: RecorderLab) -> None:
    recorder = little_room.start(_LITTLE)
    with recorder.disk.open("r+b", buffering=0) as file:
        file.write(bytes(MIB // 4))
        recorder.seal()
        with pytest.raises(OSError, match="Input/output error"):
            file.writelines([bytes(MIB // 4)] * 32)
    assert recorder.stop().failure is None
    with read_log(recorder.log) as log:
        assert 1 == len(log)


def test_a_line_is_a_mark_and_what_is_too_long_is_refused(place: RecorderLab) -> None:
    with place.start() as recorder:
        recorder.write_mark("one\ntwo\n")
        recorder.write_mark("x" * 468)
        for refused in ("y" * 469, "\n"):
            with pytest.raises(OSError, match="Invalid argument"):
                recorder.write_mark(refused)
        assert 3 == recorder.status().marks
    with read_log(recorder.log) as log:
        assert [log.mark(index) for index in range(len(log))] == [b"one", b"two", b"x" * 468]


def test_anybody_may_mark_and_only_root_may_write_the_disk(place: RecorderLab) -> None:
    place.base.chmod(0o755)
    with place.start() as recorder:
        for path, is_open in ((recorder.mark, True), (recorder.disk, False)):
            done = subprocess.run(
                ["dd", f"of={path}", "conv=notrunc", "status=none"],
                input=bytes(512).replace(b"\0", b"a")[: 400 if is_open else 512],
                user=65534,
                group=65534,
                extra_groups=[],
                check=False,
                capture_output=True,
            )
            assert is_open == (done.returncode == 0), done.stderr


def test_a_killed_recorder_leaves_a_log_of_its_whole_entries(place: RecorderLab) -> None:
    recorder = place.start()
    with recorder.disk.open("r+b", buffering=0) as file:
        file.write(b"kept" + bytes(508))
    os.kill(recorder.pid, signal.SIGKILL)
    assert wait_until_gone((recorder.pid,), deadline_s=AT_MOST_S)
    with pytest.raises(RecorderFailed, match="does not answer"):
        recorder.status()
    with pytest.raises(RecorderFailed, match="no document"):
        recorder.stop()
    assert find_mount(place.folder / "recorder") is None
    with read_log(recorder.log) as log:
        assert 1 == len(log)


@pytest.mark.parametrize("apart", [False, True])
def test_it_ends_with_its_visit_and_the_ledger_gives_the_rest_back(
    place: RecorderLab, *, apart: bool
) -> None:
    """A process that starts a recorder, mounts above it and is killed; in namespaces of its own, as a visit is."""
    target = place.base / "mount"
    target.mkdir()
    script = f"""
import os, pathlib, signal
from bedplate.host.command import Commands
from bedplate.host.ledger import Holding, Ledger
from bedplate.host.block_tree import attached_to
from bedplate.host.mount import mount
from bedplate.host.mount import enter_own_namespaces
from bedplate.host.recorder import Recorder, RecorderSizes
if {apart}:
    enter_own_namespaces()
base, commands = pathlib.Path({str(place.base)!r}), Commands()
ledger = Ledger.open(base / "orphans", "killed")
recorder = Recorder.start(pathlib.Path({str(place.driver)!r}), base / "recording", RecorderSizes({64 * MIB}, {64 * MIB}),
    ledger=ledger, commands=commands)
device = recorder.attach(recorder.disk)
commands.run(["mkfs.ext4", "-q", "-E", "nodiscard", device.path])
ledger.note(Holding("mount", {str(target)!r}, device.path))
mount(device.path, pathlib.Path({str(target)!r}), "ext4", (), commands=commands)
(pathlib.Path({str(target)!r}) / "file").write_text("x")
print(recorder.pid, device.name, flush=True)
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
    report = release_orphans(place.base / "orphans", Commands())
    assert () == report.problems
    assert find_mount(target) is None
    assert find_mount(place.folder / "recorder") is None
    assert () == attached_to(place.folder / "recorder/disk")
    pid, loop = done.stdout.split()
    # Without its recorder's mount it would be over `/disk`, and nobody's. Another test's device may have its name by now.
    assert backing_file(loop) not in {"/disk", str(place.folder / "recorder/disk")}
    assert start_time(int(pid)) is None


def test_it_is_busy_while_a_loop_device_stands_above(
    place: RecorderLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = place.start()
    device = recorder.attach(recorder.disk)
    monkeypatch.setattr(
        "bedplate.host.recorder.unmount",
        lambda target, *, commands: unmount(target, commands=commands, deadline_s=0),
    )
    with pytest.raises(DeviceInUse, match=rf"{device.path} lies on"):
        recorder.stop()
    recorder.detach(device)
    recorder.stop()


def test_another_namespace_does_not_keep_it(place: RecorderLab) -> None:
    """Whoever unshares his mounts has a copy of ours, and does not know it."""
    recorder = place.start()
    argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo; read line"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"\n"
        recorder.write_mark("A 0 1 1")
        status = recorder.stop()
        assert (1, None) == (status.marks, status.failure)
        assert start_time(recorder.pid) is None
        other.communicate(b"\n")


def test_a_folder_that_is_not_in_memory_is_refused(place: RecorderLab, tmp_path: Path) -> None:
    with pytest.raises(RequirementMissing, match=r"name a directory on a tmpfs"):
        Recorder.start(place.driver, tmp_path, SIZES, ledger=place.ledger, commands=place.commands)


def test_a_log_larger_than_the_memory_is_refused(place: RecorderLab) -> None:
    with pytest.raises(RequirementMissing, match=r"make the tmpfs larger"):
        place.start(RecorderSizes(disk_bytes=64 * MIB, log_limit_bytes=1 << 45))


def test_a_start_that_fails_says_why_and_leaves_nothing(place: RecorderLab) -> None:
    (place.folder / "store").mkdir()
    with pytest.raises(RecorderFailed, match=r"store cannot be made: File exists"):
        place.start()
