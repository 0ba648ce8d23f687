"""A question from its plan to its answer; `quickstart` is one whose plan comes with bedplate."""

from __future__ import annotations

import math
import os
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bedplate.campaign.planning import PlannedStudy, own_plans, planned_study, planned_text
from bedplate.campaign.running import plan_doubts, setting_doubts
from bedplate.cli.printing import JsonAnswer, print_tables, say
from bedplate.cli.read import say_inspected
from bedplate.errors import (
    EXIT_CANNOT_TELL,
    EXIT_DONE,
    BedplateError,
    PlanError,
    RequirementMissing,
    StudyError,
)
from bedplate.host.ownership import first_made, give_to_caller, make_for_caller
from bedplate.installation import COMMAND
from bedplate.model import codec
from bedplate.model.cell import BUILT, is_commit_level
from bedplate.study.layout import Folder, is_study
from bedplate.units import format_count, format_duration, format_size

if TYPE_CHECKING:
    from bedplate.campaign.questions import Question
    from bedplate.executors.protocol import AfterRepetition


def can_ask() -> bool:
    """Whether there is a person at the terminal."""
    return sys.stdin.isatty()


def agreed(question: str) -> bool:
    """Whether a person at the terminal says yes; False where there is none to ask."""
    if not can_ask():
        return False
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except (EOFError, UnicodeDecodeError):
        return False


def say_answer(study: Path) -> None:
    """At most eight lines at 80 columns, behind an empty one; nothing of a study of which no run has been made."""
    from bedplate.analysis.answer import fitted, headline, headline_lines  # noqa: PLC0415
    from bedplate.analysis.overview import overview  # noqa: PLC0415
    from bedplate.cli.printing import columns  # noqa: PLC0415

    found = overview(study)
    if not found.study.visits:
        return
    print()
    for line in fitted(headline_lines(headline(found)), columns=columns()):
        print(line)


def say_tried(study: Path) -> None:
    """The answer; where every recording failed, what failed and what to do, as trying the same again seldom helps."""
    from bedplate.analysis.overview import Trouble, overview  # noqa: PLC0415
    from bedplate.cli.printing import columns  # noqa: PLC0415
    from bedplate.model.cell import type_of_cell  # noqa: PLC0415
    from bedplate.model.reason import sentences  # noqa: PLC0415

    measurements = overview(study).measurements
    if not measurements or any(each.trouble is not Trouble.FAILED for each in measurements):
        say_answer(study)
        return
    failures: dict[str, dict[str, None]] = {}
    for each in measurements:
        failures.setdefault(next(iter(sentences(each.reasons)), "no reason is on record"), {})[
            type_of_cell(each.cell)
        ] = None
    plan = study.parent / PLAN_FILE
    lines = [
        *(f"Failed   {', '.join(names)}: {reason}" for reason, names in failures.items()),
        "Next     mend what is named, and try again: a changed program is another engine, with a --directory of its own",
    ]
    print()
    for line in lines:
        print(textwrap.fill(line, columns(), subsequent_indent=" " * 9, break_long_words=False))
    print(f"         the same once more: {COMMAND} run {plan} --study {study} --retry-failed")


if TYPE_CHECKING:
    About = Callable[[Sequence[str]], Question]

_EXIT_WORDS = {0: "does not hold", 1: "holds", EXIT_CANNOT_TELL: "is not known"}

PLAN_FILE, STUDY, PAGE = "plan.toml", "study", "report.html"


class WrittenPlan(Protocol):
    """A plan that bedplate writes, by a name that is fit for a directory; `lines` are those that are shown."""

    @property
    def name(self) -> str:
        """Of the directory."""

    @property
    def text(self) -> str:
        """The plan."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The plan without what stands above it."""


def run_quickstart(directory: Path, *, yes: bool) -> int:
    """Prepare, run plans/quick.toml, print the table, write the page, say what it answers."""
    from bedplate.campaign.preparation import is_root  # noqa: PLC0415

    if not is_root():
        raise RequirementMissing(
            "quickstart makes an image file, formats it and mounts it: that needs root",
            f"go on with: sudo {COMMAND} quickstart",
            f"without root: `{COMMAND} doctor` says what this machine can run, "
            f"`{COMMAND} plan quick` what would be done",
        )
    plan = own_plans() / "quick.toml"
    offer(planned_study(plan), plan, directory)
    return _run(plan, directory, yes=yes, tables=True)


def answer(
    about: About,
    types: Sequence[str],
    directory: Path | None,
    *,
    yes: bool,
    as_json: bool,
    retry_failed: bool = False,
    looks: bool = False,
    budget_s: float | None = None,
) -> int:
    """Write the plan of a question, say what it takes, ask once, run it, and answer.

    With `looks` there are a table and a page after each repetition, and none is begun that would end beyond `budget_s`.

    PlanError where nobody can be asked, once the plan is written: it can be looked at, and run later.
    """
    with JsonAnswer(is_wanted=as_json) as document:
        asked = _written(about, types, directory)
        later = f"bedplate run {asked.plan} --study {asked.study}"
        if not yes and not can_ask():
            raise PlanError(
                f"nobody can be asked here; give the same command with --yes, or run its plan later: {later}"
            )
        if budget_s is not None:
            say(
                f"The first repetition is whole; behind it none is begun that would end more than {format_duration(budget_s)} after the yes."
            )
        lacking = f"Begin without {', '.join(asked.left_out)}?" if asked.left_out else "Begin?"
        if not yes and not agreed(lacking):
            say(f"Nothing was begun. The plan stays, to be run later: {later}")
            return EXIT_DONE
        status = _run(
            asked.plan,
            asked.place,
            yes=True,
            retry_failed=retry_failed,
            after_repetition=_Looks(asked.study, asked.place / PAGE, budget_s) if looks else None,
        )
        if as_json:
            document.content = _document(asked.place, asked.left_out, status)
        return status


def _document(place: Path, left_out: Mapping[str, tuple[str, ...]], status: int) -> dict[str, object]:
    """What `advise --json` has of the study, and where study and page are."""
    from bedplate.analysis.answer import headline  # noqa: PLC0415
    from bedplate.analysis.overview import overview  # noqa: PLC0415
    from bedplate.terminal.advice_tables import advice_document  # noqa: PLC0415

    return {
        **advice_document(headline(overview(place / STUDY))),
        "report": str(place / PAGE),
        "left_out": dict(left_out),
        "exit_status": status,
    }


def tried(
    about: About,
    types: Sequence[str],
    directory: Path | None,
    *,
    yes: bool,
    fail_if: str | None,
    as_json: bool = False,
    junit: Path | None = None,
) -> int:
    """Write the plan of a question that erases nothing, run it at once, and answer; the exit code is the condition's.

    `yes` allows to install packages. With a condition every error is a NothingTold. PlanError where no `junit` file can be there.
    """
    from bedplate.cli.status import bisectable  # noqa: PLC0415

    with (
        JsonAnswer(is_wanted=as_json) as document,
        nullcontext() if fail_if is None else bisectable(),
    ):
        from bedplate.analysis.condition import cell_truth, exit_status, parse_condition  # noqa: PLC0415

        # Before anything is written or run for it.
        condition = None if fail_if is None else parse_condition(fail_if, of_cuts=True)
        if junit is not None and (junit.is_dir() or any(folder.is_file() for folder in junit.parents)):
            raise PlanError(f"--junit {junit} is a folder, or lies below a file; name another file")
        asked = _written(about, types, directory)
        status = _run(asked.plan, asked.place, yes=yes, say_end=say_tried)
        if condition is None and not as_json and junit is None:
            return status
        from bedplate.analysis.overview import overview  # noqa: PLC0415
        from bedplate.cli.tried_documents import EngineTrial, junit_text, tried_document  # noqa: PLC0415

        found = overview(asked.study)
        truths = {}
        if condition is not None:
            # A file system that was asked for, and cannot be tried here, is a cell of which nothing is known.
            cells = (*found.cells, *asked.left_out)
            truths = {cell: cell_truth(condition, found, cell) for cell in cells}
            status = exit_status(truths.values())
            say(f"{fail_if}: {_EXIT_WORDS[status]}")
        trial = EngineTrial(found, asked.plan, asked.place / PAGE, asked.left_out, status, fail_if, truths)
        if junit is not None:
            made = first_made(junit)
            junit.parent.mkdir(parents=True, exist_ok=True)
            codec.write_text(junit, junit_text(trial))
            give_to_caller(made)
        if as_json:
            document.content = tried_document(trial)
        return status


@dataclass(frozen=True)
class _Written:
    """A question whose plan stands in `place`; `left_out` are file systems that cannot be asked about here, with the reasons."""

    place: Path
    plan: Path
    left_out: Mapping[str, tuple[str, ...]]

    @property
    def study(self) -> Path:
        return self.place / STUDY


def _written(about: About, types: Sequence[str], directory: Path | None) -> _Written:
    """Write its plan, and say what it takes."""
    question, found, left_out = _fitting(about, types)
    require_settings(found)
    refuse_unless_root(found)
    place = place_of(question, directory)
    made = first_made(place)
    try:
        make_for_caller(place)
        plan = place / PLAN_FILE
        codec.write_text(plan, question.text)
    finally:
        give_to_caller(made)
    offer(found, plan, place, left_out)
    show_plan(question)
    return _Written(place, plan, left_out)


# What fewer repetitions than an interval takes can say (docs/METHOD.md#six-numbers).
_SAYS = {
    1: "each cell was seen once, and nothing shows how much that scatters",
    2: "two runs of a cell are a range, and no interval yet",
}


class _Looks:
    """Table and page after each repetition; the budget counts from here on, and what is prepared first is in it.

    Time alone ends it: a study that stops when its figures look decided says too often that they differ (decision 16).
    """

    def __init__(self, study: Path, page: Path, budget_s: float | None) -> None:
        self._study, self._page = study, page
        self._budget_s = budget_s
        self._began = time.monotonic()

    def __call__(self, repetition: int, seconds: float) -> bool:
        from bedplate.page.build import build_report  # noqa: PLC0415
        from bedplate.statistics.estimation import REPETITIONS_MIN  # noqa: PLC0415

        says = _SAYS[repetition] if repetition < REPETITIONS_MIN else "enough for intervals and verdicts"
        print(f"\nAfter {format_count(repetition, 'repetition')}: {says}.")
        try:
            _show(self._study)
            build_report([self._study], self._page)
            print(f"report: {self._page}")
        except (BedplateError, OSError) as error:
            # What is measured is worth more than a look at it.
            say(f"no table or page this time: {error}")
        print(flush=True)
        left_s = math.inf if self._budget_s is None else self._began + self._budget_s - time.monotonic()
        return seconds <= left_s


def own_server(named: Sequence[str], *, points: int | None) -> About:
    """The question whether a server is safe as it is: the one that is named, or the only one that runs. Says what it stands on.

    PlanError where there is none, or more than one.
    """
    from bedplate.campaign.questions import (  # noqa: PLC0415
        inspect,
        own_question,
        servers,
    )
    from bedplate.host.facts import read_machine  # noqa: PLC0415

    running, hidden = ((), ()) if named else servers()
    paths = [Path(name) for name in named] or list(running)
    if len(paths) != 1:
        found = (
            f"{len(paths)} data directories: {', '.join(map(str, paths))}"
            if paths
            else "no server runs here that can be seen"
        )
        raise PlanError(
            f"{found}; name one data directory, a setting (full_page_writes=off), or file systems (--on ext4,xfs)",
            *hidden,
        )
    machine = read_machine()
    inspected = inspect(paths[0], virtualisation=machine.virtualisation)
    say_inspected(inspected)
    say()
    question = own_question(machine, inspected, points=points)
    if question is None:
        kind = inspected.place.type or "a device that nothing is mounted of"
        raise PlanError(
            f"the power of {kind} cannot be cut here; ask about others: bedplate ask safe --on ext4,xfs,btrfs"
        )
    return lambda _types: question


def _fitting(
    about: About, types: Sequence[str]
) -> tuple[Question, PlannedStudy, Mapping[str, tuple[str, ...]]]:
    """The question as it can be asked here, what it comes to, and the file systems that are left out, with the reasons.

    In a guest, if that has what the running kernel lacks. RequirementMissing where nothing is left.
    """
    question = about(types)
    if not question.lacking:
        return question, _planned(question), {}
    in_guest = _planned(question.in_guest)
    refused = _refused(in_guest)
    if not refused:
        return question.in_guest, in_guest, {}
    nowhere = [kind for kind in question.lacking if kind in refused]
    rest = [kind for kind in question.types if kind not in nowhere]
    if not rest:
        raise RequirementMissing(*(f"{kind}: {why}" for kind in nowhere for why in refused[kind]))
    asked = about(rest)
    asked = asked.in_guest if asked.lacking else asked
    return asked, _planned(asked), {kind: refused[kind] for kind in nowhere}


def _planned(question: Question) -> PlannedStudy:
    return planned_text(question.text, source=f"the plan of {question.name}")


def _refused(found: PlannedStudy) -> Mapping[str, tuple[str, ...]]:
    """The file systems of which no cell can run, with the reasons."""
    kept = {planned.cell.filesystem.type for planned in found.expansion.cells}
    refused: dict[str, tuple[str, ...]] = {}
    for pruned in found.expansion.pruned:
        kind = pruned.cell.filesystem.type
        if kind not in kept:
            refused[kind] = tuple(dict.fromkeys((*refused.get(kind, ()), *map(str, pruned.reasons))))
    return refused


def refuse_unless_root(found: PlannedStudy) -> None:
    """RequirementMissing where an image file would be mounted here, and may not."""
    from bedplate.campaign.preparation import is_root  # noqa: PLC0415

    if found.executor.runs_here and not is_root():
        raise RequirementMissing(
            "to answer this, an image file is formatted and mounted: that needs root",
            "give the same command with sudo",
        )


def place_of(question: WrittenPlan, directory: Path | None) -> Path:
    """The directory of a question: the one that is named, else one of its name that no other question has."""
    if directory is not None:
        if not _is_free(directory, question):
            raise StudyError(
                f"{directory} has the plan of another question; name another --directory, or go on with that: "
                f"bedplate run {directory / PLAN_FILE} --study {directory / STUDY}"
            )
        return directory
    names = (f"{question.name}-{number}" if number > 1 else question.name for number in count(1))
    return next(place for place in map(Path, names) if _is_free(place, question))


def _is_free(place: Path, question: WrittenPlan) -> bool:
    """Whether nothing stands there, or the same question."""
    if not os.path.isdir(place):  # noqa: PTH112 -- pathlib raises for a name that is too long
        # Where the name itself is none, making the directory says why.
        return not os.path.lexists(place)
    if not os.path.lexists(place / PLAN_FILE):
        return not os.path.lexists(place / STUDY)
    try:
        return codec.read_text(place / PLAN_FILE) == question.text
    except StudyError:
        return False


def offer(
    found: PlannedStudy, plan: Path, place: Path, left_out: Mapping[str, tuple[str, ...]] | None = None
) -> None:
    """What would be done: the plan, time, space, what is erased, installed and left out."""
    from bedplate.campaign.preparation import server_choice  # noqa: PLC0415
    from bedplate.campaign.running import lacking_of  # noqa: PLC0415
    from bedplate.cli.measuring import build_work  # noqa: PLC0415

    costs, scratch = found.estimate, found.plan.scratch_device
    visits = f"{len(found.schedule.visits)}" + (
        f" ({costs.canary_visits} of them canaries)" if costs.canary_visits else ""
    )
    where = "on this machine" if found.executor.runs_here else "in guests of QEMU"
    say(found.plan.title)
    say(f"  plan      {plan}")
    say(f"  visits    {visits}, {where}")
    if is_study(place / STUDY):
        say("  begun     already: it goes on, or answers at once if it is complete")
    say(f"  time      about {format_duration(costs.seconds)}{found.executor.estimate_words}")
    for work in build_work(found):
        say(f"            and about {work.words} before that")
    for levels in dict.fromkeys(cell.build for cell in found.cells if cell.build.server != BUILT):
        say(
            f"  server    {server_choice().words(levels)}; --server built compiles one instead, which takes minutes"
        )
    say(
        f"  space     {format_size(scratch.image_bytes or 0)} for an image file, {format_size(costs.study_bytes)} for the study, "
        f"in {place}"
    )
    say(f"  erased    {', '.join(found.plan.devices_erased) or 'nothing: no device of yours is written to'}")
    if not found.executor.runs_here and found.estimate.measured_seconds:
        say(
            "  speeds    without KVM those of the emulator, and marked so; flushes and power cuts are the kernel's"
        )
    packages = sorted({item.package for item in lacking_of(found)})
    if packages:
        say(f"  installs  {', '.join(packages)}")
    fetched = [
        name or "that guests usually have"
        for name in found.executor.kernels(found.plan)
        if name not in found.choice.platform.guests and not (name and is_commit_level(name))
    ]
    if fetched:
        say(f"  fetches   kernel {' and '.join(fetched)}, some 100 MB each, from the distribution's packages")
    for kind, reasons in (left_out or {}).items():
        say(f"  left out  {kind}: {'; '.join(reasons)}")
    for warning in plan_doubts(found):
        say(f"  warning   {warning}")


def require_settings(planned: PlannedStudy) -> None:
    """PlanError for settings that the only build of a question does not take: whoever types one means what is asked about.

    Of several builds some may have it, and then a cell that does not start is a result.
    """
    refused = setting_doubts(planned)
    if refused and len({cell.build for cell in planned.cells}) == 1:
        raise PlanError(*refused)


def show_plan(question: WrittenPlan) -> None:
    """As it is written, without its first comment: the way into plans of one's own."""
    say()
    for line in question.lines:
        print(f"    {line}".rstrip())
    say()


def _run(
    plan: Path,
    place: Path,
    *,
    yes: bool,
    retry_failed: bool = False,
    tables: bool = False,
    after_repetition: AfterRepetition | None = None,
    say_end: Callable[[Path], None] = say_answer,
) -> int:
    """Run the plan, write the page, and say what the study answers; its `tables` before that."""
    from bedplate.cli.measuring import consent, run  # noqa: PLC0415
    from bedplate.page.build import build_report  # noqa: PLC0415

    study, page = place / STUDY, place / PAGE
    made = (study, page) if place.is_dir() else (first_made(place),)
    try:
        make_for_caller(place)
        with Folder.of_directory(place) as folder:
            folder.refuse_links(study)
        status = run(
            plan,
            study,
            consent=consent(yes=yes),
            retry_failed=retry_failed,
            answers=False,
            doubts=False,
            after_repetition=after_repetition,
        )
        if tables:
            _show(study)
        build_report([study], page)
        print(f"report: {page}")
        say_end(study)
    finally:
        for path in made:
            give_to_caller(path)
    return status


def _show(study: Path) -> None:
    from bedplate.terminal.tables import show_tables  # noqa: PLC0415

    print()
    print_tables(show_tables([study]))
    print()
