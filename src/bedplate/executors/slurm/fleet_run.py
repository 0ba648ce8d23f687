"""Runs a study on a fleet: a job for every repetition, results collected as they come.

May be killed and started again at any time: what a job does stands in its folder, and a start first finds
the jobs of those before it. At most two jobs of a node wait or run at once. A repetition whose job was lost is
not tried again by itself: what its visits were, and why, is told, and the same command submits them anew. That
holds of jobs that were lost or cancelled while nobody watched, too: the start that finds them is that command.

What the machine fails is no result here either: such a node is taken out of the start, which ends with it if no other
is left. Where all that is left would fail alike (`alike.py`), the jobs are asked to end.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, CommandFailed, MachineUnfit, RequirementMissing, StudyError
from bedplate.executors.protocol import StartOutcome
from bedplate.executors.slurm.cancel import end_job
from bedplate.executors.slurm.collection import Collector
from bedplate.executors.slurm.controller import ControllerSilent, QueueFull, submission
from bedplate.executors.slurm.job_folder import (
    ORDER_VERSION,
    WITHDRAWN,
    JobClaim,
    JobOrder,
    OrderedVisit,
    Settled,
    Submission,
)
from bedplate.executors.slurm.judgement import FILE_GRACE_S, LISTING_GRACE_S, Fate, JobOutcome, Judge
from bedplate.executors.slurm.layout import FleetLayout, job_script, launcher
from bedplate.executors.slurm.patience import Patience
from bedplate.model.visit import Outcome
from bedplate.plan.estimate import visit_seconds
from bedplate.plan.fleet_order import Block, blocks_of
from bedplate.plan.platforms import SLURM
from bedplate.units import format_count, format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bedplate.executors.protocol import Start
    from bedplate.executors.slurm.controller import JobState, Slurm
    from bedplate.executors.slurm.job_folder import JobFolder
    from bedplate.model.fleet import Fleet
    from bedplate.model.plan import ScheduledVisit
    from bedplate.model.visit import VisitRecord

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
        self,
        start: Start,
        slurm: Slurm,
        *,
        manner: Manner,
        sleep: Callable[[float], None] = time.sleep,
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
        self._total = len(self._start.due)
        due = self._without_copied(self._start.due)
        self._open = {self._key(visit): visit for visit in due}
        self._find_jobs()
        taken = {self._key(visit) for live in self._live for visit in self._scheduled(live)}
        for block in blocks_of([visit for visit in due if self._key(visit) not in taken]):
            self._waiting[block.node].append(block)
        try:
            while self._step():
                self._sleep(self._manner.pause_s)
        except KeyboardInterrupt:
            running = ", ".join(sorted({live.order.node for live in self._live})) or "none"
            self._display.note(
                f"jobs go on (nodes: {running}); the same command collects what they bring, `bedplate cancel` ends them"
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

    def _without_copied(self, due: Sequence[ScheduledVisit]) -> list[ScheduledVisit]:
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
        return [visit for visit in due if self._key(visit) not in kept]

    def _find_jobs(self) -> None:
        """Jobs of earlier starts, whose results come to this one."""
        for folder in self._layout.jobs.unsettled():
            live = self._watched(folder, folder.order)
            live.is_over = True
            self._live.append(live)
            submitted = folder.submission
            number = f"Slurm job {submitted.job}" if submitted else "a job whose submission nobody saw end"
            self._display.note(f"found {number}: repetition {live.order.repetition} on {live.order.node}")

    def _watched(self, folder: JobFolder, order: JobOrder) -> _Live:
        manner = self._manner
        judge = Judge(file_grace_s=manner.file_grace_s, listing_grace_s=manner.listing_grace_s)
        return _Live(folder, order, judge)

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
                live.folder, live.order, listing, results=partial(self._kept, live), now_s=time.monotonic()
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

    def _kept(self, live: _Live) -> int:
        return sum(self._collector.is_kept(visit.key) for visit in live.order.visits)

    def _submit(self, block: Block) -> bool:
        """Lay a job out and submit it; False where Slurm refuses it, as it would the node's others."""
        folder = self._layout.jobs.new(block.repetition)
        numbered = list(enumerate(block.visits))
        requests = {}
        ordered = []
        for number, visit in numbered:
            attempt = max(self._store.layout.attempts_at(visit), default=0) + 1
            requests[number] = self._start.request(visit, attempt)
            ordered.append(OrderedVisit(number, visit.index, requests[number].key))
        facts = self._facts.get(block.node)
        manner = self._manner
        order = JobOrder(
            version=ORDER_VERSION,
            name=f"{self._layout.key()}-{folder.directory.name}",
            node=block.node,
            repetition=block.repetition,
            visits=tuple(ordered),
            command=manner.visit_command,
            local_directory=self._fleet.local_directory,
            limit_s=self._limit_s(block),
            needs_root=manner.needs_root,
            node_identity=None if facts is None else facts.identity,
        )
        folder.lay_out(order, requests, job_script(manner.words, folder.directory))
        if self._layout.cancelled.exists():
            # `bedplate cancel` sees this order, or this sees its word.
            self._take_back(folder, f"repetition {block.repetition} on {block.node} was cancelled", told=True)
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
            return self._put_off(folder, block, error)
        except CommandFailed as error:
            self._refuse(folder, block, error)
            return False
        folder.note_submission(Submission(number_of_job, time.time()))
        self._live.append(self._watched(folder, order))
        self._display.note(
            f"Slurm job {number_of_job}: repetition {block.repetition} on {block.node}, {format_count(len(block.visits), 'visit')}"
        )
        return True

    def _refuse(self, folder: JobFolder, block: Block, error: BedplateError) -> None:
        sentence = f"repetition {block.repetition} on {block.node} was not submitted: {error.reasons[0]}"
        self._take_back(folder, sentence, told=True)

    def _put_off(self, folder: JobFolder, block: Block, error: QueueFull) -> bool:
        """Submit it when one of the study's jobs has ended; False where there is none to wait for."""
        if not self._live:
            self._refuse(folder, block, error)
            return False
        sentence = f"Slurm takes no more jobs of this user now, {len(self._live)} of the study wait or run"
        self._display.note(f"{sentence}: {error.reasons[0]:.160}")
        self._take_back(folder, sentence, told=False)
        self._waiting[block.node].appendleft(block)
        self._is_full = True
        return True

    def _take_back(self, folder: JobFolder, sentence: str, *, told: bool) -> None:
        """An order that no job has and none shall have; `told` counts it among what is left behind."""
        folder.take(JobClaim(WITHDRAWN))
        folder.note_settled(Settled("", sentence, time.time()))
        if told:
            self._tell_left(sentence)

    def _limit_s(self, block: Block) -> float:
        if self._fleet.time_s is not None:
            return self._fleet.time_s
        estimate = sum(self._estimate(visit) for visit in block.visits)
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

    def _settle(self, live: _Live, verdict: JobOutcome) -> None:
        """Take what an ended job left, and decide about what it did not come to."""
        self._collect(live)
        begun = set(live.folder.begun_visits())
        missing = [visit for visit in live.order.visits if not self._collector.is_kept(visit.key)]
        cut = [visit for visit in missing if visit.number in begun]
        has_progress = len(missing) < len(live.order.visits)
        # A visit that is cut by the limit fits into no job if it was the first; else it may in the next.
        if verdict.fate is Fate.LOST or (verdict.fate is Fate.LIMIT and not has_progress):
            sentence = self._explained(live, verdict)
            for visit in cut:
                self._count(*self._collector.keep_lost(live.folder, visit, sentence))
            missing = [visit for visit in missing if visit not in cut]
            verdict = replace(verdict, sentence=sentence)
        live.folder.note_settled(Settled(verdict.state, verdict.sentence, time.time()))
        self._live.remove(live)
        self._is_full = False
        if not missing:
            return
        visits = [self._collector.visit_of(visit.key) for visit in missing]
        goes_on = verdict.fate is Fate.WITHDRAWN or (verdict.fate is Fate.LIMIT and has_progress)
        node_is_out = self._is_given_up or live.order.node in self._unfit
        if (goes_on or live.is_over) and not node_is_out:
            self._waiting[live.order.node].extendleft(reversed(blocks_of(visits)))
            self._display.note(
                f"{verdict.sentence}; submitting {format_count(len(visits), 'visit')} of it again"
            )
            return
        self._tell_left(f"{verdict.sentence}; {format_count(len(visits), 'visit')} of it did not run")
        if verdict.fate is Fate.UNFIT:
            self._take_out(live.order.node, verdict.sentence)

    def _take_out(self, node: str, why: str) -> None:
        """No more visits on this node in this start: nobody can mend it meanwhile but the owner of the machine."""
        self._unfit.setdefault(node, why)
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

    def _explained(self, live: _Live, verdict: JobOutcome) -> str:
        """The sentence with the exit code, which says nothing alone: a lost node's is 0:0, or 0:1 from Slurm 24 on."""
        submitted = live.folder.submission
        code = self._slurm.exit_code(submitted.job) if submitted and verdict.state else None
        return verdict.sentence if code is None else f"{verdict.sentence} (exit code {code})"

    def _scheduled(self, live: _Live) -> list[ScheduledVisit]:
        return [self._collector.visit_of(visit.key) for visit in live.order.visits]

    @staticmethod
    def _key(visit: ScheduledVisit) -> tuple[str, str, int, bool]:
        return visit.cell_id, visit.dataset_id, visit.repetition, visit.canary
