"""Set-ups in which nothing may be erased, with every permission given; and a name that changes its mind."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.tools.block_contents import ENCRYPTED, FOREIGN, MEMBERS, Pieces, btrfs_of, write_pieces
from tests.support.tools.flipping_link import Flipping, erased_and_refused
from tests.support.tools.kernel_partition import kernel_partition
from tests.support.tools.patience import AT_MOST_S
from tests.support.tools.scratch_disk import Disk, looped

from bedplate.errors import BedplateError, CommandFailed, DeviceInUse, DeviceRefused
from bedplate.host.block_tree import backing_file, read_signatures
from bedplate.host.command import Commands
from bedplate.host.ledger import Ledger
from bedplate.host.lock import device_lock, study_lock
from bedplate.host.process import wait_until
from bedplate.host.scratch_device import prepare, prepare_journal, refusal_reasons, release_device
from bedplate.model.visit import ScratchDevice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.host

MIB = 1 << 20
SIZE = 80 * MIB
PARTITION = SIZE - MIB  # ZFS has none below 64 MiB
FLIPS = 300


@pytest.fixture(scope="module")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    base = tmp_path_factory.mktemp("blank")
    with looped(base, size_bytes=SIZE) as node:
        yield Disk(base, node)


@pytest.fixture
def disk(blank: Disk) -> Disk:
    """One loop device for all, without what the test before wrote."""
    with Path(blank.node).open("r+b", buffering=0) as file:
        for place in (0, 32 * MIB, SIZE - 3 * MIB):
            file.seek(place)
            file.write(bytes(3 * MIB))
    return blank


@pytest.fixture
def target(tmp_path: Path) -> Path:
    place = tmp_path / "mounted"
    place.mkdir()
    return place


def content(node: str) -> str:
    with Path(node).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def refused(disk: Disk, name: Path | None = None, *, mounted: bool = False) -> str:
    """The reasons as one text, of a look and of an attempt, which has changed nothing.

    What is mounted changes by itself.
    """
    scratch = disk.scratch(foreign=True)
    if name is not None:
        scratch = ScratchDevice(device=str(name), erase=(str(name),), erase_foreign=True)
    before = content(disk.node)
    looked = refusal_reasons(scratch, disk.commands, tree=disk.tree)
    with (
        Ledger.open(disk.base / "state", "refused") as ledger,
        pytest.raises(DeviceRefused) as caught,
    ):
        prepare(scratch, ledger=ledger, commands=disk.commands, directory=disk.base, tree=disk.tree)
    assert looked == caught.value.reasons
    assert mounted or before == content(disk.node)
    return "\n".join(looked)


CLOSED = {**MEMBERS, **ENCRYPTED}
WORDS = {**dict.fromkeys(MEMBERS, "part of an array"), **dict.fromkeys(ENCRYPTED, "an encrypted volume")}


@pytest.mark.parametrize("kind", CLOSED)
def test_a_member_is_refused_with_every_permission(disk: Disk, kind: str) -> None:
    write_pieces(disk.node, CLOSED[kind], SIZE)
    assert WORDS[kind] in refused(disk)


# The controllers' RAID is on whole disks.
@pytest.mark.parametrize("kind", sorted(set(CLOSED) - {"isw_raid_member"}))
def test_a_disk_whose_partition_is_a_member_is_refused_with_every_permission(disk: Disk, kind: str) -> None:
    with kernel_partition(disk.node, length_bytes=PARTITION) as partition:
        write_pieces(partition, CLOSED[kind], PARTITION)
        assert f"{partition} is a {kind.partition(' ')[0]}" in refused(disk)


@pytest.mark.parametrize("kind", FOREIGN)
def test_what_stands_alone_goes_with_permission_and_not_without(disk: Disk, kind: str) -> None:
    write_pieces(disk.node, FOREIGN[kind], SIZE)
    assert all("--erase-foreign" in reason for reason in disk.reasons())
    assert () == disk.reasons(foreign=True)
    with Ledger.open(disk.base / "state", "goes") as ledger:
        device = prepare(
            disk.scratch(foreign=True),
            ledger=ledger,
            commands=disk.commands,
            directory=disk.base,
            tree=disk.tree,
        )
        release_device(device, ledger=ledger, commands=disk.commands)
    assert () == read_signatures(disk.node, disk.commands)


# Binds what is to be seen of the file, or all devices, to a place of a namespace that is gone a moment later.
ELSEWHERE = {
    "the file by a name that is gone": 'mount --bind "${1%/*}" /mnt; losetup --find --show "/mnt/${1##*/}"',
    "the device by a name that is gone": 'mount -t devtmpfs none /mnt; losetup --find --show "/mnt/${1##*/}"',
}


@contextlib.contextmanager
def second_loop(file: str, *, target: Path | None = None, script: str = "") -> Iterator[str]:
    commands = Commands()
    argv = ["losetup", "--find", "--show", file]
    if script:
        inside = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", script, "sh"]
        argv = [*inside, file]
    node = commands.run(argv).stdout.strip()
    try:
        if target is not None:
            commands.run(["mkfs.ext4", "-q", "-F", "-L", "bedplate", node])
            commands.run(["mount", node, str(target)])
        yield node
    finally:
        if target is not None:
            commands.run(["umount", str(target)])
        before = backing_file(Path(node).name)
        commands.run(["losetup", "--detach", node])
        # A namespace that another test made meanwhile may keep the mount, and so the device, until it is gone.
        assert wait_until(lambda: backing_file(Path(node).name) != before, deadline_s=AT_MOST_S), node


@pytest.mark.parametrize("mounted", [False, True])
@pytest.mark.parametrize("way", ["the file", "a hard link", "a symbolic link", "the device", *ELSEWHERE])
def test_a_second_loop_over_the_same_bytes_is_refused(
    disk: Disk, target: Path, way: str, *, mounted: bool
) -> None:
    image = disk.base / "disk.img"
    link = disk.base / f"{way.replace(' ', '-')}-{mounted}"
    if way == "a hard link":
        link.hardlink_to(image)
    elif way == "a symbolic link":
        link.symlink_to(image)
    script = ELSEWHERE.get(way, "")
    file = str(link)
    if script or way in {"the file", "the device"}:
        file = disk.node if way.startswith("the device") else str(image)
    with second_loop(file, target=target if mounted else None, script=script) as other:
        assert f"in common with {other}" in refused(disk, mounted=mounted)
    assert () == disk.reasons(foreign=True)


@pytest.mark.parametrize("mounted", [False, True])
def test_a_partition_of_a_file_with_a_second_loop_is_refused(
    disk: Disk, target: Path, *, mounted: bool
) -> None:
    with (
        kernel_partition(disk.node, length_bytes=PARTITION) as partition,
        second_loop(str(disk.base / "disk.img"), target=target if mounted else None),
    ):
        name = disk.link.with_name("partition")
        name.unlink(missing_ok=True)
        name.symlink_to(partition)
        assert "in common with" in refused(disk, name, mounted=mounted)


@pytest.mark.parametrize("below", ["the whole", "a partition"])
def test_a_loop_over_a_device_in_use_is_refused(disk: Disk, target: Path, below: str) -> None:
    with contextlib.ExitStack() as stack:
        used = disk.node
        if below == "a partition":
            used = stack.enter_context(kernel_partition(disk.node, length_bytes=PARTITION))
        disk.commands.run(["mkfs.ext4", "-q", "-F", "-L", "bedplate", used])
        disk.commands.run(["mount", used, str(target)])
        stack.callback(disk.commands.run, ["umount", str(target)])
        over = stack.enter_context(second_loop(disk.node))
        name = disk.link.with_name(f"over-{below.replace(' ', '-')}")
        name.symlink_to(over)
        assert f"is a loop device over {disk.node}, which is in use" in refused(disk, name, mounted=True)


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize(
    "use", ["a loop over the file", "a loop over the first", "a partition", "another namespace", "swap"]
)
def test_a_use_of_the_same_bytes_is_seen_however_many_loops_deep(
    disk: Disk, target: Path, use: str, depth: int
) -> None:
    """`top` is a loop over a loop over ... a loop over a file that something else has."""
    name = disk.link.with_name(f"top-{use.replace(' ', '-')}-{depth}")
    with contextlib.ExitStack() as stack:
        below = [disk.node]
        for _ in range(depth - 1):
            below.append(stack.enter_context(second_loop(below[-1])))
        if use == "a loop over the file":
            stack.enter_context(second_loop(str(disk.base / "disk.img"), target=target))
        elif use == "a loop over the first":
            stack.enter_context(second_loop(disk.node, target=target))
        elif use == "a partition":
            part = stack.enter_context(kernel_partition(disk.node, length_bytes=PARTITION))
            stack.enter_context(second_loop(part, target=target))
        elif use == "another namespace":
            disk.commands.run(["mkfs.ext4", "-q", "-F", "-L", "bedplate", disk.node])
            words = ["unshare", "--mount", "--propagation", "private", "sh", "-ec"]
            script = 'mount "$1" "$2"; echo mounted; read -r _'
            other = subprocess.Popen(
                [*words, script, "sh", disk.node, str(target)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.callback(other.communicate, "\n")
            assert other.stdout is not None
            assert other.stdout.readline() == "mounted\n"
        else:
            image = disk.base / "disk.img"
            # Swap has no holes.
            image.write_bytes(bytes(SIZE))
            disk.commands.run(["mkswap", "--quiet", str(image)])
            try:
                disk.commands.run(["swapon", str(image)])
            except CommandFailed:
                pytest.skip("the file cannot be swap here")
            stack.callback(disk.commands.run, ["swapoff", str(image)])
        name.symlink_to(below[-1])
        text = refused(disk, name, mounted=True)
        assert any(said in text for said in ("in common with", "which is in use", "a file that is swap"))


def test_loops_over_loops_of_nobody_else_may_be_erased(disk: Disk) -> None:
    with second_loop(disk.node) as first, second_loop(first) as top:
        name = disk.link.with_name("top-of-two")
        name.symlink_to(top)
        scratch = ScratchDevice(device=str(name), erase=(str(name),), erase_foreign=True)
        assert () == refusal_reasons(scratch, disk.commands, tree=disk.tree)


@pytest.mark.skipif(shutil.which("mkfs.btrfs") is None, reason="needs mkfs.btrfs")
@pytest.mark.parametrize("label", ["bedplate", "photos"])
@pytest.mark.parametrize("mounted", [False, True])
def test_each_half_of_a_btrfs_is_refused(tmp_path: Path, target: Path, label: str, *, mounted: bool) -> None:
    with (
        looped(tmp_path, size_bytes=128 * MIB) as first,
        looped(tmp_path, size_bytes=128 * MIB, name="second.img") as second,
        contextlib.ExitStack() as stack,
    ):
        disk = Disk(tmp_path, first)
        other = disk.link.with_name("second")
        other.symlink_to(second)
        disk.commands.run(
            ["mkfs.btrfs", "-q", "-f", "-K", "-L", label, "-d", "raid1", "-m", "raid1", first, second]
        )
        if mounted:
            disk.commands.run(["mount", "-o", f"device={second}", first, str(target)])
            stack.callback(disk.commands.run, ["umount", str(target)])
        for name in (disk.link, other):
            assert "part of an array, a volume group or a pool" in refused(disk, name, mounted=mounted)


def test_a_partition_of_a_mounted_disk_and_a_disk_with_a_mounted_partition_are_refused(
    disk: Disk, target: Path
) -> None:
    with kernel_partition(disk.node, length_bytes=PARTITION) as partition:
        name = disk.link.with_name("of-a-mounted-one")
        name.symlink_to(partition)
        for used, asked in ((disk.node, name), (partition, disk.link)):
            disk.commands.run(["mkfs.ext4", "-q", "-F", "-L", "bedplate", used])
            disk.commands.run(["mount", used, str(target)])
            try:
                assert refused(disk, asked, mounted=True)
            finally:
                disk.commands.run(["umount", str(target)])


def test_a_partition_that_swaps_and_one_that_is_held_are_refused(disk: Disk) -> None:
    with kernel_partition(disk.node, length_bytes=PARTITION) as partition:
        disk.commands.run(["mkswap", partition])
        disk.commands.run(["swapon", "--priority", "0", partition])
        try:
            # In use it changes by itself.
            assert "is swap" in refused(disk, mounted=True)
        finally:
            disk.commands.run(["swapoff", partition])
        holder = os.open(partition, os.O_RDONLY | os.O_EXCL)
        try:
            assert "no table shows" in refused(disk)
        finally:
            os.close(holder)


def test_the_journal_of_a_mounted_file_system_is_refused(disk: Disk, tmp_path: Path, target: Path) -> None:
    with looped(tmp_path) as other:
        disk.commands.run(["mke2fs", "-q", "-F", "-O", "journal_dev", "-b", "1024", disk.node])
        disk.commands.run(["mkfs.ext4", "-q", "-F", "-b", "1024", "-J", f"device={disk.node}", other])
        disk.commands.run(["mount", other, str(target)])
        try:
            assert "no table shows" in refused(disk, mounted=True)
        finally:
            disk.commands.run(["umount", str(target)])


def test_a_mount_of_another_namespace_is_refused_with_its_process(disk: Disk, target: Path) -> None:
    disk.commands.run(["mkfs.ext4", "-q", "-F", "-L", "bedplate", disk.node])
    script = 'mount "$1" "$2" && echo mounted && exec cat'
    hidden = subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "_", disk.node, str(target)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert hidden.stdout is not None
        assert "mounted\n" == hidden.stdout.readline()
        assert f"process {hidden.pid}" in refused(disk, mounted=True)
    finally:
        hidden.communicate()


def _socket(place: Path) -> None:
    with contextlib.chdir(place.parent), socket.socket(socket.AF_UNIX) as bound:
        bound.bind(place.name)


NO_DEVICES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda place: place.symlink_to("/nonexistent"),
    "itself": lambda place: place.symlink_to(place),
    "a file": lambda place: place.write_bytes(bytes(4096)),
    "a directory": lambda place: place.mkdir(),
    "a pipe": os.mkfifo,
    "a socket": _socket,
    "a character device": lambda place: place.symlink_to("/dev/zero"),
    "a terminal": lambda place: place.symlink_to("/dev/tty"),
}


@pytest.mark.parametrize("kind", NO_DEVICES)
def test_what_is_no_block_device_is_refused_and_not_opened(disk: Disk, kind: str) -> None:
    place = disk.link.with_name(kind.replace(" ", "-"))
    NO_DEVICES[kind](place)
    assert refused(disk, place).endswith("name a disk, a partition, a logical volume or an array")


def test_a_loop_device_without_a_file_is_refused(disk: Disk, tmp_path: Path) -> None:
    with looped(tmp_path) as node:
        name = disk.link.with_name("without-a-file")
        name.symlink_to(node)
    # Another program may take the device now, and then it is in use or holds nothing of ours.
    scratch = ScratchDevice(device=str(name), erase=(str(name),))
    if not Path(f"/sys/block/{Path(node).name}/loop").exists():
        assert "0 B" in "\n".join(refusal_reasons(scratch, disk.commands, tree=disk.tree))


FOREIGN_DISK: Pieces = btrfs_of(1, label="photos")


def test_a_name_that_flips_never_leads_to_the_foreign_device(disk: Disk, tmp_path: Path) -> None:
    with looped(tmp_path, size_bytes=SIZE) as foreign:
        write_pieces(foreign, FOREIGN_DISK, SIZE)
        before = content(foreign)
        erased, refused_calls = erased_and_refused(disk, foreign, FLIPS)
        assert before == content(foreign)
    assert FLIPS == erased + refused_calls
    assert min(erased, refused_calls) > FLIPS / 20  # else it did not flip between the calls


def test_a_journals_name_that_flips_never_leads_to_the_scratch_device(disk: Disk, tmp_path: Path) -> None:
    with looped(tmp_path) as other, Ledger.open(disk.base / "state", "both") as ledger:
        arguments = {"ledger": ledger, "commands": disk.commands, "directory": disk.base, "tree": disk.tree}
        taken = prepare(disk.scratch(), **arguments)  # type: ignore[arg-type]
        link = disk.link.with_name("journal")
        link.symlink_to(other)
        journal = ScratchDevice(device=str(link), erase=(str(link),))
        said: set[bool] = set()
        with Flipping(link, (disk.node, other)):
            for _ in range(40):
                try:
                    device = prepare_journal(journal, taken, **arguments)  # type: ignore[arg-type]
                except DeviceRefused as error:
                    said |= {"is the scratch device itself" in reason for reason in error.reasons}
                else:
                    assert other == device.path
                    release_device(device, ledger=ledger, commands=disk.commands)
        assert {True} == said
        release_device(taken, ledger=ledger, commands=disk.commands)


def test_the_device_that_is_erased_is_the_one_that_is_locked(disk: Disk, tmp_path: Path) -> None:
    with looped(tmp_path) as other:
        link = disk.link.with_name("turns")
        link.symlink_to(other)
        scratch = ScratchDevice(device=str(link), erase=(str(link),))
        with (
            device_lock(tmp_path / "state", str(link)) as locked,
            Ledger.open(disk.base / "state", "turns") as ledger,
        ):
            assert other == locked
            link.unlink()
            link.symlink_to(disk.node)
            with pytest.raises(DeviceRefused, match="is another device than before"):
                prepare(
                    scratch,
                    ledger=ledger,
                    commands=disk.commands,
                    directory=disk.base,
                    tree=disk.tree,
                    expected=locked,
                )


def test_a_prepared_device_is_kept_open_until_it_is_released(disk: Disk) -> None:
    before = _open_files(disk.node)
    with Ledger.open(disk.base / "state", "kept") as ledger:
        device = prepare(
            disk.scratch(), ledger=ledger, commands=disk.commands, directory=disk.base, tree=disk.tree
        )
        assert before < _open_files(disk.node)
        # Not claimed: mkfs and the mount take it themselves.
        os.close(os.open(disk.node, os.O_RDONLY | os.O_EXCL))
        release_device(device, ledger=ledger, commands=disk.commands)
    assert before == _open_files(disk.node) == 0


def _open_files(node: str) -> int:
    files = [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return files.count(node)


@pytest.mark.parametrize("take", [device_lock, study_lock])
@pytest.mark.parametrize(
    "way", ["one name", "two links", "the kernel's name", "a second loop", "three loops"]
)
def test_two_state_directories_lock_each_other_out(
    disk: Disk, tmp_path: Path, take: Callable[..., contextlib.AbstractContextManager[object]], way: str
) -> None:
    with contextlib.ExitStack() as stack:
        other = str(disk.link)
        if way == "two links":
            name = disk.link.with_name(f"alias-{take.__name__}")
            name.symlink_to(disk.node)
            other = str(name)
        elif way == "the kernel's name":
            other = disk.node
        elif way == "three loops":
            second = stack.enter_context(second_loop(str(disk.base / "disk.img")))
            other = stack.enter_context(second_loop(stack.enter_context(second_loop(second))))
        elif way == "a second loop":
            other = stack.enter_context(second_loop(str(disk.base / "disk.img")))
        with (
            take(tmp_path / "first", str(disk.link), study="winter"),
            pytest.raises(DeviceInUse, match=f"process {os.getpid()}, study winter"),
            take(tmp_path / "second", other, study="summer"),
        ):
            pass
        with take(tmp_path / "second", other, study="summer"):
            pass


def test_two_studies_in_processes_of_their_own_wait_for_nobody_and_name_each_other(
    disk: Disk, tmp_path: Path
) -> None:
    with (
        looped(tmp_path) as another,
        study_lock(tmp_path / "first", str(disk.link), study="\x1b[31mwinter"),
        study_lock(tmp_path / "first", another, study="spring"),
        pytest.raises(BedplateError) as caught,
        study_lock(tmp_path / "second", disk.node, study="summer"),
    ):
        pass
    assert str(caught.value).isprintable()
