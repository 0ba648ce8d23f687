"""The folder that host and guest share: what the agent needs, and what comes of each visit.

    agent, python, sources, …           written once (see agent.sh)
    <number>/                           one visit, or another program: its request, its surroundings, its record

Results lie here while a visit lives, on the disk of the study, and are moved to their place when it
has ended: a guest never sees a finished visit, and can lose none.
"""

from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import RequirementMissing
from bedplate.executors.qemu.command_line import SharedFolder
from bedplate.host.reachable import closed_folders
from bedplate.installation import sources
from bedplate.model import codec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bedplate.executors.qemu.command_line import GuestDisk
    from bedplate.executors.qemu.guest_tools import Tool
    from bedplate.executors.qemu.kernels import GuestKernel
    from bedplate.executors.qemu.surroundings import GuestTools
    from bedplate.model.visit import VisitRequest

# Where a program in the guest keeps its ledger, mount point and socket: memory of the guest's own.
GUEST_STATE = "/run/guest/state"
# Where the guest has this folder.
GUEST_SHARE = "/run/guest/share"
_AGENT = Path(__file__).with_name("agent.sh")


@dataclass(frozen=True)
class GuestProgram:
    """A module of bedplate's that is called with `options`, the path of its `request` and a folder that it may write to.

    It prints events as a visit does (`visit/events.py`).
    """

    module: str
    request: object
    options: tuple[str, ...] = ()


class ResultShare:
    """The shared folder of one boot, made in `directory`, which must not be there yet."""

    def __init__(
        self, directory: Path, kernel: GuestKernel, interpreter: Path, *, modprobe: Tool | None = None
    ) -> None:
        self.directory = directory
        directory.mkdir(mode=0o755)
        shutil.copyfile(_AGENT, directory / "agent")
        # The real interpreter: a version manager's stand-in costs seconds in an emulated guest.
        _write_line(directory / "python", str(interpreter.resolve()))
        _write_line(directory / "sources", str(sources()))
        # Bound before the root is in force, when a link to an absolute path leads nowhere.
        # Empty where all is built in.
        modules = "" if kernel.modules is None else str(kernel.module_directory.resolve().parent)
        _write_line(directory / "modules", modules)

        if modprobe is not None:
            (directory / "modprobe").write_text(_modprobe_script(modprobe), encoding="utf-8")

    def shares(self) -> tuple[SharedFolder, ...]:
        """What the guest mounts: this folder, and the host's root for reading."""
        return (
            SharedFolder("share", self.directory, writable=True),
            SharedFolder("root", Path("/"), writable=False),
        )

    def put(
        self,
        number: int,
        request: VisitRequest,
        *,
        disks: Iterable[GuestDisk],
        load: Iterable[tuple[str, str]],
        environment: Mapping[str, str],
    ) -> None:
        """Lay out visit `number` for the agent. `load` are modprobe and insmod lines."""
        prefix = () if request.build is None else (request.build.prefix,)
        self.lay(
            number,
            GuestProgram("bedplate.visit.command", request, ("--executor", "qemu")),
            needed=map(Path, (*prefix, *request.native_drivers.values(), *request.inputs.values())),
            disks=disks,
            load=load,
            environment=environment,
        )

    def lay(
        self,
        number: int,
        program: GuestProgram,
        *,
        needed: Iterable[Path],
        disks: Iterable[GuestDisk],
        load: Iterable[tuple[str, str]],
        environment: Mapping[str, str],
    ) -> None:
        """Lay out a program as `number`. `needed` are files that an account without rights must reach."""
        folder = self.directory / str(number)
        (folder / "visit").mkdir(parents=True)
        codec.write(folder / "request.json", program.request)
        inside = f"{GUEST_SHARE}/{number}"
        words = ("-m", program.module, *program.options, "--", f"{inside}/request.json", f"{inside}/visit")
        _write_lines(folder / "arguments", words)
        # A user's home is such a folder, and the guest's server runs as nobody.
        _write_lines(folder / "folders", map(str, closed_folders(*needed)))
        _write_lines(folder / "load", (f"{how} {what}" for how, what in load))
        _write_lines(folder / "disks", (f"{disk.serial} {disk.size_bytes}" for disk in disks))
        _write_lines(folder / "environment", (f"{name}={value}" for name, value in environment.items()))

    def forget(self, number: int) -> None:
        """Remove what was laid out as `number`."""
        shutil.rmtree(self.directory / str(number))

    def collect(self, number: int, directory: Path) -> None:
        """Move what came of visit `number` into `directory`, with the request that the guest was given."""
        folder = self.directory / str(number)
        _merge(folder / "visit", directory)
        shutil.move(folder / "request.json", directory / "request.json")
        self.forget(number)


def guest_environment(base: Mapping[str, str], tools: GuestTools) -> dict[str, str]:
    """The environment of a program in the guest; the paths of its tools come before the system's own."""
    found = {
        "PATH": os.pathsep.join([*map(str, tools.path), base["PATH"]]),
        "PYTHONPATH": str(sources()),
        "BEDPLATE_STATE": GUEST_STATE,
        "HOME": "/root",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
    }
    if tools.library_path:
        found["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, tools.library_path))
    return found


def _modprobe_script(tool: Tool) -> str:
    """What the guest's kernel calls: it knows a path, and no environment.

    The host's own configuration is left out: a hardened machine forbids itself the very file systems.
    """
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in tool.environment.items())
    return f'#!/run/guest/bin/busybox sh\n{exports}exec {shlex.quote(str(tool.program))} -C /dev/null "$@"\n'


def _write_line(path: Path, line: str) -> None:
    _write_lines(path, (line,))


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    lines = tuple(lines)
    broken = [line for line in lines if "\n" in line]
    if broken:
        raise RequirementMissing(f"a guest cannot be given a path with a line break in it: {broken[0]!r}")
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", errors="surrogateescape")


def _merge(source: Path, target: Path) -> None:
    """Move everything in `source` into `target`, folder by folder where both have one."""
    for entry in sorted(source.iterdir()):
        there = target / entry.name
        if entry.is_dir() and not entry.is_symlink() and there.is_dir():
            _merge(entry, there)
            entry.rmdir()
        else:
            shutil.move(entry, there)
