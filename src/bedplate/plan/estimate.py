"""How long a study takes and how much disk it needs, before anything has been measured.

Rough on purpose, and said so where it is shown. What a workload takes is its own to say (`workload_estimate.py`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from bedplate.model.cell import Cell, Dataset
from bedplate.model.plan import Expansion, Load, Plan, Schedule
from bedplate.model.visit import RESTORED
from bedplate.plan.age import aged_images, kept_images, restored_seconds
from bedplate.plan.platforms import LOCAL, QEMU, SLURM
from bedplate.plan.workload_estimate import estimate_of
from bedplate.units import GIB, KIB

# A fully written image: 1.0 to 1.3 s per GiB.
IMAGE_WRITE_BYTES_PER_S = 0.85 * GIB
# mkfs, mount, read back, count flushes, initdb, start, stop, unmount, fsck.
VISIT_OVERHEAD_S = 6.0
# On an emulated processor, loaded and idle hosts between them: initdb 12 to 22 s instead of 1, a boot 8 to 20 s.
EMULATED_VISIT_OVERHEAD_S = 45.0
BOOT_S = 15.0
# The CHECKPOINT before a run, and the second in which the server reports its statistics.
RUN_OVERHEAD_S = 1.5
# In the study, per second of a run: a sample of counters, and the condensed transaction log.
COURSE_BYTES_PER_S = 3 * KIB
TRANSACTION_LOG_BYTES_PER_S = 24 * KIB
VISIT_RECORD_BYTES = 512 * KIB


@dataclass(frozen=True)
class StudyEstimate:
    """Seconds and bytes of a whole study; on a fleet the seconds of the node that has most to do.

    `device_bytes` is the largest that a visit needs on the scratch device, `image_bytes` the image
    file (None for a real device), `study_bytes` what the study's directory grows to, `data_bytes` what
    is made beforehand and kept in the cache; `data_seconds` is what making it takes where that is reckoned, and is no part of `seconds`.
    """

    visits: int
    canary_visits: int
    seconds: float
    measured_seconds: float
    device_bytes: int
    image_bytes: int | None
    study_bytes: int
    data_bytes: int = 0
    data_seconds: float = 0.0


def visit_seconds(
    plan: Plan, cell: Cell, load: Load, *, canary: bool = False, executor: str = LOCAL
) -> float:
    """One visit from preflight to clean-up, without the boot of a guest.

    A guest is reckoned as emulated: whether this machine can do better is known when one has run.
    """
    image = plan.scratch_device_for(canary=canary).image_bytes or 0
    runs = _running_seconds(cell, load, emulated=executor == QEMU) + RUN_OVERHEAD_S * len(load.runs)
    overhead_s = VISIT_OVERHEAD_S if executor != QEMU else EMULATED_VISIT_OVERHEAD_S
    of_workload = estimate_of(load.dataset.workload)
    if plan.dataset_by_of(canary=canary) == RESTORED:
        load_s = restored_seconds(cell, load.dataset)
    else:
        load_s = of_workload.load_seconds(cell, load.dataset, emulated=executor == QEMU)
    return image / IMAGE_WRITE_BYTES_PER_S + overhead_s + load_s + runs


def estimate(plan: Plan, expansion: Expansion, schedule: Schedule, *, executor: str = LOCAL) -> StudyEstimate:
    """The study that a schedule makes."""
    loads = expansion.by_visit
    seconds = measured = 0.0
    size = 0
    of_node: defaultdict[str | None, float] = defaultdict(float)
    per_load = {
        key: (
            visit_seconds(plan, cell, load, canary=key[2], executor=executor),
            *_measured_and_bytes(cell, load),
        )
        for key, (cell, load) in loads.items()
    }
    for visit in schedule.visits:
        took, counted, stored = per_load[visit.cell_id, visit.dataset_id, visit.canary]
        seconds, measured, size = seconds + took, measured + counted, size + stored
        of_node[visit.node] += took
    if executor == SLURM:
        # Nodes work at once.
        seconds = max(of_node.values(), default=0.0)
    if executor == QEMU:
        seconds += BOOT_S * len({visit.boot for visit in schedule.visits})
    cells_of: defaultdict[Dataset, list[Cell]] = defaultdict(list)
    for cell, load in loads.values():
        cells_of[load.dataset].append(cell)
    aged_bytes, aged_seconds = aged_images(loads.values(), plan.scratch_device)
    kept_bytes, kept_seconds = kept_images(plan, (loads[key] for key in loads if not key[2]))
    canaries = sum(visit.canary for visit in schedule.visits)
    return StudyEstimate(
        visits=len(schedule.visits) - canaries,
        canary_visits=canaries,
        seconds=seconds,
        measured_seconds=measured,
        device_bytes=max((device_bytes_needed(cell, load) for cell, load in loads.values()), default=0),
        image_bytes=_image_bytes(plan, canaries),
        study_bytes=size,
        data_bytes=aged_bytes
        + kept_bytes
        + sum(estimate_of(each.workload).prepared_bytes(each, cells) for each, cells in cells_of.items()),
        data_seconds=aged_seconds
        + kept_seconds
        + sum(estimate_of(each.workload).prepared_seconds(each, cells) for each, cells in cells_of.items()),
    )


def _image_bytes(plan: Plan, canaries: int) -> int | None:
    """The data of a device with latency is in memory; a canary's is a file all the same."""
    if plan.latencies and not canaries:
        return None
    return plan.scratch_device_for(canary=bool(plan.latencies)).image_bytes


def device_bytes_needed(cell: Cell, load: Load) -> int:
    """What a visit needs on the scratch device: tables and WAL up to its limit, or files; the file system itself."""
    return estimate_of(load.dataset.workload).device_bytes(cell, load)


def _running_seconds(cell: Cell, load: Load, *, emulated: bool) -> float:
    """Warm-up and measurement of all runs: asked for, or reckoned."""
    return sum(estimate_of(run.workload).run_seconds(cell, load, run, emulated=emulated) for run in load.runs)


def _measured_and_bytes(cell: Cell, load: Load) -> tuple[float, int]:
    running = _running_seconds(cell, load, emulated=False)
    stored = VISIT_RECORD_BYTES + running * (COURSE_BYTES_PER_S + TRANSACTION_LOG_BYTES_PER_S)
    measured = running - sum(run.levels.number("warmup_s") or 0.0 for run in load.runs)
    return measured, int(stored)
