"""`bedplate power-cut blame` and `bundle`: why a cut was bad, for oneself and for others.

As in `app.py`, only click and the standard library are imported before a command is called.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from bedplate.cli.studies import require_studies
from bedplate.errors import EXIT_DONE, EXIT_SOME_RUNS_FAILED, RequirementMissing, StudyError
from bedplate.host.ownership import first_made, give_to_caller

_PATH = click.Path(path_type=Path)
_REPLAYS_MOST = 200
_STUDY = click.argument("study", metavar="STUDY", type=_PATH, help="a study's directory")
_REPLAYS = click.option(
    "--replays",
    metavar="N",
    type=click.IntRange(4, 100_000),
    default=_REPLAYS_MOST,
    help="how often a cut is replayed at most",
)


@click.command(name="blame")
@_STUDY
@click.argument(
    "run",
    metavar="[RUN]",
    required=False,
    help="the run's folder, as for `replay`; without it all with a kept log",
)
@click.argument(
    "point",
    metavar="[POINT]",
    type=int,
    required=False,
    help="the number of the cut; without it one for each finding",
)
@click.option(
    "--all", "every", is_flag=True, help="every bad cut that has no story yet, and not one for each finding"
)
@_REPLAYS
def blame_command(study: Path, run: str | None, point: int | None, *, every: bool, replays: int) -> int:
    """Why cuts were bad: the smallest loss that is enough, where it lies, and whose fault it is.

    The stories are kept in the study's folder `blame`, and `power-cut points` shows them.
    """
    (study,) = require_studies([study])
    return blame(study, run, point, every=every, most=replays)


def blame(
    study: Path, run: str | None, number: int | None, *, every: bool = False, most: int = _REPLAYS_MOST
) -> int:
    """Tell the stories of bad cuts, and keep them in the study.

    1 where the running kernel lacks the file system of some of the runs. StudyError where the run or the point is not there or its log was
    not kept, RequirementMissing without root, or where the kernel can tell no story.
    """
    from bedplate.cli.power_cut import find_run, point_of, require_root, runs_of  # noqa: PLC0415
    from bedplate.cli.power_cut_again import require_log  # noqa: PLC0415
    from bedplate.cli.power_cuts.blame import bad_points, stories, without_story  # noqa: PLC0415
    from bedplate.cli.power_cuts.stored_job import job_of, told_of_kernel  # noqa: PLC0415
    from bedplate.model.power_cut import LOG_FILE  # noqa: PLC0415
    from bedplate.model.power_cut_blame import STORIES_FOLDER  # noqa: PLC0415

    if run is None:
        folders = [folder for folder in runs_of(study) if (folder / LOG_FILE).exists()]
        if not folders:
            raise StudyError(f"{study} has no run of power cuts whose log was kept")
    else:
        folders = [find_run(study, run)]
        require_log(folders[0])
    require_root()
    if number is not None:
        due = {folders[0]: [point_of(job_of(folders[0]), number, folders[0])]}
    else:
        bad = {folder: bad_points(folder, every=every) for folder in folders}
        due = {
            folder: without_story(study, folder, points) if every else points
            for folder, points in bad.items()
        }
        if every:
            all_bad, all_due = (sum(map(len, each.values())) for each in (bad, due))
            print(_due_words(all_bad, all_due, most), file=sys.stderr)
        elif not any(bad.values()):
            print("no cut was bad, but for the controls")
    due = {folder: points for folder, points in due.items() if points}
    lacking = {folder: reason for folder in due if (reason := _lacks(folder)) is not None}
    if lacking and len(lacking) == len(due):
        raise RequirementMissing(*dict.fromkeys(lacking.values()))
    made = first_made(study / STORIES_FOLDER)
    try:
        for folder, points in due.items():
            if folder in lacking:
                print(f"error: {folder.relative_to(study)}: {lacking[folder]}", file=sys.stderr)
                continue
            if (told := told_of_kernel(folder)) is not None:
                print(f"note: {told}", file=sys.stderr)
            for story in stories(study, folder, points, most=most):
                print(*story.lines, sep="\n  ", flush=True)
    finally:
        give_to_caller(made)
    return EXIT_SOME_RUNS_FAILED if lacking else EXIT_DONE


def _lacks(folder: Path) -> str | None:
    """Why no cut of a run can be recovered here; None where they can."""
    from bedplate.cli.power_cuts.stored_job import job_of  # noqa: PLC0415

    try:
        job_of(folder)
    except (RequirementMissing, StudyError) as error:
        return str(error)
    return None


def _due_words(bad: int, due: int, most: int) -> str:
    """How much there is to do, which may take hours; and that what was done is kept."""
    if not bad:
        return "no cut was bad, but for the controls"
    told = f", {bad - due} of them with a story already (`power-cut points` shows it)" if bad > due else ""
    return f"{bad} bad cuts{told}; each of the others is replayed up to {most} times. Stopped, the same command goes on"


@click.command(name="bundle")
@_STUDY
@click.argument("run", metavar="RUN", help="the run's folder, as for `replay`")
@click.argument(
    "point", metavar="POINT", type=int, help="the number of the cut, as `power-cut points` says it"
)
@click.option(
    "--output", metavar="DIR", type=_PATH, required=True, help="an empty or new directory for the bundle"
)
@_REPLAYS
def bundle_command(study: Path, run: str, point: int, *, output: Path, replays: int) -> int:
    """One bad cut for somebody without bedplate: the image, the log before it, and a script that shows it.

    The script is tried once the bundle is made.
    """
    (study,) = require_studies([study])
    made = first_made(output)
    try:
        return bundle(study, run, point, output=output, most=replays)
    finally:
        give_to_caller(made)


def bundle(study: Path, run: str, number: int, *, output: Path, most: int = _REPLAYS_MOST) -> int:
    """Make the bundle of a cut; 1 where its script did not give the bad verdict.

    StudyError where the run or the point is not there, its log was not kept, or the cut is not bad; RequirementMissing without root.
    """
    from bedplate.cli.power_cut import find_run, make_empty, point_of, recovery_log, require_root  # noqa: PLC0415
    from bedplate.cli.power_cuts.bundle import bundled  # noqa: PLC0415
    from bedplate.cli.power_cuts.stored_job import job_of  # noqa: PLC0415

    folder = find_run(study, run)
    chosen = point_of(job_of(folder), number, folder)
    recovery_log(chosen, folder)
    require_root()
    make_empty(output)
    made = bundled(folder, chosen, output.absolute(), most=most)
    print(*made.story.lines, sep="\n  ")
    print(
        *(
            f"{path.name} {path.stat().st_size:,} bytes"
            for path in sorted(output.iterdir())
            if path.is_file()
        ),
        sep="\n",
    )
    said = f"{output / 'reproduce.sh'} was tried"
    if made.bad.lacks:
        print(f"error: {said}, and something is missing here: {made.bad.said.strip()}", file=sys.stderr)
        return EXIT_SOME_RUNS_FAILED
    if not made.bad.as_asked:
        print(
            f"error: {said}, and the engine's own tools do not see what is wrong: {made.story.evidence.problem}. The bundle's README says "
            f"so. They said: {made.bad.said.strip()}",
            file=sys.stderr,
        )
        return EXIT_SOME_RUNS_FAILED
    if made.mended is not None and not made.mended.as_asked:
        print(f"with what was lost laid back all is not well, by these tools: {made.mended.said.strip()}")
    print(f"{said}, and gave the bad verdict")
    return EXIT_DONE
