"""The kinds of device cache that a class of durability is stated for, and which of them a machine's device has.

A device with physical sectors of 4 KiB writes each such block whole or not at all; one with sectors of 512 bytes may leave a
block half old and half new. That is no matter of the cache, and decides what a power cut leaves all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bedplate.model.levels import Scalar

VOLATILE_4K = "volatile-4k"


VOLATILE_512 = "volatile-512"


PROTECTED = "protected"


# From the one that asks least of a file system to the one that asks most; each can behave as those before it.
CACHES = (PROTECTED, VOLATILE_4K, VOLATILE_512)


CACHE_WORDS: Mapping[str, str] = {
    VOLATILE_4K: "volatile cache, 4 KiB sectors",
    VOLATILE_512: "volatile cache, 512-byte sectors",
    PROTECTED: "protected cache",
}


WHOLE_BLOCK_BYTES = 4096


# Facts of a visit's device: its own sectors, and of a loop device those of the disk under its file, `unknown` where nothing
# tells. What a loop device says of itself is the kernel's choice, and no property of any disk.
PHYSICAL_BLOCK = "physical_block_size"


BACKING_PHYSICAL_BLOCK = "backing_physical_block_size"


KIND = "kind"


BLOCK_DEVICE = "block device"


UNKNOWN_SECTORS = "unknown"


# Before the names of the same facts of a journal's device, and how the kind of one begins that no power cut keeps.
JOURNAL_FACTS = "journal_device_"


_MEMORY = "memory"


# In a guest every disk is a virtio disk with sectors of QEMU's choice. What they really are stands in the provenance, as
# the executor outside knows it: the kind under these keys, the sectors with this behind the key.
DISK, JOURNAL_DISK = "disk", "journal_disk"


SECTORS = "_sector_bytes"


def outside(provenance: Mapping[str, str], name: str) -> dict[str, Scalar]:
    """What the executor knows of a guest's disk, as facts of the visit's device; nothing outside a guest."""
    if name not in provenance:
        return {}
    sectors = provenance.get(f"{name}{SECTORS}", UNKNOWN_SECTORS)
    return {KIND: provenance[name], BACKING_PHYSICAL_BLOCK: int(sectors) if sectors.isdigit() else sectors}


def sector_bytes_of(facts: Mapping[str, Scalar]) -> int | None:
    """The smallest physical sectors of the disks that a visit's devices are or lie on; None where nothing tells of one."""
    start = len(JOURNAL_FACTS)
    journal = {name[start:]: value for name, value in facts.items() if name.startswith(JOURNAL_FACTS)}
    has_own = bool(journal) and not str(journal.get(KIND)).startswith(_MEMORY)
    return least_sector_bytes(_sector_bytes(each) for each in (facts, *([journal] if has_own else [])))


def _sector_bytes(facts: Mapping[str, Scalar]) -> int | None:
    own = BACKING_PHYSICAL_BLOCK not in facts and facts.get(KIND) == BLOCK_DEVICE
    found = facts.get(PHYSICAL_BLOCK if own else BACKING_PHYSICAL_BLOCK)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def least_sector_bytes(sector_bytes: Iterable[int | None]) -> int | None:
    """Of several devices the smallest; None where there is none, or one is not known."""
    found = tuple(sector_bytes)
    known = [each for each in found if each is not None]
    return min(known) if known and len(known) == len(found) else None


def volatile_cache_of(sector_bytes: int | None) -> str:
    """The volatile cache with such sectors; where they are not known, the one of which least is promised."""
    return VOLATILE_4K if sector_bytes is not None and sector_bytes >= WHOLE_BLOCK_BYTES else VOLATILE_512


def sectors_told(sector_bytes: int | None) -> str:
    """Which class fits the machine's device, and why."""
    if sector_bytes is None:
        return "which sectors the device has is not known: the class is the one for sectors of 512 bytes, which promises the least"
    kind = "4 KiB" if sector_bytes >= WHOLE_BLOCK_BYTES else "512 bytes"
    return (
        f"the device has physical sectors of {sector_bytes} bytes: the class is the one for sectors of {kind}"
    )
