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
from bedplate.figures.cpu_per_gigabyte import cpu_s_per_gib

_TOOL = "fio"
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
        raise OutputNotUnderstood(_TOOL, expected="a JSON document", found=said or "(it printed nothing)")
    try:
        document = json.loads(output[begin:], parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise OutputNotUnderstood(
            _TOOL, expected=f"a whole JSON document ({error})", found=output[begin:]
        ) from error
    root = _Node(document, "")
    version = root.text("fio version")
    if not _VERSION.fullmatch(version):
        raise OutputNotUnderstood(_TOOL, expected="the version to be fio-3", found=version)
    jobs = tuple(_job(node) for node in root.nodes("jobs"))
    if not jobs:
        raise OutputNotUnderstood(_TOOL, expected="at least one job", found=output[begin:])
    remarks = tuple(line.strip() for line in output[:begin].splitlines() if line.strip())
    return FioResult(version, jobs, remarks)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


class _Node:
    """An object of the document, which knows where it stands and gives what is asked for, or refuses."""

    def __init__(self, value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise OutputNotUnderstood(_TOOL, expected=f"an object at {place or 'the top'}", found=repr(value))
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

    def whole(self, name: str) -> int:
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
                _TOOL, expected=f"{self._place}/{name}", found=f"only {', '.join(map(str, self._value))}"
            )
        return self._value[name]

    def _misfit(self, name: str, expected: str, value: Any) -> OutputNotUnderstood:
        return OutputNotUnderstood(
            _TOOL, expected=f"{expected} at {self._place}/{name}", found=str(value)[:400]
        )


def _job(node: _Node) -> FioJobResult:
    return FioJobResult(
        name=node.text("jobname"),
        error=node.whole("error"),
        read=_side(node.node("read")),
        write=_side(node.node("write")),
        sync=_latency(node.node("sync"), "lat_ns"),
        runtime_s=node.number("job_runtime") / 1000,
        user_cpu_percent=node.number("usr_cpu"),
        system_cpu_percent=node.number("sys_cpu"),
        steady_state=_steady_state(node.node("steadystate")) if "steadystate" in node else None,
    )


def _side(node: _Node) -> FioSide | None:
    operations = node.whole("total_ios")
    if operations == 0:
        return None
    return FioSide(
        size_bytes=node.whole("io_bytes"),
        operations=operations,
        runtime_s=node.number("runtime") / 1000,
        bandwidth_bytes_per_s=node.number("bw_bytes"),
        iops=node.number("iops"),
        clat=_latency(node, "clat_ns"),
        lat=_latency(node, "lat_ns"),
    )


def _latency(parent: _Node, name: str) -> FioLatency | None:
    node = parent.node(name)
    operations = node.whole("N")
    if operations == 0:
        return None
    return FioLatency(
        operations=operations,
        latency_ms_mean=node.number("mean") / _NS_PER_MS,
        latency_ms_stddev=node.number("stddev") / _NS_PER_MS,
        latency_ms_max=node.number("max") / _NS_PER_MS,
        percentiles=node.percentiles(),
    )


def _steady_state(node: _Node) -> FioSteadyState:
    return FioSteadyState(node.text("ss"), attained=node.whole("attained") == 1)
