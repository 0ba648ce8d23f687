"""`bedplate power-cut blame` and `bundle`: why a cut was bad, for oneself and for others; and who recovers cuts in guests.

As in `app.py`, only click and the standard library are imported before a command is called.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bedplate.cli.studies import require_studies
from bedplate.errors import EXIT_DONE, EXIT_SOME_RUNS_FAILED, BedplateError, RequirementMissing, StudyError
from bedplate.host.ownership import first_made, give_to_caller

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from bedplate.cli.power_cuts.guest_cuts import GuestCuts, GuestOfRun, PreparedRun
    from bedplate.model.power_cut import CutPoint, PointRecord
    from bedplate.model.power_cut_blame import BlameEvidence, Story

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
IN_GUEST = click.option(
    "--guest",
    is_flag=True,
    help="what was recorded in a guest is recovered in one, under the same kernel; without it only what the running kernel cannot mount",
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
@IN_GUEST
@_REPLAYS
def blame_command(
    study: Path, run: str | None, point: int | None, *, every: bool, guest: bool, replays: int
) -> int:
    """Why cuts were bad: the smallest loss that is enough, where it lies, and whose fault it is.

    The stories are kept in the study's folder `blame`, and `power-cut points` shows them.
    """
    (study,) = require_studies([study])
    return blame(study, run, point, every=every, guest=guest, most=replays)


def blame(
    study: Path,
    run: str | None,
    number: int | None,
    *,
    every: bool = False,
    guest: bool = False,
    most: int = _REPLAYS_MOST,
) -> int:
    """Tell the stories of bad cuts, and keep them in the study.

    1 where the running kernel lacks the file system of some of the runs, which were not recorded in guests. StudyError where the run or the
    point is not there or its log was not kept, RequirementMissing without root where one is not told in a guest, or where none can be told.
    """
    from bedplate.cli.power_cut import find_run, point_of, require_root, runs_of  # noqa: PLC0415
    from bedplate.cli.power_cut_again import require_log  # noqa: PLC0415
    from bedplate.cli.power_cuts.blame import bad_points, without_story  # noqa: PLC0415
    from bedplate.cli.power_cuts.stored_job import is_for_guest, job_of  # noqa: PLC0415
    from bedplate.model import no_links  # noqa: PLC0415
    from bedplate.model.power_cut import LOG_FILE  # noqa: PLC0415
    from bedplate.model.power_cut_blame import STORIES_FOLDER  # noqa: PLC0415

    if run is None:
        folders = [folder for folder in runs_of(study) if no_links.is_there(folder / LOG_FILE)]
        if not folders:
            raise StudyError(f"{study} has no run of power cuts whose log was kept")
    else:
        folders = [find_run(study, run)]
        require_log(folders[0])
    in_guests = {folder for folder in folders if is_for_guest(folder, anyway=guest)}
    if not in_guests.issuperset(folders):
        require_root()
    if number is not None:
        (folder,) = folders
        due = {folder: [point_of(job_of(folder, in_guest=folder in in_guests), number, folder)]}
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
    reasons = {folder: _lacks(folder, in_guest=folder in in_guests) for folder in due}
    lacking = {folder: reason for folder, reason in reasons.items() if reason is not None}
    if lacking and len(lacking) == len(due):
        raise RequirementMissing(*dict.fromkeys(lacking.values()))
    for folder, reason in lacking.items():
        print(f"error: {folder.relative_to(study)}: {reason}", file=sys.stderr)
        del due[folder]
    made = first_made(study / STORIES_FOLDER)
    try:
        all_told = _tell(study, due, in_guests, most)
    finally:
        give_to_caller(made)
    return EXIT_DONE if all_told and not lacking else EXIT_SOME_RUNS_FAILED


def _tell(
    study: Path, due: Mapping[Path, Sequence[CutPoint]], in_guests: Collection[Path], most: int
) -> bool:
    """Whether each run got its stories. An error of one run in a guest is printed, and the others go on; of the only run it is raised."""
    from bedplate.cli.power_cuts.blame import tell_stories  # noqa: PLC0415
    from bedplate.cli.power_cuts.stored_job import told_of_kernel  # noqa: PLC0415

    def told(story: Story) -> None:
        print(*story.lines, sep="\n  ", flush=True)

    all_told = True
    with ExitStack() as stack:
        guests: GuestCuts | None = None
        for folder, points in due.items():
            if folder not in in_guests:
                _note(told_of_kernel(folder))
                tell_stories(study, folder, points, most=most, told=told)
                continue
            if guests is None:
                guests = _guests(study, stack)
            try:
                hold = _in_guest(guests, folder, points, most)
                tell_stories(study, folder, points, most=most, told=told, hold=hold)
            except BedplateError as error:
                if len(due) == 1:
                    raise
                all_told = False
                print(f"error: {folder.relative_to(study)}: {error}", file=sys.stderr)
    return all_told


def _guests(study: Path, stack: ExitStack) -> GuestCuts:
    from bedplate.cli.power_cuts.guest_cuts import GuestCuts  # noqa: PLC0415

    guests = GuestCuts(study)
    stack.callback(guests.close)
    return guests


def _in_guest(
    guests: GuestCuts, folder: Path, points: Sequence[CutPoint], most: int
) -> Callable[[Callable[[BlameEvidence], None]], None]:
    """What holds the inquests of a run, once its guest can be started."""
    run = _prepared(guests, folder)
    return lambda told: guests.hold(run, points, most=most, told=told)


def recovered_in_guest(
    study: Path, folder: Path, stack: ExitStack, *, anyway: bool
) -> Callable[[Sequence[CutPoint]], tuple[PointRecord, ...]] | None:
    """What recovers cuts of a run in a guest, which ends with `stack`; None where they are recovered here.

    Says it where the kernel is another than the recording's. RequirementMissing where they would be recovered here, and the running
    kernel lacks the file system, or it is not root who asks.
    """
    from bedplate.cli.power_cut import require_root  # noqa: PLC0415
    from bedplate.cli.power_cuts.stored_job import is_for_guest, job_of, told_of_kernel  # noqa: PLC0415

    if not is_for_guest(folder, anyway=anyway):
        job_of(folder)
        require_root()
        _note(told_of_kernel(folder))
        return None
    guests = _guests(study, stack)
    return partial(guests.outcomes, _prepared(guests, folder))


def _guest_of_run(study: Path, folder: Path, output: Path, stack: ExitStack) -> GuestOfRun:
    from bedplate.cli.power_cuts.guest_cuts import GuestOfRun, require_seen_by_guests  # noqa: PLC0415

    require_seen_by_guests(output, "name another --output")
    guests = _guests(study, stack)
    return GuestOfRun(guests, _prepared(guests, folder))


def _prepared(guests: GuestCuts, folder: Path) -> PreparedRun:
    from bedplate.campaign.display import display_for_terminal  # noqa: PLC0415
    from bedplate.cli.power_cuts.stored_job import told_of_kernel  # noqa: PLC0415

    with display_for_terminal() as display:
        run = guests.prepared(folder, display)
    _note(told_of_kernel(folder, run.kernel.release, run.kernel.digest))
    return run


def _note(told: str | None) -> None:
    if told is not None:
        print(f"note: {told}", file=sys.stderr)


def _lacks(folder: Path, *, in_guest: bool) -> str | None:
    """Why no cut of a run can be recovered; None where they can."""
    from bedplate.cli.power_cuts.stored_job import job_of  # noqa: PLC0415

    try:
        job_of(folder, in_guest=in_guest)
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
@IN_GUEST
@_REPLAYS
def bundle_command(study: Path, run: str, point: int, *, output: Path, guest: bool, replays: int) -> int:
    """One bad cut for somebody without bedplate: the image, the log before it, and a script that shows it.

    The script is tried once the bundle is made.
    """
    (study,) = require_studies([study])
    return bundle(study, run, point, output=output, guest=guest, most=replays)


def bundle(
    study: Path,
    run: str,
    number: int,
    *,
    output: Path,
    guest: bool = False,
    most: int = _REPLAYS_MOST,
) -> int:
    """Make the bundle of a cut; 1 where its script did not give the bad verdict.

    StudyError where the run or the point is not there, its log was not kept, or the cut is not bad; RequirementMissing without root where
    it is not made in a guest.
    """
    from bedplate.cli.power_cut import (  # noqa: PLC0415
        find_run,
        made_for_caller,
        point_of,
        recovery_log,
        require_empty,
        require_root,
    )
    from bedplate.cli.power_cuts.bundle import bundled  # noqa: PLC0415
    from bedplate.cli.power_cuts.stored_job import is_for_guest, job_of, told_of_kernel  # noqa: PLC0415

    folder = find_run(study, run)
    in_guest = is_for_guest(folder, anyway=guest)
    chosen = point_of(job_of(folder, in_guest=in_guest), number, folder)
    recovery_log(chosen, folder)
    require_empty(output)
    with ExitStack() as stack:
        found = _guest_of_run(study, folder, output, stack) if in_guest else None
        if found is None:
            require_root()
            _note(told_of_kernel(folder))
        with made_for_caller(output):
            made = bundled(folder, chosen, output.resolve(), most=most, guest=found)
    print(*made.story.lines, sep="\n  ")
    print(
        *(
            f"{path.name} {path.stat().st_size:,} bytes"
            for path in sorted(output.iterdir())
            if path.is_file()
        ),
        sep="\n",
    )
    said = f"{output / 'reproduce.sh'} was tried{made.where}"
    if made.bad.lacks:
        print(
            f"error: {said}, and something is missing{' there' if made.where else ' here'}: {made.bad.said.strip()}",
            file=sys.stderr,
        )
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
