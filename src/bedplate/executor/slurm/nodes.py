"""Finds out what the nodes are, by a short job on each, before the first visit.

Nodes that differ would make one study of several machines: unless the plan says in what they may, they are
refused. What was found stays in the study; a visit compares its node with it before it begins.
"""

from __future__ import annotations

import secrets
import shutil
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from bedplate.errors import RequirementMissing
from bedplate.executor.slurm.controller import submission
from bedplate.executor.slurm.job_folder import ORDER_VERSION, JobFolder, JobOrder, Submission
from bedplate.executor.slurm.judgement import Fate, Judge
from bedplate.executor.slurm.layout import job_script
from bedplate.executor.slurm.on_node import FactsRequest
from bedplate.executor.slurm.payload import FAILURE, ONLY
from bedplate.model import codec
from bedplate.model.fleet import NodeFacts, unwanted_differences
from bedplate.model.visit import ScratchDevice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from bedplate.executor.display import Display
    from bedplate.executor.slurm.controller import JobState, Slurm
    from bedplate.executor.slurm.fleet_run import Manner
    from bedplate.executor.slurm.layout import FleetLayout
    from bedplate.model.plan import Plan

_LIMIT_S = 600.0


def find_node_facts(
    plan: Plan,
    layout: FleetLayout,
    slurm: Slurm,
    display: Display,
    *,
    manner: Manner,
    erase_foreign: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> Mapping[str, NodeFacts]:
    """The facts of every node, in the study from now on; waits until each node has been free.

    RequirementMissing with all reasons why visits cannot be lived there, or in what nodes differ.
    """
    assert plan.fleet is not None  # noqa: S101 -- the caller has a plan for a fleet
    display.note(f"looking at {len(plan.fleet.nodes)} nodes, by a job on each")
    jobs = {
        node: _submit(plan, node, layout, slurm, manner=manner, erase_foreign=erase_foreign)
        for node in plan.fleet.nodes
    }
    try:
        found, problems = _wait(jobs, slurm, display, manner=manner, sleep=sleep)
    except BaseException:
        for folder in jobs.values():
            submitted = folder.submission
            if submitted is not None and folder.end is None:
                slurm.cancel(submitted.job)
        raise
    problems += [problem for facts in found.values() for problem in facts.problems]
    problems += unwanted_differences(found, plan.fleet.differing)
    if problems:
        raise RequirementMissing(*problems)
    for node, facts in found.items():
        file = layout.facts_of(node)
        file.parent.mkdir(parents=True, exist_ok=True)
        codec.write(file, facts)
    for folder in jobs.values():
        shutil.rmtree(folder.directory)
    return found


def _submit(
    plan: Plan, node: str, layout: FleetLayout, slurm: Slurm, *, manner: Manner, erase_foreign: bool
) -> JobFolder:
    fleet = plan.fleet
    assert fleet is not None  # noqa: S101 -- as above
    name = f"facts-{secrets.token_hex(4)}"
    folder = JobFolder(layout.directory / "looking" / f"{node}-{name}")
    request_file = folder.directory / "facts-request.json"
    order = JobOrder(
        version=ORDER_VERSION,
        name=f"{layout.key()}-{name}",
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
    codec.write(request_file, _request(plan, node, erase_foreign=erase_foreign))
    number = slurm.submit(
        submission(
            fleet,
            name=order.name,
            node=node,
            limit_s=_LIMIT_S,
            script=folder.script,
            log=folder.log,
            exported=manner.exported,
        )
    )
    folder.note_submission(Submission(number, time.time()))
    return folder


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
    assert isinstance(scratch, ScratchDevice)  # noqa: S101 -- replace keeps the type
    return FactsRequest(
        node=node,
        scratch_device=scratch,
        local_directory=fleet.local_directory,
        filesystems=tuple(dict.fromkeys(levels.type for levels in plan.filesystems)),
        workloads=tuple(dict.fromkeys(workload.type for workload in plan.workloads)),
    )


def _wait(
    jobs: Mapping[str, JobFolder],
    slurm: Slurm,
    display: Display,
    *,
    manner: Manner,
    sleep: Callable[[float], None],
) -> tuple[dict[str, NodeFacts], list[str]]:
    judges = {
        node: Judge(file_grace_s=manner.file_grace_s, listing_grace_s=manner.listing_grace_s) for node in jobs
    }
    found: dict[str, NodeFacts] = {}
    problems: list[str] = []
    told: dict[str, str] = {}
    while judges:
        listing = slurm.jobs()
        for node in tuple(judges):
            result = jobs[node].result(ONLY)
            verdict = judges[node].judge(
                jobs[node],
                jobs[node].order,
                listing,
                results=partial(_results_of, jobs[node]),
                now_s=time.monotonic(),
            )
            if verdict is None:
                _tell_why(listing.get(jobs[node].order.name), node, told, display)
                continue
            del judges[node]
            if verdict.fate is Fate.DONE and (result / "facts.json").exists():
                found[node] = codec.read(NodeFacts, result / "facts.json")
            else:
                problems.append(f"{node}: {_why(result) or verdict.sentence}")
        if judges:
            sleep(min(manner.pause_s, 1.0))
    return {node: found[node] for node in jobs if node in found}, problems


def _results_of(folder: JobFolder) -> int:
    return len(folder.finished())


def _tell_why(state: JobState | None, node: str, told: dict[str, str], display: Display) -> None:
    """Say once of each node what its job waits for: a look at the nodes ends when the last of them was free."""
    why = state.waits_for if state is not None else None
    if state is not None and why is not None and told.get(node) != why:
        told[node] = why
        display.note(f"Slurm job {state.job} on {node} waits: {why}")


def _why(result: Path) -> str | None:
    file = result / FAILURE
    return file.read_text(encoding="utf-8", errors="replace").strip() if file.exists() else None


def words_about(found: Iterable[NodeFacts]) -> tuple[str, ...]:
    """One line for each kind of node: how many there are of it, and what they have."""
    kinds: dict[str, list[str]] = {}
    for facts in found:
        told = facts.told
        keys = ("cpu_count", "cpu_model", "memory_gib", "kernel", "device_model")
        parts = [told.get(key, "") for key in keys]
        words = f"{parts[0]} x {parts[1]}, {parts[2]} GiB, kernel {parts[3]}"
        kinds.setdefault(f"{words}, {parts[4]}" if parts[4] else words, []).append(facts.node)
    return tuple(f"{', '.join(nodes)}: {words}" for words, nodes in kinds.items())
