"""What records say of the datasets and runs of the microbenchmark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bedplate.model.cell import RunSpec
from bedplate.model.engines import LMDB
from bedplate.model.figure import Better, Metric, Scale, taken_from
from bedplate.model.plan import RecordWords, WorkloadModel

_HIGHER, _LOWER, _NEITHER = Better.HIGHER, Better.LOWER, Better.NEITHER
_RATIO, _PROPORTION, _COUNT = Scale.RATIO, Scale.PROPORTION, Scale.COUNT
_TIMED = "of those that were timed: each transaction that writes (a whole batch), every 16th random read"

# Where some figures are taken from, unlike the others of their group.
_RUSAGE = "getrusage(2), in the driver’s document"

_LSTAT = "lstat(2), in the driver’s document"

# A table: a line for a metric, of which the formatter would make eight.
# fmt: off
_METRICS = taken_from(
    "the driver’s document",
    Metric("test_operations_per_s", "1/s", _RATIO, _HIGHER, "entries that a test wrote, read or looked for (of tpcb its transactions) / time"),
    Metric("test_us_per_operation", "us", _RATIO, _LOWER, "time of a test / its operations"),
    Metric("test_mib_per_s", "MiB/s", _RATIO, _HIGHER, "keys and values that a test wrote or read / time"),
    Metric("test_cpu_us_per_operation", "us", _RATIO, _LOWER,
        "CPU time of the driver, user and system, within a test / its operations", _RUSAGE),
    Metric("test_latency_us_mean", "us", _RATIO, _LOWER, f"mean latency {_TIMED}"),
    Metric("test_latency_us_p50", "us", _RATIO, _LOWER, f"median latency {_TIMED}"),
    Metric("test_latency_us_p95", "us", _RATIO, _LOWER, f"95th percentile {_TIMED}"),
    Metric("test_latency_us_p99", "us", _RATIO, _LOWER, f"99th percentile {_TIMED}"),
    Metric("test_latency_us_p99_9", "us", _RATIO, _LOWER, f"99.9th percentile {_TIMED}"),
    Metric("test_latency_us_max", "us", _RATIO, _LOWER, f"largest latency {_TIMED}"),
    Metric("test_writer_operations_per_s", "1/s", _RATIO, _HIGHER, "entries that the writer of readwhilewriting wrote / time"),
    Metric("test_busy_share", "share", _PROPORTION, _LOWER,
        "attempts at a transaction of tpcb that met another's lock for longer than the engine waits, and were begun again / all attempts"),
    Metric("test_slowest_process_share", "share", _PROPORTION, _HIGHER,
        "transactions of the process of tpcb that made the fewest / those of an equal part"),
    Metric("test_found_share", "share", _PROPORTION, _NEITHER, "random reads that met an entry / all"),
    Metric("test_prepare_s", "s", _RATIO, _LOWER, "time to make, open and preallocate the database; no part of the test's"),
    Metric("test_flush_s", "s", _RATIO, _LOWER, "time of the flush after a test that writes; no part of the test's"),
    Metric("test_size_mib", "MiB", _RATIO, _LOWER, "size of the data file after the test", _LSTAT),
    Metric("test_space_mib", "MiB", _RATIO, _LOWER, "space that the data file takes on the file system then", _LSTAT),
    Metric("test_flushes_per_commit", "1", _RATIO, _NEITHER,
        "flushes of data and journal device within a test / its transactions; those of its preparation, and of the flush after it, count too",
        "`/sys/block/…/stat`, the driver’s document"),
    Metric("test_major_faults", "1", _COUNT, _LOWER, "page faults of a test that waited for the device", _RUSAGE),
    Metric("tests_s", "s", _RATIO, _LOWER,
        "all tests of a run, without what lies between them; absent where its cell’s settings leave one out",
        "sum over the documents of the run"),
)

# fmt: on

METRICS = {"Microbenchmark": _METRICS}

WORKLOAD = "microbenchmark"

# Level `kind` of a run, and level `pass` of one that reads: mounted anew before each test, or as it was left.
WRITE = "write"

READ = "read"
COLD = "cold"

# The phase under which the tests' figures stand, an item for each; in the course each test is a phase itself.
TESTS = "tests"

# A folder of the run with a document of the driver for each test, `<test>.json`, and what it was called before.
DOCUMENTS = "tests"

FORMER_DOCUMENTS = "lmdb"

# Beside the document of a test that has transactions: how many had ended at each second.
PROGRESS = "{test}.progress.jsonl"

# Processes that meet at the locks of one database, of engines that have it; on tables of its own.
TPCB = "tpcb"

# What the tests that a cell's settings do not have are called in the facts of a run, with commas between.
LEFT_OUT = "left_out"


def tests_of(spec: RunSpec) -> tuple[str, ...]:
    """The tests of a run in their order; they are its phases too."""
    return tuple(name for name in (spec.levels.text("tests") or "").split(",") if name)


def is_fill(test: str) -> bool:
    """Whether the test makes a new database."""
    return test.startswith("fill") or test == TPCB


def writes(test: str) -> bool:
    """Whether the test commits anything."""
    return is_fill(test) or test in ("overwrite", "readwhilewriting")


def is_synchronous(test: str) -> bool:
    """Whether its commits wait where the engine's settings leave it to the tests."""
    return demands_waiting(test) or test == TPCB


def demands_waiting(test: str) -> bool:
    """Whether it is left out where commits do not wait, as its name says that they do."""
    return test.endswith("sync")


def has_transactions(test: str) -> bool:
    """Whether what it counts are transactions, which its course has for each second."""
    return test == TPCB


def has_several_connections(test: str) -> bool:
    """Whether several have the database open at once."""
    return test in ("readwhilewriting", TPCB)


class MicrobenchmarkModel(WorkloadModel):
    """The runs after it read what one run made. A plan says which engines; those of `type = "lmdb"` say nothing."""

    def fills(self, spec: RunSpec) -> bool:
        """What writes makes the databases."""
        return spec.levels.text("kind") == WRITE


MODEL = MicrobenchmarkModel(
    LMDB,
    plan_keys={
        "entries": "entries",
        "value_bytes": "value_size",
        "batch": "batch",
        "tests": "tests",
        "threads": "threads",
        "map_bytes": "map_size",
        "processes": "processes",
        "duration_s": "duration",
    },
    words=RecordWords(
        dataset="`entries`, `value_bytes`, …",
        run="`kind` (`write`, `read`), `pass` (`cold`, `warm`), `pass_number`, `tests` (with commas between), `batch`, `threads`, "
        "`map_bytes`; of `tpcb` alone `processes`, `duration_s`",
        phases="its tests (`fillseq`, …), whose figures are of phase `tests`",
        items="a test (`fillseq`)",
        facts="`made_cold`, `left_out` (tests that the engine's settings do not have); `waiting_test`, `waiting_commits`, "
        "`waiting_flushes`: of its tests whose commits wait, the one that lacked the most flushes",
        files="`tests/<test>.json`: what the driver says of a test (`drivers/microbenchmark.c`). `tests/tpcb.progress.jsonl`: how many transactions had ended at each second. "
        "`lmdb/` in studies of `lmdb`, the type's name when it had no other engine",
    ),
    # Its metrics had the name of the one engine, too.
    former_metrics={
        f"lmdb_{metric.name.removeprefix('test_')}": metric.name
        for each in METRICS.values()
        for metric in each
    },
)

_NS = 1e9


@dataclass(frozen=True)
class OperationsDone:
    """What was done when a line came: `elapsed_s` on the driver's clock, which begins with the test, `monotonic_s` on ours."""

    monotonic_s: float
    elapsed_s: float
    operations: int


def progress_of(line: bytes, now_s: float) -> OperationsDone | None:
    """A line of progress that came now; None for any other line."""
    try:
        said = json.loads(line)
        return OperationsDone(now_s, int(said["elapsed_ns"]) / _NS, int(said["operations"]))
    except (ValueError, KeyError, TypeError):
        return None


def write_progress(path: Path, operations: Sequence[OperationsDone]) -> None:
    """A line each."""
    path.write_text("".join(json.dumps(asdict(each)) + "\n" for each in operations), encoding="utf-8")


def read_progress(path: Path) -> tuple[tuple[float, int], ...]:
    """The moments on our clock, and what was done then, from the test's begin on; none where the file is not there, or damaged.

    A line may come late, and never early, so the earliest of the begins that they tell is the closest.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        told = [OperationsDone(**json.loads(line)) for line in lines]
        begun_s = min((each.monotonic_s - each.elapsed_s for each in told), default=0.0)
        return ((begun_s, 0), *((begun_s + each.elapsed_s, each.operations) for each in told)) if told else ()
    except (OSError, ValueError, TypeError):
        return ()
