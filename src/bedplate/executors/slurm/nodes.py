"""Finds out what the nodes are, by a short job on each, before the first visit.

Nodes that differ would make one study of several machines: unless the plan says in what they may, they are
refused. What was found stays in the study; a visit compares its node with it before it begins.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, CommandFailed, RequirementMissing
from bedplate.executors.protocol import Listener
from bedplate.executors.slurm.controller import (
    ControllerSilent,
    FleetLayout,
    JobState,
    Patience,
    QueueFull,
    Slurm,
    job_script,
    submission,
)
from bedplate.executors.slurm.job_folder import (
    ORDER_VERSION,
    WITHDRAWN,
    JobClaim,
    JobEnd,
    JobFolder,
    JobOrder,
    Submission,
    end_of_log,
    words_of_failure,
)
from bedplate.executors.slurm.on_node import FactsRequest
from bedplate.executors.slurm.payload import ONLY
from bedplate.host.scratch_device import journal_places
from bedplate.model import codec
from bedplate.model.machine import NodeFacts, unwanted_differences
from bedplate.model.plan import Plan
from bedplate.study.layout import StudyLayout
from bedplate.study.records import node_devices
from bedplate.units import format_count

if TYPE_CHECKING:
    from bedplate.executors.slurm.fleet_run import Manner

# Files of another machine appear on a shared file system some time after they were written: NFS may go by what it
# knows of a folder for a minute (acdirmax in nfs(5)).
FILE_GRACE_S = 75.0

# A job that was submitted a moment ago may not be listed yet.
LISTING_GRACE_S = 30.0

# A log may be gigabytes of a tool's, and a line of it a sentence's worth.
_LAST_BYTES = 300


class Fate(Enum):
    """How a job ended: in order, before its time limit, by its node's fault, asked to, lost, or never begun."""

    DONE = "done"
    LIMIT = "limit"
    UNFIT = "unfit"
    STOPPED = "stopped"
    LOST = "lost"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class JobOutcome:
    """A fate with its sentence, and Slurm's state where it says one."""

    fate: Fate
    sentence: str
    state: str = ""


class Judge:
    """Looks at one job again and again until it has ended."""

    def __init__(
        self, *, file_grace_s: float = FILE_GRACE_S, listing_grace_s: float = LISTING_GRACE_S
    ) -> None:
        self._file_grace_s = file_grace_s
        self._listing_grace_s = listing_grace_s
        self._ended_since_s: float | None = None
        self._missing_since_s: float | None = None
        self._was_taken = False

    def judge(
        self,
        job: JobFolder,
        order: JobOrder,
        listing: Mapping[str, JobState] | None,
        *,
        results: Callable[[], int],
        now_s: float,
    ) -> JobOutcome | None:
        """What became of the job; None while it waits or lives, or while nobody can tell.

        `listing` is Slurm's word, None where the controller is silent; `results` says how many of the job's
        have been seen; `now_s` is a monotonic clock. Makes sure, of a job that never began, that it never will.
        """
        end = job.end
        if end is not None and results() < end.results and not self._has_waited(now_s):
            return None
        if end is not None and end.why in {"done", "limit", "unfit", "refused"}:
            fate = Fate.LOST if end.why == "refused" else Fate(end.why)
            return JobOutcome(fate, f"{self._title(job, order)}: {end.sentence}")
        if listing is None:
            return None
        state = listing.get(order.name)
        if state is None:
            return self._not_listed(job, order, end, now_s)
        self._missing_since_s = None
        if state.is_held:
            return _sealed(job, JobOutcome(Fate.LOST, self._sentence(job, order, state), state.state))
        # A job that began and waits was put back; it would find its order taken. A listing may be older than that.
        put_back = state.waits and job.is_taken()
        if not state.has_ended and not put_back:
            self._ended_since_s = None
            return None
        if (end is None or put_back) and not self._has_waited(now_s):
            return None
        fate = {"TIMEOUT": Fate.LIMIT, "CANCELLED": Fate.STOPPED, "PREEMPTED": Fate.STOPPED}.get(
            state.state, Fate.LOST if end is None else Fate.STOPPED
        )
        return _sealed(job, JobOutcome(fate, self._sentence(job, order, state), state.state))

    def _has_waited(self, now_s: float) -> bool:
        """Whether files of the job had time to appear since it was first seen to have ended."""
        self._ended_since_s = self._ended_since_s or now_s
        return now_s - self._ended_since_s >= self._file_grace_s

    def _not_listed(
        self, job: JobFolder, order: JobOrder, job_end: JobEnd | None, now_s: float
    ) -> JobOutcome | None:
        if job_end is not None:
            return JobOutcome(Fate.STOPPED, f"{self._title(job, order)}: {job_end.sentence}")
        # One that has begun since Slurm was asked is in its next listing.
        began, self._was_taken = job.is_taken() and not self._was_taken, job.is_taken()
        self._missing_since_s = now_s if began else self._missing_since_s or now_s
        if now_s - self._missing_since_s < self._listing_grace_s:
            return None
        claim = job.claim
        if job.submission is None and (claim is None or claim.by == WITHDRAWN):
            words = f"repetition {order.repetition} on {order.node} was laid out and never submitted"
            # Whether a job has it is asked of the file system's server, not of what is remembered here.
            free = claim is not None or job.take(JobClaim(WITHDRAWN))
            return JobOutcome(Fate.WITHDRAWN, words) if free else None
        if claim is not None and claim.by == WITHDRAWN:
            words = f"{self._title(job, order)}: its order was taken back before it began"
            return JobOutcome(Fate.STOPPED, words)
        words = f"{self._title(job, order)}: Slurm does not know it any more, and it did not say how it ended"
        return _sealed(job, JobOutcome(Fate.LOST, words))

    @staticmethod
    def _title(job: JobFolder, order: JobOrder) -> str:
        submission = job.submission
        number = f"Slurm job {submission.job}" if submission else f"job {order.name}"
        return f"{number} on {order.node}"

    def _sentence(self, job: JobFolder, order: JobOrder, state: JobState) -> str:
        last = _last_line(job.log)
        said = "; it left no log" if last is None else f"; its log: {job.log}" + (last and f" (“{last}”)")
        end = job.end
        how = "did not say so itself" if end is None else f"says that {end.sentence}"
        return f"{self._title(job, order)} ended as {state.words} and {how}{said}"


def _last_line(log: Path) -> str | None:
    """The end of what the job said last, empty where it said nothing; None without a log."""
    said = end_of_log(log, _LAST_BYTES)
    if said is None:
        return None
    lines = said.decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _sealed(job: JobFolder, job_outcome: JobOutcome) -> JobOutcome | None:
    """The verdict, once no job can begin with this order; None if one just has."""
    had = job.is_taken()
    if had or job.take(JobClaim(WITHDRAWN)):
        return job_outcome
    return None


_LIMIT_S = 600.0


def find_node_facts(
    plan: Plan,
    layout: FleetLayout,
    slurm: Slurm,
    display: Listener,
    *,
    manner: Manner,
    erase_foreign: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> Mapping[str, NodeFacts]:
    """The facts of every node, in the study from now on; waits until each node has been free.

    RequirementMissing with all reasons why visits cannot run there, or in what nodes differ.
    """
    assert plan.fleet is not None  # noqa: S101 -- the caller has a plan for a fleet
    display.note(f"looking at {format_count(len(plan.fleet.nodes), 'node')}, by a job on each")
    look = _Look(plan, layout, slurm, display, manner=manner, erase_foreign=erase_foreign)
    found, problems = look.run(sleep)
    problems += [problem for facts in found.values() for problem in facts.problems]
    problems += unwanted_differences(found, plan.fleet.differing)
    if problems:
        raise RequirementMissing(*problems)
    for node, facts in found.items():
        file = layout.facts_of(node)
        file.parent.mkdir(parents=True, exist_ok=True)
        codec.write(file, facts)
    look.clear()
    return found


class _Look:
    """One look at all nodes of a plan."""

    def __init__(
        self,
        plan: Plan,
        layout: FleetLayout,
        slurm: Slurm,
        display: Listener,
        *,
        manner: Manner,
        erase_foreign: bool,
    ) -> None:
        assert plan.fleet is not None  # noqa: S101 -- as above
        self._plan = plan
        self._fleet = plan.fleet
        self._layout = layout
        self._slurm = slurm
        self._display = display
        self._manner = manner
        self._erase_foreign = erase_foreign
        self._place = layout.directory / "looking"
        self._known = node_devices(StudyLayout(layout.directory.parent), plan)
        self._due = deque(plan.fleet.nodes)
        self._jobs: dict[str, JobFolder] = {}
        self._judges: dict[str, Judge] = {}
        self._found: dict[str, NodeFacts] = {}
        self._problems: list[str] = []
        self._told: dict[str, str] = {}
        self._patience = Patience(
            slurm,
            deadline_s=self._fleet.controller_deadline_s,
            note=display.note,
            meanwhile=", so that nobody knows what the nodes are; give the same command again when it does",
        )
        self._wrong_since: float | None = None
        self._is_full = False

    def run(self, sleep: Callable[[float], None]) -> tuple[dict[str, NodeFacts], list[str]]:
        """What was found, in the order of the plan, and sentences about what could not be; leaves no job behind."""
        pause_s = min(self._manner.pause_s, 1.0)
        while (listing := self._patience.listing()) is None:
            sleep(pause_s)
        self._end_former(listing)
        try:
            while self._step():
                sleep(pause_s)
        except BaseException:
            self._end_all({})
            raise
        nodes = self._fleet.nodes
        return {node: self._found[node] for node in nodes if node in self._found}, self._problems

    def clear(self) -> None:
        """Take away what the jobs wrote."""
        shutil.rmtree(self._place, ignore_errors=True)

    def _step(self) -> bool:
        """Submit, look, judge once; False when every node was looked at, or need not be any more."""
        while self._due and not self._is_full and not self._patience.is_tried:
            self._submit(self._due.popleft())
        listing = self._patience.listing()
        if listing is None:
            return True
        for node in tuple(self._judges):
            self._judge(node, listing)
        if self._problems and self._wrong_since is None:
            self._wrong_since = time.monotonic()
        if (
            self._wrong_since is not None
            and time.monotonic() - self._wrong_since > self._manner.listing_grace_s
        ):
            self._give_up(listing)
        return bool(self._judges or self._due)

    def _end_former(self, listing: Mapping[str, JobState]) -> None:
        """Jobs and folders of a look that was killed."""
        for directory in sorted(self._place.glob("*")):
            folder = JobFolder(directory)
            with contextlib.suppress(BedplateError, OSError):
                folder.take(JobClaim(WITHDRAWN))
                state = listing.get(folder.order.name)
                if state is not None and not state.has_ended:
                    self._slurm.cancel(state.job)
            shutil.rmtree(directory, ignore_errors=True)

    def _submit(self, node: str) -> None:
        folder, words = self._lay_out(node)
        try:
            number = self._slurm.submit(words)
        except ControllerSilent as error:
            # There may be a job: it is looked for by its name, and its claim decides.
            self._display.note(f"{node}: not known whether a job was submitted: {error.reasons[0]:.160}")
            self._patience.begin()
        except QueueFull as error:
            folder.take(JobClaim(WITHDRAWN))
            if self._judges:
                self._is_full = True
                self._due.appendleft(node)
            else:
                self._problems.append(f"{node}: {error.reasons[0]}")
            return
        except CommandFailed as error:
            folder.take(JobClaim(WITHDRAWN))
            self._problems.append(
                f"{node}: Slurm takes no job for it: {error.output.strip() or error.reasons[0]}"
            )
            return
        else:
            folder.note_submission(Submission(number, time.time()))
        self._jobs[node] = folder
        manner = self._manner
        self._judges[node] = Judge(file_grace_s=manner.file_grace_s, listing_grace_s=manner.listing_grace_s)

    def _lay_out(self, node: str) -> tuple[JobFolder, list[str]]:
        fleet, manner = self._fleet, self._manner
        name = f"facts-{secrets.token_hex(4)}"
        folder = JobFolder(self._place / f"{node}-{name}")
        request_file = folder.directory / "facts-request.json"
        order = JobOrder(
            version=ORDER_VERSION,
            name=f"{self._layout.key()}-{name}",
            node=node,
            repetition=0,
            visits=(),
            command=manner.visit_command,
            local_directory=fleet.local_directory,
            limit_s=_LIMIT_S,
            needs_root=manner.needs_root,
            facts=str(request_file),
        )
        folder.lay_out(order, {}, job_script(manner.words, folder.directory))
        codec.write(request_file, self._request(node))
        words = submission(
            fleet,
            name=order.name,
            node=node,
            limit_s=_LIMIT_S,
            script=folder.script,
            log=folder.log,
            exported=manner.exported,
        )
        return folder, words

    def _request(self, node: str) -> FactsRequest:
        """With the devices that the study knows of the node, where somebody took away what it knew of another."""
        request = _request(self._plan, node, erase_foreign=self._erase_foreign)
        known = self._known.get(node, {})
        return replace(
            request,
            scratch_device=request.scratch_device.recorded_in(known),
            journals=tuple(journal.recorded_in(known) for journal in request.journals),
        )

    def _judge(self, node: str, listing: Mapping[str, JobState]) -> None:
        folder = self._jobs[node]
        order, result = folder.order, folder.result(ONLY)
        verdict = self._judges[node].judge(
            folder, order, listing, results=lambda: len(folder.finished()), now_s=time.monotonic()
        )
        if verdict is None:
            self._tell_why(node, listing.get(order.name))
            return
        del self._judges[node]
        self._is_full = False
        if verdict.fate is Fate.WITHDRAWN:
            self._due.append(node)
        elif verdict.fate is Fate.DONE and (result / "facts.json").exists():
            self._found[node] = codec.read(NodeFacts, result / "facts.json")
        else:
            self._problems.append(f"{node}: {words_of_failure(result) or verdict.sentence}")

    def _tell_why(self, node: str, state: JobState | None) -> None:
        """Say once of each node what its job waits for: a look at the nodes ends when the last of them was free."""
        why = state.waits_for if state is not None else None
        if state is not None and why is not None and self._told.get(node) != why:
            self._told[node] = why
            self._display.note(f"Slurm job {state.job} on {node} waits: {why}")

    def _give_up(self, listing: Mapping[str, JobState]) -> None:
        """Something is wrong already, and is not kept back until the last node is free."""
        self._problems += [
            f"{node}: not looked at, other jobs have it or Slurm keeps it; what is wrong elsewhere comes first"
            for node in (*self._judges, *self._due)
        ]
        self._end_all(listing)
        self._judges.clear()
        self._due.clear()

    def _end_all(self, listing: Mapping[str, JobState]) -> None:
        for node in self._judges:
            folder = self._jobs[node]
            submitted = folder.submission
            state = listing.get(folder.order.name)
            number = submitted.job if submitted else state.job if state else None
            folder.take(JobClaim(WITHDRAWN))
            if number is not None and folder.end is None:
                # What made us end is to be said, and not that this failed too.
                with contextlib.suppress(BedplateError):
                    self._slurm.cancel(number)


def _request(plan: Plan, node: str, *, erase_foreign: bool) -> FactsRequest:
    fleet = plan.fleet
    assert fleet is not None  # noqa: S101 -- as above
    device = fleet.devices.get(node, plan.scratch_device.device)
    scratch = replace(
        plan.scratch_device,
        device=device,
        # Named on the command line already, or there would be no job.
        erase=() if device is None else (device,),
        erase_foreign=erase_foreign,
    )
    journals = []
    for place in journal_places(plan.journal_device):
        own = None if place.device is None else fleet.journal_devices.get(node, place.device)
        journals.append(
            replace(place, device=own, erase=() if own is None else (own,), erase_foreign=erase_foreign)
        )
    return FactsRequest(
        node=node,
        scratch_device=scratch,
        journals=tuple(journals),
        local_directory=fleet.local_directory,
        filesystems=tuple(dict.fromkeys(levels.type for levels in plan.filesystems)),
        workloads=tuple(dict.fromkeys(workload.type for workload in plan.workloads)),
    )


def words_about(node_facts: Iterable[NodeFacts]) -> tuple[str, ...]:
    """One line for each kind of node: how many there are of it, and what they have."""
    kinds: dict[str, list[str]] = {}
    for facts in node_facts:
        told = facts.compared_facts
        keys = ("cpu_count", "cpu_model", "memory_gib", "kernel", "device_model")
        parts = [told.get(key, "") for key in keys]
        words = f"{parts[0]} x {parts[1]}, {parts[2]} GiB, kernel {parts[3]}"
        kinds.setdefault(f"{words}, {parts[4]}" if parts[4] else words, []).append(facts.node)
    return tuple(f"{', '.join(nodes)}: {words}" for words, nodes in kinds.items())
