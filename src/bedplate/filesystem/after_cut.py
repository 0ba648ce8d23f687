"""A file system after a power cut: mounting an image beside its twins, and the repair where a mount is not enough.

The options are for images only: they say which of several copies of one file system is meant, and change nothing of what
its recovery does.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.host.files import file_lock
from bedplate.host.kernel_log import KernelLog
from bedplate.host.mount import MountRefused
from bedplate.model.cell import FilesystemLevels

if TYPE_CHECKING:
    from bedplate.filesystem.adapter import Filesystem, Site
    from bedplate.host.command import Completed

_EXT = ("ext2", "ext3", "ext4")
# Since then the kernel mounts a second btrfs of the same identity under a passing one (fs/btrfs/super.c, temp_fsid).
_BTRFS_TWINS_SINCE = (6, 7)
# Between a mount's look at an image and its mount the kernel has a list of images by identity. Of two that are mounted, or
# unmounted, at the same moment the second finds its name taken, or a twin of another generation in its place (EEXIST), or it is
# mounted on the twin's device, which then gives EIO. None of that says anything of the image. Without a lock 161 of 630 mounts
# failed on 6.18 where three processes had images of three generations, with it 1 of 740. This file is the list's own.
# A mount that fails as it opens its device leaves that device's number in the list. The next image of that number is taken for
# the one before as soon as a twin is mounted, by anybody, and refused: so a number is forgotten before each mount.
_BTRFS_CONTROL = Path("/dev/btrfs-control")
# linux/btrfs.h: _IOW(0x94, 5, struct btrfs_ioctl_vol_args), which is an unused descriptor and a path.
_BTRFS_FORGET_DEVICE = 0x50009405
_BTRFS_VOLUME = struct.Struct("=q4088s")
_TWIN_MET = re.compile(
    r"cannot create duplicate filename '/fs/btrfs/|already registered with a higher generation"
    r"|doesn't match (?:fsid|metadata uuid) of fs_devices"
)
_TWIN_PAUSES_S = (0.1, 0.5, 2.0)
_REPAIR_LIMIT_S = 600.0
# linux/mount.h.
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT, _MS_NOSYMFOLLOW, _MS_BIND = 0x2, 0x4, 0x8, 0x20, 0x100, 0x1000
_WITHOUT_RIGHTS = ("nosuid", "nodev", "noexec")
# What a file system says of the disk, and not of its mount and unmount.
_COMPLAINT = re.compile(
    r"error|corrupt|shut|abort|read-only|failed|forced|lost|invalid|warning|broken|mismatch|can't find",
    re.IGNORECASE,
)
# iomap's own words, which XFS writes by, begin with the device; those of JFS with the weight.
_FILE_SYSTEM = re.compile(
    r"^(?:(?:EXT[234]-fs|JBD2|XFS|BTRFS|F2FS-fs|NILFS|JFS|REISERFS|bcachefs)\b|\w+: writeback error|ERROR: \(device \w+\): )"
)


@dataclass(frozen=True)
class _Repair:
    """A command, `{device}` and `{journal}` in its words; `journal_words` only with an external journal.

    `done` are the statuses after which a mount may be tried again. `unreplayed` is what it says where it cannot replay the
    journal and goes on without; no status tells of that. The kernel leaves the journal to such a repair. `attached_by` tells
    the file system afterwards on which device an external journal is, where it knows that by a number. `usual` are lines that it prints
    of every image.
    """

    words: tuple[str, ...]
    done: frozenset[int]
    journal_words: tuple[str, ...] = ()
    unreplayed: str | None = None
    attached_by: tuple[str, ...] = ()
    usual: re.Pattern[str] | None = None


# As the manuals name them: e2fsck(8), xfs_repair(8), btrfs-rescue(8), btrfs-check(8), jfs_fsck(8), reiserfsck(8), fsck.f2fs(8),
# ntfsfix(8), bcachefs(8). In order, each only where the one before it did not help. What is not here has none.
_E2FSCK = (_Repair(("e2fsck", "-f", "-y"), frozenset({0, 1, 2, 3}), ("-j", "{journal}")),)
_NTFSFIX = (_Repair(("ntfsfix", "-d"), frozenset({0})),)
_REPAIRS: Mapping[str, tuple[_Repair, ...]] = {
    **dict.fromkeys(_EXT, _E2FSCK),
    "xfs": (
        _Repair(("xfs_repair",), frozenset({0}), ("-l", "{journal}")),
        # Throws the log away: what is left where it cannot be replayed.
        _Repair(("xfs_repair", "-L"), frozenset({0}), ("-l", "{journal}")),
    ),
    "btrfs": (
        # A superblock that the cut tore is taken from a copy, if one is whole: status 2 says so, 0 that none was bad. An
        # fsync writes the first copy alone, so that what it promised since the last full commit may be gone.
        _Repair(("btrfs", "rescue", "super-recover", "-y"), frozenset({2})),
        _Repair(("btrfs", "check", "--repair", "--force"), frozenset({0})),
    ),
    # The kernel does not replay JFS's log, so after a cut all hangs on this tool. Debian's builds of jfsutils from 1.1.15-5
    # on (2020) replay none: they look for its records in another buffer than they were read into (docs/FINDINGS.md).
    "jfs": (
        _Repair(
            ("fsck.jfs", "-f", "-p"),
            frozenset({0, 1}),
            ("-j", "{journal}"),
            unreplayed="logredo failed",
            # jfs_fsck notes the number of a log that it found by itself, and not of one that it was told of.
            attached_by=("jfs_tune", "-J", "device={journal}", "{device}"),
            usual=re.compile(
                r"fsck\.jfs version |processing started: |The current device is: |Block size in bytes: |Filesystem size in blocks: "
                r"|\*\*Phase \d|\s*\d+ kilobytes |Filesystem is clean\.$"
            ),
        ),
    ),
    "reiserfs": (
        _Repair(("reiserfsck", "-q", "-y", "--fix-fixable"), frozenset({0, 1}), ("-j", "{journal}")),
        _Repair(("reiserfsck", "-q", "-y", "--rebuild-tree"), frozenset({0, 1}), ("-j", "{journal}")),
    ),
    "f2fs": (_Repair(("fsck.f2fs", "-f", "-y"), frozenset({0, 1})),),
    "ntfs3": _NTFSFIX,
    "ntfs-3g": _NTFSFIX,
    "bcachefs": (_Repair(("bcachefs", "fsck", "-y"), frozenset({0, 1})),),
}


@dataclass(frozen=True)
class Repaired:
    """Whether a repair left something that may be mounted; `text` is what it said, None where that is what it says of every image.

    `replay_failed` says that it went on without the journal, which it could not replay.
    """

    done: bool
    text: str | None
    replay_failed: bool = False


def repairs_of(type: str) -> int:  # noqa: A002 - the plan's word
    """How many repairs there are to try, one after the other."""
    return len(_REPAIRS.get(type, ()))


def leaves_journal_to_repair(type: str) -> bool:  # noqa: A002 - the plan's word
    """Whether the kernel refuses to mount what was not unmounted, and the repair replays the journal: the refusal is no finding then."""
    return any(each.unreplayed is not None for each in _REPAIRS.get(type, ()))


def repair_commands(type: str, device_path: str, journal_path: str | None) -> tuple[tuple[str, ...], ...]:  # noqa: A002 - the plan's word
    """The same as a person types them: of each repair its commands, one after the other."""
    return tuple(
        tuple(
            " ".join(words)
            for words in (
                (*chosen.words, *_journal_words(chosen, journal_path), device_path),
                _attaching_words(chosen, device_path, journal_path),
            )
            if words
        )
        for chosen in _REPAIRS.get(type, ())
    )


def _attaching_words(repair: _Repair, device_path: str, journal_path: str | None) -> tuple[str, ...]:
    if journal_path is None:
        return ()
    return tuple(word.format(journal=journal_path, device=device_path) for word in repair.attached_by)


def _journal_words(repair: _Repair, journal_path: str | None) -> tuple[str, ...]:
    return (
        ()
        if journal_path is None
        else tuple(word.format(journal=journal_path) for word in repair.journal_words)
    )


def repair(site: Site, attempt: int) -> Repaired:
    """The repair number `attempt` of a type, with everything answered by yes."""
    chosen, journal, device = _REPAIRS[site.levels.type][attempt], site.journal_path, site.device.path
    argv = [*chosen.words, *_journal_words(chosen, journal), device]
    ended = site.commands.run(argv, timeout_s=_REPAIR_LIMIT_S, check=False)
    done = ended.status in chosen.done
    attaching = _attaching_words(chosen, device, journal)
    if done and attaching:
        # Where it refuses, the mount that follows says so.
        site.commands.run(attaching, timeout_s=_REPAIR_LIMIT_S, check=False)
    return Repaired(
        done,
        _complaint(chosen, ended, is_done=done),
        replay_failed=chosen.unreplayed is not None and chosen.unreplayed in ended.output,
    )


def _complaint(repair: _Repair, completion: Completed, *, is_done: bool) -> str | None:
    """What a repair said without what it says of every image; None where it said no more and is done."""
    words = " ".join(repair.words)
    lines = completion.output.splitlines()
    said = "\n".join(line for line in lines if repair.usual is None or repair.usual.match(line) is None)
    if said.strip():
        return f"{words}: {said[-2000:]}"
    return None if is_done else f"{words}: ended with status {completion.status} and said no more"


def mount_beside_twins(adapter: Filesystem, site: Site) -> None:
    """Mount an image while others of the same identity are mounted; MountRefused says what is wrong with this one."""
    for pause_s in _TWIN_PAUSES_S:
        try:
            _mount_alone(adapter, site)
        except MountRefused as refused:
            if _TWIN_MET.search(refused.said) is None:
                raise
        else:
            return
        Event().wait(pause_s)
    _mount_alone(adapter, site)


def unmount_beside_twins(adapter: Filesystem, site: Site) -> None:
    """Unmount such an image; DeviceInUse names who holds it."""
    with _alone_with_twins(site):
        adapter.unmount(site)


def _mount_alone(adapter: Filesystem, site: Site) -> None:
    with _alone_with_twins(site) as is_listed:
        if is_listed:
            _forget(site.device.path)
        adapter.mount(site)


@contextmanager
def _alone_with_twins(site: Site) -> Iterator[bool]:
    """Within it nobody else of this machine's bedplates mounts or unmounts a twin; whether the kernel lists such images at all."""
    is_listed = site.levels.type == "btrfs" and _BTRFS_CONTROL.exists()
    with file_lock(_BTRFS_CONTROL, of_system=True) if is_listed else nullcontext():
        yield is_listed


def _forget(device_path: str) -> None:
    """Take what was once scanned on a device out of the kernel's list; what is mounted stays, as does a list that is empty."""
    control = os.open(_BTRFS_CONTROL, os.O_RDWR | os.O_CLOEXEC)
    try:
        # A kernel before 5.4 cannot, and most numbers are not in the list.
        with suppress(OSError):
            fcntl.ioctl(
                control,
                _BTRFS_FORGET_DEVICE,
                bytearray(_BTRFS_VOLUME.pack(-1, os.fsencode(device_path))),
            )
    finally:
        os.close(control)


def image_levels(levels: FilesystemLevels, journal_path: str | None) -> FilesystemLevels:
    """The levels with which an image is mounted: ext finds its journal by a number that another boot, or loop, gives.

    An image may be a stranger's: none of its programs is started, and none of its devices opened. A pool of ZFS takes no such words.
    """
    extra = () if levels.type == "zfs" else _WITHOUT_RIGHTS
    if levels.type == "xfs":
        extra = ("nouuid", *extra)
    elif levels.type in _EXT and journal_path is not None:
        extra = (f"journal_path={journal_path}", *extra)
    return replace(levels, mount_options=(*levels.mount_options, *extra))


def follow_no_links(target: Path) -> None:
    """Have the kernel follow no symbolic link on a mounted image, and take no more from it than `image_levels` says; before Linux 5.10 only that.

    Root looks into it by names, and a stranger's link would lead elsewhere.
    """
    flags = _MS_REMOUNT | _MS_BIND | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC | _MS_NOSYMFOLLOW
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"none", os.fsencode(target), None, ctypes.c_ulong(flags), None):
        raise BedplateError(
            f"links of the image at {target} cannot be left unfollowed: {os.strerror(ctypes.get_errno())}; it may be a stranger's, and nothing of "
            "it was looked at"
        )


def stands_beside_twins(levels: FilesystemLevels, *, kernel_release: str | None = None) -> bool:
    """Whether two images of one file system can be mounted at the same time."""
    if levels.type == "btrfs":
        found = re.match(r"(\d+)\.(\d+)", kernel_release or os.uname().release)
        return found is not None and (int(found[1]), int(found[2])) >= _BTRFS_TWINS_SINCE
    if levels.type in (*_EXT, "xfs", "f2fs", "ntfs3", "nilfs2"):
        return True
    # A pool of ZFS is known by its name, JFS and ReiserFS look for their external journal on every disk.
    return levels.type in ("jfs", "reiserfs") and levels.journal != "external"


def complaints_of(kernel_log: KernelLog, *devices: str) -> tuple[str, ...] | None:
    """What the file system on these devices said of them, and not of its mount and unmount; each once.

    None where the log cannot be read, and where messages were lost and no complaint is among the others. Another's device may have had
    the same name before and afterwards: it listens while ours is attached, and is read then.
    """
    named = re.compile(rf"\b(?:{'|'.join(map(re.escape, devices))})\b")
    heard = kernel_log.messages(about=devices)
    if heard is None:
        return None
    found = (text for text in heard if named.search(text) and _FILE_SYSTEM.search(text))
    complaints = tuple(dict.fromkeys(text for text in found if _COMPLAINT.search(text)))
    return None if kernel_log.lost_count and not complaints else complaints
