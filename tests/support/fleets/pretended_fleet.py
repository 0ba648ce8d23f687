"""A Slurm that is none: what the payload of a job would leave is there when its submission returns."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bedplate.executors.slurm.controller import JobState, Slurm
from bedplate.executors.slurm.job_folder import JobClaim, JobEnd, JobFolder
from bedplate.model import codec
from bedplate.model.visit import Outcome, VisitRecord, VisitRequest


class PretendedSlurm(Slurm):
    """Lives a job within its submission: what its payload would leave is there when sbatch returns."""

    def __init__(self) -> None:
        super().__init__()
        self.cpu_s = 0.0
        self._jobs: dict[str, JobState] = {}

    def submit(self, arguments: Sequence[str]) -> str:
        """A job that has ended."""
        started = time.process_time()
        folder = JobFolder(Path(arguments[-1]).parent)
        job = folder.order
        folder.take(JobClaim("1", job.node, "boot", time.time()))
        for visit in job.visits:
            request = codec.read(VisitRequest, folder.request(visit.number))
            place = folder.result(visit.number)
            place.mkdir()
            (place / "visit.json").write_text(codec.dumps(self.record(request, job.node)))
        folder.note_end(JobEnd("done", "every visit has ended", time.time(), results=len(job.visits)))
        number = self.list_job(job.name, "COMPLETED", node=job.node)
        self.cpu_s += time.process_time() - started
        return number

    def record(self, request: VisitRequest, node: str) -> VisitRecord:
        """What came of a visit."""
        return completed(request)

    def refuse(self, arguments: Sequence[str], why: str) -> str:
        """A job that ended at its first visit, since no visit can run on its node."""
        folder = JobFolder(Path(arguments[-1]).parent)
        job = folder.order
        folder.take(JobClaim("1", job.node, "boot", time.time()))
        folder.note_begun(job.visits[0].number)
        folder.note_end(JobEnd("unfit", f"no visit can run on {job.node}: {why}", time.time()))
        return self.list_job(job.name, "FAILED", node=job.node)

    def list_job(self, name: str, state: str, *, node: str = "") -> str:
        """Put a job into the listing; its number."""
        number = str(len(self._jobs) + 1)
        self._jobs[name] = JobState(number, state, "None", name, node)
        return number

    def jobs(self) -> Mapping[str, JobState]:
        """All of them."""
        return self._jobs

    def cancel(self, job: str) -> None:
        """As scancel."""
        self._jobs = {n: replace(s, state="CANCELLED") if s.job == job else s for n, s in self._jobs.items()}


class Silent:
    """A display for nobody."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_words, **_more: None


def completed(request: VisitRequest) -> VisitRecord:
    """The record of a visit in which all went well."""
    return VisitRecord(
        format_version=request.format_version,
        key=request.key,
        cell=request.cell,
        dataset=request.dataset,
        outcome=Outcome.COMPLETED,
        reasons=(),
        failed_step=None,
        started_wall_s=0.0,
        seconds=60.0,
        boot_id="boot",
        executor="slurm",
        provenance=request.provenance,
    )
