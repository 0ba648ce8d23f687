"""The devices of a whole study: nobody else's, free of what was left, and fit to be erased."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import DeviceInUse, DeviceRefused
from bedplate.host.command import Commands
from bedplate.host.devices.device_identity import device_identity
from bedplate.host.devices.journal_device import (
    journal_places,
    journal_refusal_reasons,
    shared_bytes_reasons,
)
from bedplate.host.devices.scratch_device import image_path, refusal_reasons
from bedplate.host.ledger import release_orphans
from bedplate.host.lock import IMAGE_FILES, study_lock, wait_for_last_visit
from bedplate.host.state import state_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bedplate.campaign.display import Display
    from bedplate.executors.protocol import Executor
    from bedplate.model.devices.identity import DeviceIdentity
    from bedplate.model.visit import ScratchDevice

# The visit of a killed start stops its server and unmounts; a full cache on a slow disk takes long.
_LEAVING_LIMIT_S = 300.0
# Where journals in memory stand.
_MEMORY = Path("/dev/shm")  # noqa: S108 -- files of bedplate's own


@contextlib.contextmanager
def claimed(
    scratch: ScratchDevice,
    *,
    study: Path,
    display: Display,
    journal: ScratchDevice | None,
    executor: Executor,
    recorded: Mapping[str, DeviceIdentity] | None = None,
) -> Iterator[Mapping[str, DeviceIdentity]]:
    """Hold the scratch device, and that of external journals, while the study runs; yields which disks they are, by their names.

    DeviceInUse if another study has one or a killed start's leavings cannot be given back, DeviceRefused
    with every reason why one may not be erased, or is not the one that the study has `recorded`. `study` need not exist yet.
    Where visits run on a fleet each claims the device of its own node, and nothing is held here.
    """
    if executor.fleet is not None:
        yield {}
        return
    # Before the locks, which would only say that this very start has the disk.
    if journal is not None and (reasons := shared_bytes_reasons(journal, scratch)):
        raise DeviceRefused(*reasons)
    names = [scratch.device] if scratch.device else [IMAGE_FILES, str(image_path(scratch, study / "scratch"))]
    if journal is not None and journal.device is not None:
        names.append(journal.device)

    def tell(holder: str) -> None:
        display.note(f"waiting for {holder}: a visit on the same device, which its start no longer watches")

    with contextlib.ExitStack() as stack:
        # In one order whatever they are used for, so that two studies cannot wait for each other.
        for name in sorted(names):
            stack.enter_context(study_lock(state_directory(), name, study=str(study)))
        for name in names:
            wait_for_last_visit(state_directory(), name, deadline_s=_LEAVING_LIMIT_S, on_wait=tell)
        free_what_was_left(display)
        # Known before they are looked at: what is erased later is what was looked at, whatever a name does meanwhile.
        known = _identities((scratch, journal), recorded or {})
        reasons = _refusals(
            scratch.recorded_in(known),
            None if journal is None else journal.recorded_in(known),
            _image_directory(study),
            executor,
        )
        if reasons:
            raise DeviceRefused(*reasons)
        yield known


def _identities(
    devices: Iterable[ScratchDevice | None], recorded: Mapping[str, DeviceIdentity]
) -> Mapping[str, DeviceIdentity]:
    """As they were recorded, else as they are now; what is not there has none, and is refused."""
    known = {}
    for device in devices:
        if device is None or device.device is None:
            continue
        found = recorded.get(device.device) or device_identity(device.device)
        if found is not None:
            known[device.device] = found
    return known


def _refusals(
    scratch: ScratchDevice, journal: ScratchDevice | None, directory: Path, executor: Executor
) -> tuple[str, ...]:
    commands = Commands()
    reasons = [*refusal_reasons(scratch, commands, directory=directory)]
    for place in journal_places(journal):
        reasons += journal_refusal_reasons(place, scratch, commands, directory=_MEMORY)
    devices = (scratch.device, journal.device if journal else None)
    reasons += executor.device_reasons(device for device in devices if device is not None)
    return tuple(reasons)


def free_what_was_left(display: Display) -> None:
    """Release orphans and say so; DeviceInUse if something cannot be given back."""
    report = release_orphans(state_directory(), Commands())
    for done in report.released:
        display.note(f"left behind by a killed start: {done}")
    if report.problems:
        raise DeviceInUse(*report.problems, "see `bedplate release`")


def _image_directory(study: Path) -> Path:
    """Where an image would stand, or the nearest place above it that is there: on the same disk."""
    wanted = study / "scratch"
    return next(path for path in (wanted, *wanted.parents) if path.is_dir())
