"""Sites of file systems for tests that have no more than the names of devices."""

from __future__ import annotations

from pathlib import Path

from bedplate.filesystem.adapter import Site
from bedplate.host.command import Commands
from bedplate.host.scratch_device import AttachedDevice
from bedplate.model.cell import FilesystemLevels

NOWHERE = Path("/nowhere")


def device_at(path: str) -> AttachedDevice:
    name = Path(path).name
    return AttachedDevice(path, name, name, 0)


def site_on(
    levels: FilesystemLevels,
    device: str,
    commands: Commands,
    *,
    journal: str | None = None,
    target: Path = NOWHERE,
) -> Site:
    return Site(levels, device_at(device), target, commands, None if journal is None else device_at(journal))
