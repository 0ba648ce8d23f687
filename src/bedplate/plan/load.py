"""A TOML text to a `Plan`, or a PlanError with every reason at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from math import ceil, prod
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bedplate.errors import PlanError
from bedplate.model.cell import (
    JOURNAL_IN_RAM,
    JOURNAL_ON_DEVICE,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
)
from bedplate.model.filesystem import unsafe_options
from bedplate.model.fleet import Fleet
from bedplate.model.levels import Levels
from bedplate.model.plan import DEFAULTS_VERSION, Canary, EngineSetup, GuestPlan, Plan
from bedplate.model.source_commit import KernelSource, PlanSources, SourceTree
from bedplate.model.visit import ScratchDevice
from bedplate.plan.chosen_cells import chosen
from bedplate.plan.document import WHOLE, Document, FilesystemTable
from bedplate.plan.engine_table import asked
from bedplate.plan.estimate import device_bytes_needed
from bedplate.plan.expand import expand
from bedplate.plan.fields import FEATURES
from bedplate.plan.reasons import bounded, sentences
from bedplate.plan.toml.parsed import parse_toml
from bedplate.plan.trees.commits import Revisions, left_out
from bedplate.plan.values import JOURNAL_BYTES, SMALLEST_IMAGE_BYTES
from bedplate.plan.warnings import warnings
from bedplate.plan.words import at_most, shown
from bedplate.plan.workloads import cells_named, workloads

MOST_CELLS = 20_000
MOST_RUNS_PER_VISIT = 1000
MOST_VISITS = 100_000
# An image that a plan does not size: what its largest visit needs with a tenth more, in steps of the smallest allowed.
_SPARE = 1.1
_IMAGE_STEP_BYTES = SMALLEST_IMAGE_BYTES
# Ordering and estimating take some 25 microseconds for each.
MOST_RUNS = 500_000

_UNUSED_JOURNAL_DEVICE = (
    'journal_device: no file system asks for journal = "external", so nothing is done with it'
)


def load_plan(
    text: str,
    *,
    source: str,
    directory: Path,
    defaults: int = DEFAULTS_VERSION,
    revisions: Revisions | None = None,
    kept: Mapping[str, str] | None = None,
) -> Plan:
    """The plan in a TOML text.

    `source` is the file's name in errors; files that the plan names (an own script, an own
    postgresql.conf) are read from `directory`. `defaults` is the version of the table of defaults: a study stays with
    the one that it was begun with. `revisions` looks commits up; without it they are read from a study's notes alone. `kept` are
    those notes of a study that the plan goes on with, by their paths. PlanError has all reasons, each with the file, the
    key, what was found and what is allowed.
    """
    name = source if source.isprintable() and len(source) <= 300 else shown(source)
    try:
        files: dict[str, str] = {}
        archives: dict[str, str] = {}
        trees: dict[str, SourceTree] = {}
        patches: dict[str, str] = {}
        kernels: dict[str, KernelSource] = {}
        context = {
            "files": files,
            "archives": archives,
            "trees": trees,
            "patches": patches,
            "kernels": kernels,
        }
        document = _document(
            parse_toml(text), {**context, "directory": directory, "revisions": revisions, "kept": kept}
        )
        _refuse_too_many(document)
        plan = _plan(document, files, defaults)
        unknown = tuple(filter(None, map(left_out, trees.values())))
        return replace(
            plan,
            archives=archives,
            sources=PlanSources(trees, patches, kernels),
            warnings=(*plan.warnings, *unknown),
        )
    except PlanError as error:
        raise PlanError(*(f"{name}: {bounded(reason)}" for reason in error.reasons)) from None


def _document(values: dict[str, Any], context: dict[str, Any]) -> Document:
    """`context` receives texts of files that the plan names, places of those that are not copied, trees, patches."""
    try:
        return WHOLE.model_validate(values, context=context)
    except ValidationError as error:
        raise PlanError(*sentences(error, values)) from None
    except RecursionError:
        raise PlanError("the plan is nested too deeply") from None


def _refuse_too_many(document: Document) -> None:
    """Counts before anything is multiplied out, so that a short text cannot fill the memory."""
    reasons = []
    devices = prod(map(len, (*_device_factors(document), asked(document.machine.kernel))))
    filesystems = sum(prod(map(len, _filesystem_factors(table))) for table in document.filesystem)
    used = {name for table in document.workload for name in table.engines()}
    engine = sum(map(document.setup_count, used))
    cells = devices * filesystems * engine
    if cells > MOST_CELLS:
        reasons.append(
            f"the plan comes to {cells} cells ({devices} of device and machine x {filesystems} file systems "
            f"x {engine} of the engines); allowed are {MOST_CELLS}"
        )
    for index, workload in enumerate(document.workload):
        runs = workload.run_count()
        if runs > MOST_RUNS_PER_VISIT:
            reasons.append(f"workload[{index}]: {runs} runs in one visit; allowed are {MOST_RUNS_PER_VISIT}")
    visits = cells * document.repetitions * sum(table.dataset_count() for table in document.workload)
    if visits > MOST_VISITS and cells <= MOST_CELLS:
        reasons.append(f"the plan comes to {visits} visits; allowed are {MOST_VISITS}")
    per_cell = sum(table.run_count() * table.dataset_count() for table in document.workload)
    runs = cells * document.repetitions * per_cell
    if not reasons and runs > MOST_RUNS:
        reasons.append(f"the plan comes to {runs} runs; allowed are {MOST_RUNS}")
    if reasons:
        raise PlanError(*reasons)


def _plan(document: Document, files: dict[str, str], defaults: int) -> Plan:
    reasons: list[str] = []
    engines = _engines(document)
    tables = tuple(table.suited(engines) for table in document.workload)
    plan = Plan(
        title=document.title or _title(document),
        repetitions=document.repetitions,
        seed=document.seed,
        executor=document.executor,
        dataset_by=document.dataset,
        scratch_device=ScratchDevice(
            device=document.scratch_device.device, image_bytes=document.scratch_device.image_size
        ),
        devices=tuple(DeviceLevels(*levels) for levels in product(*_device_factors(document))),
        kernels=tuple(map(KernelLevels, asked(document.machine.kernel))),
        filesystems=_filesystems(document, reasons),
        engines=engines,
        workloads=workloads(tables, document.seed, reasons, defaults=defaults),
        canary=Canary(document.canary.enabled, document.canary.every, document.canary.filesystem),
        files=files,
        journal_device=_journal_device(document, reasons),
        guest=GuestPlan(document.guest.visits_per_boot, document.guest.memory),
        fleet=_fleet(document, reasons),
    )
    if not reasons:
        plan = chosen(plan, cells_named(document.workload), reasons)
    if reasons:
        raise PlanError(*at_most(reasons, 100))
    plan = _with_place(plan)
    unused = document.journal_device is not None and plan.journal_device is None
    return replace(plan, warnings=warnings(plan) + ((_UNUSED_JOURNAL_DEVICE,) if unused else ()))


def _title(document: Document) -> str:
    """What varies first of all, for a plan that has no title."""
    kinds = dict.fromkeys(kind for table in document.filesystem for kind in table.type)
    kernels = document.machine.kernel
    under = f" under kernels {' and '.join(kernels)}" if kernels else ""
    loads = dict.fromkeys(table.type for table in document.workload)
    return f"{', '.join(loads)} on {', '.join(kinds)}{under}"[:200]


def _with_place(plan: Plan) -> Plan:
    """The plan with an image file that holds its largest visit, where it says nothing of a scratch device."""
    if plan.scratch_device != ScratchDevice():
        return plan
    try:
        # A canary has an image of its own; where it cannot be, the scratch device is not what is wrong.
        cells = expand(replace(plan, canary=replace(plan.canary, enabled=False)), None).cells
    except PlanError as error:
        raise PlanError(*(f"scratch_device: missing; {reason}" for reason in error.reasons)) from None
    needed = max((device_bytes_needed(each.cell, load) for each in cells for load in each.loads), default=0)
    steps = ceil(needed * _SPARE / _IMAGE_STEP_BYTES)
    return replace(plan, scratch_device=ScratchDevice(image_bytes=max(1, steps) * _IMAGE_STEP_BYTES))


def _fleet(document: Document, reasons: list[str]) -> Fleet | None:
    table = document.slurm
    if table is None:
        return None
    for node, device in table.journal_devices.items():
        if device == table.devices.get(node, document.scratch_device.device):
            reasons.append(
                f"slurm.journal_devices.{node}: it is the node's scratch device; a journal needs another one"
            )
    journal = None if document.journal_device is None else document.journal_device.device
    for node, device in table.devices.items():
        if device == journal and node not in table.journal_devices:
            reasons.append(f"slurm.devices.{node}: it is the device of [journal_device]; name another one")
    return Fleet(
        nodes=table.nodes,
        partition=table.partition,
        constraint=table.constraint,
        account=table.account,
        gres=table.gres,
        time_s=table.time,
        devices=table.devices,
        local_directory=table.local_directory,
        controller_deadline_s=table.controller_deadline,
        differing=table.differing,
        journal_devices=table.journal_devices,
    )


def _engines(document: Document) -> tuple[EngineSetup, ...]:
    """The setup of every engine that a workload of the plan runs on."""
    used = dict.fromkeys(name for table in document.workload for name in table.engines())
    return tuple(map(document.setup_of, used))


def _device_factors(document: Document) -> tuple[tuple[Any, ...], ...]:
    """In the order of DeviceLevels' fields."""
    scratch = document.scratch_device
    return tuple(
        map(
            asked,
            (
                document.machine.memory,
                scratch.throttle,
                scratch.read_ahead,
                scratch.scheduler,
                scratch.latency,
            ),
        )
    )


def _filesystem_factors(table: FilesystemTable) -> tuple[tuple[Any, ...], ...]:
    """The block size last, so that the variants of one heat map stand together."""
    names = ("type", "mkfs_options", "mount_options", "journal", "journal_device", *FEATURES, "barrier")
    return tuple(
        map(asked, (*(getattr(table, name) for name in names), table.block_size or table.recordsize))
    )


def _journal_device(document: Document, reasons: list[str]) -> ScratchDevice | None:
    """What external journals stand on, None where no variant has one; RAM if the plan does not say."""
    if not any("external" in filesystem.journal for filesystem in document.filesystem):
        return None
    table = document.journal_device
    if table is None:
        return ScratchDevice(image_bytes=JOURNAL_BYTES)
    if table.device is not None and table.device == document.scratch_device.device:
        reasons.append("journal_device.device: it is the scratch device; a journal needs another one")
    return ScratchDevice(device=table.device, image_bytes=table.ram_size)


def _journal_places(document: Document) -> tuple[str, ...]:
    """Where external journals can stand; the first one is where they do unless a variant says otherwise."""
    table = document.journal_device
    if table is None:
        return (JOURNAL_IN_RAM,)
    known = ((JOURNAL_ON_DEVICE, table.device), (JOURNAL_IN_RAM, table.ram_size))
    return tuple(name for name, value in known if value is not None)


def _filesystems(document: Document, reasons: list[str]) -> tuple[FilesystemLevels, ...]:
    places = _journal_places(document)
    found: dict[FilesystemLevels, int] = {}
    for index, table in enumerate(document.filesystem):
        for levels in product(*_filesystem_factors(table)):
            kind, mkfs, mount, journal, place, *features, barrier, block_size = levels
            if journal == "external" and place is None:
                if len(places) > 1:
                    reasons.append(
                        f"filesystem[{index}].journal_device: [journal_device] names a device and RAM; "
                        'write which: "ram" or "device"'
                    )
                    break
                (place,) = places
            elif place is not None and place not in places:
                key = "device" if place == JOURNAL_ON_DEVICE else "ram_size"
                reasons.append(
                    f"filesystem[{index}].journal_device: {place!r} needs {key} in [journal_device]"
                )
                break
            asked = zip(FEATURES, features, strict=True)
            filesystem = FilesystemLevels(
                type=kind,
                block_size_bytes=block_size,
                mkfs_options=mkfs or (),
                mount_options=mount or (),
                barrier=barrier,
                journal=journal,
                features=Levels({name: level for name, level in asked if level is not None}),
                journal_device=place if journal == "external" else None,
            )
            if found.get(filesystem) == index:
                continue  # the place of a journal that is not external: no difference
            if filesystem in found:
                reasons.append(
                    f"filesystem[{index}]: makes the same variant as filesystem[{found[filesystem]}]; "
                    "take it out of one of them"
                )
                break
            found[filesystem] = index
            reasons += (f"filesystem[{index}]: {reason}" for reason in unsafe_options(filesystem))
    return tuple(found)
