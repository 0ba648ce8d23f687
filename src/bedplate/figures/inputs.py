"""The raw record of one run, read; what cannot be read becomes a problem with its reason, never an error.

A run that was measured for an hour is not thrown away because one of its files is damaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from bedplate.errors import BedplateError
from bedplate.figures.latency_log import LatencyLog, read_latency_log
from bedplate.figures.pgbench_output import PgbenchSummary, parse_summary
from bedplate.figures.samples import Samples, arrange, read_samples
from bedplate.figures.server_log import ServerLog, read_server_log
from bedplate.model import codec
from bedplate.model.visit import RunRecord, VisitRecord

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VISIT = "visit.json"
RECORD = "record.json"
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


def read_inputs(visit_directory: Path, run_directory: Path) -> RunInputs:
    """Read them all. StudyError only if the two records themselves cannot be read."""
    record = codec.read(RunRecord, run_directory / RECORD)
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
