"""Ends a study's own jobs, and has what they held of their nodes given back.

A running job is asked first: it ends its visit, which unmounts and gives everything back, and says so. What
does not end is ended by Slurm, and a short job on its node gives back what was left. Only jobs whose order
stands in this study are touched.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, CommandFailed
from bedplate.executors.slurm.controller import submission
from bedplate.executors.slurm.job_folder import WITHDRAWN, JobClaim, JobFolder, Submission, words_of_failure
from bedplate.executors.slurm.layout import job_script
from bedplate.executors.slurm.payload import ONLY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bedplate.executors.slurm.controller import JobState, Slurm
    from bedplate.executors.slurm.fleet_run import Manner
    from bedplate.executors.slurm.job_folder import JobOrder
    from bedplate.executors.slurm.layout import FleetLayout
    from bedplate.model.fleet import Fleet

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


def _has_said(folder: JobFolder) -> bool:
    """Whether a job has ended and its results, which may be seen later, are there."""
    end = folder.end
    return end is not None and len(folder.finished()) >= end.results


def _unreleased(node: str, why: str) -> str:
    return f"{node}: {why}; `bedplate release` on the node"


def end_job(folder: JobFolder, slurm: Slurm) -> bool:
    """Take a job's order back, or ask it to end its visit if it has begun; False where Slurm cannot be asked."""
    submitted, is_withdrawn = folder.submission, folder.take(JobClaim(WITHDRAWN))
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
    done: list[str],
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
                done.append(f"Slurm job {state.job} on {order.node} gave everything back and ended")
            elif _has_ended(listing, order):
                done.append(f"Slurm job {state.job} on {order.node} was ended by somebody else")
                hard.append(order)
            elif not patient:
                slurm.cancel(state.job)
                done.append(f"Slurm job {state.job} on {order.node} did not end by itself: ended by Slurm")
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
