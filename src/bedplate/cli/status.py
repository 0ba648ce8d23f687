"""`bedplate status`: how far a study is, what failed and why, and how well it uses its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bedplate.cli.fleet import nodes_of, print_nodes
from bedplate.cli.printing import print_json, say
from bedplate.errors import EXIT_DONE, EXIT_SOME_RUNS_FAILED
from bedplate.model import no_links
from bedplate.model.codec import to_json
from bedplate.study.progress import Progress, read_progress
from bedplate.study.verification import Verified, verify_study
from bedplate.units import format_count, format_duration, format_size, percent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bedplate.analysis.search.searched import Searched
    from bedplate.executors.slurm.progress import NodeProgress


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

    if not no_links.is_there(StudyLayout(study).search):
        return None
    from bedplate.analysis.overview import overview  # noqa: PLC0415 -- scipy, and every figure of the study
    from bedplate.analysis.search.searched import searched  # noqa: PLC0415

    found = searched(overview(study))
    return None if found is None or found.record.extended is not None else found


def _search_document(search: Searched | None) -> dict[str, Any]:
    if search is None:
        return {}
    from bedplate.analysis.search.sentences import progress_document  # noqa: PLC0415 -- as above

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
        from bedplate.analysis.search.sentences import progress_lines  # noqa: PLC0415 -- as above

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
