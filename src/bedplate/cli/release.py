"""`bedplate release`: give back what a killed start left behind, or what the cache keeps for nobody."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bedplate.cli.asking import agreed
from bedplate.errors import EXIT_DONE, EXIT_SOME_RUNS_FAILED
from bedplate.filesystem.adapter import Site
from bedplate.filesystem.mounted import MountedDisk
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.command import Commands
from bedplate.host.files import state_directory
from bedplate.host.ledger import Ledger
from bedplate.host.lock import device_lock, study_lock
from bedplate.host.requirement import demand, look
from bedplate.host.scratch_device import AttachedDevice, prepare, release_device
from bedplate.installation import top
from bedplate.model.cell import FilesystemLevels
from bedplate.model.visit import ScratchDevice
from bedplate.units import format_count, format_size


def release() -> int:
    """Release every orphan, say what was done, and what could not be; without root the caller's guests."""
    from bedplate.host.command import Commands  # noqa: PLC0415
    from bedplate.host.files import state_directory  # noqa: PLC0415
    from bedplate.host.ledger import release_orphans  # noqa: PLC0415

    if os.geteuid() != 0:
        print("without root these are the guests of this account; mounts and servers are released with sudo")
    report = release_orphans(state_directory(), Commands())
    for done in report.released:
        print(done)
    for alive in report.alive:
        print(f"left alone: {alive}")
    for problem in report.problems:
        print(f"error: {problem}", file=sys.stderr)
    if not report.released and not report.problems:
        print("nothing was left behind")
    return EXIT_SOME_RUNS_FAILED if report.problems else EXIT_DONE


def release_cache(*, yes: bool, days: float | None = None) -> int:
    """Say what the cache holds that nothing uses, and how much; remove it after a yes.

    What is kept for the next start counts when nothing asked for it in more than `days`; a month unless given.
    """
    from bedplate.campaign.preparation import UNUSED_DAYS, find_spare, remove  # noqa: PLC0415
    from bedplate.host.command import Commands  # noqa: PLC0415
    from bedplate.host.files import cache_directory  # noqa: PLC0415

    cache = cache_directory()
    found = find_spare(cache, checkout=top(), commands=Commands(), days=UNUSED_DAYS if days is None else days)
    for spare in found:
        print(f"{format_size(spare.size_bytes):>9}  {spare.path.relative_to(cache)}: {spare.reason}")
        if spare.held:
            print(f"           left alone: {spare.held[0]}")
    free = [spare for spare in found if not spare.held]
    if not free:
        print(f"{cache} has nothing to remove")
        return EXIT_DONE
    what = f"{format_size(sum(spare.size_bytes for spare in free))} in {format_count(len(free), 'folder')}"
    if not yes and not agreed(f"Remove {what} of {cache}?"):
        print(f"{what} of {cache} can go; nothing was removed, --yes removes them")
        return EXIT_DONE
    problems = [problem for spare in free if (problem := remove(spare)) is not None]
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    print(f"{len(free) - len(problems)} of {len(free)} removed")
    return EXIT_SOME_RUNS_FAILED if problems else EXIT_DONE


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
    demand(look(filesystem_for(FILESYSTEM).needs))
    target = ledger.directory / "mount"
    target.mkdir()
    site = Site(FilesystemLevels(FILESYSTEM), device, target, commands)
    with MountedDisk(site, ledger) as disk:
        disk.make()
        disk.mount()
        yield target
