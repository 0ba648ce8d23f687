"""Puts what jobs left on the shared file system into its place in the study.

A result stays in its job's folder until its visit is in the store: what a kill interrupts is collected again by
the next start, and what has been collected is known by its place.
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.errors import StudyError
from bedplate.executors.lost import lost_record
from bedplate.executors.slurm.job_folder import FAILURE, end_of_log, words_of_failure
from bedplate.executors.slurm.on_node import NAME
from bedplate.executors.slurm.payload import WHOLE
from bedplate.model import codec
from bedplate.model.limits import most_bytes_of
from bedplate.model.reason import because
from bedplate.model.visit import VisitRecord, VisitRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from bedplate.executors.protocol import Start
    from bedplate.executors.slurm.job_folder import JobFolder, JobOrder, OrderedVisit
    from bedplate.model.plan import ScheduledVisit
    from bedplate.model.reason import Reason
    from bedplate.model.visit import VisitKey

    Visits = Mapping[tuple[str, str, int, bool], ScheduledVisit]

_NO_RECORD = because("no-record", "the visit left no record")


class Collector:
    """Collects for one start; `visits` are those of its schedule by cell, dataset, repetition and canary."""

    def __init__(self, start: Start, visits: Visits) -> None:
        self._start = start
        self._store = start.store
        self._visits = visits

    def visit_of(self, key: VisitKey) -> ScheduledVisit:
        """The scheduled visit of an order; StudyError if the schedule has it no more."""
        try:
            return self._visits[key.cell, key.dataset, key.repetition, key.canary]
        except KeyError:
            raise StudyError(
                f"{self._store.layout.directory}: a job ran {key.cell}, repetition {key.repetition}, which the "
                "schedule lacks; the study was changed by hand"
            ) from None

    def is_kept(self, key: VisitKey) -> bool:
        """Whether this attempt is in the study."""
        return (self._store.layout.attempt(self.visit_of(key), key.attempt) / "visit.json").exists()

    def collect(self, job: JobFolder, order: JobOrder) -> Iterator[tuple[ScheduledVisit, VisitRecord, str]]:
        """Keep every result of a job that waits; each with the line that a log has of it."""
        ordered = {visit.number: visit for visit in order.visits}
        for number in job.finished():
            if number not in ordered:
                continue
            source = job.result(number)
            if not self.is_kept(ordered[number].key):
                yield self._keep(job, ordered[number], source)
            shutil.rmtree(source)

    def keep_lost(
        self, job: JobFolder, visit: OrderedVisit, sentence: str
    ) -> tuple[ScheduledVisit, VisitRecord, str]:
        """Record a visit that began and left nothing, with what is known of its job."""
        return self._keep(job, visit, None, (because("job-lost", sentence),))

    def _keep(
        self, job: JobFolder, ordered: OrderedVisit, source: Path | None, reasons: tuple[Reason, ...] = ()
    ) -> tuple[ScheduledVisit, VisitRecord, str]:
        visit = self.visit_of(ordered.key)
        with self._store.attempt(visit) as attempt:
            if attempt.number != ordered.key.attempt:
                raise StudyError(
                    f"{attempt.directory} would be attempt {attempt.number}, its job ran attempt "
                    f"{ordered.key.attempt}; the study was changed by hand"
                )
            (attempt.directory / "logs").mkdir()
            if source is not None:
                # Names of the same files: the result stays whole until its visit is in its place. A link stays one, and goes when it is sealed.
                shutil.copytree(
                    source, attempt.directory, symlinks=True, copy_function=_link, dirs_exist_ok=True
                )
            seconds = _whole_seconds(attempt.directory)
            reasons = (*reasons, *_failure(attempt.directory))
            record = _record(attempt.directory, job, ordered, reasons, seconds)
            codec.write(attempt.directory / "visit.json", record)
            record, line = self._start.keep(attempt, record, seconds_before=max(seconds, record.seconds))
        return visit, record, line


def _record(
    directory: Path, job: JobFolder, ordered: OrderedVisit, reasons: tuple[Reason, ...], seconds: float
) -> VisitRecord:
    file = directory / "visit.json"
    if file.exists() and not reasons:
        return codec.read(VisitRecord, file)
    request = codec.read(VisitRequest, job.request(ordered.number))
    # A kept log of the job says what its visit no longer can; of a very long one its end does.
    if (said := end_of_log(job.log, most_bytes_of("slurm-job.log"))) is not None:
        (directory / "logs" / "slurm-job.log").write_bytes(said)
    claim = job.claim
    lost = lost_record(request, reasons or (_NO_RECORD,), NAME, seconds)
    begun = job.begun / f"{ordered.number:03d}"
    started = begun.stat().st_mtime if begun.exists() else time.time()
    return replace(lost, boot_id=claim.boot_id if claim else "", started_wall_s=started)


def _failure(directory: Path) -> tuple[Reason, ...]:
    """What the job says of a visit whose process failed; its file is taken out."""
    text = words_of_failure(directory)
    if text is None:
        return ()
    (directory / FAILURE).unlink()
    return (because("visit-process-failed", text),)


def _whole_seconds(directory: Path) -> float:
    file = directory / WHOLE
    try:
        seconds = float(codec.read_text(file))
    except (StudyError, ValueError):
        return 0.0
    file.unlink()
    return seconds


def _link(source: str, target: str) -> str:
    """A second name; a copy where the file system has none."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)
    return target
