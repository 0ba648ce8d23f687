"""What every file system type offers: make, mount, read back, unmount, check.

A new type is one file with one such class and one entry in `registry.py`. `journal_path` and `journal`
are the device of an external journal: there if the levels ask for one, else None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bedplate.host.command import Commands, Completed
    from bedplate.host.device import AttachedDevice
    from bedplate.host.mount import MountEntry
    from bedplate.host.requirement import Need
    from bedplate.model.cell import FilesystemLevels
    from bedplate.model.filesystem import FilesystemTraits
    from bedplate.model.visit import Comparison

# The mark that tells bedplate's own file systems from foreign ones; XFS takes twelve characters.
LABEL = "bedplate"


@dataclass(frozen=True)
class CheckResult:
    """What a read-only fsck found; `text` is what it printed.

    `ran` is false where it did not come to its end: then it found nothing, neither good nor bad.
    """

    clean: bool
    text: str
    ran: bool = True


def checked_by(done: Completed) -> CheckResult:
    """What a tool says that ends with status 0 where all is well; a signal that ended it is no finding."""
    return CheckResult(done.status == 0, done.output, ran=done.status >= 0)


class Filesystem(Protocol):
    """One file system type. Nothing here touches a device but `mkfs`, and `mount` through the kernel."""

    @property
    def traits(self) -> FilesystemTraits:
        """What is known of the type without asking a kernel."""
        ...

    @property
    def needs(self) -> tuple[Need, ...]:
        """The tools that the methods below start, with their packages."""
        ...

    @property
    def probe_bytes(self) -> int:
        """A size on which every combination of levels can be made: for `refusals.probe_refusals`."""
        ...

    def versions(self, *, commands: Commands) -> Mapping[str, str]:
        """The version of each tool, by the name of its package."""
        ...

    def mkfs(
        self,
        levels: FilesystemLevels,
        device_path: str,
        *,
        commands: Commands,
        journal_path: str | None = None,
    ) -> tuple[str, ...]:
        """Make the file system and its journal, without discarding and without work left for later.

        Returns what mkfs warned of while it ended with status 0. PlanError before anything is
        touched if the levels are unsafe or contradict each other, CommandFailed if mkfs refuses.
        """
        ...

    def mount_options(self, levels: FilesystemLevels) -> tuple[str, ...]:
        """The words for `mount -o`, the plan's own last."""
        ...

    def mount(
        self,
        levels: FilesystemLevels,
        device_path: str,
        target: Path,
        *,
        commands: Commands,
        journal_path: str | None = None,
    ) -> MountEntry:
        """Mount it; MountRefused with the kernel's words if it will not."""
        ...

    def read_back(
        self,
        levels: FilesystemLevels,
        device: AttachedDevice,
        target: Path,
        *,
        commands: Commands,
        journal: AttachedDevice | None = None,
    ) -> tuple[Comparison, ...]:
        """Every asked level and option against what is in force, and the facts that nobody asked for."""
        ...

    def unmount(self, target: Path, *, commands: Commands, journal_path: str | None = None) -> bool:
        """Unmount what lies on `target`, and end what served it; False if nothing was mounted there.

        DeviceInUse names who holds it. Safe to repeat. Its devices are free afterwards.
        """
        ...

    def check(
        self,
        levels: FilesystemLevels,
        device_path: str,
        *,
        commands: Commands,
        journal_path: str | None = None,
    ) -> CheckResult:
        """Fsck without writing, on the unmounted devices."""
        ...
