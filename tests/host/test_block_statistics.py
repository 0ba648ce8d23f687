"""What the fields of a disk's `stat` count, held against the kernel's own tracepoints of block requests."""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.tools.filesystem_site import site_on
from tests.support.tools.scratch_disk import looped

from bedplate.errors import BedplateError
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.command import Commands
from bedplate.host.mount import unmount
from bedplate.model.cell import FilesystemLevels
from bedplate.probe.kernel import DeviceProbe
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.host

_CALLS = 40
# A request is made once (getrq), and may be completed in steps: those of the flushes that belong to it.
_EVENTS = ("block_getrq", "block_rq_complete")
_TOLD = re.compile(r"(block_getrq|block_rq_complete): \d+,\d+ (\w+) (?:\(.*?\) )?\d+ \+ (\d+) ")
# A flush of the device itself, as the flush machinery sends it (block/blk-flush.c).
_FLUSH = "FF"


@pytest.fixture
def trace() -> Iterator[Path]:
    """An instance of the tracer of our own: what others trace is not touched."""
    commands = Commands()
    with tempfile.TemporaryDirectory(prefix="bedplate-test-tracing-") as name:
        try:
            commands.run(["mount", "-t", "tracefs", "tracefs", name])
        except BedplateError as error:
            pytest.skip(f"no tracefs can be mounted: {error}")
        instance = Path(name) / "instances" / f"bedplate-test-{os.getpid()}"
        try:
            if not all((Path(name) / "events/block" / event).exists() for event in _EVENTS):
                pytest.skip("this kernel has no tracepoints of block requests")
            instance.mkdir()
            yield instance
        finally:
            if instance.exists():
                (instance / "events/enable").write_text("0")
                instance.rmdir()
            commands.run(["umount", name])


@pytest.fixture
def disk() -> Iterator[tuple[str, Path]]:
    """A loop device over memory, and where to mount it."""
    commands = Commands()
    with tempfile.TemporaryDirectory(prefix="bedplate-test-block-", dir="/dev/shm") as name:
        target = Path(name) / "mount"
        target.mkdir()
        # mkfs.xfs wants 300 MB.
        with looped(Path(name), "--direct-io=on", size_bytes=304 * MIB) as path:
            (Path("/sys/block") / Path(path).name / "queue/write_cache").write_text("write back")
            yield path, target
            unmount(target, commands=commands)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_writes_are_requests_with_data_and_those_that_only_ask_for_a_flush(
    kind: str, trace: Path, disk: tuple[str, Path]
) -> None:
    path, target = disk
    filesystem, site = filesystem_for(kind), site_on(FilesystemLevels(kind), path, Commands(), target=target)
    filesystem.mkfs(site)
    filesystem.mount(site)
    block = Path("/sys/block") / Path(path).name
    major, minor = map(int, (block / "dev").read_text().split(":"))
    events = [trace / "events/block" / name for name in _EVENTS]
    for event in events:
        (event / "filter").write_text(f"dev == {major << 20 | minor}")
    (trace / "buffer_size_kb").write_text("8192")
    probe = DeviceProbe(block / "stat")
    file = os.open(target / "file", os.O_RDWR | os.O_CREAT)
    try:
        before = probe.read()
        for event in events:
            (event / "enable").write_text("1")
        # Appending first, then over the same blocks: the second asks for flushes without data.
        for call in range(2 * _CALLS):
            os.pwrite(file, os.urandom(8192), call % _CALLS * 8192)
            os.fsync(file)
        (trace / "tracing_on").write_text("0")
        after = probe.read()
    finally:
        os.close(file)
    grown = {name: after[name] - before[name] for name in after}
    told = _told(trace / "trace")
    assert grown["device.writes"] == told["with data"] + told["without data"]
    assert grown["device.flushes"] == told["flushes"] >= 2 * _CALLS
    assert grown["device.written_sectors"] == told["sectors"]
    # So flushes may not be taken off the writes: most of them came with data.
    assert told["without data"] < told["flushes"]


def _told(trace: Path) -> Counter[str]:
    found = Counter[str]()
    for event, rwbs, sectors in (line.groups() for line in _TOLD.finditer(trace.read_text())):
        if event == "block_rq_complete":
            found["sectors"] += int(sectors) * ("W" in rwbs)
            found["flushes"] += rwbs == _FLUSH
        elif "W" in rwbs:
            found["with data" if int(sectors) else "without data"] += 1
    return found
