"""The scratch device for a whole study: nobody else's, free of what was left, and fit to be erased."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from bedplate.errors import DeviceInUse, DeviceRefused
from bedplate.executor.state import state_directory
from bedplate.host.command import Commands
from bedplate.host.ledger import release_orphans
from bedplate.host.lock import IMAGE_FILES, study_lock, wait_for_last_visit
from bedplate.host.scratch_device import refusal_reasons

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bedplate.executor.display import Display
    from bedplate.model.visit import ScratchDevice

# The visit of a killed start stops its server and unmounts; a full cache on a slow disk takes long.
_LEAVING_LIMIT_S = 300.0


@contextlib.contextmanager
def claimed(scratch: ScratchDevice, *, study: Path, display: Display) -> Iterator[None]:
    """Hold the scratch device while the study runs.

    DeviceInUse if another study has it or a killed start's leavings cannot be given back, DeviceRefused
    with every reason why it may not be erased. `study` need not exist yet.
    """
    name = scratch.device or IMAGE_FILES

    def tell(holder: str) -> None:
        display.note(f"waiting for {holder}: a visit on the same device, which its start no longer watches")

    with study_lock(state_directory(), name, study=str(study)):
        wait_for_last_visit(state_directory(), name, deadline_s=_LEAVING_LIMIT_S, on_wait=tell)
        free_what_was_left(display)
        reasons = refusal_reasons(scratch, Commands(), directory=_image_directory(study))
        if reasons:
            raise DeviceRefused(*reasons)
        yield


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
