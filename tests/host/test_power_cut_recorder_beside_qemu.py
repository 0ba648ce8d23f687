"""The recorder beside QEMU's own write log (blklogwrites), a second witness that knows the same format."""

from __future__ import annotations

import json
import mmap
import os
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.tools.patience import AT_MOST_S
from tests.support.tools.recorder_lab import RecorderLab, recorder_driver, recorder_lab, replayed

from bedplate.cuts.log import FLUSH, Log, read_log
from bedplate.host.recorder import RecorderSizes
from bedplate.units import MIB

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

SECTOR = 512
SIZES = RecorderSizes(disk_bytes=16 * MIB, log_limit_bytes=64 * MIB)
# Offset and sectors of a write, None for a flush.
Request = tuple[int, int] | None


@pytest.fixture(scope="module")
def driver() -> Path:
    if shutil.which("qemu-storage-daemon") is None:
        pytest.skip("qemu-storage-daemon is missing (package qemu-system-common): it is the second witness")
    return recorder_driver()


@pytest.fixture
def lab(driver: Path) -> Iterator[RecorderLab]:
    with recorder_lab(driver) as found:
        yield found


def requests() -> list[Request]:
    """The same ones each time, some of which overlap; a flush at the end, since QEMU flushes when it closes."""
    random_ = random.Random(7)
    found: list[Request] = []
    for _ in range(400):
        if random_.random() < 0.25:
            found.append(None)
        else:
            sectors = random_.choice((1, 2, 8, 16, 256))
            found.append((random_.randrange(2 * MIB // SECTOR - sectors) * SECTOR, sectors))
    return [*found, None]


def play(path: Path, asked: Sequence[Request]) -> None:
    file = os.open(path, os.O_RDWR | os.O_DIRECT)
    try:
        with mmap.mmap(-1, 256 * SECTOR) as buffer:
            for number, request in enumerate(asked):
                if request is None:
                    os.fsync(file)
                    continue
                offset, sectors = request
                content = b"".join(b"%15d:%15d\n" % (number, at) * 16 for at in range(sectors))
                buffer[: len(content)] = content
                with memoryview(buffer) as whole, whole[: len(content)] as part:
                    assert len(content) == os.pwritev(file, [part], offset)
    finally:
        os.close(file)


@contextmanager
def qemu_log(folder: Path, *, log: Path, append: bool = False) -> Iterator[Path]:
    """QEMU's export of `folder`/disk, all of whose writes it logs."""
    disk, export = folder / "disk", folder / "export"
    if not disk.exists():
        with disk.open("xb") as file:
            file.truncate(SIZES.disk_bytes)
    log.touch()
    export.touch()
    log_words = ["driver=blklogwrites,node-name=w,file=f,log=l,log-super-update-interval=1"]
    argv = [
        "qemu-storage-daemon",
        *("--blockdev", f"driver=file,node-name=f,filename={disk}"),
        *("--blockdev", f"driver=file,node-name=l,filename={log}"),
        *("--blockdev", ",".join([*log_words, *(["log-append=on" if append else "log-sector-size=512"])])),
        *("--export", f"type=fuse,id=e,node-name=w,mountpoint={export},writable=on"),
        *("--chardev", "stdio,id=control", "--monitor", "chardev=control"),
    ]
    daemon = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert daemon.stdin is not None
    assert daemon.stdout is not None
    try:
        # It greets on its monitor once everything before it on the command line is there.
        greeting = daemon.stdout.readline()
        assert "QMP" in greeting, "qemu-storage-daemon did not start"
        yield export
        print(json.dumps({"execute": "qmp_capabilities"}), file=daemon.stdin)
        print(json.dumps({"execute": "quit"}), file=daemon.stdin, flush=True)
        daemon.communicate(timeout=AT_MOST_S)
        assert 0 == daemon.returncode
    finally:
        daemon.kill()
        daemon.wait()


def once(asked: Sequence[Request]) -> list[Request]:
    """Without flushes after which nothing was written since the last: QEMU answers those by itself."""
    return [
        request
        for number, request in enumerate(asked)
        if request is not None or (number > 0 and asked[number - 1] is not None)
    ]


def requests_of(log: Log) -> list[Request]:
    """What a log says was asked for."""
    return [
        None if log.flags[index] & FLUSH else (log.offsets[index], log.lengths[index] // SECTOR)
        for index in range(len(log))
    ]


def test_both_logs_tell_the_same_requests_and_the_same_disk(lab: RecorderLab) -> None:
    asked = requests()
    with lab.start(SIZES) as recorder:
        play(recorder.disk, asked)
        ours_disk = recorder.disk.read_bytes()
    beside = lab.base / "qemu"
    beside.mkdir()
    with qemu_log(beside, log=beside / "log") as export:
        play(export, asked)
    with read_log(recorder.log) as ours, read_log(beside / "log") as theirs:
        images = [replayed(log, 0, SIZES.disk_bytes) for log in (ours, theirs)]
        assert asked == requests_of(ours)
        assert once(asked) == once(requests_of(theirs))
    assert images[0] == images[1] == ours_disk == (beside / "disk").read_bytes()


def test_qemu_reads_our_log_and_goes_on_with_it(lab: RecorderLab) -> None:
    with lab.start(SIZES) as recorder:
        play(recorder.disk, requests()[:100])
        recorder.write_mark("A 0 1 1")
        # Zeros that take no room, and a discard: each has another length in the log.
        lab.commands.run(
            ["fallocate", "--zero-range", "--keep-size", "-o", "4096", "-l", "8192", str(recorder.disk)]
        )
        lab.commands.run(["fallocate", "--punch-hole", "-o", "65536", "-l", "4096", str(recorder.disk)])
        recorder.write_mark("A 0 2 2")
    with read_log(recorder.log) as log:
        before = [(log.entry(index), log.mark(index)) for index in range(len(log))]
    beside = lab.base / "qemu"
    beside.mkdir()
    with qemu_log(beside, log=recorder.log, append=True) as export:
        play(export, [(1 * MIB, 8)])
    with read_log(recorder.log) as log:
        after = [(log.entry(index), log.mark(index)) for index in range(len(log))]
        assert before == after[: len(before)]
        assert (1 * MIB, 8) in requests_of(log)[len(before) :]
