"""Room and time of LMDB's, bonnie++'s and fio's visits and of power cuts, before anything has been measured; rough on purpose."""

from __future__ import annotations

from bedplate.model.cell import RunSpec
from bedplate.model.engines import LMDB
from bedplate.model.levels import Levels
from bedplate.model.lmdb import ASYNCHRONOUS, BY_TEST, fills, is_synchronous, settings_in_force, tests_of
from bedplate.model.plan import Load
from bedplate.model.power_cut import ENGINE
from bedplate.model.power_cut import WORKLOAD as POWER_CUT
from bedplate.model.raw import TEST_FSYNC_SECONDS, is_pg_test_fsync
from bedplate.units import MIB, parse_duration_s, parse_size

# What a local NVMe disk does through a file system, and one fsync on it.
_BYTES_PER_S = 400e6
_FSYNC_S = 0.002
_LMDB_OPERATIONS_PER_S = 300_000.0
_SEEKS_S = 20.0
_FILES_PER_S = 30_000.0
_TEST_FSYNC_MEASUREMENTS = 16

# Two cores; and what it takes to make the file systems and the engine's data, and to go through the controls.
_POSTGRESQL_POINTS_PER_S = 100 / 60
_LMDB_POINTS_PER_S = 400 / 60
_RECORDING_OVERHEAD_S = 12.0

_KEY_BYTES = 16
_LARGE_VALUE_BYTES = 100_000
# The driver's map: 3.2 times the keys and values of its largest test, and 16 MiB.
_LMDB_MAP_SHARE = 3.2
_LMDB_MAP_BYTES = 16 * MIB


def io_bytes(load: Load) -> int:
    """Bytes that a visit needs for its files; 0 for other workloads."""
    dataset = load.dataset
    if dataset.workload == "bonnie":
        return dataset.levels.integer("file_bytes") or 0
    if dataset.workload == "fio":
        return max((_fio_bytes(run.levels) for run in load.runs), default=0)
    if dataset.workload == "lmdb":
        asked = dataset.levels.integer("map_bytes")
        return asked or max((_lmdb_map_bytes(load, run) for run in load.runs), default=0)
    return 0


def io_seconds(load: Load, settings: Levels) -> float:
    """Seconds of all its runs; 0 for other workloads. `settings` are those of the cell's engine."""
    return sum(_run_seconds(load, run, settings) for run in load.runs)


def _run_seconds(load: Load, run: RunSpec, settings: Levels) -> float:
    levels = load.dataset.levels
    if run.workload == "bonnie":
        # Written, rewritten (read and written) and read.
        file_s = 4 * (levels.integer("file_bytes") or 0) / _BYTES_PER_S
        return file_s + _SEEKS_S + 6 * (run.levels.integer("files") or 0) / _FILES_PER_S
    if run.workload == "fio":
        if is_pg_test_fsync(run):
            return _TEST_FSYNC_MEASUREMENTS * (run.levels.integer(TEST_FSYNC_SECONDS) or 1)
        if "runtime" in run.levels:
            return parse_duration_s(run.levels["runtime"])
        synced = bool(run.levels.get("fsync") or run.levels.get("fdatasync"))
        moved_bytes = _fio_moved_bytes(run.levels)
        operations = moved_bytes / max(1, parse_size(str(run.levels.get("bs", 4096))))
        # The file is laid out first, where the job does not make it itself.
        laid_out_s = _fio_bytes(run.levels) / _BYTES_PER_S
        return laid_out_s + moved_bytes / _BYTES_PER_S + (operations * _FSYNC_S if synced else 0.0)
    if run.workload == "lmdb":
        entries = levels.integer("entries") or 0
        names = tests_of(run)
        moved = _lmdb_map_bytes(load, run) / _LMDB_MAP_SHARE * len(names)
        return (
            sum(_lmdb_flushes(load, run, name, settings) for name in names) * _FSYNC_S
            + len(names) * entries / _LMDB_OPERATIONS_PER_S
            + moved / _BYTES_PER_S
        )
    if run.workload == POWER_CUT:
        points_per_s = _LMDB_POINTS_PER_S if levels.get(ENGINE) == LMDB else _POSTGRESQL_POINTS_PER_S
        points = run.levels.integer("points") or 0
        return (levels.number("duration_s") or 0.0) + _RECORDING_OVERHEAD_S + points / points_per_s
    return 0.0


def _lmdb_flushes(load: Load, run: RunSpec, test: str, settings: Levels) -> float:
    """How many of a test's commits wait for the device: of every fill and overwrite, where `sync` says so."""
    entries = load.dataset.levels.integer("entries") or 0
    sync = settings_in_force(settings).text("sync")
    # The writer of readwhilewriting writes no longer than its readers read.
    if not fills(run) or sync in ASYNCHRONOUS or (sync == BY_TEST and not is_synchronous(test)):
        return 0.0
    if test.endswith("batch"):
        return entries / (run.levels.integer("batch") or 1)
    return entries / 1000 if is_synchronous(test) or test.endswith("100K") else float(entries)


def _fio_bytes(levels: Levels) -> int:
    return parse_size(str(levels.get("size", 0))) * (levels.integer("numjobs") or 1)


def _fio_moved_bytes(levels: Levels) -> int:
    """What the job reads and writes: its size, or so much of it as `io_size` says, as often as it loops."""
    once = (
        parse_size(str(levels["io_size"])) * (levels.integer("numjobs") or 1) if "io_size" in levels else None
    )
    return (_fio_bytes(levels) if once is None else once) * (levels.integer("loops") or 1)


def _lmdb_map_bytes(load: Load, run: RunSpec) -> int:
    entries = load.dataset.levels.integer("entries") or 0
    value_bytes = load.dataset.levels.integer("value_bytes") or 0
    if "100K" in str(run.levels.get("tests", "")):
        entries, value_bytes = entries // 1000, _LARGE_VALUE_BYTES
    return int(_LMDB_MAP_SHARE * entries * (_KEY_BYTES + value_bytes)) + _LMDB_MAP_BYTES
