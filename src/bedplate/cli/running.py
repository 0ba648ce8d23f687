"""`bedplate run`: what is allowed, and what is said when a start has ended, one of `bedplate extend` too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.campaign import running
from bedplate.campaign.consent import Consent
from bedplate.campaign.display import display_for_terminal
from bedplate.cli.answering import say_answer
from bedplate.cli.asking import agreed
from bedplate.units import format_count, format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bedplate.campaign.running import StudyOutcome
    from bedplate.executors.protocol import StartOutcome


def consent(erase: Sequence[str] = (), *, erase_foreign: bool = False, yes: bool = False) -> Consent:
    """What the command line allows; the rest is asked."""
    return Consent(tuple(erase), erase_foreign, yes, ask=agreed)


def run(
    plan: Path,
    study: Path,
    *,
    consent: Consent,
    executor: str | None = None,
    retry_failed: bool = False,
    answers: bool = True,
    doubts: bool = True,
) -> int:
    """Run a plan into a study, or go on with it; without `answers` the caller says what the study answers, without `doubts` it told them."""
    outcome = running.run(
        plan,
        study,
        consent=consent,
        executor=executor,
        retry_failed=retry_failed,
        doubts=doubts,
        watch=display_for_terminal,
    )
    chosen = f" --executor {executor}" if executor else ""
    return tell(outcome, f"bedplate run {plan} --study {outcome.study}{chosen}", answers=answers)


def tell(outcome: StudyOutcome, go_on: str, *, answers: bool = True) -> int:
    """What a person wants to know at the end of a start, what the study answers last; its exit code."""
    start = outcome.start
    if start is None:
        print(f"{outcome.study} is complete: {format_count(outcome.visits, 'visit')}")
    else:
        tell_start(start, outcome.kernel_release, go_on)
        if start.needs_kernel is not None:
            return outcome.exit_code
    if outcome.failed:
        print(
            f"{outcome.failed} of {format_count(outcome.visits, 'visit')} failed: `bedplate status` says why, "
            "the same command with --retry-failed does them again"
        )
    if answers:
        say_answer(outcome.study)
    return outcome.exit_code


def tell_start(start: StartOutcome, kernel_release: str, go_on: str) -> None:
    """What a start did, and how to go on where it did not do all; `kernel_release` is the running one."""
    print(
        f"{format_count(start.completed, 'visit')} completed, {start.failed} failed, in {format_duration(start.seconds)}"
    )
    if start.needs_kernel is not None:
        print(
            f"the next visit needs kernel {start.needs_kernel}, this is {kernel_release}; "
            f"boot that one, then go on with: {go_on}"
        )
        return
    for sentence in (*start.not_built, *start.left_behind):
        print(sentence)
    if start.not_built:
        print(f"visits of what was not built did not run; when it builds they are due: {go_on}")
    elif start.left_behind:
        print(f"visits that did not run are due again: {go_on}")
