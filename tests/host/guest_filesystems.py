"""Every file system and journal, made, mounted, read back, flushed and checked on two real devices: no database.

    guest_filesystems.py [--only NAME]… [--thorough] DATA JOURNAL

Both devices are erased, and must be named by stable names. Prints one JSON line for each arrangement:

    {"name": "jfs external", "outcome": "completed", "reasons": [], "flushes": [["data", "appending", 50, 0], …],
     "asked": 9, "unverified": […], "facts": {…}, "check": "clean", "seconds": 3.1, "kernel": "6.12…"}

`outcome` is `not_run` where a tool is missing, `refused` where what the arrangement asks for on purpose
is refused, or ignored and found out. Exit status 0 if no arrangement failed. Standard library and bedplate only, since
every import costs seconds in an emulated guest.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, DeviceRefused, VerifyFailed
from bedplate.filesystem.adapter import NOT_VERIFIABLE, Site, effective_facts, verify
from bedplate.filesystem.refusals import judge, measure_fsyncs, write_back_wanted
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.block_tree import BlockTree, erase_signatures
from bedplate.host.command import Commands
from bedplate.host.mount import MountRefused
from bedplate.host.requirement import look
from bedplate.host.scratch_device import AttachedDevice, refusal_reasons
from bedplate.model.cell import FilesystemLevels
from bedplate.model.levels import Levels
from bedplate.model.visit import ScratchDevice

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from bedplate.filesystem.blocks import PoolAtRest


@dataclass(frozen=True)
class Arrangement:
    """One line of the output; `refused` marks what a kernel is known not to take."""

    name: str
    levels: FilesystemLevels
    refused: bool = False


def _external(type_: str, **features: str) -> FilesystemLevels:
    return FilesystemLevels(type_, journal="external", journal_device="device", features=Levels(features))


def plain() -> Iterator[Arrangement]:
    """Each type once, and each external journal."""
    for type_ in ("ext2", "ext3", "ext4", "xfs", "btrfs", "jfs", "reiserfs", "nilfs2", "f2fs", "ntfs3"):
        yield Arrangement(type_, FilesystemLevels(type_))
    yield Arrangement("ntfs-3g", FilesystemLevels("ntfs-3g"))
    yield Arrangement("zfs", FilesystemLevels("zfs"))
    for type_ in ("ext3", "ext4", "xfs", "jfs", "reiserfs", "zfs"):
        yield Arrangement(f"{type_} external", _external(type_))
    yield Arrangement("ext4 external data=journal", _external("ext4", data="journal"))


def thorough() -> Iterator[Arrangement]:
    """Block sizes, barriers, options of each type, and what is refused."""
    for type_ in (
        "ext2",
        "ext3",
        "ext4",
        "xfs",
        "btrfs",
        "reiserfs",
        "nilfs2",
        "f2fs",
        "ntfs3",
        "ntfs-3g",
        "zfs",
    ):
        for barrier in (True, False):
            yield Arrangement(f"{type_} barrier={barrier}", FilesystemLevels(type_, barrier=barrier))
    for type_ in ("ext4", "xfs", "reiserfs", "nilfs2", "ntfs3"):
        for size in (1024, 2048):
            yield Arrangement(f"{type_} {size}", FilesystemLevels(type_, size, barrier=True))
    yield Arrangement("xfs 512", FilesystemLevels("xfs", 512))
    yield Arrangement("ntfs3 65536", FilesystemLevels("ntfs3", 65536))
    yield Arrangement("ntfs3 512", FilesystemLevels("ntfs3", 512))
    for mode in ("ordered", "writeback", "journal"):
        levels = FilesystemLevels("reiserfs", features=Levels(data=mode), mount_options=("notail", "noatime"))
        yield Arrangement(f"reiserfs data={mode}", levels)
        yield Arrangement(f"reiserfs external data={mode}", _external("reiserfs", data=mode))
    for name, levels in (
        ("nilfs2 nogc", FilesystemLevels("nilfs2", mount_options=("nogc", "order=strict"))),
        ("nilfs2 pp", FilesystemLevels("nilfs2", mount_options=("pp=60",), mkfs_options=("-m 7",))),
        ("f2fs lfs", FilesystemLevels("f2fs", mount_options=("mode=lfs", "fsync_mode=strict"))),
        ("f2fs fsync_mode", FilesystemLevels("f2fs", mount_options=("fsync_mode=nobarrier",))),
        ("jfs errors", FilesystemLevels("jfs", mount_options=("errors=continue", "noatime"))),
        ("jfs nointegrity", FilesystemLevels("jfs", mount_options=("nointegrity",))),
        ("ntfs3 prealloc", FilesystemLevels("ntfs3", mount_options=("prealloc", "sparse", "nohidden"))),
        ("ntfs-3g big_writes", FilesystemLevels("ntfs-3g", mount_options=("big_writes", "noatime"))),
        ("reiserfs hash", FilesystemLevels("reiserfs", mkfs_options=("-h tea", "-s 4096"))),
    ):
        yield Arrangement(name, levels)
    for type_ in ("xfs", "jfs", "ntfs3", "ntfs-3g", "reiserfs"):
        levels = FilesystemLevels(type_, mount_options=("nobarrier",))
        yield Arrangement(f"{type_} nobarrier", levels, refused=True)


def main(arguments: list[str]) -> int:
    """Try them all; a failure is a line, and does not end the others."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data")
    parser.add_argument("journal")
    parser.add_argument("--only", action="append", default=[], help="a name, or the first words of names")
    parser.add_argument("--thorough", action="store_true")
    given = parser.parse_args(arguments)
    commands = Commands()
    tree = BlockTree()
    for name in (given.data, given.journal):
        scratch = ScratchDevice(device=name, erase=(name,), erase_foreign=True)
        reasons = refusal_reasons(scratch, commands, tree=tree)
        if reasons:
            raise DeviceRefused(*reasons)
    devices = [_attached(name, tree) for name in (given.data, given.journal)]
    wanted = [*plain(), *(thorough() if given.thorough else ())]
    failed = False
    for arrangement in wanted:
        if given.only and not any(arrangement.name.startswith(name) for name in given.only):
            continue
        line = _line(arrangement, devices[0], devices[1])
        failed |= line["outcome"] == "failed"
        print(json.dumps(line), flush=True)
    return int(failed)


def _attached(path: str, tree: BlockTree) -> AttachedDevice:
    name = tree.name_at(path)
    assert name is not None
    return AttachedDevice(tree.node(name), name, tree.disk_of(name), tree.size_bytes(name))


def _line(arrangement: Arrangement, data: AttachedDevice, journal: AttachedDevice) -> dict[str, Any]:
    line: dict[str, Any] = {"name": arrangement.name, "outcome": "completed", "reasons": []}
    started = time.monotonic()
    missing = [
        item.sentence for item in look(filesystem_for(arrangement.levels.type).needs) if not item.found
    ]
    if missing:
        line |= {"outcome": "not_run", "reasons": missing}
    else:
        try:
            _try(arrangement, data, journal, line)
        except (MountRefused, VerifyFailed) as error:
            line |= {
                "outcome": "refused" if arrangement.refused else "failed",
                "reasons": list(error.reasons),
            }
        except (BedplateError, OSError) as error:
            reasons = list(error.reasons) if isinstance(error, BedplateError) else [str(error)]
            line |= {"outcome": "failed", "reasons": reasons}
    return {**line, "seconds": round(time.monotonic() - started, 1), "kernel": os.uname().release}


def _try(
    arrangement: Arrangement, data: AttachedDevice, journal: AttachedDevice, line: dict[str, Any]
) -> None:
    """As a visit does it, without a database."""
    levels, commands = arrangement.levels, Commands()
    filesystem = filesystem_for(levels.type)
    outside = journal if levels.journal == "external" else None
    switch = "write back" if write_back_wanted(levels) else "write through"
    with tempfile.TemporaryDirectory(prefix="bedplate-filesystems-") as folder, ExitStack() as undo:
        target = Path(folder)
        site = Site(levels, data, target, commands, outside)
        for device in (data, journal):
            erase_signatures(device.path, commands)
            (device.queue / "write_cache").write_text(switch)
            undo.callback((device.queue / "write_cache").write_text, "write back")
        filesystem.mkfs(site)
        undo.callback(filesystem.unmount, site)
        filesystem.mount(site)
        comparisons = filesystem.read_back(site)
        line["facts"] = dict(effective_facts(comparisons))
        line["asked"] = sum(item.asked is not None for item in comparisons)
        line["unverified"] = [item.name for item in comparisons if item.source.startswith(NOT_VERIFIABLE)]
        verify(comparisons)
        counts = measure_fsyncs(target, data, outside).counts
        line["flushes"] = [[item.device, item.pattern, item.calls, item.flushes] for item in counts]
        line["reasons"] = list(judge(counts, levels.barrier))
        number, content = _use(target)
        if not filesystem.unmount(site):
            line["reasons"].append("nothing was mounted any more")
        if filesystem.at_rest is not None:
            images = [Path(device.path) for device in (data, outside) if device is not None]
            line["reasons"] += _misplaced(filesystem.at_rest(images, commands), images[0], number, content)
        checked = filesystem.check(site)
        line["check"] = "clean" if checked.clean else checked.text[-2000:]
        if not checked.clean:
            line["reasons"].append("the check found errors after a clean unmount")
    if line["reasons"] or arrangement.refused:
        line["outcome"] = "failed"
        line["reasons"] = line["reasons"] or ["the kernel took what it was known to refuse"]


def _misplaced(found: PoolAtRest, disk: Path, number: int, content: bytes) -> Iterator[str]:
    """Whether the blocks that a debugger names of a disk at rest are those of a file that does not compress."""
    blocks = found.files([number])
    with disk.open("rb") as device:
        held = b"".join(os.pread(device.fileno(), each.length, each.start) for each in blocks.ranges)
    if held != content or blocks.left_out:
        yield f"{blocks} is not the file that was written"
    for name, other in (("inode", found.inodes([number])), ("superblock", found.superblock())):
        if not other.ranges:
            yield f"no {name} is found at rest: {other.left_out}"


def _use(target: Path) -> tuple[int, bytes]:
    """What a server needs of a file system: ownership, mode, rename, truncation, a file of some MiB; that file's number, and what it holds."""
    folder = target / "used"
    folder.mkdir(mode=0o700)
    os.chown(folder, 65534, 65534)
    found = folder.stat()
    if (found.st_uid, found.st_mode & 0o777) != (65534, 0o700):
        raise OSError(f"owner and mode do not stay: {found.st_uid}, {found.st_mode & 0o777:o}")
    file = folder / "file"
    # Of what is drawn a part is enough, which takes an emulated processor long.
    file.write_bytes(os.urandom(1 << 18) * 16)
    content = file.read_bytes()
    file.rename(folder / "renamed")
    os.truncate(folder / "renamed", 1 << 20)
    if (folder / "renamed").read_bytes() != content[: 1 << 20]:
        raise OSError("what was read back is not what was written")
    return (folder / "renamed").stat().st_ino, content[: 1 << 20]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
