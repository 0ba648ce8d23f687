"""A block device that a visit may erase, attached and ready."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class AttachedDevice:
    """`path` is the node (`/dev/loop3`), `name` the kernel's name of it (`loop3`).

    `image` is the file behind a loop device of bedplate's own, None for a real device. `queue_name`
    is the whole device that carries the queue settings (`sda` for `sda3`).
    """

    path: str
    name: str
    queue_name: str
    size_bytes: int
    image: Path | None = None

    @property
    def queue(self) -> Path:
        """Where the kernel keeps the queue's settings."""
        return Path("/sys/block") / self.queue_name / "queue"

    @property
    def stat(self) -> Path:
        """The device's counters (Documentation/block/stat.rst)."""
        return Path("/sys/class/block") / self.name / "stat"
