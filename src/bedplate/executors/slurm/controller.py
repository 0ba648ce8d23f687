"""Slurm's commands, each with a time limit, and what they say of jobs.

`sacct` is not used: many clusters keep no accounts. What Slurm says only explains; what a job did stands in
its folder.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import (
    BedplateError,
    CommandFailed,
    CommandNotStarted,
    OutputNotUnderstood,
    RequirementMissing,
)
from bedplate.executors.slurm.payload import WARNED_FROM_S, WARNING_S
from bedplate.host.command import Commands
from bedplate.host.requirement import find_tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from bedplate.model.fleet import Fleet

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
