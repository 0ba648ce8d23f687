"""What fio says of a job: its JSON (`--output-format=json`, fio 3), and its logs of each second.

Read is what a benchmark of a database needs; the rest of the document is fio's own. Three of its
numbers are not what their names say, and are not used: `short_ios` of the reads counts the syncs of
a writing job, `total_ios` of `sync` is always zero (its `N` counts), and a side that was not used has
zeros throughout.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from bedplate.errors import OutputNotUnderstood
from bedplate.figures.counters import cpu_s_per_gib
from bedplate.model.reason import Reason, because

_FIO = "fio"
_VERSION = re.compile(r"fio-3\.\d+.*", re.ASCII)
_NS_PER_MS = 1e6


@dataclass(frozen=True)
class FioLatency:
    """A latency in milliseconds, over all operations. fio keeps the percentiles in bins of about 1 %."""

    operations: int
    latency_ms_mean: float
    latency_ms_stddev: float
    latency_ms_max: float
    percentiles: tuple[tuple[float, float], ...]

    def latency_ms(self, percentile: float) -> float | None:
        """The latency at that percentile (99.9); None where fio was not asked for it."""
        return dict(self.percentiles).get(percentile)


@dataclass(frozen=True)
class FioSide:
    """What was read, or written: fio's `clat` (completion) and `lat` (submission too).

    `runtime_s` is that of the longest process; the fsync of `end_fsync` is inside it, and in the
    bandwidth, but in no latency.
    """

    size_bytes: int
    operations: int
    runtime_s: float
    bandwidth_bytes_per_s: float
    iops: float
    clat: FioLatency | None
    lat: FioLatency | None


@dataclass(frozen=True)
class FioSteadyState:
    """Whether the criterion was met; `asked` is as fio repeats it (`iops:5.000000%`)."""

    asked: str
    attained: bool


@dataclass(frozen=True)
class FioJobResult:
    """One job, or a group of equal ones; None for a side that did nothing.

    `error` is the errno at which it stopped, zero for none; figures of a job that stopped are those
    until then. `runtime_s` adds up the processes' times, and the CPU shares are of it: over the
    processes, not the machine. `sync` has the latency of each fsync, fdatasync and sync_file_range.
    """

    name: str
    error: int
    read: FioSide | None
    write: FioSide | None
    sync: FioLatency | None
    runtime_s: float
    user_cpu_percent: float
    system_cpu_percent: float
    steady_state: FioSteadyState | None

    @property
    def size_bytes(self) -> int:
        """The bytes read and written."""
        return sum(side.size_bytes for side in (self.read, self.write) if side is not None)

    @property
    def cpu_s(self) -> float:
        """CPU seconds of the job's processes, the laying out of files and the ramp time left out."""
        return (self.user_cpu_percent + self.system_cpu_percent) / 100 * self.runtime_s

    @property
    def cpu_s_per_gib(self) -> float | None:
        """CPU seconds for each GiB read and written; None where the job moved nothing."""
        return cpu_s_per_gib(self.cpu_s, self.size_bytes)


@dataclass(frozen=True)
class FioResult:
    """A run of fio: its version, its jobs, and what it remarked before its JSON."""

    version: str
    jobs: tuple[FioJobResult, ...]
    remarks: tuple[str, ...]


def parse_fio_result(output: str, errors: str = "") -> FioResult:
    """The run in fio's standard output; `errors` is its standard error.

    OutputNotUnderstood where there is no JSON (fio refused its options, say; its words are quoted),
    where it is not fio 3's, or where a number is missing or none.
    """
    # fio prints remarks and the errors of jobs to the same stream, each on a line, before the JSON.
    begin = 0 if output.startswith("{") else output.find("\n{") + 1
    if not output[begin:].startswith("{"):
        said = "\n".join(text.strip() for text in (output, errors) if text.strip())
        raise OutputNotUnderstood(_FIO, expected="a JSON document", found=said or "(it printed nothing)")
    try:
        document = json.loads(output[begin:], parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise OutputNotUnderstood(
            _FIO, expected=f"a whole JSON document ({error})", found=output[begin:]
        ) from error
    root = _Node(document, "")
    version = root.text("fio version")
    if not _VERSION.fullmatch(version):
        raise OutputNotUnderstood(_FIO, expected="the version to be fio-3", found=version)
    jobs = tuple(_job(node) for node in root.nodes("jobs"))
    if not jobs:
        raise OutputNotUnderstood(_FIO, expected="at least one job", found=output[begin:])
    remarks = tuple(line.strip() for line in output[:begin].splitlines() if line.strip())
    return FioResult(version, jobs, remarks)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


class _Node:
    """An object of the document, which knows where it stands and gives what is asked for, or refuses."""

    def __init__(self, value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise OutputNotUnderstood(_FIO, expected=f"an object at {place or 'the top'}", found=repr(value))
        self._value = value
        self._place = place

    def __contains__(self, name: str) -> bool:
        return name in self._value

    def node(self, name: str) -> _Node:
        return _Node(self._get(name), f"{self._place}/{name}")

    def nodes(self, name: str) -> list[_Node]:
        value = self._get(name)
        if not isinstance(value, list):
            raise self._misfit(name, "a list", value)
        return [_Node(part, f"{self._place}/{name}[{number}]") for number, part in enumerate(value)]

    def text(self, name: str) -> str:
        value = self._get(name)
        if not isinstance(value, str):
            raise self._misfit(name, "a text", value)
        return value

    def number(self, name: str) -> float:
        number = self.real(name)
        if number < 0:
            raise self._misfit(name, "a number of zero or more", number)
        return number

    def real(self, name: str) -> float:
        value = self._get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._misfit(name, "a number", value)
        # A literal such as 1e999, or a whole number that no float holds, is as endless as Infinity.
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self._misfit(name, "a finite number", value)
        return number

    def whole_number(self, name: str) -> int:
        value = self._get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self._misfit(name, "a whole number of zero or more", value)
        return value

    def percentiles(self) -> tuple[tuple[float, float], ...]:
        if "percentile" not in self:
            return ()
        node = self.node("percentile")
        pairs = []
        for name in node._value:  # noqa: SLF001 -- of the same class
            try:
                percentile = float(name)
            except ValueError:
                raise self._misfit("percentile", "percentages", name) from None
            pairs.append((percentile, node.number(name) / _NS_PER_MS))
        return tuple(pairs)

    def _get(self, name: str) -> Any:
        if name not in self._value:
            raise OutputNotUnderstood(
                _FIO, expected=f"{self._place}/{name}", found=f"only {', '.join(map(str, self._value))}"
            )
        return self._value[name]

    def _misfit(self, name: str, expected: str, value: Any) -> OutputNotUnderstood:
        return OutputNotUnderstood(
            _FIO, expected=f"{expected} at {self._place}/{name}", found=str(value)[:400]
        )


def _job(json_node: _Node) -> FioJobResult:
    return FioJobResult(
        name=json_node.text("jobname"),
        error=json_node.whole_number("error"),
        read=_side(json_node.node("read")),
        write=_side(json_node.node("write")),
        sync=_latency(json_node.node("sync"), "lat_ns"),
        runtime_s=json_node.number("job_runtime") / 1000,
        user_cpu_percent=json_node.number("usr_cpu"),
        system_cpu_percent=json_node.number("sys_cpu"),
        steady_state=_steady_state(json_node.node("steadystate")) if "steadystate" in json_node else None,
    )


def _side(json_node: _Node) -> FioSide | None:
    operations = json_node.whole_number("total_ios")
    if operations == 0:
        return None
    return FioSide(
        size_bytes=json_node.whole_number("io_bytes"),
        operations=operations,
        runtime_s=json_node.number("runtime") / 1000,
        bandwidth_bytes_per_s=json_node.number("bw_bytes"),
        iops=json_node.number("iops"),
        clat=_latency(json_node, "clat_ns"),
        lat=_latency(json_node, "lat_ns"),
    )


def _latency(parent: _Node, name: str) -> FioLatency | None:
    node = parent.node(name)
    operations = node.whole_number("N")
    if operations == 0:
        return None
    return FioLatency(
        operations=operations,
        latency_ms_mean=node.number("mean") / _NS_PER_MS,
        latency_ms_stddev=node.number("stddev") / _NS_PER_MS,
        latency_ms_max=node.number("max") / _NS_PER_MS,
        percentiles=node.percentiles(),
    )


def _steady_state(json_node: _Node) -> FioSteadyState:
    return FioSteadyState(json_node.text("ss"), attained=json_node.whole_number("attained") == 1)


_PG_TEST_FSYNC = "pg_test_fsync"
_USECS_PER_S = 1_000_000

# The headings that begin a part, and what the part is called here.
_PARTS = (
    (re.compile(r"Compare file sync methods using one (\d+)kB write:", re.ASCII), "one write"),
    (re.compile(r"Compare file sync methods using two (\d+)kB writes:", re.ASCII), "two writes"),
    (re.compile(r"Compare open_sync with different write sizes:"), "open_sync sizes"),
    (re.compile(r"Test if fsync on non-write file descriptor is honored:"), "other descriptor"),
    (re.compile(r"Non-sync'ed (\d+)kB writes:", re.ASCII), "no sync"),
)

PARTS = tuple(name for _, name in _PARTS)

# ` 1 *` is aligned with `16 *`.
_MEASURED = re.compile(r" {8,9}(\S.*?) +(\d+\.\d{3}) ops/sec +(\d+) usecs/op", re.ASCII)

_NOT_AVAILABLE = re.compile(r" {8,9}(\S.*?) +n/a(\*?)")

# What stands between the figures: lines that say nothing of this run.
_PROSE = (
    re.compile(r"\d+ seconds? per test", re.ASCII),
    re.compile(r"O_DIRECT supported on this platform for open_datasync and open_sync\."),
    re.compile(r"Direct I/O is not supported on this platform\."),
    re.compile(r'\(in "?wal_sync_method"? preference order, except fdatasync is Linux\'s default\)'),
    re.compile(r"\(This is designed to compare the cost of writing 16kB in different write"),
    re.compile(r"open_sync sizes\.\)"),
    re.compile(r"\(If the times are similar, fsync\(\) can sync data written on a different"),
    re.compile(r"descriptor\.\)"),
    re.compile(r"\* This file system and its mount options do not support direct"),
    re.compile(r"  I/O, e\.g\. ext4 in journaled mode\."),
)

_ABSENT = because("method-missing", "PostgreSQL has no such method on this platform")
_NO_DIRECT = because("direct-io-refused", "the file system and its mount options do not support direct I/O")


@dataclass(frozen=True)
class SyncMethod:
    """One line: a method in its part of the output, by pg_test_fsync's own words.

    `ops_per_s` is None with its `reason` where the method is not available.
    """

    part: str
    method: str
    ops_per_s: float | None
    reason: Reason | None


@dataclass(frozen=True)
class PgTestFsyncResult:
    """One run: the size of its writes in bytes (wal_block_size), and every method of every part."""

    write_size_bytes: int
    methods: tuple[SyncMethod, ...]

    def method(self, method: str, part: str = "one write") -> SyncMethod:
        """The method of that name in that part; KeyError where pg_test_fsync tries none."""
        for candidate in self.methods:
            if (candidate.part, candidate.method) == (part, method):
                return candidate
        raise KeyError(f"{method} in {part}")


def parse_pg_test_fsync_result(output: str, errors: str = "") -> PgTestFsyncResult:
    """The run in pg_test_fsync's standard output; `errors` is its standard error.

    OutputNotUnderstood where a part is missing, comes twice or is empty, and for any line that is not
    pg_test_fsync's. Where it gave up, its own words are quoted.
    """
    part: str | None = None
    sizes: set[int] = set()
    methods: list[SyncMethod] = []
    begun: list[str] = []
    for line in output.splitlines():
        heading = _heading(line)
        if heading is not None:
            part, size_kib = heading
            begun.append(part)
            sizes.update(size_kib)
        elif part is not None and line.startswith(" " * 8):
            methods.append(_method(line, part))
        elif line and not any(pattern.fullmatch(line) for pattern in _PROSE):
            raise OutputNotUnderstood(_PG_TEST_FSYNC, expected="a line of its own", found=line)
    filled = tuple(dict.fromkeys(method.part for method in methods))
    if tuple(begun) != PARTS or filled != PARTS or len(sizes) != 1:
        found = errors.strip() or output or "(it printed nothing)"
        raise OutputNotUnderstood(_PG_TEST_FSYNC, expected=f"the parts {', '.join(PARTS)}", found=found)
    _refuse_doubles(methods)
    return PgTestFsyncResult(sizes.pop() * 1024, tuple(methods))


def _heading(line: str) -> tuple[str, list[int]] | None:
    for pattern, part in _PARTS:
        found = pattern.fullmatch(line)
        if found is not None:
            return part, [int(size) for size in found.groups()]
    return None


def _method(line: str, part: str) -> SyncMethod:
    unavailable = _NOT_AVAILABLE.fullmatch(line)
    if unavailable is not None:
        return SyncMethod(part, _name(unavailable[1]), None, _NO_DIRECT if unavailable[2] else _ABSENT)
    measured = _MEASURED.fullmatch(line)
    if measured is None:
        raise OutputNotUnderstood(
            _PG_TEST_FSYNC, expected="`method  N ops/sec  N usecs/op`, or n/a", found=line
        )
    ops_per_s, usecs = float(measured[2]), int(measured[3])
    # The second number is the inverse of the first, both rounded; where it is not, one was misread.
    if ops_per_s <= 0 or abs(_USECS_PER_S / ops_per_s - usecs) > 0.501 + _USECS_PER_S * 5.1e-4 / ops_per_s**2:
        raise OutputNotUnderstood(_PG_TEST_FSYNC, expected="a rate and its inverse", found=line)
    return SyncMethod(part, _name(measured[1]), ops_per_s, None)


def _name(words: str) -> str:
    # `2 *  8kB` is aligned with `16 *  1kB`.
    return re.sub(" +", " ", words)


def _refuse_doubles(methods: list[SyncMethod]) -> None:
    seen = set()
    for method in methods:
        if (method.part, method.method) in seen:
            raise OutputNotUnderstood(
                _PG_TEST_FSYNC, expected=f"one line for each method of {method.part!r}", found=method.method
            )
        seen.add((method.part, method.method))
