"""What a plan would meet on this machine: the devices that it erases, and the programs and rights that are missing."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bedplate.campaign.doubts import setting_doubts
from bedplate.campaign.refusals import refuse_datasets, refuse_nothing_to_run
from bedplate.errors import (
    EXIT_DONE,
    EXIT_PLAN_OR_CALL_WRONG,
    EXIT_REQUIREMENT_MISSING,
    BedplateError,
)
from bedplate.model.codec import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.campaign.planning import PlannedStudy
    from bedplate.cli.build_work import BuildWork


@dataclass(frozen=True)
class ErasedDevice:
    """A device that the plan erases: what it is and holds, and why it would be refused as things are."""

    name: str
    model: str
    contents: tuple[str, ...]
    refused: tuple[str, ...]


@dataclass(frozen=True)
class PlanNeeds:
    """The devices, what is built first, what is missing, each with the way to it, and doubts about settings.

    `refused` are the reasons for which a start would refuse the plan itself, whatever is installed.
    """

    devices: tuple[ErasedDevice, ...]
    builds: tuple[BuildWork, ...]
    missing: tuple[str, ...]
    doubts: tuple[str, ...]
    refused: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 only where a start would begin: 2 where the plan comes to nothing here, 3 where something is missing, or a device is refused."""
        if self.refused:
            return EXIT_PLAN_OR_CALL_WRONG
        lacks = self.missing or any(device.refused for device in self.devices)
        return EXIT_REQUIREMENT_MISSING if lacks else EXIT_DONE

    def document(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            "erased_devices": [
                {"device": each.name, "model": each.model, "holds": each.contents, "refused": each.refused}
                for each in self.devices
            ],
            "builds": to_json(self.builds),
            "missing": list(self.missing),
            "setting_doubts": list(self.doubts),
            "refused": list(self.refused),
        }


def plan_needs(found: PlannedStudy) -> PlanNeeds:
    """Looked at, and nothing touched. Devices of a fleet's nodes stand elsewhere."""
    from bedplate.cli.build_work import build_work  # noqa: PLC0415 -- a plan that is wrong loads less

    here = found.executor.fleet is None
    return PlanNeeds(
        tuple(_devices(found)) if here else (),
        build_work(found),
        tuple(_missing(found)),
        setting_doubts(found),
        tuple(_refused(found)),
    )


def _refused(found: PlannedStudy) -> Iterator[str]:
    for refuse in (refuse_nothing_to_run, refuse_datasets):
        try:
            refuse(found)
        except BedplateError as error:
            yield from error.reasons


def _devices(found: PlannedStudy) -> Iterator[ErasedDevice]:
    from bedplate.host.command import Commands  # noqa: PLC0415
    from bedplate.host.devices.contents import device_contents  # noqa: PLC0415
    from bedplate.host.devices.scratch_device import refusal_reasons  # noqa: PLC0415

    commands = Commands()
    for scratch in (found.plan.scratch_device, found.plan.journal_device):
        if scratch is None or scratch.device is None:
            continue
        seen = device_contents(scratch.device, commands)
        try:
            refused = refusal_reasons(replace(scratch, erase=(scratch.device,)), commands)
        except BedplateError as error:
            refused = error.reasons
        if seen is None:
            yield ErasedDevice(scratch.device, "", (), refused)
            continue
        # What cannot be read is said by the reasons for which the device would be refused.
        contents = tuple(each.words for each in seen.found)
        yield ErasedDevice(scratch.device, seen.model, contents, refused)


def _missing(found: PlannedStudy) -> Iterator[str]:
    from bedplate.campaign.preparation import requirements_of  # noqa: PLC0415
    from bedplate.host.requirement import install_command, missing, read_os_release  # noqa: PLC0415

    lacking = missing(requirements_of(found.cells, found.workloads, executor=found.executor))
    yield from (each.sentence for each in lacking)
    command = install_command(lacking, os_release=read_os_release()) if lacking else None
    if command is not None:
        yield f"install them: {'' if os.geteuid() == 0 else 'sudo '}{' '.join(command)}"
    if found.executor.runs_here and os.geteuid() != 0:
        yield "root: measuring here formats and mounts; start it with sudo, or in a guest with --executor qemu"
