"""The samples of a run as arrays: read, checked for steps of the clock, put onto whole seconds.

Counters are cumulative, so a second's rate is the difference between its two ends, interpolated
between the samples beside them: nothing is lost and nothing counted twice, whatever moments the
samples were taken at.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from bedplate.errors import BedplateError
from bedplate.figures.facts import cache_drops_of, late_share_of, others_cpu_share_of, steal_share_of
from bedplate.figures.server_log import Complaint, ServerLog, server_log_of
from bedplate.model import codec
from bedplate.model.figure import Window
from bedplate.model.visit import Phase, RunRecord, Sample, VisitRecord

# Three times the interval of sampling: between samples further apart nothing is known by the second.
GAP_S = 3.0

# A second of which less than half is covered by samples says too little about the whole.
_COVERED_MIN = 0.5

# What two readings of clocks in a row may lie apart when the process was put aside between them.
CLOCK_STEP_S = 0.1

# A server that hardly answers keeps its probe waiting for seconds.
UNSEEN_SHARE_MAX = 0.2


@dataclass(frozen=True)
class Samples:
    """All samples of a run, by time.

    `monotonic_s` and `wall_s` have one entry per sample; `values` has one array of the same length
    per name, not-a-number where a sample did not have it.
    """

    monotonic_s: npt.NDArray[np.float64]
    wall_s: npt.NDArray[np.float64]
    values: Mapping[str, npt.NDArray[np.float64]]

    def __len__(self) -> int:
        return len(self.monotonic_s)


def read_samples(path: Path, further_samples: Iterable[Sample | None] = ()) -> Samples:
    """The course as it was written, and single samples beside it, sorted by the monotonic clock.

    A last line that was cut off by a kill is left out; any other line that is not a sample is a
    ValueError with its number.
    """
    rows = list(_rows(path)) if path.exists() else []
    rows += [
        (sample.monotonic_s, sample.wall_s, sample.values) for sample in further_samples if sample is not None
    ]
    return arrange(rows)


def arrange(rows: Sequence[tuple[float, float, Mapping[str, float]]]) -> Samples:
    """Rows of (monotonic seconds, wall seconds, values) as arrays; of two at one moment the first."""
    rows = sorted(rows, key=lambda row: row[0])
    rows = [row for i, row in enumerate(rows) if i == 0 or row[0] > rows[i - 1][0]]
    names = dict.fromkeys(name for _, _, values in rows for name in values)
    return Samples(
        np.array([row[0] for row in rows], dtype=np.float64),
        np.array([row[1] for row in rows], dtype=np.float64),
        {
            name: np.array([values.get(name, np.nan) for _, _, values in rows], dtype=np.float64)
            for name in names
        },
    )


def joined(samples: Samples, further_samples: Iterable[Sample]) -> Samples:
    """The samples with others between them, such as readings at the ends of phases."""
    rows = [
        (
            float(samples.monotonic_s[i]),
            float(samples.wall_s[i]),
            _values(samples, i),
        )
        for i in range(len(samples))
    ]
    return arrange(
        [*rows, *((sample.monotonic_s, sample.wall_s, sample.values) for sample in further_samples)]
    )


def clock_step_s(samples: Samples) -> float | None:
    """The largest step of the wall clock against the monotonic one between two samples.

    None where no step is larger than `CLOCK_STEP_S`. Slewing by NTP (500 ppm) stays far below.
    """
    steps = np.diff(samples.wall_s - samples.monotonic_s)
    if len(steps) == 0:
        return None
    largest = float(steps[np.argmax(np.abs(steps))])
    return largest if abs(largest) > CLOCK_STEP_S else None


def unseen_s(samples: Samples, from_monotonic_s: float, to_monotonic_s: float) -> float:
    """How long of a stretch of time lies between samples that are further apart than `GAP_S`."""
    inside = (samples.monotonic_s > from_monotonic_s) & (samples.monotonic_s < to_monotonic_s)
    gaps = np.diff(np.concatenate([[from_monotonic_s], samples.monotonic_s[inside], [to_monotonic_s]]))
    return float(gaps[gaps > GAP_S].sum())


def values_between(
    samples: Samples, from_monotonic_s: float, to_monotonic_s: float
) -> tuple[Mapping[str, float], ...]:
    """The values of every sample in a stretch of time, both ends included, each with what it had."""
    inside = (samples.monotonic_s >= from_monotonic_s) & (samples.monotonic_s <= to_monotonic_s)
    return tuple(_values(samples, int(i)) for i in np.flatnonzero(inside))


def rates(
    moments_s: npt.NDArray[np.float64], values: npt.NDArray[np.float64], edges_s: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Per-second rates of a cumulative counter between successive edges (n + 1 edges, n rates).

    Not-a-number where less than half of an interval lies between the samples, where samples around
    it are further apart than `GAP_S`, and where the counter ran backwards (its owner started anew).
    """
    known = ~np.isnan(values)
    at, counts = moments_s[known], values[known]
    result = np.full(max(len(edges_s) - 1, 0), np.nan)
    if len(at) < 2 or len(result) == 0:
        return result
    low = np.clip(edges_s[:-1], at[0], at[-1])
    high = np.clip(edges_s[1:], at[0], at[-1])
    covered = high - low
    enough = covered >= _COVERED_MIN * np.diff(edges_s)
    growth = np.interp(high, at, counts) - np.interp(low, at, counts)
    result[enough] = growth[enough] / covered[enough]
    # A sample interval i lies between at[i] and at[i + 1]; an edge interval touches those from
    # `first` to `last`.
    broken = (np.diff(at) > GAP_S) | (np.diff(counts) < 0)
    before = np.concatenate([[0], np.cumsum(broken)])
    first = np.clip(np.searchsorted(at, low, side="right") - 1, 0, len(broken) - 1)
    last = np.clip(np.searchsorted(at, high, side="left") - 1, 0, len(broken) - 1)
    result[before[last + 1] - before[first] > 0] = np.nan
    return result


def levels(
    moments_s: npt.NDArray[np.float64], values: npt.NDArray[np.float64], edges_s: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """A gauge at the middle of each interval, interpolated; not-a-number outside the samples and in gaps."""
    known = ~np.isnan(values)
    at, gauge = moments_s[known], values[known]
    middle = (edges_s[:-1] + edges_s[1:]) / 2
    result = np.full(len(middle), np.nan)
    if len(at) == 0:
        return result
    inside = (middle >= at[0]) & (middle <= at[-1])
    result[inside] = np.interp(middle[inside], at, gauge)
    if len(at) > 1:
        place = np.clip(np.searchsorted(at, middle, side="right") - 1, 0, len(at) - 2)
        result[np.diff(at)[place] > GAP_S] = np.nan
    return result


def _values(samples: Samples, i: int) -> dict[str, float]:
    """What one sample had."""
    return {name: float(values[i]) for name, values in samples.values.items() if not np.isnan(values[i])}


def _rows(path: Path) -> Iterator[tuple[float, float, Mapping[str, float]]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return  # cut off by a kill
            try:
                row = json.loads(line)
                yield float(row["monotonic_s"]), float(row["wall_s"]), row["values"]
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path}, line {number} is not a sample: {error}") from error


VISIT = "visit.json"
COURSE = "course.jsonl"

Read = TypeVar("Read")


@dataclass(frozen=True, kw_only=True)
class RunInputs:
    """Everything that figures are made from; None is not there or not readable, see `problems`.

    What an engine without a server, or a tool, does not have is None without being a problem. `course_missing`: the
    file of the samples is not there, which every run begins with.
    """

    visit: VisitRecord
    record: RunRecord
    samples: Samples
    server_log: ServerLog | None
    problems: tuple[str, ...]
    course_missing: bool = False

    @property
    def course_problem(self) -> str | None:
        """Why the samples do not cover the run: what ended them, or how much of it has none."""
        phases = [phase for phase in self.record.phases if phase.name != "warmup"]
        told = self.record.facts.get("course_problem")
        if told is not None or not phases or self.course_missing:
            return None if told is None else str(told)
        start, end = phases[0].start_monotonic_s, phases[-1].end_monotonic_s
        unseen = unseen_s(self.samples, start, end)
        if unseen <= UNSEEN_SHARE_MAX * (end - start):
            return None
        return f"no sample was taken in {unseen:.0f} of {end - start:.0f} s of the run"


class Attempts:
    """Reads what may be damaged: None, and a problem, where it is."""

    def __init__(self, problems: Iterable[str] = ()) -> None:
        self.problems = list(problems)

    def read(self, reading: Callable[[], Read]) -> Read | None:
        """What it reads."""
        try:
            return reading()
        except BedplateError as error:
            self.problems.extend(error.reasons)
        except OSError as error:
            self.problems.append(f"{error.filename} cannot be read: {error.strerror}")
        except ValueError as error:
            self.problems.append(str(error))
        return None


def read_inputs(visit_directory: Path, run_directory: Path, record: RunRecord) -> RunInputs:
    """Read them all beside the run's record. StudyError only if that of the visit cannot be read."""
    visit = codec.read(VisitRecord, visit_directory / VISIT)
    attempts = Attempts()
    read_server_log = server_log_of(visit.cell.build.engine)
    samples = attempts.read(lambda: read_samples(run_directory / COURSE, (record.before, record.after)))
    log = visit_directory / "logs" / "server.log"
    return RunInputs(
        visit=visit,
        record=record,
        samples=samples if samples is not None else arrange([]),
        server_log=None if read_server_log is None else attempts.read(lambda: read_server_log(log)),
        problems=tuple(attempts.problems),
        course_missing=not (run_directory / COURSE).exists(),
    )


@dataclass(frozen=True)
class MeasuredWindow:
    """When transactions ran, in wall-clock seconds since the epoch.

    `origin` is the wall-clock second that is second 0 of the course.
    """

    start_wall_s: float
    end_wall_s: float

    @property
    def duration_s(self) -> float:
        """Its length in seconds."""
        return self.end_wall_s - self.start_wall_s

    @property
    def origin(self) -> int:
        """Second 0 of the course, as a second of the wall clock."""
        return math.floor(self.start_wall_s)

    @property
    def whole_seconds(self) -> range:
        """The seconds of the course that lie wholly inside."""
        return range(math.ceil(self.start_wall_s) - self.origin, math.floor(self.end_wall_s) - self.origin)

    def coverage(self, second: int) -> float:
        """Which share of a second of the course lies inside, from 0 to 1."""
        start = self.origin + second
        return max(0.0, min(self.end_wall_s, start + 1) - max(self.start_wall_s, start))


def phase_named(phases: Iterable[Phase], name: str) -> Phase | None:
    """The phase of that name, None where the run did not come to it."""
    return next((phase for phase in phases if phase.name == name), None)


@dataclass(frozen=True, kw_only=True)
class RunEvidence:
    """Of one completed run of any workload; None is not known, which is not the same as all being well.

    Times are seconds since the start of what was measured. `windows` are its checkpoints, None where the
    server's log could not be read. `course_problem` says why the samples end early, `course_missing` that they are gone. `problems` are inputs
    that could not be read at all. `others_cpu_share` is the least that other programs used of all processors,
    `cache_drops` how often one of them dropped the caches. `late_share` is by how much an emulated device's requests took longer than they should.
    """

    duration_s: float
    windows: tuple[Window, ...] | None
    complaints: tuple[Complaint, ...]
    kernel_messages: tuple[str, ...]
    clock_step_s: float | None
    steal_share: float | None
    course_problem: str | None
    problems: tuple[str, ...]
    others_cpu_share: float | None = None
    course_missing: bool = False
    cache_drops: int | None = None
    late_share: float | None = None


def shared_evidence(
    inputs: RunInputs,
    duration_s: float,
    *,
    windows: tuple[Window, ...] | None = (),
    complaints: tuple[Complaint, ...] = (),
) -> dict[str, Any]:
    """The fields of RunEvidence by name: a workload's own evidence is made of these and of its own.

    A run without a server has no checkpoints and no complaints.
    """
    return vars(
        RunEvidence(
            duration_s=duration_s,
            windows=windows,
            complaints=complaints,
            kernel_messages=inputs.visit.kernel_messages,
            clock_step_s=clock_step_s(inputs.samples),
            steal_share=steal_share_of(inputs.record),
            others_cpu_share=others_cpu_share_of(inputs.record),
            cache_drops=cache_drops_of(inputs.record),
            late_share=late_share_of(inputs.record),
            course_problem=inputs.course_problem,
            course_missing=inputs.course_missing,
            problems=inputs.problems,
        )
    )
