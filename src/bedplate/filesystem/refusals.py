"""What this kernel and these tools refuse, found by trying it on a small image: needs root.

For `bedplate doctor` and for pruning. A block size or mount option that a kernel lacks cannot be
known from its version (distributions change both ways), but trying costs a fraction of a second.
"""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, CommandFailed, PlanError
from bedplate.filesystem.comparison import verify
from bedplate.filesystem.flushes import write_back_wanted
from bedplate.filesystem.registry import filesystem_for
from bedplate.filesystem.site import Site
from bedplate.host.devices.device import AttachedDevice
from bedplate.host.devices.loop import detach
from bedplate.host.ledger import Holding
from bedplate.model.cell import digest
from bedplate.model.filesystem import contradictions, without_age
from bedplate.model.reason import because
from bedplate.units import KERNEL_SECTOR_BYTES, MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from bedplate.filesystem.adapter import Filesystem
    from bedplate.host.command import Commands
    from bedplate.host.ledger import Ledger
    from bedplate.model.cell import FilesystemLevels
    from bedplate.model.reason import Reason


MKFS_REFUSED = "mkfs-refused"
MKFS_WARNED = "mkfs-had-warned"
PASSING_TROUBLE = "passing-trouble"
# What says more of this moment than of the kernel.
_PASSING = re.compile(r"No space left|Input/output error|Cannot allocate|out of memory|quota", re.IGNORECASE)
# mkfs.xfs wants 64 MiB for a log of its own, mkreiserfs 33 MiB for its usual journal.
_JOURNAL_BYTES = 72 * MIB


def probe_refusals(
    levels: FilesystemLevels,
    *,
    commands: Commands,
    directory: Path | None = None,
    ledger: Ledger | None = None,
) -> tuple[Reason, ...]:
    """Why a file system with these levels cannot be had here; empty if it can.

    Makes a sparse image of some hundred MiB in `directory` (the system's temporary one by default),
    makes the file system, mounts it, reads back, and removes everything; what a SIGKILL leaves stands
    in `ledger`, if there is one. Only refusals are returned: PlanError is raised for unsafe options,
    CommandFailed where a tool is missing or no loop device can be had. One that says more of this
    moment than of the kernel (no space left) has the code `PASSING_TROUBLE`, one of mkfs itself `MKFS_REFUSED`.
    """
    filesystem = filesystem_for(levels.type)
    impossible = contradictions(levels)
    if impossible:
        return tuple(because("contradiction", words) for words in impossible)
    if not write_back_wanted(levels):
        # The device's switch does it, whatever the file system is.
        levels = replace(levels, barrier=None)
    levels = replace(levels, features=without_age(levels.features))
    with site_on_sparse_image(
        filesystem,
        levels,
        filesystem.probe_bytes,
        commands=commands,
        directory=directory or Path(tempfile.gettempdir()),
        ledger=ledger,
    ) as site:
        warnings: tuple[str, ...] = ()
        step = MKFS_REFUSED
        try:
            warnings = filesystem.mkfs(site)
            step = "mount-refused"
            filesystem.mount(site)
            verify(filesystem.read_back(site))
        except PlanError:
            raise
        except BedplateError as failure:
            if isinstance(failure, CommandFailed) and failure.status is None:
                raise  # missing or too slow: that says nothing about the levels
            code = PASSING_TROUBLE if _PASSING.search(failure.said) else step
            return (
                *(because(code, words) for words in failure.reasons),
                *(because(MKFS_WARNED, f"mkfs had warned: {line}") for line in warnings),
            )
    return ()


def probe_key(levels: FilesystemLevels, *, versions: Mapping[str, str]) -> str:
    """What the answer of `probe_refusals` depends on, as a name to keep it under.

    `versions` are the tools', from `Filesystem.versions`; the running kernel's build is added.
    """
    kernel = os.uname()
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    return digest(
        {
            "levels": levels,
            "versions": dict(versions),
            "kernel": [kernel.release, kernel.version, kernel.machine, page_bytes],
        }
    )


@contextmanager
def site_on_sparse_image(
    filesystem: Filesystem,
    levels: FilesystemLevels,
    size_bytes: int,
    *,
    commands: Commands,
    directory: Path,
    ledger: Ledger | None,
    sector_bytes: int = KERNEL_SECTOR_BYTES,
) -> Iterator[Site]:
    """A device of that size and sectors, a mount point, and a device for the journal if the levels ask for one; nothing to measure on."""
    with ExitStack() as undo:
        folder = directory / f"bedplate-probe-{os.getpid()}-{os.urandom(4).hex()}"
        target = folder / "mount"
        # In this order a release gives them back in the other one.
        for place in (folder, target):
            _hold(Holding("directory", str(place)), ledger, undo, partial(_removed, place))
            place.mkdir(mode=0o700)
        device = _small_device(
            folder / "image", size_bytes, commands, ledger, undo, sector_bytes=sector_bytes
        )
        journal = None
        if levels.journal == "external":
            journal = _small_device(folder / "journal", _JOURNAL_BYTES, commands, ledger, undo)
        site = Site(levels, device, target, commands, journal)
        _hold(Holding("mount", str(target), device.path), ledger, undo, partial(_unmounted, filesystem, site))
        yield site


def _small_device(
    image: Path,
    size_bytes: int,
    commands: Commands,
    ledger: Ledger | None,
    undo: ExitStack,
    *,
    sector_bytes: int = KERNEL_SECTOR_BYTES,
) -> AttachedDevice:
    """A sparse image on a loop device: neither direct I/O nor full allocation, as nothing is measured."""
    _hold(Holding("image", str(image)), ledger, undo, partial(_removed, image))
    _hold(Holding("loop", str(image)), ledger, undo, partial(_detached, image, commands))
    with image.open("xb") as file:
        file.truncate(size_bytes)
    own_sectors = () if sector_bytes == KERNEL_SECTOR_BYTES else ("--sector-size", str(sector_bytes))
    path = commands.run(["losetup", "--find", "--show", *own_sectors, str(image)]).stdout.strip()
    name = path.rpartition("/")[2]
    return AttachedDevice(path, name, name, size_bytes, image)


def _removed(path: Path) -> bool:
    """A folder that something is still mounted below stays, and says nothing: the unmount has."""
    with suppress(OSError):
        path.rmdir() if path.is_dir() else path.unlink()
    return not path.exists()


def _detached(image: Path, commands: Commands) -> bool:
    detach(image, commands)
    return True


def _unmounted(filesystem: Filesystem, site: Site) -> bool:
    filesystem.unmount(site)
    return True


def _hold(holding: Holding, ledger: Ledger | None, undo: ExitStack, give_back: Callable[[], bool]) -> None:
    """Before it is taken. What `give_back` does not say is gone, or is interrupted in, is left to the ledger's release."""

    def end() -> None:
        if give_back() and ledger is not None:
            ledger.settled(holding)

    undo.callback(end)
    if ledger is not None:
        ledger.note(holding)
