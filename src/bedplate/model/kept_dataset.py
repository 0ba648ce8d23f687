"""A dataset that is loaded once and kept as an image: what decides its files, and what differs in nothing that they show.

A level is left out of what decides only where it is known to leave the files alone. Whatever is not known stays, and costs an image more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from bedplate import registry
from bedplate.model.cell import Cell, DeviceLevels
from bedplate.model.filesystem import option_words
from bedplate.model.levels import Levels
from bedplate.model.visit import LOADED, RESTORED

if TYPE_CHECKING:
    from bedplate.model.cell import ClusterLevels, FilesystemLevels

DATASETS = (LOADED, RESTORED)
# The role `kept_data` of an engine.
_ROLE = "kept_data"
# On which restored datasets were tried (tests/host/test_restored_dataset.py). `benchmarks/run restored` holds their figures against loaded ones.
RESTORABLE = ("ext2", "ext3", "ext4", "xfs", "btrfs")
# Mount options that say when and how what is written reaches the device, or what is noted of reading: none of where a block is put.
_MOUNT_ONLY = frozenset(
    (
        *(
            "noatime",
            "relatime",
            "strictatime",
            "nodiratime",
            "lazytime",
            "nolazytime",
            "nodev",
            "noexec",
            "nosuid",
        ),
        *("barrier", "nobarrier", "commit", "journal_checksum", "journal_async_commit"),
        *(
            "min_batch_time",
            "max_batch_time",
            "logbufs",
            "logbsize",
            "flushoncommit",
            "noflushoncommit",
            "notreelog",
        ),
    )
)
# Both allocate late and write in place; what is in the journal does not.
_SAME_FILES = {"data": ("ordered", "writeback")}


class KeptData(Protocol):
    """Which of an engine's settings decide the files that a load leaves."""

    def deciding(self, cluster: ClusterLevels) -> ClusterLevels:
        """The levels without the settings that are known to leave those files alone."""
        ...


def kept_data_of(engine: str) -> KeptData | None:
    """That of an engine; None where nobody has looked at its settings."""
    found: KeptData | None = registry.engine_part_or_none(engine, _ROLE)
    return found


def deciding(cell: Cell) -> Cell:
    """The cell in which an image is made: those that share it differ in nothing else. ValueError of an engine without the role."""
    kept = kept_data_of(cell.build.engine)
    if kept is None:
        raise ValueError(f"{cell.build.engine} has no role {_ROLE}")
    return replace(
        cell,
        # What a load leaves in the page cache is restored too, and that is as much as the memory holds.
        device=DeviceLevels(memory_bytes=cell.device.memory_bytes),
        filesystem=_filesystem(cell.filesystem),
        cluster=kept.deciding(cell.cluster),
    )


def _filesystem(levels: FilesystemLevels) -> FilesystemLevels:
    options = option_words(levels.mount_options, separator=",")
    features = {
        name: level for name, level in levels.features.items() if level not in _SAME_FILES.get(name, ())
    }
    return replace(
        levels,
        mount_options=tuple(word for word in options if word.partition("=")[0] not in _MOUNT_ONLY),
        barrier=None,
        features=Levels(features),
    )
