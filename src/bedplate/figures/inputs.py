"""The raw record of one run, read; what cannot be read becomes a problem with its reason, never an error.

A run that was measured for an hour is not thrown away because one of its files is damaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from bedplate.errors import BedplateError
from bedplate.figures.samples import UNSEEN_SHARE_MAX, Samples, arrange, read_samples, unseen_s
from bedplate.figures.server_log import ServerLog, server_log_of
from bedplate.model import codec
from bedplate.model.visit import VisitRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from bedplate.model.visit import RunRecord

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
