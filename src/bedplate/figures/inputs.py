"""The raw record of one run, read; what cannot be read becomes a problem with its reason, never an error.

A run that was measured for an hour is not thrown away because one of its files is damaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from bedplate.errors import BedplateError
from bedplate.figures.latency_log import LatencyLog, read_latency_log
from bedplate.figures.pgbench_output import PgbenchSummary, parse_summary
from bedplate.figures.samples import UNSEEN_SHARE_MAX, Samples, arrange, read_samples, unseen_s
from bedplate.figures.server_log import ServerLog, read_server_log
from bedplate.model import codec
from bedplate.model.visit import VisitRecord

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bedplate.model.visit import RunRecord

VISIT = "visit.json"
COURSE = "course.jsonl"
WARMUP_LOG = "warmup.bin"
MEASURE_LOG = "measure.bin"
# Raw and bulky: everything in them is in the figures and the Parquet files.
BULKY = (COURSE, WARMUP_LOG, MEASURE_LOG)

Read = TypeVar("Read")


@dataclass(frozen=True)
class RunInputs:
    """Everything that figures are made from; None is not there or not readable, see `problems`.

    What an engine without a server, or a tool, does not have is None without being a problem. `course_missing`: the
    file of the samples is not there, which every run begins with.
    """

    visit: VisitRecord
    record: RunRecord
    samples: Samples
    warmup_log: LatencyLog | None
    measure_log: LatencyLog | None
    summary: PgbenchSummary | None
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


def read_inputs(visit_directory: Path, run_directory: Path, record: RunRecord) -> RunInputs:
    """Read them all beside the run's record. StudyError only if that of the visit cannot be read."""
    visit = codec.read(VisitRecord, visit_directory / VISIT)
    problems: list[str] = []

    def attempt(read: Callable[[], Read]) -> Read | None:
        try:
            return read()
        except BedplateError as error:
            problems.extend(error.reasons)
        except OSError as error:
            problems.append(f"{error.filename} cannot be read: {error.strerror}")
        except ValueError as error:
            problems.append(str(error))
        return None

    def summary() -> PgbenchSummary:
        output, errors = (
            (run_directory / "logs" / name).read_text(encoding="utf-8", errors="replace")
            for name in ("pgbench.out", "pgbench.err")
        )
        return parse_summary(output, errors)

    warmed_up = any(phase.name == "warmup" for phase in record.phases)
    measured = any(phase.name == "measure" for phase in record.phases)
    has_server = visit.cell.build.has_postgresql
    samples = attempt(lambda: read_samples(run_directory / COURSE, (record.before, record.after)))
    return RunInputs(
        visit=visit,
        record=record,
        samples=samples if samples is not None else arrange([]),
        warmup_log=attempt(lambda: read_latency_log(run_directory / WARMUP_LOG)) if warmed_up else None,
        measure_log=attempt(lambda: read_latency_log(run_directory / MEASURE_LOG)) if measured else None,
        summary=attempt(summary) if measured else None,
        server_log=attempt(lambda: read_server_log(visit_directory / "logs" / "server.log"))
        if has_server
        else None,
        problems=tuple(problems),
        course_missing=not (run_directory / COURSE).exists(),
    )
