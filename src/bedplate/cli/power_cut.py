"""`bedplate power-cut`: an engine of somebody's own, which cuts of a study were bad, and one of them once more.

As in `app.py`, only click and the standard library are imported before a command is called.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bedplate.cli.options import DIRECTORY, ON_USUAL, YES, words_of
from bedplate.cli.studies import require_studies
from bedplate.errors import EXIT_DONE, EXIT_SOME_RUNS_FAILED, PlanError, RequirementMissing, StudyError
from bedplate.host.ownership import first_made, give_to_caller

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.model.power_cut import CutPoint, PointRecord
    from bedplate.workloads.power_cut.run.bench import ReplayJob
    from bedplate.workloads.power_cut.run.image import Built

_PATH = click.Path(path_type=Path)


@click.group(name="power-cut")
def power_cut() -> None:
    """An engine of your own under power cuts; cuts of a stored run, and one of them once more (docs/METHOD.md)."""


@power_cut.command(name="try")
@click.argument(
    "folder", metavar="FOLDER", type=_PATH, help="an engine's folder, with engine.toml and its programs"
)
@ON_USUAL
@click.option(
    "--points", metavar="N", type=click.IntRange(4, 100_000), help="how often the power of each is cut"
)
@click.option(
    "--duration", metavar="SECONDS", type=click.IntRange(1, 3600), default=10, help="how long it is recorded"
)
@click.option(
    "--set",
    "words",
    metavar="NAME=VALUE",
    multiple=True,
    help="a setting of the engine's, several values with commas; may be given again",
)
@click.option(
    "--fail-if",
    metavar="CONDITION",
    type=click.Choice(["bad", "worse"]),
    help="bad: a cut took something; worse: more than is promised. Exit with 1 where it holds, with 125 where it cannot be told",
)
@DIRECTORY
@YES
def _try_command(
    folder: Path,
    types: str,
    *,
    points: int | None,
    duration: int,
    words: tuple[str, ...],
    fail_if: str | None,
    directory: Path | None,
    yes: bool,
) -> int:
    """Does an engine of your own survive power cuts: `power-cut try ./my-engine --on ext4,xfs` (docs/ENGINES.md).

    Begins at once: everything happens on a disk in memory, and nothing of yours is erased.
    """
    if (directory or Path.cwd()).resolve().is_relative_to(folder.resolve()):
        raise PlanError(
            f"the study would stand in {folder}, and be taken for a part of the engine; name another --directory"
        )
    from bedplate.campaign.questions import asked_settings, engine_question  # noqa: PLC0415
    from bedplate.cli.questioning import tried  # noqa: PLC0415
    from bedplate.host.facts import read_machine  # noqa: PLC0415

    about = partial(
        engine_question,
        read_machine(),
        folder,
        asked_settings(words, factors=()),
        points=points,
        duration_s=duration,
    )
    return tried(about, words_of(types), directory, yes=yes, fail_if=fail_if)


@power_cut.command(name="points")
@click.argument("study", metavar="STUDY", type=_PATH, help="a study's directory")
@click.argument(
    "run",
    metavar="[RUN]",
    required=False,
    help="the run's folder, as for `replay`; without it all are counted",
)
@click.option("--all", "every", is_flag=True, help="the cuts that were not bad too, and the controls")
def _points_command(study: Path, run: str | None, *, every: bool) -> int:
    """Which cuts were bad: their numbers, for `replay`, and the gravest that was found."""
    from bedplate.cli.power_cut_points import point_lines, run_lines  # noqa: PLC0415

    (study,) = require_studies([study])
    lines = (
        run_lines(study, runs_of(study)) if run is None else point_lines(find_run(study, run), every=every)
    )
    for line in lines:
        print(line)
    return EXIT_DONE


@power_cut.command(name="replay")
@click.argument("study", metavar="STUDY", type=_PATH, help="a study's directory")
@click.argument("run", metavar="RUN", help="the run's folder, or any part of its path that no other has")
@click.argument(
    "point", metavar="POINT", type=int, help="the number of the cut, as `power-cut points` says it"
)
@click.option(
    "--keep",
    metavar="DIR",
    type=_PATH,
    required=True,
    help="an empty or new directory; the image stays in it",
)
def _replay_command(study: Path, run: str, point: int, *, keep: Path) -> int:
    """Build the image of one cut again from its log and seed, and say what is wrong in it."""
    (study,) = require_studies([study])
    made = first_made(keep)
    try:
        return replay(study, run, point, keep=keep)
    finally:
        give_to_caller(made)


def replay(study: Path, run: str, number: int, *, keep: Path) -> int:
    """Build the image of point `number` of a run in `keep`, and print what is wrong in it.

    The image stays as the cut left it: file system and engine recover on a copy. StudyError where the run or the point is
    not there or its log was not kept, RequirementMissing without root.
    """
    from bedplate.cli.power_cut_by_hand import by_hand  # noqa: PLC0415
    from bedplate.host.account import server_account  # noqa: PLC0415
    from bedplate.model import codec  # noqa: PLC0415
    from bedplate.workloads.power_cut.run.bench import JOB_FILE, ReplayJob  # noqa: PLC0415

    folder = find_run(study, run)
    job = codec.read(ReplayJob, folder / JOB_FILE)
    point = _point(job, number, folder)
    if os.geteuid() != 0:
        raise RequirementMissing("a cut is replayed by mounting its image, which needs root; use sudo")
    _make_empty(keep)
    record, built = _replay(job, point, folder, keep)
    for line in (*described(record, built.images), *by_hand(job, built, server_account())):
        print(line)
    stored = _stored(record, folder)
    if stored is None or stored.outcome is record.outcome:
        return EXIT_DONE
    print(f"error: {_differs(stored, job)}", file=sys.stderr)
    return EXIT_SOME_RUNS_FAILED


def runs_of(study: Path) -> list[Path]:
    """The folders of all runs of power cuts."""
    from bedplate.model.power_cut import POINTS_FILE  # noqa: PLC0415
    from bedplate.study.layout import StudyLayout  # noqa: PLC0415

    return [path.parent for path in sorted(StudyLayout(study).visits.glob(f"*/*/*/runs/*/{POINTS_FILE}"))]


def find_run(study: Path, run: str) -> Path:
    """The one run of power cuts whose folder `run` names, by any part of its path below the study's visits."""
    from bedplate.study.layout import StudyLayout  # noqa: PLC0415

    visits, found = StudyLayout(study).visits, runs_of(study)
    named = [path for path in found if run in str(path.relative_to(visits))]
    if len(named) == 1:
        return named[0]
    if not found:
        raise StudyError(f"{study} has no run of power cuts")
    which = "several runs of power cuts fit" if named else "no run of power cuts fits"
    raise StudyError(
        f"{which} {run!r}; give a part of one of these paths that no other has",
        *(str(path.relative_to(visits)) for path in named or found),
    )


def described(record: PointRecord, images: Sequence[Path]) -> list[str]:
    """What was cut, what came of it, and where the image is, a line each."""
    point = record.point
    kind = "a control, every flush ignored" if point.control else point.placement.value
    lines = [
        f"point {point.number}: cut at entry {point.position}, {point.profile.value}, {kind}, seed {point.seed}",
        f"volatile: {record.volatile_writes} writes, {record.volatile_bytes} bytes; {record.kept_writes} writes kept",
        f"outcome: {record.outcome.value}",
        *(f"  {problem}" for problem in record.problems),
    ]
    times: Mapping[str, float | None] = {
        "mount": record.mount_s,
        "fsck": record.fsck_s,
        "engine": record.engine_start_s,
        "oracle": record.oracle_s,
    }
    lines += [f"{name}: {seconds:.3f} s" for name, seconds in times.items() if seconds is not None]
    return [*lines, *(f"image: {path}" for path in images)]


def _point(job: ReplayJob, number: int, folder: Path) -> CutPoint:
    from bedplate.model.power_cut import LOG_FILE  # noqa: PLC0415

    found = next((point for point in job.points if point.number == number), None)
    if found is None:
        raise StudyError(f"{folder.name} has points 0 to {len(job.points) - 1}, and no {number}")
    if not (folder / LOG_FILE).exists():
        raise StudyError(
            f"the log of {folder.name} was not kept: no cut of it was bad but the controls, and its plan keeps no such log, or "
            'none so large; `keep_logs = "all"` in a plan keeps every log'
        )
    return found


def _make_empty(keep: Path) -> None:
    keep.mkdir(parents=True, exist_ok=True)
    if any(keep.iterdir()):
        raise StudyError(f"{keep} is not empty; name a new directory for the image")


def _replay(job: ReplayJob, point: CutPoint, folder: Path, keep: Path) -> tuple[PointRecord, Built]:
    from bedplate.host.command import Commands  # noqa: PLC0415
    from bedplate.host.devices.journal_device import MEMORY_DIRECTORY  # noqa: PLC0415
    from bedplate.host.ledger import Holding, Ledger  # noqa: PLC0415
    from bedplate.host.state import state_directory  # noqa: PLC0415
    from bedplate.model.power_cut import LOG_FILE  # noqa: PLC0415
    from bedplate.workloads.power_cut.run.kept_log import unpack_log  # noqa: PLC0415
    from bedplate.workloads.power_cut.run.power_bench import replay_one  # noqa: PLC0415

    memory = MEMORY_DIRECTORY / f"bedplate-{os.getpid()}-{os.urandom(4).hex()}"
    state = state_directory()
    with Ledger.open(state, f"{os.getpid()}-replay") as ledger:
        ledger.note(Holding("log_directory", str(memory)))
        memory.mkdir(mode=0o755)
        try:
            log = memory / "log"
            unpack_log(folder / LOG_FILE, log)
            return replay_one(log, job, point, memory=memory, keep=keep, ledger=ledger)
        finally:
            ledger.release(Commands())


def _stored(record: PointRecord, folder: Path) -> PointRecord | None:
    """The run's own record of the point, None without one."""
    from bedplate.model import codec  # noqa: PLC0415
    from bedplate.model.power_cut import POINTS_FILE, PointRecord  # noqa: PLC0415

    for line in codec.read_text(folder / POINTS_FILE).splitlines():
        stored = codec.loads(PointRecord, line, source=str(folder / POINTS_FILE))
        if stored.point == record.point:
            return stored
    return None


def _differs(stored: PointRecord, job: ReplayJob) -> str:
    """An oracle asks more from version to version: what an earlier one passed a later one may find."""
    from bedplate.workloads.power_cut.run.bench import cut_engine  # noqa: PLC0415

    words = f"the study's record of this point says {stored.outcome.value}"
    if job.subject.oracle >= cut_engine(job.subject.engine).oracle:
        return words
    return f"{words}; it was judged by an earlier oracle, which asked less"
