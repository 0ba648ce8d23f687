"""The commands about a change: what it does beside what was before, and which commit of many it was."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bedplate.analysis.condition import (
    Condition,
    ConditionSubject,
    Truth,
    exit_status,
    parse_condition,
    parse_share,
)
from bedplate.analysis.paired import (
    Looked,
    UntilTold,
    answer_lines,
    lacking_words,
    line_words,
    looked_at,
    nearest,
    seen_words,
    short_name,
    side_truth,
)
from bedplate.campaign.bisection import (
    BAD,
    BISECT_VERSION,
    BY_ESTIMATE,
    BY_FAILURE,
    BY_INTERVAL,
    BY_RECORD,
    GOOD,
    SKIP,
    Bisected,
    BisectEnding,
    BisectionRecord,
    Ends,
    JudgedCommit,
    bisect,
    ends_of,
    mail_text,
    read_bisection,
    subject_of,
)
from bedplate.campaign.display import display_for_terminal
from bedplate.campaign.paired import (
    Change,
    PairedPlan,
    commits_of,
    measure_pairs,
    paired_plan,
    refuse_too_short,
)
from bedplate.cli.asking import (
    PAGE,
    PLAN_FILE,
    STUDY,
    agreed,
    can_ask,
    offer,
    place_of,
    refuse_unless_root,
    require_settings,
    show_plan,
)
from bedplate.cli.measuring import consent, tell_start
from bedplate.cli.printing import JsonAnswer, say
from bedplate.errors import (
    EXIT_CANNOT_TELL,
    EXIT_DONE,
    EXIT_SOME_RUNS_FAILED,
    BuildFailed,
    PlanError,
    StudyError,
)
from bedplate.host.ownership import first_made, give_to_caller, make_for_caller
from bedplate.model import codec
from bedplate.model.cell import SourceCommit
from bedplate.model.codec import json_fields
from bedplate.model.course import first_of
from bedplate.model.devices import Latency
from bedplate.statistics.comparison import MARGIN
from bedplate.study.layout import Folder, is_study
from bedplate.study.records import PairedRecord
from bedplate.units import format_duration


@dataclass(frozen=True)
class PairsAsked:
    """The plan that both sides run, what is compared, and for how long at most."""

    plan: Path | None
    types: Sequence[str]
    executor: str | None
    workload: str | None
    metrics: tuple[str, ...]
    budget_s: float
    accepted: tuple[str, ...]
    document: JsonAnswer
    """is given what the command answers"""

    def paired(self, change: Change, repetitions: int) -> PairedPlan:
        """The plan of a change, with its first blocks."""
        return paired_plan(
            change, plan=self.plan, types=self.types, executor=self.executor, repetitions=repetitions
        )

    def record(
        self, plan: PairedPlan, *, margin: float, metrics: tuple[str, ...] = (), condition: str | None = None
    ) -> PairedRecord:
        """What the study of a plan asks; `metrics` take the place of those of the call."""
        return plan.record(
            budget_s=self.budget_s,
            margin=margin,
            workload=self.workload,
            metrics=metrics or self.metrics,
            accepted=self.accepted,
            condition=condition,
        )


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
        condition = parse_condition(asked.condition, margin=margin)
        condition.refuse_unfit(asked.how.metrics)
        course, metrics = UntilTold(condition.first_blocks), condition.metrics
    plan = asked.how.paired(asked.change, course.first_blocks)
    record = asked.how.record(plan, margin=margin, metrics=metrics, condition=asked.condition)
    refuse_too_short(plan, record)
    require_settings(plan.found)
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
        # What was not measured is not known: 0 would say that the condition does not hold.
        return EXIT_DONE if asked.condition is None else EXIT_CANNOT_TELL
    return _ended(plan, place, record, course, asked.how.document)


def write_plan(plan: PairedPlan, place: Path) -> None:
    """Keep the plan in its place, with its own files (scripts, configurations) beside it."""
    made = first_made(place)
    try:
        make_for_caller(place)
        with Folder.of_directory(place) as folder:
            for name, text in {**plan.found.plan.files, PLAN_FILE: plan.text}.items():
                folder.write(place / name, text)
            # A place may be a stranger's; only the place itself is named by the call.
            folder.refuse_links(place / STUDY)
    finally:
        give_to_caller(made)


def _ended(
    plan: PairedPlan, place: Path, record: PairedRecord, course: UntilTold, document: JsonAnswer
) -> int:
    from bedplate.page.build import build_report  # noqa: PLC0415 -- jinja2

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
        return outcome.last.exit_code if record.condition is None else EXIT_CANNOT_TELL
    print(f"report: {page}\n")
    found = looked_at(study)
    document.content = {**pairs_document(found), "report": str(page)}
    for line in answer_lines(found):
        say(line)
    if found.condition is not None:
        return exit_status([found.condition])
    return EXIT_DONE if found.is_told else EXIT_SOME_RUNS_FAILED


def pairs_document(pairs: Looked) -> dict[str, object]:
    """What `ab --json` prints: each line with its interval, which holds at every look, and the answer's words."""
    return {
        "study": str(pairs.overview.study.directory),
        **json_fields(pairs, "baseline=record.baseline contender=record.contender margin=record.margin"),
        "condition": pairs.record.condition,
        "condition_holds": None if pairs.condition is None else pairs.condition.value,
        "is_known": pairs.is_told,
        **json_fields(pairs, "blocks spent_s budget_s=record.budget_s"),
        "lines": [
            {
                "dataset": line.asked.run[0],
                "run": line.asked.run[1],
                "cells": [line.pair.baseline.cell, line.pair.contender.cell],
                **json_fields(
                    line,
                    "metric=asked.metric phase=asked.phase item=asked.item",
                ),
                **json_fields(line.comparison, "kind estimate low high confidence n suspect"),
                "verdict": "effectively the same" if line.identical else line.comparison.verdict.value,
                "words": line_words(pairs, line),
            }
            for line in pairs.lines
        ],
        "answer": list(answer_lines(pairs)),
    }


_WORDS = {Truth.HOLDS: BAD, Truth.FAILS: GOOD}

_REASON_CHARACTERS = 300

_DIGITS = 12

_BOTH_ENDS = "both-ends"


@dataclass(frozen=True)
class PairedJudge:
    """Judges commits in folders of `place`, each in a study of pairs with the good one."""

    asked: BisectAsked
    condition: Condition
    good: SourceCommit
    place: Path

    def record(self, plan: PairedPlan) -> PairedRecord:
        """What the study of a commit asks."""
        return self.asked.how.record(
            plan, margin=MARGIN, metrics=self.condition.metrics, condition=self.condition.text
        )

    def ends(self, bad: SourceCommit) -> JudgedCommit:
        """The bad commit, held against the good one. It is `bad` only where that is sure, and the good one is not bad itself.

        StudyError where an end does not run, or the good one is bad. What keeps an end from being built is raised as it is.
        """
        found, visits = self._measured(bad, _BOTH_ENDS)
        if found.has_failed:
            raise StudyError(
                f"both ends must have what is asked for before a commit is looked for; {lacking_words(found)}",
                f"`bedplate show {found.overview.study.directory} --status` has all of it; mend that, or name other ends or another condition, and "
                "begin in another --directory",
            )
        if self.condition.subject is not ConditionSubject.SIDES:
            self._refuse_a_bad_good_end(found)
        known = found.condition or Truth.CANNOT_TELL
        verdict = _WORDS.get(known, SKIP)
        study = f"{_BOTH_ENDS}/{STUDY}"
        return JudgedCommit(bad.hash, bad.subject, verdict, self._basis(), self._words(found), study, visits)

    def commit(self, candidate: SourceCommit) -> JudgedCommit:
        """A commit that git asks for: `good`, `bad`, or `skip` where it cannot be built or run.

        StudyError where its runs cannot be believed: that says nothing of the commit, and skipping it would lose it.
        """
        folder = candidate.hash[:_DIGITS]
        study = f"{folder}/{STUDY}"
        try:
            found, visits = self._measured(candidate, folder)
        except BuildFailed as error:
            words = f"cannot be built: {short_name(error.reasons[0], _REASON_CHARACTERS)}"
            return JudgedCommit(candidate.hash, candidate.subject, SKIP, BY_FAILURE, words, "")
        known, basis = found.condition or Truth.CANNOT_TELL, self._basis()
        if known is Truth.CANNOT_TELL:
            known, basis = nearest(self.condition, found.overview, found.record, found.lines), BY_ESTIMATE
        if known is Truth.CANNOT_TELL:
            goods = {pair.baseline for pair in found.record.pairs}
            if found.has_failed and any(each.cell in goods for each in found.lacking):
                raise StudyError(
                    f"{candidate.level}: the good commit has no figure beside it, so nothing is said of this one; {lacking_words(found)}",
                    f"`bedplate show {found.overview.study.directory} --status` has all of it",
                )
            if found.has_failed:
                return JudgedCommit(
                    candidate.hash,
                    candidate.subject,
                    SKIP,
                    BY_FAILURE,
                    lacking_words(found),
                    study,
                    visits,
                )
            raise StudyError(
                f"{candidate.level}: no run of it could be believed, and a commit is not skipped for that",
                f"`bedplate show {found.overview.study.directory} --status` says why; the same command with a larger --budget goes on, or --accept WORDS "
                "counts the doubt",
            )
        return JudgedCommit(
            candidate.hash, candidate.subject, _WORDS[known], basis, self._words(found), study, visits
        )

    def _measured(self, commit: SourceCommit, folder: str) -> tuple[Looked, int]:
        """Its study, begun or gone on with, to its end; and the visits that it has. BuildFailed where a side cannot be built."""
        plan = self.asked.paired(self.good.hash, commit.hash, self.condition.first_blocks)
        place = self.place / folder
        with Folder.of_directory(self.place) as top:
            top.refuse_links(place)
        write_plan(plan, place)
        outcome = measure_pairs(
            place / PLAN_FILE,
            place / STUDY,
            self.record(plan),
            UntilTold(self.condition.first_blocks),
            consent=consent(yes=True),
            watch=display_for_terminal,
        )
        if outcome.last.start is not None and outcome.last.start.not_built:
            raise BuildFailed(*outcome.last.start.not_built)
        found = looked_at(place / STUDY)
        if not outcome.has_ended:
            raise StudyError(f"{place / STUDY} was not measured to its end; the same command goes on")
        return found, len(found.overview.study.visits)

    def _refuse_a_bad_good_end(self, found: Looked) -> None:
        cells = [pair.baseline for pair in found.record.pairs]
        if side_truth(self.condition, found.overview, found.record, cells) is Truth.HOLDS:
            seen = seen_words(self.condition, found.overview, found.record, cells)
            raise StudyError(
                f"“{self.condition.text}” holds of the good commit too ({seen}); name an older one, or another condition"
            )

    def _basis(self) -> str:
        return BY_INTERVAL if self.condition.needs_pairs else BY_RECORD

    def _words(self, found: Looked) -> str:
        if self.condition.subject is ConditionSubject.SIDES:
            return "; ".join(line_words(found, line) for line in self.condition.lines_of(found.lines))
        sides = ([p.contender for p in found.record.pairs], [p.baseline for p in found.record.pairs])
        of_commit, of_good = (
            seen_words(self.condition, found.overview, found.record, cells) for cells in sides
        )
        return f"{of_commit}; the good one: {of_good}"


_MAIL = "mail.txt"

_UNFIT = re.compile(r"[^A-Za-z0-9._]+")

_NAME_CHARACTERS = 100

# File systems and loads that the text names.
_NAMES = 4


@dataclass(frozen=True)
class BisectAsked:
    """What a call asks of a history."""

    tree: str
    is_kernel: bool
    good: str
    bad: str
    condition: str
    how: PairsAsked

    def paired(self, good: str, commit: str, repetitions: int) -> PairedPlan:
        """The plan of a commit beside the good one."""
        change = commits_of(self.tree, good, commit, is_kernel=self.is_kernel)
        return self.how.paired(change, repetitions)


def bisected(asked: BisectAsked, directory: Path | None, *, yes: bool) -> int:
    """Check the call, ask once, find the commit, write the text; the exit code."""
    condition = parse_condition(asked.condition)
    condition.refuse_unfit(asked.how.metrics)
    tree = Path(asked.tree).expanduser().absolute()
    ends = ends_of(tree, asked.good, asked.bad)
    plan = asked.paired(ends.good.hash, ends.bad.hash, condition.first_blocks)
    judge = PairedJudge(asked, condition, ends.good, Path())
    refuse_too_short(plan, judge.record(plan))
    refuse_unless_root(plan.found)
    place = (directory or Path(_name(asked))).absolute()
    record = BisectionRecord(
        version=BISECT_VERSION,
        tree=str(tree),
        good=ends.good.hash,
        bad=ends.bad.hash,
        condition=asked.condition,
        plan_digest=plan.found.plan.digest,
    )
    _tell(asked, ends, plan, place, condition)
    if not yes and not can_ask():
        raise PlanError("nobody can be asked here; give the same command with --yes")
    if not yes and read_bisection(place) is None and not agreed("Begin?"):
        say("Nothing was begun; the same command begins.")
        return EXIT_DONE
    made = first_made(place)
    try:
        make_for_caller(place)
        found = bisect(place, ends, record, PairedJudge(asked, condition, ends.good, place), tell=say)
        text = mail_text(found, sentences=_how(asked, plan, condition))
        codec.write_text(place / _MAIL, text)
    finally:
        give_to_caller(made)
    asked.how.document.content = {
        **json_fields(found, "ending first_bad any_of visits"),
        **json_fields(record, "tree good bad condition"),
        "judged": [
            json_fields(each, "commit subject verdict basis words study visits")
            for each in found.record.judged
        ],
        "text": str(place / _MAIL),
    }
    return _said(found, text, place)


def _tell(asked: BisectAsked, ends: Ends, plan: PairedPlan, place: Path, condition: Condition) -> None:
    """What would be done, of one commit and of all."""
    steps = max(math.ceil(math.log2(ends.commits)), 0) + 1
    offer(plan.found, place / "both-ends" / PLAN_FILE, place)
    for name, commit in (("good", ends.good), ("bad", ends.bad)):
        say(f"  {name:<9} {commit.hash[:12]} {subject_of(commit.subject)}")
    say(f"  bad if    {asked.condition}")
    say(f"  commits   {ends.commits}, so both ends and about {steps - 1} more are measured as above")
    at_most = f", {format_duration(asked.how.budget_s)} each at most" if condition.needs_pairs else ""
    say(
        f"  time      about {format_duration(plan.found.estimate.seconds * steps)} in all, builds apart{at_most}"
    )
    show_plan(plan)


def _how(asked: BisectAsked, plan: PairedPlan, condition: Condition) -> list[str]:
    """How it was measured, for who reads the mail."""
    machine = plan.found.machine
    where = "in QEMU guests on" if asked.is_kernel else "on"
    planned = plan.found.expansion.cells
    variants = list(dict.fromkeys(each.cell.variant for each in planned))
    loads = list(dict.fromkeys(load.dataset.words for each in planned for load in each.loads))
    devices = [each.cell.device for each in planned]
    slower = list(
        dict.fromkeys(
            level.label if isinstance(level, Latency) else level.name
            for each in devices
            for level in (each.latency, each.throttle)
            if level
        )
    )
    emulated = f" The device is emulated: {first_of(slower, _NAMES)}." if slower else ""
    told = [
        f"On {first_of(variants, _NAMES)}: {first_of(loads, _NAMES)}.{emulated}",
        f"Measured by bedplate {where} {machine.cpu_count} x {machine.cpu_model}, {machine.distribution}, kernel {machine.kernel_release}.",
    ]
    if condition.needs_pairs:
        told.append(
            "Each commit ran in blocks with the good one, in random order; the intervals hold at every look (95 %, Lai 1976)."
        )
    if asked.how.accepted:
        doubts = ", ".join(map(repr, asked.how.accepted))
        told.append(f"A run in doubt counts where each doubt has one of these words or codes: {doubts}.")
    return told


def _said(found: Bisected, text: str, place: Path) -> int:
    say()
    print(text, end="")
    say()
    say(f"text: {place / _MAIL}; a study for each commit beside it")
    done = found.ending in (BisectEnding.FOUND, BisectEnding.SKIPPED)
    return EXIT_DONE if done else EXIT_SOME_RUNS_FAILED


def _name(asked: BisectAsked) -> str:
    return _UNFIT.sub("-", f"bisect-{asked.good}-{asked.bad}")[:_NAME_CHARACTERS].strip("-.")
