"""The folder of one job: all that the login node and the node say to each other. Standard library only.

    job.json          JobOrder: what the job shall do; written before the job is submitted
    requests/NNN.json the request of each visit
    submitted.json    Submission: what Slurm said
    claim             whoever makes it, decides: the job that begins, or a start that takes the order back
    begun/NNN         made when a visit begins, with the time
    results/NNN/      a visit that has ended, whole or absent
    end.json          JobEnd: the job has ended in order
    settled.json      Settled: everything that it left is in the study

The claim is made with O_EXCL, which one process alone can win, on a shared file system as well. So a job whose
submission nobody saw end cannot be run twice: either it has the claim, or it finds it taken and ends at once.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bedplate.errors import StudyError
from bedplate.model import codec, limits
from bedplate.model.visit import VisitKey, VisitRequest

Record = TypeVar("Record")

ORDER_VERSION = 1

# What a job says of its process that failed.
FAILURE = "failure.txt"

WITHDRAWN = "withdrawn"

_NUMBER = re.compile(r"\d{3,6}")
_FOLDER = re.compile(r"(\d+)\.(\d+)")


@dataclass(frozen=True)
class OrderedVisit:
    """A visit of a job: its number there, and whose request it is. `index` is its place in the schedule."""

    number: int
    index: int
    key: VisitKey


@dataclass(frozen=True)
class JobOrder:
    """What a job shall do on its node.

    `command` lives one visit: a request and a directory are added to it. It is begun through sudo where
    `needs_root` and the job is not root. `limit_s` is Slurm's limit for the job. With `facts`, the path of
    a request for facts, or `release`, the job has no visits.
    """

    version: int
    name: str
    node: str
    repetition: int
    visits: tuple[OrderedVisit, ...]
    command: tuple[str, ...]
    local_directory: str
    limit_s: float
    needs_root: bool = True
    node_identity: str | None = None
    facts: str | None = None
    release: bool = False


@dataclass(frozen=True)
class Submission:
    """Slurm's number of a job, and when it was submitted."""

    job: str
    wall_s: float


@dataclass(frozen=True)
class JobClaim:
    """Who has a job's order: a job on a node, or `withdrawn`."""

    by: str
    node: str = ""
    boot_id: str = ""
    wall_s: float = 0.0


@dataclass(frozen=True)
class JobEnd:
    """How a job ended in order. `why` is `done`, `stopped`, `limit`, `unfit` or `refused`, with a sentence.

    `unfit`: no visit can run on its node; the one that was begun there is no result.

    `results` is how many it left in its folder: on a shared file system they may be seen later than this.
    """

    why: str
    sentence: str
    wall_s: float
    results: int = 0


@dataclass(frozen=True)
class Settled:
    """What became of a job whose results are in the study: `state` as Slurm says it, empty if it does not."""

    state: str
    sentence: str
    wall_s: float


class JobFolder:
    """The files of one job. Nothing here starts a program."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.order_file = directory / "job.json"
        self.claim_file = directory / "claim"
        self.results = directory / "results"
        self.begun = directory / "begun"
        self.log = directory / "job.log"
        self.script = directory / "job.sh"

    @property
    def order(self) -> JobOrder:
        """The order; StudyError if there is none that can be read."""
        return codec.read(JobOrder, self.order_file)

    @property
    def submission(self) -> Submission | None:
        """What Slurm said, None before it has."""
        return _read(Submission, self.directory / "submitted.json")

    @property
    def claim(self) -> JobClaim | None:
        """Who has the order; None while nobody has it, or while the claim is being written."""
        return _read(JobClaim, self.claim_file)

    @property
    def end(self) -> JobEnd | None:
        """How the job ended in order, None while it has not."""
        return _read(JobEnd, self.directory / "end.json")

    @property
    def settled(self) -> Settled | None:
        """What became of it, None while results may come."""
        return _read(Settled, self.directory / "settled.json")

    def request(self, number: int) -> Path:
        """The file of a visit's request."""
        return self.directory / "requests" / f"{number:03d}.json"

    def result(self, number: int) -> Path:
        """The folder of a visit that has ended."""
        return self.results / f"{number:03d}"

    def finished(self) -> tuple[int, ...]:
        """The numbers of visits that have ended and were not collected, in order."""
        return _numbers(self.results)

    def begun_visits(self) -> tuple[int, ...]:
        """The numbers of visits that began, in order."""
        return _numbers(self.begun)

    def lay_out(self, order: JobOrder, requests: Mapping[int, VisitRequest], script: str) -> None:
        """Make the folders and write everything that the job reads, the order last."""
        for folder in (self.directory / "requests", self.results, self.begun):
            folder.mkdir(parents=True, exist_ok=True)
        for number, request in requests.items():
            codec.write(self.request(number), request)
        self.script.write_text(script, encoding="utf-8")
        codec.write(self.order_file, order)

    def note_submission(self, submission: Submission) -> None:
        """Write down what Slurm said."""
        codec.write(self.directory / "submitted.json", submission)

    def note_begun(self, number: int) -> None:
        """Write down that a visit begins."""
        _write_durably(self.begun / f"{number:03d}", json.dumps(time.time()))

    def note_end(self, job_end: JobEnd) -> None:
        """Write down that the job has ended in order."""
        codec.write(self.directory / "end.json", job_end)

    def note_settled(self, settled: Settled) -> None:
        """Write down that nothing more will come."""
        codec.write(self.directory / "settled.json", settled)

    def take(self, claim: JobClaim) -> bool:
        """Take the order; False if somebody has it."""
        try:
            file = os.open(self.claim_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            return False
        try:
            os.write(file, codec.dumps(claim, indent=None).encode())
            os.fsync(file)
        finally:
            os.close(file)
        return True

    def is_taken(self) -> bool:
        """Whether the order has been taken by a job or back."""
        return self.claim_file.exists()


class JobFolders:
    """All jobs of a study, below `<study>/fleet/jobs`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def jobs(self) -> tuple[JobFolder, ...]:
        """Every job that was laid out, by repetition, then in the order in which they were made."""
        found = [
            (int(match[1]), int(match[2]), path)
            for path in (self.directory.iterdir() if self.directory.is_dir() else ())
            if (match := _FOLDER.fullmatch(path.name)) and (path / "job.json").exists()
        ]
        return tuple(JobFolder(path) for _, _, path in sorted(found))

    def unsettled(self) -> tuple[JobFolder, ...]:
        """Those of which results may come, or wait to be collected."""
        return tuple(job for job in self.jobs() if job.settled is None)

    def new(self, repetition: int) -> JobFolder:
        """A folder that no job had; nothing is made yet."""
        taken = [
            int(match[2])
            for path in (self.directory.iterdir() if self.directory.is_dir() else ())
            if (match := _FOLDER.fullmatch(path.name)) and int(match[1]) == repetition
        ]
        return JobFolder(self.directory / f"{repetition}.{max(taken, default=0) + 1}")


def words_of_failure(record_path: Path) -> str | None:
    """What a job says of its process that failed, or why that cannot be read; None where it did not fail."""
    file = record_path / FAILURE
    if not limits.is_there(file):
        return None
    try:
        return codec.read_bytes(file).decode(errors="replace").strip()
    except StudyError as error:
        return "; ".join(error.reasons)


def end_of_log(log: Path, most_bytes: int) -> bytes | None:
    """So many bytes of its end at most; None where there is no log, or no plain file."""
    try:
        with codec.opened(log) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - most_bytes))
            return file.read(most_bytes)
    except StudyError:
        return None


def _numbers(folder: Path) -> tuple[int, ...]:
    try:
        names = os.listdir(folder)  # noqa: PTH208 -- asked of every job, again and again
    except FileNotFoundError:
        return ()
    return tuple(sorted(int(name) for name in names if _NUMBER.fullmatch(name)))


def _write_durably(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _read(kind: type[Record], path: Path) -> Record | None:
    """A record that may not be there yet, or be half written on another machine."""
    try:
        return codec.read(kind, path)
    except StudyError:
        return None
