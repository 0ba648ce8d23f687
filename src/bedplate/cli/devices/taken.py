"""What a measurement takes of the machine and gives back: a device that may be erased, and a file system on it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.filesystem.registry import filesystem_for
from bedplate.filesystem.site import Site
from bedplate.host.devices.scratch_device import prepare, release_device
from bedplate.host.ledger import Holding, Ledger
from bedplate.host.lock import device_lock, study_lock
from bedplate.host.requirement import demand, look
from bedplate.host.state import state_directory
from bedplate.model.cell import FilesystemLevels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.host.command import Commands
    from bedplate.host.devices.device import AttachedDevice
    from bedplate.model.visit import ScratchDevice

# With its defaults; that of `ab` and `bisect` too, where none is named.
FILESYSTEM = "ext4"
# What its locks are signed with.
_STUDY = "device measure"


def own_ledger() -> Ledger:
    """That of this call."""
    return Ledger.open(state_directory(), f"{os.getpid()}-measure")


@contextmanager
def erased_device(scratch: ScratchDevice, ledger: Ledger, commands: Commands) -> Iterator[AttachedDevice]:
    """A real device, nobody else's meanwhile. DeviceRefused with every reason. WHAT IS ON IT IS LOST."""
    name = str(scratch.device)
    with (
        # Between its visits a study holds its own lock alone.
        study_lock(state_directory(), name, study=_STUDY),
        device_lock(state_directory(), name, study=_STUDY) as locked,
    ):
        taken = prepare(scratch, ledger=ledger, commands=commands, directory=Path("/"), expected=locked)
        try:
            yield taken
        finally:
            release_device(taken, ledger=ledger, commands=commands)


@contextmanager
def mounted(device: AttachedDevice, ledger: Ledger, commands: Commands) -> Iterator[Path]:
    """A new file system on the device; RequirementMissing without its tools."""
    filesystem = filesystem_for(FILESYSTEM)
    demand(look(filesystem.needs))
    target = ledger.directory / "mount"
    target.mkdir()
    site = Site(FilesystemLevels(FILESYSTEM), device, target, commands)
    filesystem.mkfs(site)
    holding = Holding("mount", str(target), device.path)
    ledger.note(holding)
    try:
        filesystem.mount(site)
        yield target
    finally:
        filesystem.unmount(site)
        ledger.settled(holding)
