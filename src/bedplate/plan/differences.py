"""What differs between two plans, in words: why a study cannot go on, or cannot be extended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from bedplate import registry
from bedplate.model.cell import Cell, RunSpec, digest
from bedplate.model.codec import to_json
from bedplate.model.course import first_of
from bedplate.model.levels import Levels, Scalar, as_in_a_plan
from bedplate.model.plan import DatasetScale, Expansion, Plan, PlannedWorkload, Schedule, model_of
from bedplate.model.reason import sentences
from bedplate.model.visit import ScratchDevice
from bedplate.plan.estimate import StudyEstimate
from bedplate.plan.expand import canary_filesystem, canary_kernel
from bedplate.plan.rules import LOCAL, QEMU
from bedplate.plan.words import in_quotes
from bedplate.units import format_duration, format_size

_MOST_NAMES = 5


def differences(old: Plan, new: Plan) -> tuple[str, ...]:
    """Every difference that decides a result, a sentence each; empty for plans of one digest.

    The title is none of them, nor are comments, and neither is the order in which levels are listed.
    """
    return (*_cells(old, new), *_repetitions(old, new), *_the_rest(old, new))


def obstacles_to_extend(old: Plan, new: Plan) -> tuple[str, ...]:
    """The differences by which `new` is no extension of `old`, which adds repetitions or cells only."""
    found = list(_the_rest(old, new))
    if new.repetitions < old.repetitions:
        found += _repetitions(old, new)
    missing = _cell_ids(old) - _cell_ids(new)
    if missing:
        found.append(f"cells taken out: {_names(missing)}")
    if old.canary.enabled:
        before, after = (canary_filesystem(plan, list(plan.cells())) for plan in (old, new))
        if before != after:
            found.append(
                f'the canary would move from {before} to {after}; write filesystem = "{before}" in [canary]'
            )
        kernels = tuple(canary_kernel(list(plan.cells()), before).release for plan in (old, new))
        if new.executor in {QEMU, "auto"} and kernels[0] != kernels[1]:
            found.append(
                f"the canary would move from kernel {_word(kernels[0])} to {_word(kernels[1])}; "
                "list the kernels that are new last"
            )
    return tuple(found)


def _cell_ids(plan: Plan) -> set[str]:
    return {cell.id for cell in plan.cells()}


def _names(names: set[str]) -> str:
    return first_of(sorted(names), _MOST_NAMES)


def _cells(old: Plan, new: Plan) -> Iterator[str]:
    before, after = _cell_ids(old), _cell_ids(new)
    if after - before:
        yield f"cells added: {_names(after - before)}"
    if before - after:
        yield f"cells taken out: {_names(before - after)}"


def _repetitions(old: Plan, new: Plan) -> Iterator[str]:
    yield from _changed("repetitions", old.repetitions, new.repetitions)


def _the_rest(old: Plan, new: Plan) -> Iterator[str]:
    yield from _changed("seed", old.seed, new.seed)
    yield from _changed("executor", old.executor, new.executor)
    yield from _changed("dataset", old.dataset_by, new.dataset_by)
    yield from _changed("scratch_device", _device(old.scratch_device), _device(new.scratch_device))
    # With the first cell that has one, or the last, the cells are the difference.
    if old.journal_device is not None and new.journal_device is not None:
        before, after = old.journal_device, new.journal_device
        yield from _changed("journal_device.device", before.device, after.device)
        yield from _changed("journal_device.ram_size", _size(before.image_bytes), _size(after.image_bytes))
    yield from _changed("guest.visits_per_boot", old.guest.visits_per_boot, new.guest.visits_per_boot)
    yield from _changed("guest.memory", *(_size(plan.guest.memory_bytes) for plan in (old, new)))
    yield from _fleet(old, new)
    yield from _changed("canary.enabled", old.canary.enabled, new.canary.enabled)
    yield from _changed(
        "canary.every", format_duration(old.canary.every_s), format_duration(new.canary.every_s)
    )
    yield from _changed("canary.filesystem", old.canary.filesystem, new.canary.filesystem)
    yield from _workloads(old, new)


def _fleet(old: Plan, new: Plan) -> Iterator[str]:
    """How jobs are asked for is none of them: a limit of time may be raised while a study runs."""
    before = {} if old.fleet is None else dict(old.fleet.deciding)
    after = {} if new.fleet is None else dict(new.fleet.deciding)
    for name in ("nodes", "devices", "journal_devices", "local_directory"):
        yield from _changed(f"slurm.{name}", _listed(before.get(name)), _listed(after.get(name)))


def _listed(value: object) -> object:
    if isinstance(value, dict):
        return ", ".join(f"{node} {device}" for node, device in value.items()) or None
    return ", ".join(map(str, value)) if isinstance(value, tuple) else value


def _changed(key: str, before: object, after: object) -> Iterator[str]:
    if before != after:
        yield f"{key}: was {_word(before)}, is {_word(after)}"


def _word(value: object) -> str:
    if value is None:
        return "not asked for"
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) and len(value) <= 80 and value.isprintable() else in_quotes(value)


def _device(device: ScratchDevice) -> str | None:
    return device.device if device.image_bytes is None else f"an image of {format_size(device.image_bytes)}"


def _size(size_bytes: int | None) -> str | None:
    return None if size_bytes is None else format_size(size_bytes)


def _workloads(old: Plan, new: Plan) -> Iterator[str]:
    before, after = _by_dataset(old), _by_dataset(new)
    for key in sorted(set(before) | set(after)):
        if key not in before:
            yield f"workload {key}: added"
        elif key not in after:
            yield f"workload {key}: taken out"
        else:
            yield from _runs(key, before[key], after[key])


def _by_dataset(plan: Plan) -> dict[str, PlannedWorkload]:
    by_scale = {
        f"{workload.type} at scale {_scale(scale)}{_restriction_words(workload)}": workload
        for workload in plan.workloads
        for scale in workload.scales
    }
    by_levels = {
        f"{workload.type} at {', '.join(_dataset_level(name, level) for name, level in levels.items())}{_restriction_words(workload)}": workload
        for workload in plan.workloads
        for levels in workload.datasets
    }
    return {**by_scale, **by_levels}


def _dataset_level(name: str, level: Scalar) -> str:
    """As a plan has it; a text and a checksum by a few digits, which tell two of them apart."""
    if name.endswith("_text"):
        return f"{name} {digest(level, length=8)}"
    return f"{name} {str(level)[:8] if name.endswith('_sha256') else as_in_a_plan(level)}"


def _scale(scale: DatasetScale) -> str:
    if scale.times_memory is not None:
        return f"{scale.times_memory:g}x memory"
    return "what suits the memory" if scale.units is None else str(scale.units)


def _restriction_words(workload: PlannedWorkload) -> str:
    """Two workloads of one dataset differ in the cells that they run in."""
    tables = dict.fromkeys(choice.levels for choice in workload.only)
    words = (" and ".join(f"{name} {'/'.join(map(str, at))}" for name, at in table) for table in tables)
    return f" in cells of {'; '.join(word or 'the first' for word in words)}" if tables else ""


def _runs(key: str, old: PlannedWorkload, new: PlannedWorkload) -> Iterator[str]:
    before = {run.name: run for run in old.runs}
    after = {run.name: run for run in new.runs}
    for name in dict.fromkeys([*before, *after]):
        if name not in before:
            yield f"workload {key}: run {name} added"
        elif name not in after:
            yield f"workload {key}: run {name} taken out"
        else:
            yield from _run(f"workload {key}: run {name}", before[name], after[name])
    # One run can warm the cache for the next.
    if list(before) != list(after) and set(before) == set(after):
        yield f"workload {key}: the runs come in another order"


def _run(key: str, old: RunSpec, new: RunSpec) -> Iterator[str]:
    for name in sorted(set(old.levels) | set(new.levels)):
        before, after = _level(old.levels, name), _level(new.levels, name)
        if before != after and name.endswith("_text"):
            yield f"{key}: the text of the script changed"
        else:
            yield from _changed(f"{key}: {name}", before, after)


def _level(levels: Levels, name: str) -> object:
    return levels.get(name)


def plan_document(
    plan: Plan, expansion: Expansion, schedule: Schedule, estimated: StudyEstimate
) -> dict[str, Any]:
    """What a plan comes to, ready for `json.dumps`.

    `cells` and `pruned` have `id`, `variant`, the asked `levels` by dotted name; `cells` also their
    `loads`, `pruned` their `reasons`.
    """
    return {
        "title": plan.title,
        "digest": plan.digest,
        "repetitions": plan.repetitions,
        "seed": schedule.seed,
        "executor": plan.executor,
        "scratch_device": to_json(plan.scratch_device),
        "dataset": plan.dataset_by,
        "cells": [
            {
                **_cell(planned.cell),
                "loads": [
                    {"id": load.dataset.id, **to_json(load.dataset), "runs": to_json(load.runs)}
                    for load in planned.loads
                ],
            }
            for planned in expansion.cells
        ],
        "pruned": [
            {**_cell(pruned.cell), "reasons": list(sentences(pruned.reasons))} for pruned in expansion.pruned
        ],
        "canary": None if expansion.canary is None else _cell(expansion.canary.cell),
        "schedule": to_json(schedule.visits),
        "estimate": to_json(estimated),
        "warnings": list(expansion.warnings),
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {"id": cell.id, "variant": cell.variant, "levels": to_json(cell.levels)}


# A disk that turns does at most so many I/Os a second; where there are more, what is merged matters little.
_DISK_IOPS = 1000


# The role `warnings` of a workload and of an engine: sentences. What can be asked for without a doubt has no such file.
PlanWarnings: TypeAlias = Callable[[Plan], Iterable[str]]


def warnings(plan: Plan) -> tuple[str, ...]:
    """Sentences, each once."""
    known: list[Mapping[str, PlanWarnings]] = [registry.parts("warnings"), registry.engine_parts("warnings")]
    found = [sentence for role in known for warn in role.values() for sentence in warn(plan)]
    if plan.repetitions < 3 and any(model_of(workload.type).has_speed for workload in plan.workloads):
        found.append(
            f"repetitions = {plan.repetitions}: the report describes, and gives no verdicts; "
            "`bedplate run STUDY --repetitions N` adds repetitions"
        )
    if plan.executor == LOCAL and len(plan.kernels) > 1:
        found.append(
            'machine.kernel: with executor = "local" this machine itself must boot each of the kernels, again and again; '
            'executor = "qemu" runs them in guests'
        )
    found += _journals_of_data(plan)
    return tuple(dict.fromkeys(found))


def _journals_of_data(plan: Plan) -> Iterator[str]:
    """The kernel's throttling counts what is submitted; a disk, and a device with latency, what is left when neighbours are merged."""
    limits = [device.throttle.write_iops for device in plan.devices if device.throttle is not None]
    if any(limit is not None and limit <= _DISK_IOPS for limit in limits) and any(
        filesystem.features.get("data") == "journal" for filesystem in plan.filesystems
    ):
        yield (
            'data = "journal": a throttle counts each block of the journal as an I/O, where a disk merges neighbours. '
            "So loads and runs take many times as long. `latency` in the place of `throttle` merges them"
        )
