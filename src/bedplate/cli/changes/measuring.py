"""A change from the call to its answer: its plan, one question, blocks of visits, the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.analysis.comparison.condition import exit_status, parse_share
from bedplate.analysis.paired.condition import parse_paired_condition
from bedplate.analysis.paired.course import UntilTold
from bedplate.analysis.paired.looked import looked_at
from bedplate.analysis.paired.sentences import answer_lines
from bedplate.campaign.display import display_for_terminal
from bedplate.campaign.paired.blocks import measure_pairs, refuse_too_short
from bedplate.cli.asking import agreed, can_ask
from bedplate.cli.printing import say
from bedplate.cli.questioning import PAGE, PLAN_FILE, STUDY, offer, place_of, refuse_unless_root, show_plan
from bedplate.cli.running import consent, tell_start
from bedplate.errors import EXIT_DONE, EXIT_SOME_RUNS_FAILED, PlanError
from bedplate.host.ownership import first_made, give_to_caller, make_for_caller
from bedplate.study.folder import Folder
from bedplate.study.layout import is_study
from bedplate.units import format_duration

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.campaign.paired.sides import Change, PairedPlan
    from bedplate.cli.changes.asked import PairsAsked
    from bedplate.study.paired import PairedRecord


@dataclass(frozen=True)
class AbAsked:
    """What a call asks of a change."""

    change: Change
    how: PairsAsked
    margin: str
    condition: str | None


def measured(asked: AbAsked, directory: Path | None, *, yes: bool) -> int:
    """Write the plan, say what it takes, ask once, run blocks until they tell, and answer; the exit code."""
    margin = parse_share(asked.margin)
    course = UntilTold()
    metrics: tuple[str, ...] = ()
    if asked.condition is not None:
        condition = parse_paired_condition(asked.condition, margin=margin)
        course, metrics = UntilTold(condition.first_blocks), condition.metrics
    plan = asked.how.paired(asked.change, course.first_blocks)
    record = asked.how.record(plan, margin=margin, metrics=metrics, condition=asked.condition)
    refuse_too_short(plan, record)
    refuse_unless_root(plan.found)
    place = place_of(plan, directory)
    write_plan(plan, place)
    offer(plan.found, place / PLAN_FILE, place)
    say(f"  ends      when it can tell, or after {format_duration(asked.how.budget_s)} of visits")
    show_plan(plan)
    if not yes and not can_ask():
        raise PlanError("nobody can be asked here; give the same command with --yes")
    if not yes and not is_study(place / STUDY) and not agreed("Begin?"):
        say("Nothing was begun. The plan stays; the same command begins.")
        return EXIT_DONE
    return _ended(plan, place, record, course)


def write_plan(plan: PairedPlan, place: Path) -> None:
    """Keep the plan in its place, with its own files (scripts, configurations) beside it."""
    made = first_made(place)
    try:
        make_for_caller(place)
        with Folder.at(place) as folder:
            for name, text in {**plan.found.plan.files, PLAN_FILE: plan.text}.items():
                folder.write(place / name, text)
            # A place may be a stranger's; only the place itself is named by the call.
            folder.refuse_links(place / STUDY)
    finally:
        give_to_caller(made)


def _ended(plan: PairedPlan, place: Path, record: PairedRecord, course: UntilTold) -> int:
    from bedplate.page.build import build_report  # noqa: PLC0415 -- jinja2, plotly

    study, page = place / STUDY, place / PAGE
    try:
        outcome = measure_pairs(
            place / PLAN_FILE, study, record, course, consent=consent(yes=True), watch=display_for_terminal
        )
        if not outcome.has_ended and outcome.last.start is not None:
            tell_start(outcome.last.start, plan.found.machine.kernel_release, "the same command")
        build_report([study], page)
    finally:
        for path in (study, page):
            give_to_caller(path)
    if outcome.last.start is not None and outcome.last.start.not_built:
        return outcome.last.exit_code
    print(f"report: {page}\n")
    found = looked_at(study)
    for line in answer_lines(found):
        say(line)
    if found.condition is not None:
        return exit_status([found.condition])
    return EXIT_DONE if found.is_told else EXIT_SOME_RUNS_FAILED
