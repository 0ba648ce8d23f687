"""Which cells of a study are what this system would make by itself, and in how much any other departs from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.analysis.comparison.compared import candidates_of
from bedplate.analysis.factors import FILESYSTEM_BLOCK, TYPE, usual_factors
from bedplate.model.durability import SESSION_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.analysis.overview import Overview
    from bedplate.model.levels import Scalar

# What an installer makes where nobody chooses, by how the distribution calls itself: Debian's partman-ext3, Ubuntu's curtin;
# Red Hat, "Managing file systems", since RHEL 7, and what is built from its sources.
_INSTALLED = {
    "Debian": "ext4",
    "Ubuntu": "ext4",
    "Red Hat": "xfs",
    "Rocky": "xfs",
    "AlmaLinux": "xfs",
    "CentOS": "xfs",
    "Oracle Linux": "xfs",
}
# mke2fs.conf(5) for disks of 512 MiB and more, mkfs.xfs(8), mkfs.btrfs(8) where a page has 4 KiB.
_USUAL_BLOCK_BYTES = 4096
_SETTING, _ON = "cluster.settings.", "on"
_FILESYSTEM, _OPTIONS = "filesystem.", "filesystem.mount_options"


@dataclass(frozen=True)
class Defaults:
    """`cells` depart in nothing from what the system makes by itself; `departures` are factors by cell, without its type.

    `kind` is the type that the system is installed on, None where that is not known. Of what all cells share, only the file system's own levels and settings that decide durability are departures: a study
    without barriers has no cell that a system makes by itself.
    """

    cells: tuple[str, ...]
    departures: Mapping[str, tuple[str, ...]]
    kind: str | None


def defaults_of(found: Overview) -> Defaults:
    """Of the type that the machine's distribution installs on."""
    every = {one.cell: one.levels for one in candidates_of([found])}
    varied = {name for levels in every.values() for name in levels if _varies(name, every)}
    departures = {
        cell: tuple(
            name
            for name in levels
            if (name in varied or _is_telling(name)) and not _is_usual(found, name, levels)
        )
        for cell, levels in every.items()
    }
    type_ = _installed(found.study.machine.distribution)
    return Defaults(
        tuple(cell for cell, own in departures.items() if not own and every[cell][TYPE] == type_),
        departures,
        type_,
    )


def _installed(distribution: str) -> str | None:
    return next((type_ for start, type_ in _INSTALLED.items() if distribution.startswith(start)), None)


def _is_telling(name: str) -> bool:
    """Whether a level that all cells share makes them unlike what a system makes; `noatime` and its like do not."""
    of_filesystem = name.startswith(_FILESYSTEM) and name not in (TYPE, _OPTIONS)
    return of_filesystem or name.removeprefix(_SETTING) in SESSION_SETTINGS


def _varies(name: str, every: Mapping[str, Mapping[str, Scalar]]) -> bool:
    return name != TYPE and len({repr(levels[name]) for levels in every.values() if name in levels}) > 1


def _is_usual(found: Overview, name: str, levels: Mapping[str, Scalar]) -> bool:
    if name in usual_factors(levels):
        return True
    if name == FILESYSTEM_BLOCK:
        return levels[name] == _USUAL_BLOCK_BYTES
    if name == "kernel.release":
        return levels[name] == found.study.machine.kernel_release
    return name.removeprefix(_SETTING) in SESSION_SETTINGS and levels[name] == _ON
