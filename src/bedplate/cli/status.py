"""`bedplate show STUDY --status`: how far a study is, what failed and why, and how well it uses its time."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bedplate.cli.printing import print_json, say
from bedplate.errors import EXIT_CANNOT_TELL, EXIT_DONE, EXIT_SOME_RUNS_FAILED, BedplateError
from bedplate.model import limits
from bedplate.model.codec import to_json
from bedplate.study.store import Progress, read_progress
from bedplate.study.stored import Verified, verify_study
from bedplate.units import format_count, format_duration, format_size, percent

if TYPE_CHECKING:
    from bedplate.analysis.search import Searched
    from bedplate.executors.slurm.fleet_run import NodeProgress


class NothingTold(BedplateError):
    """A comparison with a condition that came to no answer, whatever the reason."""

    exit_code = EXIT_CANNOT_TELL
    code = "nothing-told"


@contextmanager
def bisectable() -> Iterator[None]:
    """NothingTold for every error, those of bedplate itself too: bisecting would take their codes for a bad commit. A wrong option stays one."""
    try:
        yield
    except click.ClickException:
        raise
    except BedplateError as error:
        raise NothingTold(*error.reasons) from error
    except OSError as error:
        raise NothingTold(str(error)) from error
    except Exception as error:
        traceback.print_exc()
        raise NothingTold("bedplate itself failed; what it was is above") from error


_SHOWN_NODES = 40


def nodes_of(study: Path) -> tuple[NodeProgress, ...]:
    """Where the nodes of a study are, empty without a fleet; Slurm is asked where its commands are here."""
    from bedplate.executors.slurm.controller import Slurm  # noqa: PLC0415
    from bedplate.executors.slurm.fleet_run import read_fleet  # noqa: PLC0415
    from bedplate.host.requirement import find_tool  # noqa: PLC0415

    return read_fleet(study, Slurm() if find_tool("squeue") else None)


def print_nodes(nodes: Sequence[NodeProgress]) -> None:
    """One line for each node, and when the slowest will be done."""
    if not nodes:
        return
    if not nodes[0].seen:
        say("  nodes        Slurm does not answer here; this is what the jobs wrote down")
    for node in nodes[:_SHOWN_NODES]:
        job = "no job"
        if node.state is not None:
            number = f"job {node.job} " if node.job else "job "
            job = f"{number}{node.state}, repetition {node.repetition}"
        waiting = f", {node.waiting} to be collected" if node.waiting else ""
        failed = f", {node.failed} failed" if node.failed else ""
        left = f", {node.left} left" if node.left else ""
        if node.left and node.seconds_left is not None:
            left += f" ({format_duration(node.seconds_left)})"
        say(f"  {node.node:<12} {node.completed} completed{failed}{left}; {job}{waiting}")
    if len(nodes) > _SHOWN_NODES:
        say(f"  … and {len(nodes) - _SHOWN_NODES} more nodes; --json has all of them")
    times = [node.seconds_left for node in nodes if node.seconds_left is not None]
    if times and max(times) > 0:
        say(f"  left         about {format_duration(max(times))}, on the node that has most to do")


def status(study: Path, *, as_json: bool, verify: bool = False) -> int:
    """Print where the study stands; needs no root and may be asked while it runs.

    With `verify` every file is compared with its checksum first; the exit code is 1 where one is not what it was.
    """
    found = read_progress(study)
    nodes = nodes_of(study)
    search = _search_of(study)
    verified = verify_study(study) if verify else None
    if as_json:
        print_json(
            {
                **to_json(found),
                "nodes": to_json(nodes),
                **_search_document(search),
                **({} if verified is None else {"verified": to_json(verified)}),
            }
        )
    else:
        _print(study, found, nodes, search)
        if verified is not None:
            _print_verified(verified)
    return EXIT_SOME_RUNS_FAILED if verified is not None and verified.problems else EXIT_DONE


def _print_verified(verified: Verified) -> None:
    say(
        f"  verified     {format_count(verified.files, 'file')} of {format_count(verified.sealed, 'visit')}, {format_size(verified.size_bytes)}: "
        + (
            f"{len(verified.problems)} are not what they were"
            if verified.problems
            else "all are what they were"
        )
    )
    if verified.unsealed:
        say(
            f"  no checksums {format_count(verified.unsealed, 'visit')}, made by an earlier version: whether their files are what they "
            "were is not known"
        )
    for problem in verified.problems:
        say(f"                 {problem}")


def _search_of(study: Path) -> Searched | None:
    """What a study that is a search came to so far; None of one that is none, or is one of all cells by now."""
    from bedplate.study.layout import StudyLayout  # noqa: PLC0415

    if not limits.is_there(StudyLayout(study).search):
        return None
    from bedplate.analysis.overview import overview  # noqa: PLC0415 -- scipy, and every figure of the study
    from bedplate.analysis.search import searched  # noqa: PLC0415

    found = searched(overview(study))
    return None if found is None or found.record.extended is not None else found


def _search_document(search: Searched | None) -> dict[str, Any]:
    if search is None:
        return {}
    from bedplate.analysis.search import progress_document  # noqa: PLC0415

    return {"search": progress_document(search)}


def _print(study: Path, found: Progress, nodes: Sequence[NodeProgress], search: Searched | None) -> None:
    say(f"{found.title}  ({study})")
    damaged = f"{found.damaged} damaged, " if found.damaged else ""
    state = f"being written by process {found.writer}" if found.writer else "nobody writes it now"
    say(
        f"  visits       {found.completed:,} completed, {found.failed:,} failed, {damaged}{found.left:,} left of "
        f"{found.visits:,}; {state}"
    )
    if found.unfinished:
        say(f"  under way    {found.unfinished}")
    if found.measured_share is not None:
        say(
            f"  time         {format_duration(found.measured_s)} measured in {format_duration(found.visits_s)} "
            f"of visits, all in all: {percent(found.measured_share)}"
        )
    if found.emulated:
        say("  processors   emulated (QEMU's TCG): speeds measure the emulator, compare them with nothing")
    print_nodes(nodes)
    if search is not None:
        from bedplate.analysis.search import progress_lines  # noqa: PLC0415

        for line in progress_lines(search):
            say(f"  {line}")
    elif not nodes and found.left and found.seconds_left is not None:
        say(f"  left         about {format_duration(found.seconds_left)}")
    if found.steps:
        slowest = ", ".join(f"{step.step} {format_duration(step.seconds)}" for step in found.steps[:6])
        say(f"  where it goes  {slowest} (mean per visit)")
    if found.suspect:
        say(
            f"  in doubt     {format_count(found.suspect, 'run')}, no part of a verdict; `bedplate show {study}` says why"
        )
    for line in found.pruned:
        say(f"  {line}")
    for failure in found.failures:
        say(f"  failed       {failure.visit} at {failure.step}:")
        for reason in failure.reasons:
            say(f"                 {reason}")
        say(f"                 logs: {failure.logs}")
    for aside in found.set_aside:
        say(f"  not used     {aside.directory}:")
        for reason in aside.reasons:
            say(f"                 {reason}")
    if found.damaged:
        say(f"                 `bedplate run PLAN --study {study} --retry-failed` does damaged visits again")
    for changed in found.changed:
        say(f"  changed      {changed}")
    for remark in found.remarks:
        say(f"  changed      {remark}; no figure is made from it")
    for entry in found.history:
        say(f"  {entry.when}  {entry.what}")
