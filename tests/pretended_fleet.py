"""A Slurm that is none: what the payload of a job would leave is there when its submission returns."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bedplate.executor.slurm.controller import JobState, Slurm
from bedplate.executor.slurm.job_folder import Claim, JobEnd, JobFolder
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
        folder.take(Claim("1", job.node, "boot", time.time()))
        for visit in job.visits:
            request = codec.read(VisitRequest, folder.request(visit.number))
            place = folder.result(visit.number)
            place.mkdir()
            (place / "visit.json").write_text(codec.dumps(_record(request)))
        folder.note_end(JobEnd("done", "every visit has ended", time.time(), results=len(job.visits)))
        number = str(len(self._jobs) + 1)
        self._jobs[job.name] = JobState(number, "COMPLETED", "None", job.name, job.node)
        self.cpu_s += time.process_time() - started
        return number

    def jobs(self) -> Mapping[str, JobState]:
        """All of them."""
        return self._jobs


class Silent:
    """A display for nobody."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_words, **_more: None


def _record(request: VisitRequest) -> VisitRecord:
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
