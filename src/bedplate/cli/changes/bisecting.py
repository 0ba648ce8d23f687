"""A bisection from the call to its text: both ends checked before the first build, then a study of pairs for each commit."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.analysis.paired.condition import parse_paired_condition
from bedplate.campaign.bisection.driving import BisectEnding, bisect
from bedplate.campaign.bisection.history import ends_of
from bedplate.campaign.bisection.mail import mail_text, subject_of
from bedplate.campaign.bisection.record import BISECT_VERSION, BisectionRecord, read_bisection
from bedplate.campaign.paired.blocks import refuse_too_short
from bedplate.campaign.paired.sides import commits_of
from bedplate.cli.asking import agreed, can_ask
from bedplate.cli.changes.judging import PairedJudge
from bedplate.cli.printing import say
from bedplate.cli.questioning import PLAN_FILE, offer, refuse_unless_root, show_plan
from bedplate.errors import EXIT_DONE, EXIT_SOME_RUNS_FAILED, PlanError
from bedplate.host.ownership import first_made, give_to_caller, make_for_caller
from bedplate.model import codec
from bedplate.model.template import first_of
from bedplate.statistics.comparison import MARGIN
from bedplate.units import format_duration

if TYPE_CHECKING:
    from bedplate.analysis.paired.condition import PairedCondition
    from bedplate.campaign.bisection.driving import Bisected
    from bedplate.campaign.bisection.history import Ends
    from bedplate.campaign.paired.sides import PairedPlan
    from bedplate.cli.changes.asked import PairsAsked

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
    condition = parse_paired_condition(asked.condition, margin=MARGIN)
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
        text = mail_text(found, how=_how(asked, plan, condition))
        codec.write_text(place / _MAIL, text)
    finally:
        give_to_caller(made)
    return _said(found, text, place)


def _tell(asked: BisectAsked, ends: Ends, plan: PairedPlan, place: Path, condition: PairedCondition) -> None:
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


def _how(asked: BisectAsked, plan: PairedPlan, condition: PairedCondition) -> list[str]:
    """How it was measured, for who reads the mail."""
    machine = plan.found.machine
    where = "in QEMU guests on" if asked.is_kernel else "on"
    planned = plan.found.expansion.cells
    variants = list(dict.fromkeys(each.cell.variant for each in planned))
    loads = list(dict.fromkeys(load.dataset.words for each in planned for load in each.loads))
    devices = [each.cell.device for each in planned]
    slower = list(
        dict.fromkeys(level.name for each in devices for level in (each.latency, each.throttle) if level)
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
