"""A block device that a visit may erase, attached and ready."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.host.devices.block_tree import BlockTree
from bedplate.model.device_cache import BACKING_PHYSICAL_BLOCK, BLOCK_DEVICE, KIND, UNKNOWN_SECTORS
from bedplate.model.levels import Levels

if TYPE_CHECKING:
    from bedplate.host.devices.device_node import DeviceNode
    from bedplate.model.levels import Scalar


@dataclass(frozen=True)
class AttachedDevice:
    """`path` is the node (`/dev/loop3`), `name` the kernel's name of it (`loop3`).

    `image` is the file behind a loop device of bedplate's own, None for a real device. `queue_name`
    is the whole device that carries the queue settings (`sda` for `sda3`). `hold` keeps a real device
    open, so that `path` and `name` stay the device that was looked at.
    """

    path: str
    name: str
    queue_name: str
    size_bytes: int
    image: Path | None = None
    hold: DeviceNode | None = field(default=None, compare=False, repr=False)

    @property
    def queue(self) -> Path:
        """Where the kernel keeps the queue's settings."""
        return Path("/sys/block") / self.queue_name / "queue"

    @property
    def sector_bytes(self) -> int:
        """The smallest write that it takes: a file system made for smaller sectors is not mounted on it."""
        return int((self.queue / "logical_block_size").read_text())

    @property
    def stat(self) -> Path:
        """The device's counters (Documentation/block/stat.rst)."""
        return Path("/sys/class/block") / self.name / "stat"


def device_facts(device: AttachedDevice) -> Levels:
    """What the kernel says of the device: the context of every figure, compared with nothing."""
    facts: dict[str, Scalar] = {
        KIND: "image file on a loop device" if device.image else BLOCK_DEVICE,
        "size_bytes": device.size_bytes,
    }
    for name in (
        "rotational",
        "logical_block_size",
        "physical_block_size",
        "scheduler",
        "nr_requests",
        "read_ahead_kb",
        "write_cache",
        "fua",
        "max_sectors_kb",
        "discard_max_bytes",
    ):
        with contextlib.suppress(OSError):
            text = (device.queue / name).read_text().strip()
            facts[name] = int(text) if text.isdigit() else text
    if device.name.startswith("loop"):
        facts[BACKING_PHYSICAL_BLOCK] = BlockTree().sectors_under(device.name) or UNKNOWN_SECTORS
    for name in ("model", "firmware_rev", "vendor"):
        with contextlib.suppress(OSError):
            facts[name] = (device.queue.parent / "device" / name).read_text().strip()
    return Levels(facts)
