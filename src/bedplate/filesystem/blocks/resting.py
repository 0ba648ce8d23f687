"""Where files and metadata lie on a disk that nobody has mounted, for types whose places are not known while they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.model.fault_order import ByteRange


@dataclass(frozen=True)
class RestingBlocks:
    """`ranges` of the disk, in the order of its tool; `left_out` says what has none that can be named, each kind once."""

    ranges: tuple[ByteRange, ...] = ()
    left_out: tuple[str, ...] = ()


class AtRest(Protocol):
    """A file system on images of its devices, which it has let go of."""

    def files(self, numbers: Sequence[int], /) -> RestingBlocks:
        """The data of files, by their inode numbers."""

    def inodes(self, numbers: Sequence[int], /) -> RestingBlocks:
        """What holds these inodes, and others beside them where a block of the disk has more than one."""

    def superblock(self) -> RestingBlocks:
        """Its first copy, as far as a mount reads it."""


class MetadataAtRest(Protocol):
    """A file system on images of its devices that keeps no metadata in fixed places."""

    def metadata(self) -> RestingBlocks:
        """With which the next mount begins."""
