"""Which figures stand for a run where there is room for two: by what the run does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.model.lmdb import READ, WRITE
from bedplate.model.lmdb import WORKLOAD as LMDB
from bedplate.model.power_cut import WORKLOAD as POWER_CUT
from bedplate.model.raw import BONNIE, FIO, PG_TEST_FSYNC, is_pg_test_fsync
from bedplate.model.tpch import LOAD, POWER, THROUGHPUT, WORKLOAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.report.overview import Overview


@dataclass(frozen=True)
class RunHead:
    """Two metrics of the whole run, each with the words that stand at it.

    The second has a column of its own, or stands `beneath` the first: a visit of TPC-H has four runs.
    """

    first: str
    first_words: str
    second: str
    second_words: str
    beneath: bool = False


_TRANSACTIONS = RunHead("tps", "tps", "latency_ms_p99", "p99 ms")
_TPCH = {
    LOAD: RunHead("load_total_s", "total s", "database_mib", "MiB of database", beneath=True),
    POWER: RunHead("queries_total_s", "queries s", "queries_completed", "queries completed", beneath=True),
    THROUGHPUT: RunHead("streams_s", "streams s", "queries_completed", "queries completed", beneath=True),
}
_RAW = {
    BONNIE: RunHead("stages_total_s", "stages s", "tool_cpu_s", "CPU s of bonnie++", beneath=True),
    FIO: RunHead("throughput_mib_per_s", "MiB/s", "cpu_s_per_gib", "CPU s/GiB", beneath=True),
    PG_TEST_FSYNC: RunHead("operations_per_s", "fdatasync/s", "tool_cpu_s", "CPU s", beneath=True),
}
_POWER_CUT = {POWER_CUT: RunHead("power_cuts_bad", "cuts bad", "power_cuts", "cuts", beneath=True)}

_LMDB = {
    WRITE: RunHead("lmdb_tests_s", "tests s", "device_written_mib", "MiB written", beneath=True),
    READ: RunHead("lmdb_tests_s", "tests s", "device_read_mib", "MiB read", beneath=True),
}


def run_kind(found: Overview, run: tuple[str, str]) -> str | None:
    """The kind of a run of TPC-H or of LMDB, the tool of a run of sequential I/O, `power_cut`; None for any other."""
    spec = found.spec(run)
    if spec is None:
        return None
    if spec.workload in _RAW:
        return PG_TEST_FSYNC if is_pg_test_fsync(spec) else spec.workload
    if spec.workload == POWER_CUT:
        return POWER_CUT
    return spec.levels.text("kind") if spec.workload in (WORKLOAD, LMDB) else None


def run_head(found: Overview, run: tuple[str, str]) -> RunHead:
    """The two figures of a run of a study."""
    return {**_TPCH, **_RAW, **_LMDB, **_POWER_CUT}.get(run_kind(found, run) or "", _TRANSACTIONS)


def is_power_cut(found: Overview, run: tuple[str, str]) -> bool:
    """Whether a run is one of power cuts, which have a verdict and no speed."""
    return run_kind(found, run) == POWER_CUT


def has_transactions(overviews: Sequence[Overview]) -> bool:
    """Whether any run makes transactions; without any run the page is that of transactions."""
    kinds = [run_kind(found, run) for found in overviews for run in found.runs]
    return not kinds or None in kinds


def has_raw(overviews: Sequence[Overview]) -> bool:
    """Whether any run is one of bonnie++ or of a job of fio."""
    return any(run_kind(found, run) in (BONNIE, FIO) for found in overviews for run in found.runs)
