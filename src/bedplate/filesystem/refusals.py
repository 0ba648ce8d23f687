"""What this kernel and these tools refuse, found by trying it on a small image: needs root.

For `bedplate doctor` and for pruning. A block size or mount option that a kernel lacks cannot be
known from its version (distributions change both ways), but trying costs a fraction of a second.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, CommandFailed, PlanError
from bedplate.filesystem.comparison import verify
from bedplate.filesystem.flushes import write_back_wanted
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.device import AttachedDevice
from bedplate.host.ledger import Holding
from bedplate.host.mount import unmount
from bedplate.model.cell import digest
from bedplate.model.filesystem import contradictions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bedplate.host.command import Commands
    from bedplate.host.ledger import Ledger
    from bedplate.model.cell import FilesystemLevels


def probe_refusals(
    levels: FilesystemLevels,
    *,
    commands: Commands,
    directory: Path | None = None,
    ledger: Ledger | None = None,
) -> tuple[str, ...]:
    """Why a file system with these levels cannot be had here; empty if it can.

    Makes a sparse image of some hundred MiB in `directory` (the system's temporary one by default),
    makes the file system, mounts it, reads back, and removes everything; what a SIGKILL leaves stands
    in `ledger`, if there is one. Only refusals are returned: PlanError is raised for unsafe options,
    CommandFailed where a tool is missing or no loop device can be had.
    """
    filesystem = filesystem_for(levels.type)
    impossible = contradictions(levels)
    if impossible:
        return impossible
    if not write_back_wanted(levels):
        # The device's switch does it, whatever the file system is.
        levels = replace(levels, barrier=None)
    with _small_device(
        filesystem.probe_bytes, commands=commands, directory=directory, ledger=ledger
    ) as place:
        device, target = place
        warnings: tuple[str, ...] = ()
        try:
            warnings = filesystem.mkfs(levels, device.path, commands=commands)
            filesystem.mount(levels, device.path, target, commands=commands)
            verify(filesystem.read_back(levels, device, target, commands=commands))
        except PlanError:
            raise
        except BedplateError as failure:
            if isinstance(failure, CommandFailed) and failure.status is None:
                raise  # missing or too slow: that says nothing about the levels
            return (*failure.reasons, *(f"mkfs had warned: {line}" for line in warnings))
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
def _small_device(
    size_bytes: int, *, commands: Commands, directory: Path | None, ledger: Ledger | None
) -> Iterator[tuple[AttachedDevice, Path]]:
    with tempfile.TemporaryDirectory(prefix="bedplate-probe-", dir=directory) as folder:
        image, target = Path(folder, "image"), Path(folder, "mount")
        with ExitStack() as undo:
            # In this order a release gives them back in the other one.
            for holding in (
                Holding("directory", folder),
                Holding("directory", str(target)),
                Holding("image", str(image)),
                Holding("loop", str(image)),
            ):
                if ledger is not None:
                    ledger.note(holding)
                    undo.callback(ledger.settled, holding)
            target.mkdir()
            with image.open("xb") as file:
                file.truncate(size_bytes)
            # Neither direct I/O nor full allocation: nothing is measured here.
            path = commands.run(["losetup", "--find", "--show", str(image)]).stdout.strip()
            undo.callback(commands.run, ["losetup", "--detach", path])
            mounted = Holding("mount", str(target), path)
            if ledger is not None:
                ledger.note(mounted)
                undo.callback(ledger.settled, mounted)
            undo.callback(unmount, target, commands=commands)
            name = path.rpartition("/")[2]
            yield AttachedDevice(path, name, name, size_bytes, image), target
