"""Where one file system stands: what every method of an adapter is handed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.host.command import Commands
    from bedplate.host.devices.device import AttachedDevice
    from bedplate.model.cell import FilesystemLevels


@dataclass(frozen=True)
class Site:
    """The asked levels, the device, the directory to mount it on, and who runs the tools.

    `journal` is the device of an external journal: there if the levels ask for one, else None.
    """

    levels: FilesystemLevels
    device: AttachedDevice
    target: Path
    commands: Commands
    journal: AttachedDevice | None = None

    @property
    def journal_path(self) -> str | None:
        """The node of the journal's device, if it has one of its own."""
        return None if self.journal is None else self.journal.path
