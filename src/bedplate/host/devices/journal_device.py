"""The device of an external journal: memory behind a loop device, or a second device guarded like the first.

Nothing but the journal of one visit is ever on it, so it is wiped when the visit ends: most journals
carry no label, and the next start would take what was left for a stranger's.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import RequirementMissing
from bedplate.host.devices.block_tree import BlockTree
from bedplate.host.devices.loop import attach_loop, detach_loop, image_reasons, write_image
from bedplate.host.devices.scratch_device import overlap_reasons, prepare, refusal_reasons
from bedplate.host.devices.signature import erase_signatures, fingerprint
from bedplate.host.ledger import Holding
from bedplate.host.mount import type_below

if TYPE_CHECKING:
    from bedplate.host.command import Commands
    from bedplate.host.devices.device import AttachedDevice
    from bedplate.host.ledger import Ledger
    from bedplate.model.visit import ScratchDevice

# Where it stands if the request names no place.
MEMORY_DIRECTORY = Path("/dev/shm")  # noqa: S108 -- a file of its own is made in it
_MEMORY = "tmpfs"


def journal_refusal_reasons(
    journal: ScratchDevice,
    scratch: ScratchDevice,
    commands: Commands,
    *,
    directory: Path,
    tree: BlockTree | None = None,
) -> tuple[str, ...]:
    """Every reason why the journal cannot stand there; () if it can. Writes nothing.

    `directory` is where an image would stand if the request names none; it must be in memory.
    """
    if journal.device is None:
        return _memory_reasons(journal, Path(journal.image_directory or directory))
    tree = tree or BlockTree()
    return (
        *refusal_reasons(journal, commands, tree=tree),
        *shared_bytes_reasons(journal, scratch, tree=tree),
    )


def prepare_journal(
    journal: ScratchDevice,
    scratch: AttachedDevice | None,
    *,
    ledger: Ledger,
    commands: Commands,
    directory: Path,
    tree: BlockTree | None = None,
    expected: str | None = None,
) -> AttachedDevice:
    """Make it ready for mkfs: an image in memory is written and attached, a real device loses its signatures.

    DeviceRefused or RequirementMissing with every reason, asked again a moment before, of the device that
    is then erased. `expected` is the node whose lock is held, None for an image. `scratch` is the scratch device as it was taken, whatever its name means by now.
    """
    if journal.device is None:
        place = Path(journal.image_directory or directory)
        reasons = _memory_reasons(journal, place)
        if reasons:
            raise RequirementMissing(*reasons)
        path = _image_path(place)
        ledger.note(Holding("image", str(path)))
        # Written in full: memory that is only taken while a run is measured would be measured too.
        write_image(path, journal.image_bytes or 0)
        return attach_loop(path, ledger=ledger, commands=commands, in_memory=True)
    return prepare(
        journal,
        ledger=ledger,
        commands=commands,
        directory=directory,
        tree=tree,
        apart_from=scratch,
        expected=expected,
    )


def note_journal(
    journal: ScratchDevice, device: AttachedDevice, *, ledger: Ledger, commands: Commands
) -> None:
    """Write down what mkfs left on a real device, so that a later start knows it for ours and wipes it."""
    if journal.device is not None:
        ledger.note(Holding("journal_device", journal.device, fingerprint(device.path, commands)))


def release_journal(
    journal: ScratchDevice, device: AttachedDevice, *, ledger: Ledger, commands: Commands
) -> None:
    """Wipe a real device; detach and delete an image. Safe to repeat."""
    if journal.device is not None:
        erase_signatures(device.path, commands)
        ledger.settled(Holding("journal_device", journal.device))
        if device.hold is not None:
            device.hold.close()
        return
    if device.image is None:
        raise ValueError(f"{device.path} is no loop device of bedplate's own")
    detach_loop(device, ledger=ledger, commands=commands)
    device.image.unlink(missing_ok=True)
    ledger.settled(Holding("image", str(device.image)))


def _image_path(directory: Path) -> Path:
    # Several visits may run side by side, on scratch devices of their own.
    return directory / f"bedplate-journal-{os.getpid()}.img"


def _memory_reasons(journal: ScratchDevice, directory: Path) -> tuple[str, ...]:
    reasons = image_reasons(_image_path(directory), journal.image_bytes or 0)
    kind = type_below(directory) if directory.is_dir() else _MEMORY
    if kind == _MEMORY:
        return reasons
    where = f"a journal in memory cannot lie in {directory}, which is on {kind or 'an unknown file system'}"
    return (*reasons, f"{where}; name a directory on a tmpfs, such as /dev/shm")


def shared_bytes_reasons(
    journal: ScratchDevice, scratch: ScratchDevice, *, tree: BlockTree | None = None
) -> tuple[str, ...]:
    """Why the journal's device and the scratch device are no two, by their names alone; () where either is an image."""
    if journal.device is None or scratch.device is None:
        return ()
    tree = tree or BlockTree()
    name, other = tree.name_at(journal.device), tree.name_at(scratch.device)
    if name is None or other is None:
        return ()
    return overlap_reasons(journal.device, name, scratch.device, other, tree)


def journal_places(journal: ScratchDevice | None) -> tuple[ScratchDevice, ...]:
    """The journal in memory and the one on a device, where a plan has both."""
    if journal is None:
        return ()
    parts = []
    if journal.device is not None:
        parts.append(replace(journal, image_bytes=None))
    if journal.image_bytes is not None:
        parts.append(replace(journal, device=None))
    return tuple(parts)
