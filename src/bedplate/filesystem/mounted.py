"""A file system on a disk, from mkfs to the check: what visits, recordings, trials and ageing do alike."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from bedplate.filesystem.adapter import CheckResult, Site, verify
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.ledger import Holding, Holdings
from bedplate.host.mount import MountEntry
from bedplate.model.visit import ReadBack


class MountedDisk:
    """The file system of `site`. The ledger has it before it is mounted; on leaving it is unmounted, however far it came.

    `entry` is how it is mounted at the moment, None while it is not.
    """

    def __init__(self, site: Site, ledger: Holdings) -> None:
        self.site = site
        self.filesystem = filesystem_for(site.levels.type)
        self.entry: MountEntry | None = None
        self._holding = Holding("mount", str(site.target), site.device.path)
        self._ledger = ledger

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exception: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.unmount()

    def make(self) -> tuple[str, ...]:
        """What mkfs warned of; CommandFailed where it refused, PlanError for unsafe options."""
        return self.filesystem.mkfs(self.site)

    def mount(self) -> None:
        """MountRefused with the kernel's words if it will not."""
        # Before it: a signal ends mount(8), which may have mounted by then.
        self._ledger.note(self._holding)
        self.entry = self.filesystem.mount(self.site)

    def mount_as_asked(self) -> None:
        """The same; VerifyFailed with every level that is not in force."""
        self.mount()
        verify(self.read_back())

    def read_back(self) -> tuple[ReadBack, ...]:
        """Every level against what is in force."""
        return self.filesystem.read_back(self.site)

    def unmount(self) -> None:
        """Safe to repeat, also where nothing was mounted. DeviceInUse names who holds it: then it stays in the ledger."""
        self.entry = None
        self.filesystem.unmount(self.site)
        self._ledger.settled(self._holding)

    def check(self) -> CheckResult:
        """Fsck without writing, once it is unmounted."""
        return self.filesystem.check(self.site)
