"""What a block device holds already, by its signatures: read with wipefs(8), erased with it."""

from __future__ import annotations

import json
import os
import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bedplate.errors import DeviceInUse, OutputNotUnderstood
from bedplate.host.patience import wait_until
from bedplate.model.filesystem import LABEL

if TYPE_CHECKING:
    from bedplate.host.command import Commands

# What libblkid does not call a member although it is a part of something, or may be.
_MEMBERS = frozenset(
    {
        "DM_snapshot_cow",
        "bcache",
        "ceph_bluestore",
        "drbd",
        "drbdproxy_datalog",
        "mpool",
        "scoutfs_data",
        "scoutfs_meta",
        "stratis",
        "vdo",
    }
)
_POOL_MEMBER = "zfs_member"
# Where a file system that may span devices says how many they are: the magic, its place, the count, its place.
_COUNTS = {
    "btrfs": (b"_BHRfS_M", 65536 + 64, "<Q", 65536 + 136),
    "bcachefs": (bytes.fromhex("c68573f6"), 4096 + 24, "<B", 4096 + 123),
}
# A Btrfs that others are grown from (btrfstune -S) is a part of each of them.
_BTRFS_FLAGS, _BTRFS_SEEDING = 65536 + 56, 1 << 32

_PATIENCE_S = 10.0


@dataclass(frozen=True)
class Signature:
    """One signature: `usage` is libblkid's class of it (`filesystem`, `raid`, `crypto`, `other`)."""

    type: str
    usage: str
    label: str
    uuid: str
    spans: bool = False

    @property
    def is_own(self) -> bool:
        """True for a file system, or an external journal of ext3 or ext4, that bedplate made."""
        return not self.spans and (self.usage == "filesystem" or self.type == "jbd") and self.label == LABEL

    @property
    def is_member(self) -> bool:
        """True if the device is part of an array, a volume group or a pool, even a stopped one.

        A file system over several devices is such a pool; ZFS of bedplate's own stands on one.
        """
        if self.type == _POOL_MEMBER:
            return self.label != LABEL
        return self.spans or self.usage == "raid" or self.type in _MEMBERS

    @property
    def is_encrypted(self) -> bool:
        """True for an encrypted volume, of whose content nobody can say anything."""
        return self.usage == "crypto"

    def __str__(self) -> str:
        label = f" labelled {self.label!r}" if self.label else ""
        return f"{self.type or 'unknown'}{label}"


def read_signatures(device_path: str, commands: Commands) -> tuple[Signature, ...]:
    """Every signature on the device, however many lie over each other; nothing is written."""
    argv = ["wipefs", "--no-act", "--json", "--output", "TYPE,USAGE,LABEL,UUID", device_path]
    text = commands.run(argv).stdout
    if not text.strip():
        return ()
    try:
        found = [
            Signature(type_ or "", usage or "", label or "", uuid or "")
            for entry in json.loads(text)["signatures"]
            for type_, usage, label, uuid in [map(entry.get, ("type", "usage", "label", "uuid"))]
        ]
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise OutputNotUnderstood("wipefs --json", expected="a list of signatures", found=text) from error
    found = [
        replace(entry, spans=_spans(device_path, entry.type)) if entry.type in _COUNTS else entry
        for entry in found
    ]
    # The boot sector of NTFS ends as a partition table does, and leaves no room for one.
    if any(signature.type == "ntfs" and signature.is_own for signature in found):
        found = [signature for signature in found if signature.type != "dos"]
    # A GUID partition table has two copies and a protective table: one is enough to say.
    return tuple(dict.fromkeys(found))


def _spans(device_path: str, kind: str) -> bool:
    """Whether a file system stands on more devices than this one; True where it cannot be read."""
    magic, magic_at, layout, count_at = _COUNTS[kind]
    try:
        file = os.open(device_path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        if os.pread(file, len(magic), magic_at) != magic:
            return True  # a copy of the superblock is there without the first one: damaged, and not ours
        (count,) = struct.unpack(layout, os.pread(file, struct.calcsize(layout), count_at))
        if kind == "btrfs":
            (flags,) = struct.unpack("<Q", os.pread(file, 8, _BTRFS_FLAGS))
            return bool(count != 1 or flags & _BTRFS_SEEDING)
        return bool(count != 1)
    except (OSError, struct.error):
        return True
    finally:
        os.close(file)


def fingerprint(device_path: str, commands: Commands) -> str:
    """Everything that blkid(8) finds on the device, UUIDs included; empty where it finds nothing."""
    done = commands.run(["blkid", "--probe", "--output", "export", device_path], check=False)
    lines = sorted(line for line in done.stdout.splitlines() if not line.startswith("DEVNAME="))
    return " ".join(lines)


def erase_signatures(
    device_path: str, commands: Commands, *, claimed: bool = False, deadline_s: float = _PATIENCE_S
) -> None:
    """Erase every signature. wipefs may find a device busy a moment after a good unmount: tried again.

    `claimed`: the caller holds the device exclusively itself, and so wipefs cannot.
    """
    argv = ["wipefs", "--all", "--quiet", *(("--force",) if claimed else ()), device_path]
    said: list[str] = []

    def erased() -> bool:
        done = commands.run(argv, check=False)
        said.append(done.output)
        if "busy" not in done.output.lower():
            done.require_success()
        return done.status == 0

    if not wait_until(erased, deadline_s=deadline_s, pause_s=0.05):
        raise DeviceInUse(f"{device_path} stays busy: {said[-1]}")
