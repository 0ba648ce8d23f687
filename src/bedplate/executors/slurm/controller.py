"""Slurm's commands, each with a time limit, and what they say of jobs.

`sacct` is not used: many clusters keep no accounts. What Slurm says only explains; what a job did stands in
its folder.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bedplate import installation
from bedplate.errors import (
    BedplateError,
    CommandFailed,
    CommandNotStarted,
    OutputNotUnderstood,
    RequirementMissing,
)
from bedplate.executors.slurm.job_folder import JobFolders, JobOrder
from bedplate.executors.slurm.payload import WARNED_FROM_S, WARNING_S
from bedplate.host.command import Commands
from bedplate.host.requirement import find_tool
from bedplate.model import codec
from bedplate.model.machine import Fleet, NodeFacts
from bedplate.study.layout import StudyLayout
from bedplate.study.records import nodes_directory, read_nodes
from bedplate.units import format_duration

_PROGRAMS = ("sbatch", "squeue", "scancel", "scontrol")

# A controller that is down is noticed by its commands after some nine seconds.
_LIMIT_S = 30.0

_SUBMIT_LIMIT_S = 60.0
_FIELDS = "%i|%T|%r|%j|%N"
_NUMBER = re.compile(r"\d+")

# What the names of all our jobs begin with.
KEY_START = "bedplate-"

# What a user's shell may set for these commands and what would hide jobs from us, or have them wait, ask or be many.
_UNWANTED = re.compile(r"SQUEUE_\w+|SCANCEL_\w+|SBATCH_(WAIT|ARRAY_INX|GET_USER_ENV)", re.ASCII)

# AssocMaxSubmitJobLimit, QOSMaxSubmitJobPerUserLimit, and others of that kind.
_NO_ROOM = re.compile(r"\w+SubmitJobs?\w*Limit", re.ASCII)

# Why a job waits where nothing is amiss.
_ORDINARY = frozenset({"None", "", "Resources", "Priority"})

# What sbatch says where the controller did not answer, so that it is not known whether there is a job.
_SILENT = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Connection refused",
    "Connection timed out",
    "Unable to connect",
    "Slurm backup controller in standby",
    "Zero Bytes were transmitted",
    "Transport endpoint is not connected",
)

ENDED = frozenset(
    {
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL"),
        *("OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"),
    }
)


class ControllerSilent(BedplateError):
    """The controller did not answer; what became of jobs is not known now."""

    code = "controller-silent"


class QueueFull(BedplateError):
    """Slurm takes no further job of this user until one of theirs has ended."""

    code = "slurm-limit-reached"


@dataclass(frozen=True)
class JobState:
    """A job as squeue(1) lists it; `reason` is why it waits, or why it ended."""

    job: str
    state: str
    reason: str
    name: str
    node: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether no process of it runs any more, as far as Slurm knows."""
        return self.state in ENDED

    @property
    def is_held(self) -> bool:
        """A job whose start failed and that Slurm keeps: it will not begin of itself.

        One that a person holds is none: who holds it will let it go.
        """
        return self.waits and "launch_failed" in self.reason.lower()

    @property
    def waits(self) -> bool:
        """Whether it is in the queue, for the first time or again."""
        return self.state in {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"}

    @property
    def waits_for(self) -> str | None:
        """Why it waits, where that is more than its turn: a node that is down, a limit that it exceeds, a person."""
        return self.reason if self.waits and self.reason not in _ORDINARY else None

    @property
    def words(self) -> str:
        """`NODE_FAIL (NodeDown)`."""
        return f"{self.state} ({self.reason})" if self.reason not in {"", "None"} else self.state


class Slurm:
    """A cluster, through its commands."""

    def __init__(self, commands: Commands | None = None) -> None:
        self._commands = commands or Commands()

    def submit(self, arguments: Sequence[str]) -> str:
        """Slurm's number of the new job. ControllerSilent where it is not known whether there is one.

        NoRoom where there are too many jobs of this user already.
        """
        try:
            done = self._commands.run(_alone("sbatch", "--parsable", *arguments), timeout_s=_SUBMIT_LIMIT_S)
        except CommandFailed as error:
            if _NO_ROOM.search(error.output):
                raise QueueFull(*error.reasons) from error
            if _is_silent(error):
                raise ControllerSilent(*error.reasons) from error
            raise
        # `17` or `17;cluster`.
        found = _NUMBER.match(done.stdout.strip())
        if found is None:
            raise OutputNotUnderstood("sbatch", expected="the number of a job", found=done.output)
        return found[0]

    def jobs(self) -> Mapping[str, JobState]:
        """Every job of this user that Slurm still knows, ended ones too, by its name."""
        try:
            done = self._commands.run(
                _alone(
                    *("squeue", "--noheader", "--states=all"),
                    *(f"--user={os.getuid()}", f"--format={_FIELDS}"),
                ),
                timeout_s=_LIMIT_S,
            )
        except CommandFailed as error:
            raise ControllerSilent(*error.reasons) from error
        return parse_jobs(done.stdout)

    def exit_code(self, job: str) -> str | None:
        """Exit code and signal of a job that has ended, as `7:0`; None where Slurm has forgotten it."""
        try:
            done = self._commands.run(["scontrol", "--oneliner", "show", "job", job], timeout_s=_LIMIT_S)
        except CommandFailed:
            return None
        found = re.search(r"\bExitCode=(\d+:\d+)", done.stdout)
        return found[1] if found else None

    def ask_to_end(self, job: str) -> None:
        """SIGTERM to a running job's own process, which ends its visit and gives everything back."""
        self._cancel(["--signal=TERM", "--batch", job])

    def cancel(self, job: str) -> None:
        """End a job, waiting or running."""
        self._cancel([job])

    def _cancel(self, words: list[str]) -> None:
        try:
            self._commands.run(_alone("scancel", *words), timeout_s=_LIMIT_S)
        except CommandFailed as error:
            if _is_silent(error):
                raise ControllerSilent(*error.reasons) from error
            raise


def _is_silent(error: CommandFailed) -> bool:
    ran_into_its_limit = error.status is None and not isinstance(error, CommandNotStarted)
    return ran_into_its_limit or any(words in error.output for words in _SILENT)


def _alone(*words: str) -> list[str]:
    """A command without those variables of this shell that would change what it means."""
    unset = [word for name in sorted(os.environ) if _UNWANTED.fullmatch(name) for word in ("-u", name)]
    return ["env", *unset, *words] if unset else list(words)


def parse_jobs(text: str) -> Mapping[str, JobState]:
    """Jobs by name from squeue's lines; OutputNotUnderstood for a line of another form.

    Of two with one name, which only a cluster with several controllers has, the later stays.
    """
    found: dict[str, JobState] = {}
    strange: list[str] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        # A user's other jobs have what names they like; a node's has no such sign.
        fields = line.split("|", 3)
        if len(fields) != 4 or "|" not in fields[3] or not _NUMBER.match(fields[0]):
            strange.append(line)
            continue
        job, state, reason, name, node = (field.strip() for field in (*fields[:3], *fields[3].rsplit("|", 1)))
        found[name] = JobState(job, state, reason, name, node)
    # A name may hold a line's end, too; of ours none does, and squeue's form is that of the other lines.
    unknown = strange if not found else [line for line in strange if KEY_START in line]
    if unknown:
        raise OutputNotUnderstood("squeue", expected="job|state|reason|name|node", found=unknown[0])
    return found


def submission(
    fleet: Fleet,
    *,
    name: str,
    node: str,
    limit_s: float,
    script: Path,
    log: Path,
    exported: Iterable[str] = (),
) -> list[str]:
    """The words of sbatch(1) for a job that has its node to itself and is begun once at most.

    `exported` are names of environment variables that the job gets; nothing else of this environment.
    """
    minutes = max(1, -(-int(limit_s) // 60))
    asked = {
        "--partition": fleet.partition,
        "--constraint": fleet.constraint,
        "--account": fleet.account,
        "--gres": fleet.gres,
    }
    return [
        *("--no-requeue", "--exclusive", "--nodes=1", "--ntasks=1"),
        *(f"--job-name={name}", f"--nodelist={node}", f"--time={minutes}"),
        # Slurm replaces %j and the like in this one.
        f"--output={str(log).replace('%', '%%')}",
        *("--open-mode=append", "--chdir=/"),
        *([f"--signal=B:TERM@{WARNING_S:.0f}"] if limit_s >= WARNED_FROM_S else []),
        f"--export={','.join(exported) or 'NIL'}",
        *(f"{option}={value}" for option, value in asked.items() if value is not None),
        str(script),
    ]


def require_slurm() -> None:
    """RequirementMissing with the package where Slurm's commands are not there."""
    lacking = [name for name in _PROGRAMS if find_tool(name) is None]
    if lacking:
        raise RequirementMissing(
            f"{', '.join(lacking)} (package slurm-client): hands visits to the cluster; run this where jobs are "
            "submitted, the login node"
        )


class Patience:
    """Asks for the user's jobs, and knows since when nobody answered.

    `note` tells the user that it is waited. `meanwhile` ends the sentence of giving up: what of the study is as it was.
    """

    def __init__(
        self, slurm: Slurm, *, deadline_s: float, note: Callable[[str], None], meanwhile: str
    ) -> None:
        self._slurm = slurm
        self._deadline_s = deadline_s
        self._note = note
        self._meanwhile = meanwhile
        self._since: float | None = None

    @property
    def is_tried(self) -> bool:
        """Whether the controller was silent when it was last asked for anything."""
        return self._since is not None

    def begin(self) -> None:
        """The controller was silent to another question."""
        self._since = time.monotonic()

    def listing(self) -> Mapping[str, JobState] | None:
        """Slurm's word by the jobs' names; None while the controller is silent, RequirementMissing for too long."""
        try:
            found = self._slurm.jobs()
        except ControllerSilent as error:
            now = time.monotonic()
            if self._since is None:
                self._since = now
                self._note(f"the controller does not answer, it is waited for: {error.reasons[0]:.160}")
            if now - self._since > self._deadline_s:
                raise RequirementMissing(
                    f"the controller has not answered for {format_duration(now - self._since)}{self._meanwhile}"
                ) from error
            return None
        if self._since is not None:
            self._note("the controller answers again")
        self._since = None
        return found


@dataclass(frozen=True)
class FleetLayout:
    """Paths of one study's fleet."""

    directory: Path

    @classmethod
    def of_study(cls, study: Path) -> FleetLayout:
        """That of a study, which need not exist yet."""
        return cls(StudyLayout(study).fleet)

    @property
    def jobs(self) -> JobFolders:
        """The jobs that live visits."""
        return JobFolders(self.directory / "jobs")

    @property
    def cancelled(self) -> Path:
        """There while `bedplate release STUDY` wants no further job."""
        return self.directory / "cancelled"

    def key(self) -> str:
        """What the names of all of the study's jobs begin with; made on first use, and anew for a copy of a study."""
        known = self._own_key()
        if known is not None:
            return known
        self.directory.mkdir(parents=True, exist_ok=True)
        # Of two starts at once the first one's is kept, and nobody reads half of one.
        fresh = self.directory / f".key-{secrets.token_hex(5)}"
        fresh.touch()
        # A copy stands at another place and is another file; a study that was moved, or is seen below another
        # mount point, is the same file.
        place = f"{fresh.stat().st_ino} {self.directory.resolve()}"
        fresh.write_text(f"{KEY_START}{secrets.token_hex(5)}\n{place}\n", encoding="utf-8")
        try:
            if self._key_file.exists():
                fresh.replace(self._key_file)
            else:
                os.link(fresh, self._key_file)
        except FileExistsError:
            pass
        except OSError:
            # A file system without second names.
            fresh.replace(self._key_file)
        fresh.unlink(missing_ok=True)
        return self._read_key()[0]

    def is_own(self, order: JobOrder) -> bool:
        """Whether a job is this study's own; a copy of a study has the folders of the other one's jobs too."""
        if not self._key_file.exists():
            return True
        key = self._own_key()
        return key is not None and order.name.startswith(f"{key}-")

    @property
    def _key_file(self) -> Path:
        return self.directory / "key"

    def _own_key(self) -> str | None:
        """None before there is one, and where it came with a copy."""
        if not self._key_file.exists():
            return None
        key, inode, path = self._read_key()
        if not path:  # of a time when keys did not say whose they are
            return key
        here = (str(self._key_file.stat().st_ino), str(self.directory.resolve()))
        return key if inode == here[0] or path == here[1] else None

    def _read_key(self) -> tuple[str, str, str]:
        """The key, the number of its file, and where it was made."""
        key, _, place = codec.read_text(self._key_file).strip().partition("\n")
        inode, _, path = place.partition(" ")
        return key, inode, path

    def facts_of(self, node: str) -> Path:
        """The file of a node's facts."""
        return nodes_directory(StudyLayout(self.directory.parent)) / f"{node}.json"

    def facts(self) -> Mapping[str, NodeFacts]:
        """What was found about the nodes, by name; empty before that."""
        return read_nodes(StudyLayout(self.directory.parent))


def launcher() -> tuple[str, ...]:
    """The words that start this bedplate on a node, where the checkout stands at the same path."""
    return (str(installation.launcher()),)


def job_script(words: tuple[str, ...], folder: Path) -> str:
    """The script that sbatch takes: it becomes the job's payload, so that signals reach that."""
    return f"#!/bin/sh\nexec {shlex.join((*words, 'run-visits-of-job', str(folder)))}\n"
