"""`bedplate plan`: what would happen, before anything does."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedplate.campaign.planning import PlannedStudy, planned_study
from bedplate.campaign.running import refuse_datasets, refuse_nothing_to_run, setting_doubts
from bedplate.cli.printing import print_json, print_tables, say
from bedplate.errors import EXIT_DONE, EXIT_PLAN_OR_CALL_WRONG, EXIT_REQUIREMENT_MISSING, BedplateError
from bedplate.model.cell import Cell, engine_model
from bedplate.model.codec import json_fields
from bedplate.model.devices import MODELLED
from bedplate.model.filesystem import deciding
from bedplate.model.plan import Plan, pruned_lines
from bedplate.model.visit import RESTORED, ScratchDevice
from bedplate.units import KIB, format_count, format_duration, format_size

if TYPE_CHECKING:
    from bedplate.cli.measuring import BuildWork


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
            **json_fields(self, "builds missing setting_doubts=doubts refused"),
        }


def plan_needs(found: PlannedStudy) -> PlanNeeds:
    """Looked at, and nothing touched. Devices of a fleet's nodes stand elsewhere."""
    from bedplate.cli.measuring import build_work  # noqa: PLC0415

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
    from bedplate.host.block_tree import device_contents  # noqa: PLC0415
    from bedplate.host.command import Commands  # noqa: PLC0415
    from bedplate.host.scratch_device import refusal_reasons  # noqa: PLC0415

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


# A schedule of hundreds of visits is not read on a terminal; --json has all of it.
_SHOWN_VISITS = 12


def show_plan(path: Path, *, executor: str | None = None, as_json: bool) -> int:
    """Print who would run it, the cells, the pruned ones with reasons, the order, disk space and time; 0 where it can run as things are."""
    found = planned_study(path, executor=executor)
    needs = plan_needs(found)
    if as_json:
        from bedplate.plan.differences import plan_document  # noqa: PLC0415

        print_json(
            {
                **plan_document(found.plan, found.expansion, found.schedule, found.estimate),
                "executor": found.choice.executor,
                "executor_asked": found.plan.executor,
                "executor_reasons": list(map(str, found.choice.reasons)),
                "kernels": {
                    asked or "": guest.kernel_release for asked, guest in found.choice.platform.guests.items()
                },
                **needs.document(),
            }
        )
        return needs.exit_code
    _print_summary(found, needs)
    _print_cells(found)
    _print_pruned(found)
    _print_schedule(found)
    for warning in (*found.expansion.warnings, *needs.doubts):
        say(f"warning: {warning}")
    for reason in needs.refused:
        print(f"error: {reason}", file=sys.stderr)
    return needs.exit_code


def _print_summary(found: PlannedStudy, needs: PlanNeeds) -> None:
    plan = found.plan
    say(plan.title)
    visits = len(found.schedule.visits)
    for number, reason in enumerate(found.choice.reasons):
        if reason.what:
            say(f"  {reason.what:<16} {reason.which}: {reason.words}")
        else:
            say(f"  {'' if number else 'executor':<16} {reason}")
    say(f"  scratch device   {_scratch_device(plan)}")
    fleet = plan.fleet if found.executor.fleet is not None else None
    if fleet is not None:
        say(f"  nodes            {', '.join(fleet.nodes)}: repetitions in turn, each whole on one node")
        for node, device in fleet.devices.items():
            say(f"                   {node}: {device}, WHICH WILL BE ERASED")
        for node, device in fleet.journal_devices.items():
            say(f"                   {node}: journals on {device}, WHICH WILL BE ERASED")
    if plan.journal_device is not None:
        say(f"  journal device   {_journal_device(plan.journal_device)}")
    _print_devices(needs)
    say(
        f"  cells            {len(found.expansion.cells):,} to run, {len(found.expansion.pruned):,} pruned, "
        f"{format_count(plan.repetitions, 'repetition')}, {format_count(visits, 'visit')}{_of_canaries(found)}"
    )
    tried = found.circumstances.refusals
    untried = len({each.cell.filesystem for each in found.expansion.cells} - set(tried))
    if found.executor.runs_here and untried:
        say(
            f"  not tried yet    {format_count(untried, 'way')} to make and mount a file system; the start tries them, and prunes what this kernel refuses"
        )
    if plan.dataset_by == RESTORED:
        loads = {
            (deciding(planned.cell), load.dataset)
            for planned in found.expansion.cells
            for load in planned.loads
        }
        say(f"  dataset          restored from {format_count(len(loads), 'image')}, each loaded once")
    say(f"  time             about {format_duration(found.estimate.seconds)}{found.executor.estimate_words}")
    for work in needs.builds:
        say(f"  {'':<16} and about {work.words}")
    if found.estimate.data_seconds:
        say(
            f"  {'':<16} and about {format_duration(found.estimate.data_seconds)} to make what the cache lacks"
        )
    say(
        f"  disk space       {format_size(found.estimate.study_bytes)} for the study"
        + (f", {format_size(found.estimate.image_bytes)} for the image" if found.estimate.image_bytes else "")
        + (
            f", {format_size(found.estimate.data_bytes)} of data in the cache"
            if found.estimate.data_bytes
            else ""
        )
    )
    for number, words in enumerate(needs.missing):
        say(f"  {'' if number else 'missing':<16} {words}")
    say()


def _scratch_device(plan: Plan) -> str:
    scratch = plan.scratch_device
    if not scratch.is_image:
        return f"{scratch.device}, WHICH WILL BE ERASED"
    size = format_size(scratch.image_bytes or 0)
    if plan.latencies:
        names = ", ".join(plan.latencies)
        return f"{size} of memory, answered after the times of {names}{'' if MODELLED in names else ' (emulated)'}"
    return f"an image file of {size} (figures include the file system that it lies on)"


def _print_devices(needs: PlanNeeds) -> None:
    """What is there now, and why a start would refuse it."""
    for device in needs.devices:
        for number, words in enumerate(device.contents):
            say(
                f"  {'' if number else 'holds now':<16} {words}{f' ({device.model})' if device.model and not number else ''}"
            )
        for reason in device.refused:
            say(f"  {'refused':<16} {reason}")


def _of_canaries(found: PlannedStudy) -> str:
    boots = len({visit.boot for visit in found.schedule.visits if visit.boot is not None})
    canaries = sum(visit.canary for visit in found.schedule.visits)
    parts = [
        f"{canaries} of canaries" if canaries else "",
        f"in {format_count(boots, 'boot')}" if boots else "",
    ]
    said = ", ".join(part for part in parts if part)
    return f" ({said})" if said else ""


def _journal_device(journal: ScratchDevice) -> str:
    parts = []
    if journal.device is not None:
        parts.append(f"{journal.device}, WHICH WILL BE ERASED")
    if journal.image_bytes is not None:
        parts.append(f"{format_size(journal.image_bytes)} of RAM (a power cut would take the journal)")
    return "; ".join(parts)


def _print_cells(found: PlannedStudy) -> None:
    from bedplate.terminal.fitting_table import FittingTable  # noqa: PLC0415

    cells_of = [planned.cell for planned in found.expansion.cells]
    several = len({cell.build.engine for cell in cells_of}) > 1
    by_variant: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells_of:
        engine = f" {engine_model(cell.build.engine).label}" if several else ""
        by_variant[cell.variant + engine].append(cell)
    table = FittingTable()
    for heading in ("file system", "fs blocks", "db blocks"):
        table.add_column(heading)
    table.add_column("cells", justify="right")
    for variant, cells in by_variant.items():
        table.add_row(
            variant,
            _sizes(cell.filesystem.block_size_bytes for cell in cells),
            _sizes(size for cell in cells if (size := cell.database_block_bytes))
            if any(cell.database_block_bytes for cell in cells)
            else "–",
            str(len(cells)),
        )
    print_tables([table])
    loads = dict.fromkeys(load for planned in found.expansion.cells for load in planned.loads)
    for load in loads:
        levels = ", ".join(load.dataset.levels_in_words)
        say(
            f"each visit: {load.dataset.workload}{levels and f' ({levels})'}: {', then '.join(run.name for run in load.runs)}"
        )
    say()


def _sizes(sizes: Iterable[int | None]) -> str:
    """`1, 2, 4 KiB`; sizes that a plan leaves to mkfs are `default`."""
    known = sorted({size for size in sizes if size is not None})
    if not known:
        return "default"
    if all(size % KIB == 0 for size in known):
        return f"{', '.join(str(size // KIB) for size in known)} KiB"
    return ", ".join(format_size(size) for size in known)


def _print_pruned(found: PlannedStudy) -> None:
    for line in pruned_lines(found.expansion.pruned):
        say(line)
    if found.expansion.pruned:
        say()


def _print_schedule(found: PlannedStudy) -> None:
    from bedplate.campaign.start import Labels  # noqa: PLC0415

    labels = Labels(found.expansion)
    visits = found.schedule.visits
    say(f"order (seed {found.schedule.seed}):")
    boot = None
    for visit in visits[:_SHOWN_VISITS]:
        cell, load = found.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)
        if visit.boot != boot:
            boot = visit.boot
            say(f"  boot {boot}" if boot is not None else "  no boot")
        node = "" if visit.node is None else f" on {visit.node}"
        say(f"  {visit.index + 1:>4}  {labels.of(cell, load, visit)}{node}")
    if len(visits) > _SHOWN_VISITS:
        say(f"  … and {len(visits) - _SHOWN_VISITS:,} more; --json lists all")
