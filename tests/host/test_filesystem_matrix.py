"""Every file system, block size, barrier, data mode and journal that this kernel mounts, on a real loop.

What it does not mount must be refused with the kernel's reason, what it ignores must be caught.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.tools.kernel_partition import kernel_partition

from bedplate.errors import DeviceInUse, PlanError, VerifyFailed
from bedplate.filesystem.adapter import Site, effective_facts, verify
from bedplate.filesystem.refusals import (
    flushes_completed,
    judge,
    measure_fsyncs,
    probe_key,
    probe_refusals,
    write_back_wanted,
)
from bedplate.filesystem.registry import FILESYSTEMS, filesystem_for
from bedplate.host.command import Commands
from bedplate.host.facts import read_machine
from bedplate.host.ledger import release_orphans
from bedplate.host.mount import find_mount, mount_entry, unmount
from bedplate.host.requirement import look
from bedplate.host.scratch_device import AttachedDevice
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, DeviceLevels, FilesystemLevels, KernelLevels
from bedplate.model.levels import Levels
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.model.visit import ReadBack

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

# mkfs.xfs wants 300 MB, and more than 400 with blocks of 64 KiB.
_SIZE_BYTES = 520 * MIB
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# What this kernel and its tools have; the others are tried in a guest (guest_filesystems.py).
_KERNEL = set(read_machine().filesystems)
_HERE = sorted(
    name
    for name, filesystem in FILESYSTEMS.items()
    if _KERNEL & set(filesystem.traits.kernel_types) and all(need.found for need in look(filesystem.needs))
)
_MEMORY = Path("/dev/shm")  # flushes are counted whatever is below; a tmpfs makes them fast


def _data(mode: str | None) -> Levels:
    return Levels({"data": mode} if mode else {})


def _matrix() -> Iterator[FilesystemLevels]:
    for size in (None, 1024, 2048, 4096):
        # Unset is the default of the kernel; once per variant is enough.
        for barrier in (True, False) if size else (None, True, False):
            yield FilesystemLevels("ext2", size, barrier=barrier)
            yield FilesystemLevels("ext4", size, barrier=barrier, journal="none")
            for mode in (None, "ordered", "writeback", "journal"):
                journal = None if size else "internal"
                yield FilesystemLevels("ext3", size, barrier=barrier, journal=journal, features=_data(mode))
                yield FilesystemLevels("ext4", size, barrier=barrier, journal=journal, features=_data(mode))
    for size in (None, 1024, 2048, 4096, 8192, 16384, 32768, 65536):
        for barrier in (True, False) if size else (None, True, False):
            yield FilesystemLevels("xfs", size, barrier=barrier)
    for nodatacow in (None, True, False):
        features = Levels({"nodatacow": nodatacow} if nodatacow is not None else {})
        for barrier in (None, True, False):
            yield FilesystemLevels("btrfs", 4096, barrier=barrier, features=features)
    for size in (None, 512, 4096, 65536) if "ntfs-3g" in _HERE else ():
        for barrier in (None, True, False):
            yield FilesystemLevels("ntfs-3g", size, barrier=barrier)


def _name(levels: FilesystemLevels) -> str:
    return Cell(DeviceLevels(), KernelLevels(), levels, BuildLevels(), ClusterLevels()).slug


@pytest.fixture
def commands() -> Commands:
    return Commands()


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bedplate-test-filesystems-", dir=_MEMORY) as name:
        yield Path(name)


@pytest.fixture(scope="module")
def device(folder: Path) -> Iterator[AttachedDevice]:
    image = folder / "image"
    # Fully written, so that a discard would be seen.
    with image.open("xb") as file:
        for _ in range(_SIZE_BYTES // MIB):
            file.write(bytes(MIB))
    commands = Commands()
    argv = ["losetup", "--find", "--show", "--direct-io=on", "--partscan", str(image)]
    path = commands.run(argv).stdout.strip()
    name = path.removeprefix("/dev/")
    attached = AttachedDevice(path, name, name, _SIZE_BYTES, image)
    try:
        yield attached
    finally:
        (attached.queue / "write_cache").write_text("write back")
        commands.run(["losetup", "--detach", path])


@pytest.fixture
def target(folder: Path, device: AttachedDevice, commands: Commands) -> Iterator[Path]:
    (device.queue / "write_cache").write_text("write back")
    path = folder / "mount point"  # with a blank: mountinfo escapes it
    path.mkdir(exist_ok=True)
    try:
        yield path
    finally:
        unmount(path, commands=commands)


def _bring_up(
    levels: FilesystemLevels, device: AttachedDevice, target: Path, commands: Commands
) -> tuple[ReadBack, ...]:
    filesystem, site = filesystem_for(levels.type), Site(levels, device, target, commands)
    (device.queue / "write_cache").write_text("write back" if write_back_wanted(levels) else "write through")
    filesystem.mkfs(site)
    filesystem.mount(site)
    return filesystem.read_back(site)


@pytest.mark.parametrize("levels", tuple(_matrix()), ids=_name)
def test_is_made_mounted_read_back_flushed_as_asked_and_clean(
    levels: FilesystemLevels, device: AttachedDevice, target: Path, commands: Commands
) -> None:
    if levels.block_size_bytes is not None and levels.block_size_bytes > _PAGE_BYTES:
        reasons = probe_refusals(replace(levels, barrier=None), commands=commands, directory=_MEMORY)
        if reasons:
            pytest.skip(reasons[0].sentence)
    comparisons = _bring_up(levels, device, target, commands)
    verify(comparisons)
    asked = {item.name for item in comparisons if item.asked is not None}
    assert {"filesystem.type"} | {f"filesystem.{name}" for name in levels.features} <= asked
    assert [item.name for item in comparisons if item.asked is not None and item.matches is not True] == []
    counts = measure_fsyncs(target, device).counts
    assert [count.pattern for count in counts] == ["appending", "overwriting", "logging"]
    assert judge(counts, levels.barrier) == ()
    # The other answer would have failed: the count tells barriers apart.
    assert judge(counts, levels.barrier is False) != ()
    site = Site(levels, device, target, commands)
    assert filesystem_for(levels.type).unmount(site)
    assert find_mount(target) is None
    checked = filesystem_for(levels.type).check(site)
    assert checked.clean, checked.text


@pytest.mark.parametrize(
    ("levels", "reason"),
    [
        (FilesystemLevels("ext4", mount_options=("nonsense",)), "nonsense"),
        (FilesystemLevels("ext2", mount_options=("data=ordered",)), "data"),
        (FilesystemLevels("ext3", mount_options=("delalloc",)), "ext3"),
        (FilesystemLevels("ext4", journal="none", mount_options=("data=writeback",)), "journal"),
        (FilesystemLevels("ext4", mount_options=("journal_async_commit",)), "journal_async_commit"),
        (FilesystemLevels("ext2", mount_options=("nobh",)), "ignored"),
        (FilesystemLevels("ext4", mount_options=("oldalloc",)), "ignored"),
        (FilesystemLevels("ext4", barrier=True, mount_options=("nobarrier",)), "filesystem.barrier"),
        (FilesystemLevels("xfs", mkfs_options=("-b size=512",)), "1024"),
        (FilesystemLevels("xfs", mount_options=("nobarrier",)), "nobarrier"),
        (FilesystemLevels("btrfs", mkfs_options=("-s 1024",)), "sectorsize"),
        (FilesystemLevels("btrfs", mount_options=("barrier=0",)), "barrier"),
        (
            FilesystemLevels("btrfs", features=Levels(nodatacow=True), mount_options=("compress=lzo",)),
            "filesystem.nodatacow",
        ),
        (FilesystemLevels("btrfs", 8192), "8 KiB"),
    ],
    ids=lambda value: _name(value) if isinstance(value, FilesystemLevels) else str(value),
)
def test_what_is_refused_or_ignored_gives_its_reason(
    levels: FilesystemLevels, reason: str, folder: Path, commands: Commands
) -> None:
    reasons = probe_refusals(levels, commands=commands, directory=folder)
    assert reason in " ".join(map(str, reasons))
    assert list(folder.glob("bedplate-probe-*")) == []


@pytest.mark.parametrize("type_", _HERE)
def test_plain_file_systems_are_not_refused(type_: str, folder: Path, commands: Commands) -> None:
    assert probe_refusals(FilesystemLevels(type_), commands=commands, directory=folder) == ()


def test_a_block_above_the_page_is_warned_of_by_mkfs_and_said_with_the_refusal(
    folder: Path, commands: Commands
) -> None:
    levels = FilesystemLevels("ext4", _PAGE_BYTES * 2)
    reasons = probe_refusals(levels, commands=commands, directory=folder)
    if not reasons:
        pytest.skip("this kernel's ext4 takes blocks above the page size")
    assert any("bad block size" in reason.sentence or "page size" in reason.sentence for reason in reasons)
    assert any("mkfs had warned" in reason.sentence for reason in reasons)


def test_an_unsafe_option_touches_nothing(folder: Path, commands: Commands) -> None:
    with pytest.raises(PlanError, match="scratch device"):
        probe_refusals(
            FilesystemLevels("btrfs", mkfs_options=("/dev/null",)), commands=commands, directory=folder
        )
    assert [argv for argv in commands.record if argv[0].startswith("mk")] == []


def test_a_planted_mismatch_fails_with_every_reason(
    device: AttachedDevice, target: Path, commands: Commands
) -> None:
    made = FilesystemLevels("ext4", 1024, barrier=False, features=Levels(data="writeback"))
    _bring_up(made, device, target, commands)
    other = FilesystemLevels(
        "ext4",
        4096,
        barrier=True,
        journal="none",
        mount_options=("noatime",),
        mkfs_options=("-I 512",),
        features=Levels(data="journal"),
    )
    with pytest.raises(VerifyFailed) as caught:
        verify(filesystem_for("ext4").read_back(Site(other, device, target, commands)))
    # Block size by statvfs and by superblock, barrier, journal, data, noatime, -I.
    assert len(caught.value.reasons) == 7


def test_the_write_cache_switch_is_what_xfs_is_judged_by(
    device: AttachedDevice, target: Path, commands: Commands
) -> None:
    levels = FilesystemLevels("xfs", barrier=False)
    _bring_up(levels, device, target, commands)
    (device.queue / "write_cache").write_text("write back")
    with pytest.raises(VerifyFailed, match=r"filesystem\.barrier"):
        verify(filesystem_for("xfs").read_back(Site(levels, device, target, commands)))


@pytest.mark.parametrize(
    ("levels", "unverifiable"),
    [
        (
            FilesystemLevels(
                "ext4",
                mkfs_options=(
                    "-E stride=16,stripe_width=32",
                    "-I512",
                    "-J size=8",
                    "-m 1",
                    "-O ^64bit",
                    "-i 65536",
                ),
                mount_options=("noatime,commit=17", "errors=remount-ro", "journal_ioprio=4"),
            ),
            {"filesystem.mkfs_options.-i", "filesystem.mount_options.journal_ioprio"},
        ),
        (
            FilesystemLevels(
                "xfs",
                4096,
                mkfs_options=(
                    "-l size=64m",
                    "-d agcount=2",
                    "-i size=1024",
                    "-m reflink=0,rmapbt=1",
                    "-n size=8k",
                ),
                mount_options=("noatime,logbufs=4,logbsize=256k,allocsize=1m",),
            ),
            set(),
        ),
        (
            FilesystemLevels(
                "btrfs",
                mkfs_options=("-n 32768", "-m single", "--csum=xxhash", "-O ^no-holes"),
                mount_options=("compress=zstd,noatime,commit=11", "thread_pool=3"),
            ),
            set(),
        ),
    ],
    ids=("ext4", "xfs", "btrfs"),
)
def test_the_plans_own_options_are_effective_and_each_is_compared(
    levels: FilesystemLevels, unverifiable: set[str], device: AttachedDevice, target: Path, commands: Commands
) -> None:
    comparisons = _bring_up(levels, device, target, commands)
    verify(comparisons)
    words = sum(len(option.split(",")) for option in (*levels.mkfs_options, *levels.mount_options))
    own = [item for item in comparisons if ".mount_options." in item.name or ".mkfs_options." in item.name]
    # btrfs adds its own `nodiscard`.
    assert words + (levels.type == "btrfs") == len(own)
    assert unverifiable == {item.name for item in own if item.matches is None}


@pytest.mark.parametrize("type_", _HERE)
def test_nothing_is_discarded(type_: str, device: AttachedDevice, target: Path, commands: Commands) -> None:
    assert device.image is not None
    before = device.image.stat().st_blocks
    _bring_up(FilesystemLevels(type_), device, target, commands)
    (target / "file").write_bytes(bytes(8 * MIB))
    os.sync()
    (target / "file").unlink()
    unmount(target, commands=commands)
    assert before == device.image.stat().st_blocks


def test_no_inode_table_is_left_for_later_even_beside_the_plans_own_list(
    device: AttachedDevice, target: Path, commands: Commands
) -> None:
    levels = FilesystemLevels("ext4", mkfs_options=("-E stride=16",))
    filesystem_for("ext4").mkfs(Site(levels, device, target, commands))
    groups = [
        line
        for line in commands.run(["dumpe2fs", device.path]).stdout.splitlines()
        if re.match(r"Group \d+:", line)
    ]
    assert groups
    assert [line for line in groups if "ITABLE_ZEROED" not in line] == []


def test_the_same_levels_have_the_same_facts_whatever_uuid_they_got(
    device: AttachedDevice, target: Path, commands: Commands
) -> None:
    for type_ in _HERE:
        found = []
        for mount_options in ((), ("defaults",), ("noatime",)):
            levels = FilesystemLevels(type_, mount_options=mount_options)
            found.append(effective_facts(_bring_up(levels, device, target, commands)))
            unmount(target, commands=commands)
        assert found[0] == found[1], type_
        assert found[0] != found[2], type_


def test_an_option_that_is_ignored_makes_no_other_configuration(
    device: AttachedDevice, target: Path, commands: Commands
) -> None:
    plain = effective_facts(_bring_up(FilesystemLevels("ext2"), device, target, commands))
    unmount(target, commands=commands)
    ignored = effective_facts(
        _bring_up(FilesystemLevels("ext2", mount_options=("nobh",)), device, target, commands)
    )
    assert plain == ignored


@pytest.mark.parametrize("type_", _HERE)
def test_damage_is_not_called_clean(
    type_: str, device: AttachedDevice, target: Path, commands: Commands
) -> None:
    levels = FilesystemLevels(type_, 4096)
    _bring_up(levels, device, target, commands)
    unmount(target, commands=commands)
    with Path(device.path).open("r+b", buffering=0) as disk:
        # Past the first superblock (btrfs has it at 64 KiB; XFS keeps its first trees before that).
        # Not everything, or nothing would be left that could be recognised.
        disk.seek(4096 if type_ == "xfs" else 128 * 1024)
        disk.writelines(b"\xa5" * MIB for _ in range(112))
        os.fsync(disk.fileno())
    result = filesystem_for(type_).check(Site(levels, device, target, commands))
    assert not result.clean
    assert result.text


def test_a_busy_mount_is_named_with_who_holds_it(
    device: AttachedDevice, target: Path, commands: Commands
) -> None:
    _bring_up(FilesystemLevels("ext2"), device, target, commands)
    with subprocess.Popen(["sleep", "60"], cwd=target) as holder:
        try:
            with pytest.raises(DeviceInUse) as caught:
                unmount(target, commands=commands, deadline_s=0)
            assert any(f"process {holder.pid} (sleep) holds" in reason for reason in caught.value.reasons)
        finally:
            holder.kill()
    assert unmount(target, commands=commands)


def test_a_busy_mount_goes_once_its_holder_ends(
    device: AttachedDevice, target: Path, commands: Commands
) -> None:
    _bring_up(FilesystemLevels("ext2"), device, target, commands)
    held = (target / "file").open("w")
    assert unmount(target, commands=commands, sleep=lambda _: held.close())
    assert held.closed


def test_only_the_topmost_of_stacked_mounts_goes(
    device: AttachedDevice, target: Path, commands: Commands
) -> None:
    _bring_up(FilesystemLevels("ext2"), device, target, commands)
    commands.run(["mount", "-t", "tmpfs", "tmpfs", str(target)])
    assert mount_entry(target).type == "tmpfs"
    assert unmount(target, commands=commands)
    assert mount_entry(target).type == "ext2"


def test_flushes_of_a_partition_are_counted_at_its_disk(
    device: AttachedDevice, target: Path, commands: Commands
) -> None:
    with kernel_partition(device.path, length_bytes=200 * MIB) as node:
        part = AttachedDevice(node, f"{device.name}p1", device.name, 200 * MIB)
        try:
            comparisons = _bring_up(FilesystemLevels("ext4", barrier=True), part, target, commands)
            verify(comparisons)
            counts = measure_fsyncs(target, part, calls=10).counts
            assert judge(counts, True) == ()
            assert [count.flushes for count in counts] == [20, 20, 10]
            # The reason for asking the disk: the partition's own counter stays where it is.
            assert part.stat.read_text().split()[15] == "0"
        finally:
            unmount(target, commands=commands)


def test_versions_and_the_key_of_a_probe_hang_together(commands: Commands) -> None:
    levels = FilesystemLevels("xfs")
    versions = filesystem_for("xfs").versions(commands=commands)
    assert versions["xfsprogs"][0].isdigit()
    key = probe_key(levels, versions=versions)
    assert key == probe_key(FilesystemLevels("xfs"), versions=dict(versions))
    assert key != probe_key(replace(levels, block_size_bytes=1024), versions=versions)
    assert key != probe_key(levels, versions={"xfsprogs": "0"})


def test_the_counter_of_a_real_disk_can_be_read(device: AttachedDevice) -> None:
    assert flushes_completed(device.queue_name) is not None


_KILLED_WHILE_MOUNTED = """
import os, signal, sys
from pathlib import Path
from bedplate.filesystem.refusals import probe_refusals
from bedplate.host.command import Commands
from bedplate.host.ledger import Ledger
from bedplate.model.cell import FilesystemLevels

class Killed(Commands):
    def run(self, argv, **options):
        if argv[0] == "dumpe2fs":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(argv, **options)

folder = Path(sys.argv[1])
ledger = Ledger.open(folder / "state", "probe")
probe_refusals(FilesystemLevels("ext4"), commands=Killed(), directory=folder, ledger=ledger)
"""


def test_a_probe_that_was_killed_while_mounted_is_found_and_released(
    folder: Path, repository: Path, commands: Commands
) -> None:
    source = str(repository / "src")
    killed = commands.run(
        [sys.executable, "-c", _KILLED_WHILE_MOUNTED, str(folder)],
        extra_environment={"PYTHONPATH": source},
        check=False,
    )
    assert killed.status == -signal.SIGKILL, killed.output
    (left,) = folder.glob("bedplate-probe-*")
    assert find_mount(left / "mount") is not None
    report = release_orphans(folder / "state", commands)
    assert report.problems == ()
    assert list(folder.glob("bedplate-probe-*")) == []
    assert str(left / "image") not in commands.run(["losetup", "--list", "--noheadings"]).stdout
