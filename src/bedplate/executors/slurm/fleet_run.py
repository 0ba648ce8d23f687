"""Runs a study on a fleet: a job for every repetition, results collected as they come.

May be killed and started again at any time: what a job does stands in its folder, and a start first finds
the jobs of those before it. At most two jobs of a node wait or run at once. A repetition whose job was lost is
not tried again by itself: what its visits were, and why, is told, and the same command submits them anew. That
holds of jobs that were lost or cancelled while nobody watched, too: the start that finds them is that command.

What the machine fails is no result here either: such a node is taken out of the start, which ends with it if no other
is left. Where all that is left would fail alike (`model/visit.py`), the jobs are asked to end.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import (
    BedplateError,
    CommandFailed,
    MachineUnfit,
    PlanError,
    RequirementMissing,
    StudyError,
)
from bedplate.executors.local import lost_record
from bedplate.executors.protocol import Executor, Listener, Start, StartOutcome
from bedplate.executors.slurm.controller import (
    ControllerSilent,
    FleetLayout,
    JobState,
    Patience,
    QueueFull,
    Slurm,
    job_script,
    launcher,
    require_slurm,
    submission,
)
from bedplate.executors.slurm.job_folder import (
    FAILURE,
    ORDER_VERSION,
    WITHDRAWN,
    JobClaim,
    JobFolder,
    JobOrder,
    OrderedVisit,
    Settled,
    Submission,
    end_of_log,
    words_of_failure,
)
from bedplate.executors.slurm.nodes import FILE_GRACE_S, LISTING_GRACE_S, Fate, JobOutcome, Judge
from bedplate.executors.slurm.on_node import NAME
from bedplate.executors.slurm.payload import ONLY, WHOLE
from bedplate.host.requirement import Need
from bedplate.model import codec
from bedplate.model.limits import most_bytes_of
from bedplate.model.machine import Fleet, Machine, NodeFacts, common_machine, fleet_identity
from bedplate.model.plan import Plan, ScheduledVisit
from bedplate.model.reason import Reason, because
from bedplate.model.visit import Outcome, VisitKey, VisitRecord, VisitRequest
from bedplate.plan.estimate import visit_seconds
from bedplate.plan.order import Block, blocks_of
from bedplate.plan.rules import SLURM
from bedplate.study.checksums import VisitFiles
from bedplate.study.layout import StudyLayout
from bedplate.study.records import StudyFacts, read_nodes, read_schedule
from bedplate.study.stored import read_record, visits_by_place
from bedplate.units import format_count, format_duration

if TYPE_CHECKING:
    from bedplate.study.store import StudyStore

if TYPE_CHECKING:
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
        self, job: JobFolder, ordered_visit: OrderedVisit, sentence: str
    ) -> tuple[ScheduledVisit, VisitRecord, str]:
        """Record a visit that began and left nothing, with what is known of its job."""
        return self._keep(job, ordered_visit, None, (because("job-lost", sentence),))

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


# A server stops and a full cache is written out on a slow disk.
PATIENCE_S = 330.0

_RELEASE_LIMIT_S = 1800.0

# The node has just been freed, so that a job begins there soon.
RELEASE_PATIENCE_S = 60.0


@dataclass(frozen=True)
class Cancelled:
    """What was done, in sentences; `nodes` are those on which a job is yet to give back what was left."""

    done: tuple[str, ...]
    problems: tuple[str, ...]
    nodes: tuple[str, ...]


def cancel_jobs(
    layout: FleetLayout,
    slurm: Slurm,
    fleet: Fleet,
    *,
    manner: Manner,
    patience_s: float = PATIENCE_S,
    release_patience_s: float = RELEASE_PATIENCE_S,
    sleep: Callable[[float], None] = time.sleep,
) -> Cancelled:
    """End every job of the study that waits or runs; ControllerSilent where Slurm cannot be asked."""
    layout.directory.mkdir(parents=True, exist_ok=True)
    # A start that is at work submits nothing more from now on.
    layout.cancelled.touch()
    every = ((folder, folder.order) for folder in layout.jobs.unsettled())
    folders = [(folder, order) for folder, order in every if layout.is_own(order)]
    listing = slurm.jobs()
    done: list[str] = []
    running: list[tuple[JobFolder, JobOrder, JobState]] = []
    for folder, order in folders:
        state = listing.get(order.name)
        if state is None:
            # One that a start is about to submit finds its order taken.
            folder.take(JobClaim(WITHDRAWN))
            continue
        if state.has_ended:
            continue
        if state.state == "PENDING" and folder.take(JobClaim(WITHDRAWN)):
            slurm.cancel(state.job)
            done.append(f"Slurm job {state.job} on {order.node} had not begun: cancelled")
        else:
            _ask(state.job, slurm)
            running.append((folder, order, state))
    pause_s = min(manner.pause_s, 1.0)
    hard = _wait(running, slurm, done, patience_s=patience_s, pause_s=pause_s, sleep=sleep)
    problems: list[str] = []
    releases: dict[str, JobFolder] = {}
    # Several jobs of one node need no more than one that cleans up.
    for order in {order.node: order for order in hard}.values():
        try:
            releases[order.node] = _release(order, layout, slurm, fleet, manner)
        except BedplateError as error:
            problems += [_unreleased(order.node, reason) for reason in error.reasons]
    give_up = time.monotonic() + release_patience_s
    while not all(map(_has_said, releases.values())) and time.monotonic() < give_up:
        sleep(pause_s)
    for node, folder in releases.items():
        failure, end = words_of_failure(folder.result(ONLY)), folder.end
        if failure is not None or (end is not None and end.why != "done"):
            problems.append(_unreleased(node, failure or (end.sentence if end else "")))
        elif _has_said(folder):
            done.append(f"{node}: what was left there was given back")
    waiting = tuple(node for node, folder in releases.items() if not _has_said(folder))
    return Cancelled(tuple(done), tuple(problems), waiting)


def _has_said(job: JobFolder) -> bool:
    """Whether a job has ended and its results, which may be seen later, are there."""
    end = job.end
    return end is not None and len(job.finished()) >= end.results


def _unreleased(node: str, reason: str) -> str:
    return f"{node}: {reason}; `bedplate release` on the node"


def end_job(job: JobFolder, slurm: Slurm) -> bool:
    """Take a job's order back, or ask it to end its visit if it has begun; False where Slurm cannot be asked."""
    submitted, is_withdrawn = job.submission, job.take(JobClaim(WITHDRAWN))
    try:
        if submitted is not None and is_withdrawn:
            slurm.cancel(submitted.job)
        elif submitted is not None:
            _ask(submitted.job, slurm)
    except BedplateError:
        return False
    return True


def _ask(job: str, slurm: Slurm) -> None:
    """Ask a job to end; one that takes no signal, as it waits again or has just ended, is taken from the queue."""
    try:
        slurm.ask_to_end(job)
    except CommandFailed:
        slurm.cancel(job)


def _wait(
    running: list[tuple[JobFolder, JobOrder, JobState]],
    slurm: Slurm,
    sentences: list[str],
    *,
    patience_s: float,
    pause_s: float,
    sleep: Callable[[float], None],
) -> list[JobOrder]:
    """The orders of jobs that Slurm had to end, after those that ended themselves."""
    give_up = time.monotonic() + patience_s
    hard = []
    while running:
        listing = slurm.jobs()
        patient = time.monotonic() < give_up
        for entry in tuple(running):
            folder, order, state = entry
            if folder.end is not None:
                sentences.append(f"Slurm job {state.job} on {order.node} gave everything back and ended")
            elif _has_ended(listing, order):
                sentences.append(f"Slurm job {state.job} on {order.node} was ended by somebody else")
                hard.append(order)
            elif not patient:
                slurm.cancel(state.job)
                sentences.append(
                    f"Slurm job {state.job} on {order.node} did not end by itself: ended by Slurm"
                )
                hard.append(order)
            else:
                continue
            running.remove(entry)
        if running:
            sleep(pause_s)
    return hard


def _has_ended(listing: Mapping[str, JobState], order: JobOrder) -> bool:
    state = listing.get(order.name)
    return state is None or state.has_ended


def _release(order: JobOrder, layout: FleetLayout, slurm: Slurm, fleet: Fleet, manner: Manner) -> JobFolder:
    name = f"release-{secrets.token_hex(4)}"
    folder = JobFolder(layout.directory / "releasing" / f"{order.node}-{name}")
    again = replace(
        order, name=f"{layout.key()}-{name}", visits=(), release=True, limit_s=_RELEASE_LIMIT_S, facts=None
    )
    folder.lay_out(again, {}, job_script(manner.words, folder.directory))
    number = slurm.submit(
        submission(
            fleet,
            name=again.name,
            node=order.node,
            limit_s=_RELEASE_LIMIT_S,
            script=folder.script,
            log=folder.log,
            exported=manner.exported,
        )
    )
    folder.note_submission(Submission(number, time.time()))
    return folder


# One that runs, and one that begins when it ends.
JOBS_PER_NODE = 2

_SHORTEST_LIMIT_S = 3600.0
_TIMES_ESTIMATE = 3.0
_STATE = "BEDPLATE_STATE"


@dataclass(frozen=True)
class Manner:
    """How a fleet is dealt with: what starts bedplate on a node, what lives a visit there, and how patiently.

    `command` None is bedplate's own; with another `needs_root` may be False.
    """

    words: tuple[str, ...]
    command: tuple[str, ...] | None = None
    needs_root: bool = True
    pause_s: float = 5.0
    file_grace_s: float = FILE_GRACE_S
    listing_grace_s: float = LISTING_GRACE_S
    exported: tuple[str, ...] = ()

    @classmethod
    def of_this_checkout(cls, environment: Mapping[str, str]) -> Manner:
        """The usual one."""
        return cls(launcher(), exported=(_STATE,) if _STATE in environment else ())

    @property
    def visit_command(self) -> tuple[str, ...]:
        """What lives one visit."""
        return self.command or (*self.words, "run-visit-on-node")


@dataclass
class _Live:
    """A job of which results may come.

    `is_over` of an earlier start's job that Slurm has never listed as living since: whoever gave the command again
    means what it left, too. `told` is why it waits, as it was last said. `is_to_end` until it has been asked to.
    """

    folder: JobFolder
    order: JobOrder
    judge: Judge
    is_over: bool = False
    told: str | None = None
    is_to_end: bool = False


class FleetRun:
    """One start of a study on a fleet; `run` returns when no job is left that could bring a visit."""

    def __init__(
        self, start: Start, slurm: Slurm, *, manner: Manner, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        fleet = start.plan.fleet
        if fleet is None:
            raise StudyError("the plan names no nodes: it has no table [slurm]")
        self._fleet: Fleet = fleet
        self._start = start
        self._store = start.store
        self._slurm = slurm
        self._display = start.listener
        self._manner = manner
        self._sleep = sleep
        self._layout = FleetLayout.of_study(start.store.layout.directory)
        self._facts = self._layout.facts()
        visits = {(v.cell_id, v.dataset_id, v.repetition, v.canary): v for v in start.store.schedule.visits}
        self._collector = Collector(start, visits)
        self._live: list[_Live] = []
        self._waiting: dict[str, deque[Block]] = defaultdict(deque)
        self._open: dict[tuple[str, str, int, bool], ScheduledVisit] = {}
        self._left: list[str] = []
        self._unfit: dict[str, str] = {}
        self._is_given_up = False
        self._completed = self._failed = 0
        self._total = 0
        self._patience = Patience(
            slurm,
            deadline_s=self._fleet.controller_deadline_s,
            note=start.listener.note,
            meanwhile="; nothing is lost: jobs go on, and the same command collects what they bring",
        )
        self._is_full = False

    def run(self) -> StartOutcome:
        """Find the jobs of earlier starts, submit what is due beside them, collect until all have ended.

        MachineUnfit where no visit can run on any node that has some.
        """
        started = time.monotonic()
        self._layout.cancelled.unlink(missing_ok=True)
        self._total = len(self._start.visits)
        due = self._without_copied(self._start.visits)
        self._open = {self._key(visit): visit for visit in due}
        self._find_jobs()
        taken = {
            self._key(self._collector.visit_of(visit.key))
            for live in self._live
            for visit in live.order.visits
        }
        for block in blocks_of([visit for visit in due if self._key(visit) not in taken]):
            self._waiting[block.node].append(block)
        try:
            while self._step():
                self._sleep(self._manner.pause_s)
        except KeyboardInterrupt:
            running = ", ".join(sorted({live.order.node for live in self._live})) or "none"
            self._display.note(
                f"jobs go on (nodes: {running}); the same command collects what they bring, `bedplate release STUDY` ends them"
            )
            raise
        if self._unfit and {visit.node for visit in due} <= self._unfit.keys():
            raise MachineUnfit(
                *self._unfit.values(),
                "visits that did not run are due again: mend that, and give the same command again",
            )
        return StartOutcome(
            self._completed, self._failed, time.monotonic() - started, left_behind=tuple(self._left)
        )

    def _without_copied(self, visits: Sequence[ScheduledVisit]) -> list[ScheduledVisit]:
        """What is due beside what jobs of another study had left when this one was copied from it.

        Those jobs are the other study's: they are neither waited for nor cancelled here, and write nothing here.
        """
        kept: set[tuple[str, str, int, bool]] = set()
        for folder in self._layout.jobs.unsettled():
            order = folder.order
            if self._layout.is_own(order):
                continue
            live = self._watched(folder, order)
            self._collect(live)
            came = [v for v in order.visits if self._collector.is_kept(v.key)]
            kept |= {self._key(self._collector.visit_of(visit.key)) for visit in came}
            sentence = (
                f"job {order.name} on {order.node} is of the study that this one was copied from; "
                f"{len(came)} of its {format_count(len(order.visits), 'visit')} came with the copy"
            )
            folder.note_settled(Settled("", sentence, time.time()))
            self._display.note(sentence)
        return [visit for visit in visits if self._key(visit) not in kept]

    def _find_jobs(self) -> None:
        """Jobs of earlier starts, whose results come to this one."""
        for folder in self._layout.jobs.unsettled():
            live = self._watched(folder, folder.order)
            live.is_over = True
            self._live.append(live)
            submitted = folder.submission
            number = f"Slurm job {submitted.job}" if submitted else "a job whose submission nobody saw end"
            self._display.note(f"found {number}: repetition {live.order.repetition} on {live.order.node}")

    def _watched(self, job: JobFolder, order: JobOrder) -> _Live:
        manner = self._manner
        judge = Judge(file_grace_s=manner.file_grace_s, listing_grace_s=manner.listing_grace_s)
        return _Live(job, order, judge)

    def _step(self) -> bool:
        """Submit, collect, judge once; False when nothing is left to wait for."""
        self._submit_what_may()
        if self._layout.cancelled.exists() and any(self._waiting.values()):
            self._display.note("cancelled: no further job is submitted")
            self._waiting.clear()
        listing = self._patience.listing() if self._live or self._patience.is_tried else {}
        for live in tuple(self._live):
            self._collect(live)
            self._look(live, None if listing is None else listing.get(live.order.name))
            verdict = live.judge.judge(
                live.folder,
                live.order,
                listing,
                results=partial(self._count_kept, live),
                now_s=time.monotonic(),
            )
            if verdict is not None:
                self._settle(live, verdict)
        self._give_up_what_fails_alike()
        for live in self._live:
            live.is_to_end = live.is_to_end and not end_job(live.folder, self._slurm)
        return bool(self._live) or any(self._waiting.values())

    def _submit_what_may(self) -> None:
        """As many jobs as nodes may have, while the controller answers and takes them."""
        for node, blocks in self._waiting.items():
            while blocks and sum(live.order.node == node for live in self._live) < JOBS_PER_NODE:
                if self._is_full or self._patience.is_tried or self._layout.cancelled.exists():
                    return
                if not self._submit(blocks.popleft()):
                    blocks.clear()

    def _look(self, live: _Live, state: JobState | None) -> None:
        """Note that a job lives, and say why one waits where it is not for its turn."""
        if state is None:
            return
        if not state.has_ended:
            live.is_over = False
        why = state.waits_for
        if why is not None and why != live.told:
            self._display.note(f"Slurm job {state.job} on {live.order.node} waits: {why}")
        live.told = why

    def _count_kept(self, live: _Live) -> int:
        return sum(self._collector.is_kept(visit.key) for visit in live.order.visits)

    def _submit(self, visit_block: Block) -> bool:
        """Lay a job out and submit it; False where Slurm refuses it, as it would the node's others."""
        folder = self._layout.jobs.new(visit_block.repetition)
        numbered = list(enumerate(visit_block.visits))
        requests = {}
        ordered = []
        for number, visit in numbered:
            attempt = max(self._store.layout.attempts_at(visit), default=0) + 1
            requests[number] = self._start.request(visit, attempt)
            ordered.append(OrderedVisit(number, visit.index, requests[number].key))
        facts = self._facts.get(visit_block.node)
        manner = self._manner
        order = JobOrder(
            version=ORDER_VERSION,
            name=f"{self._layout.key()}-{folder.directory.name}",
            node=visit_block.node,
            repetition=visit_block.repetition,
            visits=tuple(ordered),
            command=manner.visit_command,
            local_directory=self._fleet.local_directory,
            limit_s=self._limit_s(visit_block),
            needs_root=manner.needs_root,
            node_identity=None if facts is None else facts.identity,
        )
        folder.lay_out(order, requests, job_script(manner.words, folder.directory))
        if self._layout.cancelled.exists():
            # `bedplate release STUDY` sees this order, or this sees its word.
            self._take_back(
                folder,
                f"repetition {visit_block.repetition} on {visit_block.node} was cancelled",
                is_reported=True,
            )
            return False
        words = submission(
            self._fleet,
            name=order.name,
            node=order.node,
            limit_s=order.limit_s,
            script=folder.script,
            log=folder.log,
            exported=manner.exported,
        )
        try:
            number_of_job = self._slurm.submit(words)
        except ControllerSilent as error:
            # There may be a job: it is looked for by its name, and its claim decides.
            self._display.note(f"not known whether a job was submitted: {error.reasons[0]:.160}")
            self._live.append(self._watched(folder, order))
            self._patience.begin()
            return True
        except QueueFull as error:
            return self._put_off(folder, visit_block, error)
        except CommandFailed as error:
            self._refuse(folder, visit_block, error)
            return False
        folder.note_submission(Submission(number_of_job, time.time()))
        self._live.append(self._watched(folder, order))
        self._display.note(
            f"Slurm job {number_of_job}: repetition {visit_block.repetition} on {visit_block.node}, {format_count(len(visit_block.visits), 'visit')}"
        )
        return True

    def _refuse(self, job: JobFolder, visit_block: Block, error: BedplateError) -> None:
        sentence = (
            f"repetition {visit_block.repetition} on {visit_block.node} was not submitted: {error.reasons[0]}"
        )
        self._take_back(job, sentence, is_reported=True)

    def _put_off(self, job: JobFolder, visit_block: Block, refusal: QueueFull) -> bool:
        """Submit it when one of the study's jobs has ended; False where there is none to wait for."""
        if not self._live:
            self._refuse(job, visit_block, refusal)
            return False
        sentence = f"Slurm takes no more jobs of this user now, {len(self._live)} of the study wait or run"
        self._display.note(f"{sentence}: {refusal.reasons[0]:.160}")
        self._take_back(job, sentence, is_reported=False)
        self._waiting[visit_block.node].appendleft(visit_block)
        self._is_full = True
        return True

    def _take_back(self, job: JobFolder, sentence: str, *, is_reported: bool) -> None:
        """An order that no job has and none shall have; `is_reported` counts it among what is left behind."""
        job.take(JobClaim(WITHDRAWN))
        job.note_settled(Settled("", sentence, time.time()))
        if is_reported:
            self._tell_left(sentence)

    def _limit_s(self, visit_block: Block) -> float:
        if self._fleet.time_s is not None:
            return self._fleet.time_s
        estimate = sum(self._estimate(visit) for visit in visit_block.visits)
        return max(_SHORTEST_LIMIT_S, _TIMES_ESTIMATE * estimate)

    def _estimate(self, visit: ScheduledVisit) -> float:
        cell, load = self._start.expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)
        return visit_seconds(self._start.plan, cell, load, canary=visit.canary, executor=SLURM)

    def _collect(self, live: _Live) -> None:
        try:
            for visit, record, line in self._collector.collect(live.folder, live.order):
                self._start.has_ended(record)
                self._count(visit, record, line)
        except OSError as error:
            raise RequirementMissing(
                f"{error.filename or self._store.layout.directory}: {error.strerror or error}; what has ended "
                "is kept in its job's folder. Mend that, and give the same command again"
            ) from error

    def _count(self, visit: ScheduledVisit, record: VisitRecord, line: str) -> None:
        completed = record.outcome is Outcome.COMPLETED
        self._completed += completed
        self._failed += not completed
        self._open.pop(self._key(visit), None)
        took = format_duration(record.whole_seconds or record.seconds)
        done = self._completed + self._failed
        self._display.note(
            f"[{done}/{max(done, self._total)}] {visit.node}: {self._start.label(visit)}: "
            f"{record.outcome.value} in {took}  {line}".rstrip()
        )

    def _settle(self, live: _Live, job_outcome: JobOutcome) -> None:
        """Take what an ended job left, and decide about what it did not come to."""
        self._collect(live)
        begun = set(live.folder.begun_visits())
        missing = [visit for visit in live.order.visits if not self._collector.is_kept(visit.key)]
        cut = [visit for visit in missing if visit.number in begun]
        has_progress = len(missing) < len(live.order.visits)
        # A visit that is cut by the limit fits into no job if it was the first; else it may in the next.
        if job_outcome.fate is Fate.LOST or (job_outcome.fate is Fate.LIMIT and not has_progress):
            sentence = self._explained(live, job_outcome)
            for visit in cut:
                self._count(*self._collector.keep_lost(live.folder, visit, sentence))
            missing = [visit for visit in missing if visit not in cut]
            job_outcome = replace(job_outcome, sentence=sentence)
        live.folder.note_settled(Settled(job_outcome.state, job_outcome.sentence, time.time()))
        self._live.remove(live)
        self._is_full = False
        if not missing:
            return
        visits = [self._collector.visit_of(visit.key) for visit in missing]
        goes_on = job_outcome.fate is Fate.WITHDRAWN or (job_outcome.fate is Fate.LIMIT and has_progress)
        node_is_out = self._is_given_up or live.order.node in self._unfit
        if (goes_on or live.is_over) and not node_is_out:
            self._waiting[live.order.node].extendleft(reversed(blocks_of(visits)))
            self._display.note(
                f"{job_outcome.sentence}; submitting {format_count(len(visits), 'visit')} of it again"
            )
            return
        self._tell_left(f"{job_outcome.sentence}; {format_count(len(visits), 'visit')} of it did not run")
        if job_outcome.fate is Fate.UNFIT:
            self._take_out(live.order.node, job_outcome.sentence)

    def _take_out(self, node: str, reason: str) -> None:
        """No more visits on this node in this start: nobody can mend it meanwhile but the owner of the machine."""
        self._unfit.setdefault(node, reason)
        blocks = self._waiting.pop(node, ())
        if blocks:
            visits = sum(len(block.visits) for block in blocks)
            self._tell_left(
                f"{node} is taken out of this start; {format_count(visits, 'more visit')} of it did not run"
            )
        for other in self._live:
            other.is_to_end |= other.order.node == node

    def _give_up_what_fails_alike(self) -> None:
        sentences = () if self._is_given_up else self._start.hopeless(self._open.values())
        if not sentences:
            return
        self._is_given_up = True
        for sentence in sentences:
            self._tell_left(sentence)
        self._waiting.clear()
        for live in self._live:
            live.is_to_end = True

    def _tell_left(self, sentence: str) -> None:
        self._left.append(sentence)
        self._display.note(sentence)

    def _explained(self, live: _Live, job_outcome: JobOutcome) -> str:
        """The sentence with the exit code, which says nothing alone: a lost node's is 0:0, or 0:1 from Slurm 24 on."""
        submitted = live.folder.submission
        code = self._slurm.exit_code(submitted.job) if submitted and job_outcome.state else None
        return job_outcome.sentence if code is None else f"{job_outcome.sentence} (exit code {code})"

    @staticmethod
    def _key(visit: ScheduledVisit) -> tuple[str, str, int, bool]:
        return visit.cell_id, visit.dataset_id, visit.repetition, visit.canary


@dataclass(frozen=True)
class NodeProgress:
    """One node. `job` and `state` are None where no job of this study waits or runs there.

    A damaged visit counts as one that failed. `waiting` results are in their job's folder and not in the study yet. `seconds_left` is None before the
    first visit has completed anywhere. `seen` is False where Slurm was not asked, or did not answer.
    """

    node: str
    completed: int
    failed: int
    left: int
    job: str | None
    state: str | None
    repetition: int | None
    waiting: int
    seconds_left: float | None
    seen: bool


def read_fleet(study: Path, slurm: Slurm | None) -> tuple[NodeProgress, ...]:
    """Every node of a fleet's study in the order of the plan; empty for a study of one machine."""
    layout = StudyLayout(study)
    schedule = read_schedule(layout)
    by_node: dict[str, list[ScheduledVisit]] = defaultdict(list)
    for visit in schedule.visits:
        if visit.node is not None:
            by_node[visit.node].append(visit)
    if not by_node:
        return ()
    records: dict[str, list[VisitRecord]] = defaultdict(list)
    damaged: Counter[str] = Counter()
    scheduled = visits_by_place(schedule)
    for node, visits in by_node.items():
        for visit in visits:
            attempts = layout.attempts_at(visit)
            if attempts:
                try:
                    records[node].append(read_record(VisitFiles(attempts[max(attempts)]), scheduled))
                except StudyError:
                    damaged[node] += 1
    seconds = [
        record.whole_seconds or record.seconds
        for found in records.values()
        for record in found
        # One that was lost took no time worth the name.
        if record.outcome is Outcome.COMPLETED
    ]
    mean_s = sum(seconds) / len(seconds) if seconds else None
    listing = _listing(slurm)
    jobs = _jobs(study, listing)
    return tuple(
        _node(
            node,
            len(visits),
            records[node],
            jobs.get(node),
            mean_s,
            damaged=damaged[node],
            is_seen=listing is not None,
        )
        for node, visits in by_node.items()
    )


@dataclass(frozen=True)
class _Job:
    number: str | None
    state: str
    repetition: int
    waiting: int


def _jobs(study: Path, listing: Mapping[str, JobState] | None) -> dict[str, _Job]:
    """The first unsettled job of each node, which is the one that runs or runs next."""
    found: dict[str, _Job] = {}
    layout = FleetLayout.of_study(study)
    for folder in layout.jobs.unsettled():
        order, submitted, end = folder.order, folder.submission, folder.end
        # One that ended and left nothing more was collected by a start that was killed before it said so.
        is_collected = end is not None and not folder.finished()
        if is_collected or not layout.is_own(order):
            continue
        if end is not None:
            state = "ended, to be collected"
        elif listing is not None and order.name in listing:
            state = listing[order.name].words
        else:
            state = "begun" if folder.is_taken() else "submitted"
        found.setdefault(
            order.node,
            _Job(submitted.job if submitted else None, state, order.repetition, len(folder.finished())),
        )
    return found


def _node(
    node: str,
    visit_count: int,
    records: list[VisitRecord],
    slurm_job: _Job | None,
    mean_s: float | None,
    *,
    damaged: int,
    is_seen: bool,
) -> NodeProgress:
    left = visit_count - len(records) - damaged
    return NodeProgress(
        node=node,
        completed=sum(record.outcome is Outcome.COMPLETED for record in records),
        failed=damaged + sum(record.outcome is not Outcome.COMPLETED for record in records),
        left=left,
        job=slurm_job.number if slurm_job else None,
        state=slurm_job.state if slurm_job else None,
        repetition=slurm_job.repetition if slurm_job else None,
        waiting=slurm_job.waiting if slurm_job else 0,
        seconds_left=None if mean_s is None else left * mean_s,
        seen=is_seen,
    )


def _listing(slurm: Slurm | None) -> Mapping[str, JobState] | None:
    if slurm is None:
        return None
    try:
        return slurm.jobs()
    except BedplateError:
        return None


class ClusterNodes:
    """The nodes that a plan names."""

    def machine(self, plan: Plan, nodes: Mapping[str, NodeFacts]) -> Machine | None:
        """What all nodes have; None before somebody has looked at them."""
        if plan.fleet is None:
            raise PlanError('executor = "slurm" needs the table [slurm] with nodes = ["n1", "n2"]')
        return common_machine(nodes) if nodes else None

    def look(
        self, plan: Plan, study: Path, listener: Listener, *, erase_foreign: bool
    ) -> Mapping[str, NodeFacts]:
        """Find out what the nodes are, by a job on each; RequirementMissing with every reason against them."""
        from bedplate.executors.slurm.fleet_run import Manner  # noqa: PLC0415
        from bedplate.executors.slurm.nodes import find_node_facts, words_about  # noqa: PLC0415

        facts = find_node_facts(
            plan,
            FleetLayout.of_study(study),
            Slurm(),
            listener,
            manner=Manner.of_this_checkout(os.environ),
            erase_foreign=erase_foreign,
        )
        for words in words_about(facts.values()):
            listener.note(words)
        return facts

    def require_same(self, plan: Plan, store: StudyStore, listener: Listener, *, erase_foreign: bool) -> None:
        """That the nodes are those of the study; looks at them again where somebody took away what was known.

        A visit compares its node with these facts, and without them would take any. StudyError if they are other
        machines or run another kernel.
        """
        study, facts = store.layout.directory, store.facts
        known = read_nodes(StudyLayout(study))
        if plan.fleet is None or not set(plan.fleet.nodes) <= known.keys():
            known = self.look(plan, study, listener, erase_foreign=erase_foreign)
        kernels = {node.machine.kernel_release for node in known.values()}
        if fleet_identity(known) != facts.machine_identity or facts.kernel_release not in kernels:
            raise StudyError(
                f"{study} was begun on other nodes, or under kernel {facts.kernel_release} and they run "
                f"{', '.join(sorted(kernels))} now; figures of two machines are never one study: name another --study"
            )


class SlurmExecutor(Executor):
    """Nodes of a cluster, from the machine where jobs are submitted."""

    name = SLURM
    runs_here = False

    @property
    def fleet(self) -> ClusterNodes:
        """The nodes that the plan names."""
        return ClusterNodes()

    def needs(self, filesystems: Iterable[str], workloads: Iterable[str]) -> tuple[Need, ...]:  # noqa: ARG002
        """Slurm's commands; no program that only a visit starts. Each node's kernel and device are looked at there, by the visit that uses them."""
        require_slurm()
        return ()

    def another_machine(self, plan: Plan, facts: StudyFacts, machine: Machine) -> str | None:  # noqa: ARG002
        """Each visit looks at its own node."""
        return None

    def run(self, start: Start) -> StartOutcome:
        """A job for each repetition, results collected as they come."""
        from bedplate.executors.slurm.fleet_run import FleetRun, Manner  # noqa: PLC0415

        manner = Manner.of_this_checkout(os.environ)
        return FleetRun(start, Slurm(), manner=manner).run()
