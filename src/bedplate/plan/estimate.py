"""How long a study takes and how much disk it needs, before anything has been measured.

Rough on purpose, and said so where it is shown: the asked durations are exact, the constants are what
two idle cores and a local NVMe disk take, and a throttled device is reckoned from its limits.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache

from bedplate.model.cell import Cell, Dataset, Throttle
from bedplate.model.plan import Expansion, Load, Plan, Schedule
from bedplate.model.power_cut import WORKLOAD as POWER_CUT
from bedplate.model.tpch import LOAD
from bedplate.plan.io_estimate import io_bytes, io_seconds
from bedplate.plan.platforms import LOCAL, QEMU, SLURM
from bedplate.plan.scale import bytes_per_scale
from bedplate.plan.settings import in_force
from bedplate.plan.tpch_size import database_bytes, temporary_bytes, tpch_data_bytes
from bedplate.units import GIB, KIB, MIB, parse_size

# A fully written image: 1.0 to 1.3 s per GiB.
IMAGE_WRITE_BYTES_PER_S = 0.85 * GIB
# mkfs, mount, read back, count flushes, initdb, start, stop, unmount, fsck.
VISIT_OVERHEAD_S = 6.0
LOAD_S_PER_SCALE = 0.12
# On an emulated processor, loaded and idle hosts between them: initdb 12 to 22 s instead of 1, the load
# of scale 1 3 to 10 s, a boot 8 to 20 s.
EMULATED_VISIT_OVERHEAD_S = 45.0
EMULATED_LOAD_S_PER_SCALE = 5.0
BOOT_S = 15.0
# The CHECKPOINT before a run, and the second in which the server reports its statistics.
RUN_OVERHEAD_S = 1.5
# One PostgreSQL per version and block size, about 515 CPU seconds on two cores; then it is cached.
BUILD_S = 260.0
# `pgbench -i` writes each row twice: to the table and to the WAL.
_LOAD_WRITE_FACTOR = 2.0
# What the page cache merges sequential writes into, at least.
_LOAD_IO_BYTES = 128 * KIB

# TPC-H at 8 kB on two idle cores (18.6, scale factor 1): load 36 s, keys and indexes 23, ANALYZE 15, then
# 93 s for the queries; with less memory than data a disk decides instead, and it takes longer.
TPCH_LOAD_S_PER_SCALE_FACTOR = 80.0
TPCH_QUERIES_S_PER_SCALE_FACTOR = 95.0
# Generic code runs some twenty times slower on an emulated processor.
_TPCH_EMULATION = 20.0
_QUERIES = 22

# In the study, per second of a run: a sample of counters, and the condensed transaction log.
COURSE_BYTES_PER_S = 3 * KIB
TRANSACTION_LOG_BYTES_PER_S = 24 * KIB
VISIT_RECORD_BYTES = 512 * KIB

_MAX_WAL_SIZE_BYTES = GIB
_FILESYSTEM_OVERHEAD_BYTES = 160 * MIB  # journal, tables of inodes, template databases
_GROWTH = 1.15  # dead rows, copy on write


@dataclass(frozen=True)
class Estimate:
    """Seconds and bytes of a whole study; on a fleet the seconds of the node that has most to do.

    `device_bytes` is the largest that a visit needs on the scratch device, `image_bytes` the image
    file (None for a real device), `study_bytes` what the study's directory grows to, `data_bytes` what
    is made beforehand and kept in the cache.
    """

    visits: int
    canary_visits: int
    seconds: float
    measured_seconds: float
    builds: int
    build_seconds: float
    device_bytes: int
    image_bytes: int | None
    study_bytes: int
    data_bytes: int = 0


def visit_seconds(
    plan: Plan, cell: Cell, load: Load, *, canary: bool = False, executor: str = LOCAL
) -> float:
    """One visit from preflight to clean-up, without the boot of a guest.

    A guest is reckoned as emulated: whether this machine can do better is known when one has run.
    """
    image = plan.scratch_device_for(canary=canary).image_bytes or 0
    runs = _running_seconds(cell, load, emulated=executor == QEMU) + RUN_OVERHEAD_S * len(load.runs)
    overhead_s = VISIT_OVERHEAD_S if executor != QEMU else EMULATED_VISIT_OVERHEAD_S
    load_s = _load_seconds(cell, load.dataset, emulated=executor == QEMU)
    return image / IMAGE_WRITE_BYTES_PER_S + overhead_s + load_s + runs


def estimate(plan: Plan, expansion: Expansion, schedule: Schedule, *, executor: str = LOCAL) -> Estimate:
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
    builds = {planned.cell.build for planned in expansion.cells if planned.cell.build.has_postgresql}
    scale_factors = {load.dataset.levels.number("scale_factor") for _, load in loads.values()}
    canaries = sum(visit.canary for visit in schedule.visits)
    return Estimate(
        visits=len(schedule.visits) - canaries,
        canary_visits=canaries,
        seconds=seconds,
        measured_seconds=measured,
        builds=len(builds),
        build_seconds=len(builds) * BUILD_S,
        device_bytes=max((device_bytes_needed(cell, load) for cell, load in loads.values()), default=0),
        image_bytes=plan.scratch_device.image_bytes,
        study_bytes=size,
        data_bytes=sum(tpch_data_bytes(found) for found in scale_factors if found is not None),
    )


def device_bytes_needed(cell: Cell, load: Load) -> int:
    """What a visit needs on the scratch device: tables and WAL up to its limit, or files; the file system itself."""
    if not cell.build.has_postgresql:
        return int(io_bytes(load) * _GROWTH) + _FILESYSTEM_OVERHEAD_BYTES
    dataset = load.dataset
    if dataset.workload == POWER_CUT:
        # The recorded disk stands in memory; here is no more than the new cluster that tells the settings.
        return 2 * _FILESYSTEM_OVERHEAD_BYTES
    scale = dataset.levels.integer("scale") or 0
    data = bytes_per_scale(cell.build.block_size_bytes) * scale * _GROWTH if scale else 0.0
    scale_factor = dataset.levels.number("scale_factor")
    if scale_factor is not None:
        data += database_bytes(scale_factor, cell.build.block_size_bytes) + temporary_bytes(scale_factor)
    return int(data) + _max_wal_bytes(in_force(cell.cluster, "max_wal_size")) + _FILESYSTEM_OVERHEAD_BYTES


@lru_cache(maxsize=1024)
def _max_wal_bytes(text: str | None) -> int:
    if text is None:
        return _MAX_WAL_SIZE_BYTES
    if re.fullmatch(r"\d{1,12}", text):
        return int(text) * MIB  # the server's own unit of max_wal_size
    try:
        return parse_size(text)
    except (ValueError, OverflowError):
        return _MAX_WAL_SIZE_BYTES


def _seconds_of(load: Load, *names: str) -> list[float]:
    return [run.levels.number(name) or 0.0 for run in load.runs for name in names]


def _running_seconds(cell: Cell, load: Load, *, emulated: bool) -> float:
    """Warm-up and measurement of all runs: asked for, or of TPC-H reckoned."""
    asked = sum(_seconds_of(load, "warmup_s", "duration_s"))
    return asked + _tpch_seconds(load, emulated=emulated) + io_seconds(load, cell.cluster.settings)


def _tpch_seconds(load: Load, *, emulated: bool) -> float:
    scale_factor = load.dataset.levels.number("scale_factor")
    if scale_factor is None:
        return 0.0
    slower = _TPCH_EMULATION if emulated else 1.0
    seconds = 0.0
    for run in load.runs:
        if run.levels.text("kind") == LOAD:
            seconds += TPCH_LOAD_S_PER_SCALE_FACTOR * scale_factor * slower
            continue
        queries = TPCH_QUERIES_S_PER_SCALE_FACTOR * scale_factor * slower
        longest = _QUERIES * (run.levels.number("query_timeout_s") or float("inf"))
        # Streams run at once and share the machine.
        seconds += min(queries, longest) * (run.levels.integer("streams") or 1)
    return seconds


def _measured_and_bytes(cell: Cell, load: Load) -> tuple[float, int]:
    running = _running_seconds(cell, load, emulated=False)
    stored = VISIT_RECORD_BYTES + running * (COURSE_BYTES_PER_S + TRANSACTION_LOG_BYTES_PER_S)
    measured = running - sum(_seconds_of(load, "warmup_s"))
    return measured, int(stored)


def _load_seconds(cell: Cell, dataset: Dataset, *, emulated: bool) -> float:
    scale = dataset.levels.integer("scale") or 0
    unthrottled = scale * (EMULATED_LOAD_S_PER_SCALE if emulated else LOAD_S_PER_SCALE)
    if cell.device.throttle is None:
        return unthrottled
    written = scale * bytes_per_scale(cell.build.block_size_bytes) * _LOAD_WRITE_FACTOR
    return max(unthrottled, _throttled_seconds(written, cell.device.throttle))


def _throttled_seconds(written: float, throttle: Throttle) -> float:
    by_bandwidth = written / throttle.write_bytes_per_s if throttle.write_bytes_per_s else 0.0
    by_iops = written / _LOAD_IO_BYTES / throttle.write_iops if throttle.write_iops else 0.0
    return max(by_bandwidth, by_iops)
