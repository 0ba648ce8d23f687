"""What a block device is known again by: its name may lead to another disk after a boot, or after a plug."""

from __future__ import annotations

from dataclasses import dataclass

from bedplate.units import format_size

_NONE = "none"


@dataclass(frozen=True)
class DeviceIdentity:
    """A device that a study erases, as the kernel knew it when the study began; null for what it did not say."""

    size_bytes: int
    """its size"""
    model: str | None = None
    """vendor and model of the disk"""
    wwid: str | None = None
    """the disk's name that no other disk in the world has"""
    serial: str | None = None
    """the disk's serial number"""
    partition: int | None = None
    """number of the partition; null for a whole device"""
    partition_start: int | None = None
    """where the partition begins, in units of 512 bytes"""
    partition_uuid: str | None = None
    """UUID of the partition in its table"""
    volume_uuid: str | None = None
    """UUID of a mapped device or an array"""
    file_inode: int | None = None
    """inode of the file behind a loop device"""
    file_device: int | None = None
    """`st_dev` of that file; compared within one boot"""
    disk_sequence: int | None = None
    """the kernel's count of disks (`diskseq`); compared within one boot, where nothing else tells a disk from its like"""
    boot_id: str | None = None
    """the boot in which this was read"""

    @property
    def is_of_one_disk(self) -> bool:
        """Whether it tells its disk from every other one of the same size and model."""
        return any(value is not None for value in (self.wwid, self.serial, self.volume_uuid, self.file_inode))

    def differences(self, found: DeviceIdentity) -> tuple[str, ...]:
        """What was found beside what is recorded here, a phrase each; empty where it may be the same device."""
        pairs: list[tuple[str, object, object]] = [
            ("model", self.model, found.model),
            ("wwid", self.wwid, found.wwid),
            ("serial", self.serial, found.serial),
            ("partition", self.partition, found.partition),
            ("partition start", self.partition_start, found.partition_start),
            ("inode of its file", self.file_inode, found.file_inode),
        ]
        # Only newer kernels, and udev, tell these: a study may vary the kernel.
        if self.volume_uuid is not None:
            pairs.append(("volume UUID", self.volume_uuid, found.volume_uuid))
        if self.partition_uuid is not None and not (found.partition_uuid is None and self.is_of_one_disk):
            pairs.append(("partition UUID", self.partition_uuid, found.partition_uuid))
        if self.boot_id is not None and self.boot_id == found.boot_id:
            pairs.append(("file system of its file", self.file_device, found.file_device))
            if not self.is_of_one_disk:
                pairs.append(("disk sequence number", self.disk_sequence, found.disk_sequence))
        told = [
            f"{name} {_NONE if now is None else now} (recorded: {_NONE if before is None else before})"
            for name, before, now in pairs
            if before != now
        ]
        if self.size_bytes != found.size_bytes:
            told.append(f"size {_size(found.size_bytes)} (recorded: {_size(self.size_bytes)})")
        return tuple(told)


def _size(size_bytes: int) -> str:
    """To the byte: two disks of one nominal size differ in the last digits."""
    return f"{format_size(size_bytes)}, {size_bytes} bytes"
