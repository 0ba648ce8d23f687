"""Sentences and figures of judged claims, as the terminal and the page write them alike."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from bedplate.analysis.claims.judged import Finding, bounds_words
from bedplate.analysis.wording import ratio_figure
from bedplate.statistics.false_discovery import RATE
from bedplate.units import format_count, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.analysis.claims.file import Check
    from bedplate.analysis.claims.judged import ClaimsAnswer, JudgedClaim

# What one claim came to, and several.
_ENDS = {
    Finding.HOLDS: ("holds", "hold"),
    Finding.FAILS: ("does not hold", "do not hold"),
    Finding.CANNOT_TELL: ("cannot be judged", "cannot be judged"),
    Finding.NOT_MEASURED: ("was not measured", "were not measured"),
}


def claim_sentences(found: ClaimsAnswer) -> tuple[str, ...]:
    """How many claims came to which end, and how sure the intervals are."""
    every = [one for judged in found.judged for one in judged]
    sentences = [findings_sentence(every)]
    if found.asked:
        in_part = sum(one.finding is Finding.NOT_MEASURED and one.confidence is not None for one in every)
        verb = "is" if in_part == 1 else "are"
        partly = (
            f" {in_part} of them {verb} measured in part: that may be refuted, and cannot hold."
            if in_part
            else ""
        )
        sentences.append(
            f"{found.told} of {format_count(found.asked, 'claim')} with an interval can be judged.{partly} Of findings that are given together, "
            f"{percent(RATE)} are wrong on average; for that every interval here has a confidence of "
            f"{100 * found.confidence:.4g} % or more."
        )
        sentences.append(
            "The figure beside a claim is the one that it rests on: of the part that is least sure, or that refutes it."
        )
    else:
        sentences.append("No claim here has an interval, so none can be judged.")
    return tuple(sentences)


def findings_sentence(judged: Sequence[JudgedClaim]) -> str:
    """`30 claims: 5 hold, 25 were not measured.`: how many of these came to which end."""
    counts = Counter(one.finding for one in judged)
    ends = ", ".join(
        format_count(n, one, several) for finding, (one, several) in _ENDS.items() if (n := counts[finding])
    )
    return f"{len(judged)} claim{'s' * (len(judged) != 1)}: {ends}."


def is_measured(judged: Sequence[JudgedClaim]) -> bool:
    """Whether a study measured any of these claims."""
    return any(one.finding is not Finding.NOT_MEASURED for one in judged)


def unmeasured_sentence(judged: Sequence[JudgedClaim]) -> str:
    """Of claims that no study measured, with the reason that most of them have."""
    reasons = Counter(one.reasons[0] for one in judged if one.reasons).most_common()
    more = f", and {format_count(len(reasons) - 1, 'reason')} more" if len(reasons) > 1 else ""
    why = f": {reasons[0][0]}{more}" if reasons else ""
    return f"none of {len(judged)} claim{'s' * (len(judged) != 1)} was measured here{why}."


def check_words(check: Check) -> str:
    """A check in one line: `tps of read-only: type=btrfs beside type=ext4, ≥ 1.05`."""
    known = {
        name: value
        for name, value in check
        if name not in {"kind", "run", "metric", "per", "at_least", "at_most"} and value not in (None, ())
    }
    keys = "; ".join(f"{name} {_value_words(value)}" for name, value in known.items())
    figure = check.metric if check.per is None else f"{check.metric} / {check.per}"
    return ", ".join(filter(None, (f"{check.kind} of {figure} in {check.run}", keys, bounds_words(check))))


def _value_words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def claim_bounds(one: JudgedClaim) -> str:
    """`0.91–0.97`, `-3 to …`, a bound that is open as dots; empty where both are."""
    if one.low is None and one.high is None:
        return ""
    ends = ("…" if end is None else claim_figure(one, end) for end in (one.low, one.high))
    return ("–" if one.is_ratio else " to ").join(ends)


def claim_figure(one: JudgedClaim, value: float | None) -> str:
    """A ratio or a signed difference of a claim; a dash where it is not known."""
    if value is None:
        return "–"
    if not one.is_ratio:
        return f"{value:+.3g}"
    return ratio_figure(value)
