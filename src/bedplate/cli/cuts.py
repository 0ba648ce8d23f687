"""`bedplate power-cut`: an engine of somebody's own, which cuts of a study were bad, and one of them once more.

As in `app.py`, only click and the standard library are imported before a command is called.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bedplate.cli.options import (
    AS_JSON,
    DIRECTORY,
    EXIT_BY_IT,
    ON_USUAL,
    YES,
    OneOf,
    condition_option,
    words_of,
)
from bedplate.cli.printing import require_studies
from bedplate.errors import (
    EXIT_CANNOT_TELL,
    EXIT_DONE,
    EXIT_SOME_RUNS_FAILED,
    BedplateError,
    PlanError,
    RequirementMissing,
    StudyError,
)
from bedplate.host.ownership import first_made, give_to_caller

if TYPE_CHECKING:
    from bedplate.cli.cut_tools import GuestCuts, GuestOfRun, PreparedRun
    from bedplate.cuts.blame import BlameEvidence, Story
    from bedplate.cuts.records import ChosenState, CutPoint, PointRecord
    from bedplate.workloads.power_cut.bench import Built, ReplayJob

_PATH = click.Path(path_type=Path)

_REPLAYS_MOST = 200

_RECORDED_S, _AUDIT_S = 10, 3

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
    help="the run, as for `replay`; without it all with a kept log",
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
@AS_JSON
def blame_command(
    study: Path,
    run: str | None,
    point: int | None,
    *,
    every: bool,
    guest: bool,
    replays: int,
    as_json: bool,
) -> int:
    """Why cuts were bad, and whose fault it is.

    It finds the smallest loss that is enough, and where it lies.

    The stories are kept in the study's folder `blame`, and `power-cut points` shows them.
    """
    (study,) = require_studies([study])
    from bedplate.cli.cut_documents import story_document  # noqa: PLC0415
    from bedplate.cli.printing import JsonAnswer  # noqa: PLC0415

    stories: list[dict[str, object]] = []

    def keep(name: str, folder: Path, story: Story) -> None:
        stories.append(story_document(name, folder, story))

    with JsonAnswer(is_wanted=as_json) as document:
        status = blame(study, run, point, every=every, guest=guest, most=replays, report=keep)
        document.content = {"study": str(study), "stories": stories, "exit_status": status}
        return status


def blame(
    study: Path,
    run: str | None,
    number: int | None,
    *,
    every: bool = False,
    guest: bool = False,
    most: int = _REPLAYS_MOST,
    report: Callable[[str, Path, Story], None] | None = None,
) -> int:
    """Tell the stories of bad cuts, and keep them in the study; each goes to `report` as well, with its run's name and folder.

    1 where the running kernel lacks the file system of some of the runs, which were not recorded in guests. StudyError where the run or the
    point is not there or its log was not kept, RequirementMissing without root where one is not told in a guest, or where none can be told.
    """
    from bedplate.cli.cut_tools import bad_points, without_story  # noqa: PLC0415
    from bedplate.cuts.blame import STORIES_FOLDER  # noqa: PLC0415
    from bedplate.cuts.records import LOG_FILE  # noqa: PLC0415
    from bedplate.model import limits  # noqa: PLC0415
    from bedplate.study.power_cut_stories import run_names  # noqa: PLC0415
    from bedplate.workloads.power_cut.cut_questions import (  # noqa: PLC0415
        is_for_guest,
        job_of,
        require_log,
    )

    if run is None:
        folders = [folder for folder in run_names(study).values() if limits.is_there(folder / LOG_FILE)]
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
    names = {folder: name for name, folder in run_names(study).items()}
    for folder, reason in lacking.items():
        print(f"error: {names[folder]}: {reason}", file=sys.stderr)
        del due[folder]
    made = first_made(study / STORIES_FOLDER)
    try:
        all_told = _tell(study, due, in_guests, most, report)
    finally:
        give_to_caller(made)
    return EXIT_DONE if all_told and not lacking else EXIT_SOME_RUNS_FAILED


def _tell(
    study: Path,
    due: Mapping[Path, Sequence[CutPoint]],
    in_guests: Collection[Path],
    most: int,
    report: Callable[[str, Path, Story], None] | None,
) -> bool:
    """Whether each run got its stories. An error of one run in a guest is printed, and the others go on; of the only run it is raised."""
    from bedplate.cli.cut_tools import tell_stories  # noqa: PLC0415
    from bedplate.study.power_cut_stories import run_names  # noqa: PLC0415
    from bedplate.workloads.power_cut.cut_questions import told_of_kernel  # noqa: PLC0415

    names = {folder: name for name, folder in run_names(study).items()}

    def told(folder: Path, story: Story) -> None:
        print(f"{names[folder]}, {story.lines[0]}", *story.lines[1:], sep="\n  ", flush=True)
        if report is not None:
            report(names[folder], folder, story)

    all_told = True
    with ExitStack() as stack:
        guests: GuestCuts | None = None
        for folder, points in due.items():
            if folder not in in_guests:
                _note(told_of_kernel(folder))
                tell_stories(study, folder, points, most=most, told=partial(told, folder))
                continue
            if guests is None:
                guests = _guests(study, stack)
            try:
                hold = _in_guest(guests, folder, points, most)
                tell_stories(study, folder, points, most=most, told=partial(told, folder), hold=hold)
            except BedplateError as error:
                if len(due) == 1:
                    raise
                all_told = False
                print(f"error: {names[folder]}: {error}", file=sys.stderr)
    return all_told


def _guests(study: Path, stack: ExitStack) -> GuestCuts:
    from bedplate.cli.cut_tools import GuestCuts  # noqa: PLC0415

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
    from bedplate.workloads.power_cut.cut_questions import is_for_guest, job_of, told_of_kernel  # noqa: PLC0415

    if not is_for_guest(folder, anyway=anyway):
        job_of(folder)
        require_root()
        _note(told_of_kernel(folder))
        return None
    guests = _guests(study, stack)
    return partial(guests.outcomes, _prepared(guests, folder))


def _guest_of_run(study: Path, folder: Path, output: Path, stack: ExitStack) -> GuestOfRun:
    from bedplate.cli.cut_tools import GuestOfRun, require_seen_by_guests  # noqa: PLC0415

    require_seen_by_guests(output, "name another --output")
    guests = _guests(study, stack)
    return GuestOfRun(guests, _prepared(guests, folder))


def _prepared(guests: GuestCuts, folder: Path) -> PreparedRun:
    from bedplate.campaign.display import display_for_terminal  # noqa: PLC0415
    from bedplate.workloads.power_cut.cut_questions import told_of_kernel  # noqa: PLC0415

    with display_for_terminal() as display:
        run = guests.prepared(folder, display)
    _note(told_of_kernel(folder, run.kernel.release, run.kernel.digest))
    return run


def _note(told: str | None) -> None:
    if told is not None:
        print(f"note: {told}", file=sys.stderr)


def _lacks(folder: Path, *, in_guest: bool) -> str | None:
    """Why no cut of a run can be recovered; None where they can."""
    from bedplate.workloads.power_cut.cut_questions import job_of  # noqa: PLC0415

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
@click.argument("run", metavar="RUN", help="the run, as for `replay`")
@click.argument(
    "point", metavar="POINT", type=int, help="the number of the cut, as `power-cut points` says it"
)
@click.option(
    "--output", metavar="DIR", type=_PATH, required=True, help="an empty or new directory for the bundle"
)
@IN_GUEST
@_REPLAYS
def bundle_command(study: Path, run: str, point: int, *, output: Path, guest: bool, replays: int) -> int:
    """Pack one bad cut for somebody without bedplate.

    The bundle has the image, the log before it, and a script that shows it.

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
    from bedplate.workloads.power_cut.bundle import bundled  # noqa: PLC0415
    from bedplate.workloads.power_cut.cut_questions import is_for_guest, job_of, told_of_kernel  # noqa: PLC0415

    folder = find_run(study, run)
    in_guest = is_for_guest(folder, anyway=guest)
    chosen = point_of(job_of(folder, in_guest=in_guest), number, folder)
    require_recovery_logs(chosen, folder)
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


# Of bedplate.cuts.records.Profile, which is imported once a command is called; a test holds them equal.
PROFILE_NAMES = (
    *("subset-4k", "subset-512", "whole", "lost", "ordered"),
    *("subset-8k", "subset-16k", "untorn-8k", "untorn-16k"),
)


# Of bedplate.engines.external.prepare.PLANTS, likewise.
PLANT_NAMES = ("drop-fsync", "drop-third-fsync", "drop-directory-fsync")


@click.group(name="power-cut")
def power_cut() -> None:
    """Try an engine of your own, and look into a study's cuts.

    docs/METHOD.md says what a cut is.
    """


power_cut.add_command(blame_command)

power_cut.add_command(bundle_command)


@power_cut.command(name="try")
@click.argument(
    "folder", metavar="FOLDER", type=_PATH, help="an engine's folder, with engine.toml and its programs"
)
@ON_USUAL
@click.option(
    "--points",
    metavar="N",
    type=click.IntRange(4, 100_000),
    help="how often the power of each is cut (default: 160 of one recording, 80 of two or three, else 40)",
)
@click.option(
    "--recut",
    metavar="N",
    type=click.IntRange(0, 100_000),
    help="how often besides while it recovers from one of these (default: a quarter of them)",
)
@click.option(
    "--exhaustive",
    metavar="N",
    type=click.IntRange(0, 100_000),
    help="how often besides, at most, behind every write of short recoveries, and of recoveries from there (default: half of them)",
)
@click.option(
    "--duration",
    metavar="SECONDS",
    type=click.IntRange(1, 3600),
    help="how long it is recorded (default: 10), or followed by --audit, once with one client and once with two (default: 3)",
)
@click.option(
    "--set",
    "words",
    metavar="NAME=VALUE",
    multiple=True,
    help="a setting of the engine's, several values with commas; may be given again",
)
@condition_option(
    f"bad: a cut took something; 'worse than promised': more than that; unsafe: what stays may be damaged; {EXIT_BY_IT}"
)
@click.option(
    "--audit",
    "audits",
    is_flag=True,
    help="cuts nothing, asks no checker: which bytes and names were acknowledged before they were synced; exit code 1 if any",
)
@AS_JSON
@click.option(
    "--junit",
    metavar="FILE",
    type=_PATH,
    help="write a JUnit file too: a test for each kind of cut on each file system",
)
@click.option(
    "--plant",
    type=click.Choice(PLANT_NAMES),
    help="a fault in its writer's syncs, by a preloaded library, to see that it is found",
)
@DIRECTORY
@YES
def _try_command(
    folder: Path,
    types: str,
    *,
    points: int | None,
    recut: int | None,
    exhaustive: int | None,
    duration: int | None,
    words: tuple[str, ...],
    fail_if: str | None,
    audits: bool,
    as_json: bool,
    junit: Path | None,
    plant: str | None,
    directory: Path | None,
    yes: bool,
) -> int:
    """Does an engine of your own survive power cuts.

    `power-cut try ./my-engine --on ext4,xfs`; docs/ENGINES.md has the rules of its programs.

    Begins at once: everything happens on a disk in memory, and nothing of yours is erased.
    """
    if audits:
        if any(option is not None for option in (fail_if, points, recut, exhaustive, junit)):
            raise click.UsageError(
                "--audit cuts nothing; leave out --points, --recut, --exhaustive, --fail-if and --junit"
            )
        return audit(_runnable(folder, plant), words, duration_s=duration or _AUDIT_S, as_json=as_json)
    if (directory or Path.cwd()).resolve().is_relative_to(folder.resolve()):
        raise PlanError(
            f"the study would lie in {folder}, and be taken for a part of the engine; name another --directory"
        )
    from bedplate.campaign.questions import asked_settings, engine_question  # noqa: PLC0415
    from bedplate.cli.asking import tried  # noqa: PLC0415
    from bedplate.host.facts import read_machine  # noqa: PLC0415

    about = partial(
        engine_question,
        read_machine(),
        _runnable(folder, plant),
        asked_settings(words, factors=()),
        points=points,
        recut=recut,
        exhaustive=exhaustive,
        duration_s=duration or _RECORDED_S,
    )
    return tried(about, words_of(types), directory, yes=yes, fail_if=fail_if, as_json=as_json, junit=junit)


def _runnable(folder: Path, plant: str | None) -> Path:
    from bedplate.engines.external.build import runnable  # noqa: PLC0415

    return runnable(folder, plant=plant, report=partial(print, file=sys.stderr, flush=True))


def audit(folder: Path, words: Sequence[str], *, duration_s: int, as_json: bool) -> int:
    """Follow the writer's calls, and say what it acknowledges before it is synced; the exit code of the gravest choice of settings."""
    from bedplate.campaign.questions import asked_settings  # noqa: PLC0415
    from bedplate.cli.printing import columns, print_json  # noqa: PLC0415
    from bedplate.engines.external.audit import audit_engine, audit_lines  # noqa: PLC0415

    require_root("the writer runs as an account without rights")
    audits = []
    for number, audit_record in enumerate(
        audit_engine(folder, asked_settings(words, factors=()), duration_s=duration_s)
    ):
        audits.append(audit_record)
        if not as_json:
            print(*(("",) if number else ()), *audit_lines(audit_record, columns()), sep="\n", flush=True)
    if as_json:
        print_json({"audits": [audit_record.document for audit_record in audits]})
    codes = {audit_record.exit_code for audit_record in audits}
    return next(code for code in (EXIT_SOME_RUNS_FAILED, EXIT_CANNOT_TELL, EXIT_DONE) if code in codes)


@power_cut.command(name="points")
@click.argument("study", metavar="STUDY", type=_PATH, help="a study's directory")
@click.argument(
    "run",
    metavar="[RUN]",
    required=False,
    help="the run, as for `replay`; without it all are counted and named, and what their stories say",
)
@click.option("--all", "every", is_flag=True, help="the cuts that were not bad too, and the controls")
@AS_JSON
def _points_command(study: Path, run: str | None, *, every: bool, as_json: bool) -> int:
    """Which cuts of a study were bad, by their numbers."""
    from bedplate.cli.cut_tools import point_lines, run_lines  # noqa: PLC0415
    from bedplate.study.power_cut_stories import read_stories, run_names  # noqa: PLC0415

    (study,) = require_studies([study])
    names = run_names(study)
    folder = None if run is None else find_run(study, run)
    if as_json:
        from bedplate.cli.cut_documents import points_document, runs_document  # noqa: PLC0415
        from bedplate.cli.printing import print_json  # noqa: PLC0415

        if folder is None:
            print_json(runs_document(study, names))
        else:
            name = next(name for name, path in names.items() if path == folder)
            print_json(points_document(study, name, folder, is_complete=every))
        return EXIT_DONE
    if folder is None:
        lines = run_lines(study, names)
    else:
        lines = point_lines(folder, every=every, stories=read_stories(study, folder))
    for line in lines:
        print(line)
    return EXIT_DONE


@power_cut.command(name="replay")
@click.argument("study", metavar="STUDY", type=_PATH, help="a study's directory")
@click.argument(
    "run",
    metavar="RUN",
    help="the run's name, as `power-cut points` says it (`ext4`, `xfs-2`), or any part of its path that no other has",
)
@click.argument(
    "point",
    metavar="[POINT]",
    type=int,
    required=False,
    help="the number of the cut, as `power-cut points` says it; none with --profile",
)
@click.option(
    "--keep",
    metavar="DIR",
    type=_PATH,
    help="an empty or new directory; the image of POINT stays in it",
)
@click.option(
    "--profile",
    "names",
    metavar="PROFILE",
    type=OneOf(PROFILE_NAMES),
    multiple=True,
    help=f"instead: cut the log anew as this device would leave it, of {', '.join(PROFILE_NAMES)}; may be given again",
)
@click.option(
    "--points",
    metavar="N",
    type=click.IntRange(1, 100_000),
    default=90,
    help="with --profile: how many cuts, shared by the profiles; a third of them is placed where the order of what the engine did shows",
)
@click.option("--seed", metavar="N", type=click.IntRange(0), default=1, help="with --profile: draws the cuts")
@IN_GUEST
def _replay_command(
    study: Path,
    run: str,
    point: int | None,
    *,
    keep: Path | None,
    names: tuple[str, ...],
    points: int,
    seed: int,
    guest: bool,
) -> int:
    """Build the image of a cut again, or cut its log again.

    It says what is wrong in the image, which comes from the log and the seed of the cut.
    """
    if (point is None) == (not names):
        raise click.UsageError("give the number of a cut, or --profile to cut the log anew")
    if (keep is None) == (point is not None):
        raise click.UsageError("--keep DIR goes with the number of a cut, whose image stays there")
    (study,) = require_studies([study])
    if point is None or keep is None:
        return cut_log_again(study, run, names, points=points, seed=seed, guest=guest)
    return replay(study, run, point, keep=keep, guest=guest)


def cut_log_again(
    study: Path, run: str, names: Sequence[str], *, points: int, seed: int, guest: bool = False
) -> int:
    """Cut the kept log of a run with these profiles, and print what came of each; nothing is added to the study.

    StudyError where the run is not there or its log was not kept, RequirementMissing without root where its cuts are not recovered in a guest.
    """
    from bedplate.cli.cut_tools import cut_again  # noqa: PLC0415
    from bedplate.cuts.records import Profile  # noqa: PLC0415
    from bedplate.workloads.power_cut.cut_questions import require_log  # noqa: PLC0415

    folder, profiles = find_run(study, run), tuple(dict.fromkeys(map(Profile, names)))
    require_log(folder)
    with ExitStack() as stack:
        recover = recovered_in_guest(study, folder, stack, anyway=guest)
        found = cut_again(folder, profiles, points=points, seed=seed, recover=recover)
    for line in (*found.lines(profiles), *found.told):
        print(line)
    if found.sees_losses:
        return EXIT_DONE
    print(
        "error: too few controls were bad, in which the device lies about its flushes: what finds no loss there proves nothing",
        file=sys.stderr,
    )
    return EXIT_SOME_RUNS_FAILED


def replay(study: Path, run: str, number: int, *, keep: Path, guest: bool = False) -> int:
    """Build the image of point `number` of a run in `keep`, and print what is wrong in it.

    The image stays as the cut left it: file system and engine recover on a copy. StudyError where the run or the point is
    not there or its log was not kept, RequirementMissing without root where it is not recovered in a guest.
    """
    from bedplate.cli.cut_tools import by_hand  # noqa: PLC0415
    from bedplate.host.account import in_place_of, recorded_account  # noqa: PLC0415
    from bedplate.workloads.power_cut.cut_questions import job_of, lacking_here, record_of  # noqa: PLC0415

    folder = find_run(study, run)
    job = job_of(folder, in_guest=True)
    point = point_of(job, number, folder)
    require_recovery_logs(point, folder)
    require_empty(keep)
    with ExitStack() as stack:
        recover = recovered_in_guest(study, folder, stack, anyway=guest)
        stack.enter_context(made_for_caller(keep))
        record, built = _replay(job, point, folder, keep, recover)
    lacking = lacking_here(job.filesystem.type)
    elsewhere = () if lacking is None else (f"{lacking}; what follows needs a machine whose kernel has it",)
    account = in_place_of(job.subject.account, recorded_account())
    for line in (*described(record, built.images), *elsewhere, *by_hand(job, built, account)):
        print(line)
    stored = record_of(folder, point)
    if stored is None or stored.point != point or stored.outcome is record.outcome:
        return EXIT_DONE
    print(f"error: {_differs(stored, job)}", file=sys.stderr)
    return EXIT_SOME_RUNS_FAILED


def find_run(study: Path, run: str) -> Path:
    """The one run of power cuts that `run` names: its short name, its path, or any part of that below the study's visits."""
    from bedplate.study.layout import StudyLayout  # noqa: PLC0415
    from bedplate.study.power_cut_stories import run_names  # noqa: PLC0415

    visits, names = StudyLayout(study).visits, run_names(study)
    if run in names:
        return names[run]
    itself = Path(run).resolve()
    named = {
        name: path
        for name, path in names.items()
        if path.resolve() == itself or run in str(path.relative_to(visits))
    }
    if len(named) == 1:
        return next(iter(named.values()))
    if not names:
        raise StudyError(f"{study} has no run of power cuts")
    which = "several runs of power cuts fit" if named else "no run of power cuts fits"
    raise StudyError(
        f"{which} {run!r}; give one of these names, or a part of a path that no other has",
        *(f"{name}  {path.relative_to(visits)}" for name, path in (named or names).items()),
    )


def described(record: PointRecord, images: Sequence[Path]) -> list[str]:
    """What was cut, what came of it, and where the image is, a line each."""
    point = record.point
    kind = "a control, every flush ignored" if point.control else point.placement.value
    drawn = f"seed {point.seed}" if point.state is None else _state_words(point.state)
    where = f" of the {point.recovery_words}" if point.recovery_words else ""
    lines = [
        f"point {point.number}: cut at entry {point.position}{where}, {point.profile.value}, {kind}, {drawn}",
        f"volatile: {record.volatile_writes} writes, {record.volatile_bytes} bytes; {record.kept_writes} writes kept",
        f"outcome: {record.outcome.value}",
        *_remounted(record),
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


def _remounted(record: PointRecord) -> list[str]:
    said = record.failed_once
    return (
        []
        if said is None
        else [f"the image was built and looked at twice; what ended the first look: {said}"]
    )


def _state_words(state: ChosenState) -> str:
    parts = ", ".join(map(str, state.parts))
    if not state.kept:
        return f"keeps all parts but {parts}"
    return f"keeps parts {parts}" if parts else "keeps nothing"


def require_root(reason: str = "a cut is replayed by mounting its image") -> None:
    """RequirementMissing for anybody else."""
    if os.geteuid() != 0:
        raise RequirementMissing(f"{reason}, which needs root; use sudo")


def point_of(job: ReplayJob, number: int, folder: Path) -> CutPoint:
    """The cut of that number; StudyError where there is none, or the run's log was not kept."""
    from bedplate.cuts.points import read_cuts  # noqa: PLC0415
    from bedplate.workloads.power_cut.cut_questions import require_log  # noqa: PLC0415

    points = (*job.points, *(record.point for record in read_cuts(folder).recuts))
    found = next((point for point in points if point.number == number), None)
    if found is None:
        again = ", and recoveries behind them" if len(points) > len(job.points) else ""
        raise StudyError(f"{folder.name} has points 0 to {len(job.points) - 1}{again}, and no {number}")
    require_log(folder)
    return found


def require_recovery_logs(point: CutPoint, folder: Path) -> None:
    """StudyError where the log of a recovery which the point cuts was not kept."""
    from bedplate.model import limits  # noqa: PLC0415

    if not all(limits.is_there(folder / name) for name in point.recovery_log_files):
        raise StudyError(
            f"the {point.recovery_words} of {folder.name} was not kept, as no cut of it was bad; recorded again, it would be another one"
        )


def require_empty(keep: Path) -> None:
    """StudyError where it is no directory, or something is in it."""
    if not keep.exists():
        return
    if not keep.is_dir() or any(keep.iterdir()):
        raise StudyError(f"{keep} is not an empty directory; name a new one for the image")


@contextmanager
def made_for_caller(keep: Path) -> Iterator[None]:
    """The empty directory; what is made in it is the caller's in the end. StudyError where something is in it, which stays whose it is."""
    require_empty(keep)
    made = first_made(keep)
    keep.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        give_to_caller(made)


def _replay(
    job: ReplayJob,
    point: CutPoint,
    folder: Path,
    keep: Path,
    recover: Callable[[Sequence[CutPoint]], tuple[PointRecord, ...]] | None,
) -> tuple[PointRecord, Built]:
    from bedplate.workloads.power_cut.bench import image_of, judge_alone  # noqa: PLC0415
    from bedplate.workloads.power_cut.cut_questions import recoveries_of  # noqa: PLC0415
    from bedplate.workloads.power_cut.log import unpacked  # noqa: PLC0415

    with unpacked(folder) as kept:
        recoveries = recoveries_of(point, folder, kept)
        built = image_of(kept.log, job, point, memory=kept.memory, keep=keep, recoveries=recoveries)
        if recover is None:
            record = judge_alone(
                kept.log, job, point, memory=kept.memory, ledger=kept.ledger, recoveries=recoveries
            )
            return record, built
    (record,) = recover([point])
    return record, built


def _differs(stored: PointRecord, job: ReplayJob) -> str:
    """An oracle asks more from version to version: what an earlier one passed a later one may find."""
    from bedplate.workloads.power_cut.bench import cut_engine  # noqa: PLC0415

    words = f"the study's record of this point says {stored.outcome.value}"
    if job.subject.oracle >= cut_engine(job.subject.engine).oracle:
        return words
    return f"{words}; it was judged by an earlier oracle, which asked less"
