"""`bedplate claims` for the terminal, readable at 80 columns, and the same as one document."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from bedplate.report.claims import Finding, bounds_words
from bedplate.report.compared import study_names
from bedplate.report.table_parts import Notes, mark_lines, plain_table
from bedplate.report.wording import number
from bedplate.statistics.false_discovery import RATE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from bedplate.report.claim_file import Check, Claim
    from bedplate.report.claims import ClaimsAnswer, JudgedClaim

_STYLES = {
    Finding.HOLDS: "green",
    Finding.FAILS: "red",
    Finding.CANNOT_TELL: "bold",
    Finding.NOT_MEASURED: "dim",
}


def claim_tables(found: ClaimsAnswer) -> list[RenderableType]:
    """A table for each file, then what holds for all of them."""
    marks = {line.plain: line for each in found.overviews for line in mark_lines(each)}
    shown: list[RenderableType] = list(marks.values())
    names = study_names(found.overviews)
    for file, judged in zip(found.files, found.judged, strict=True):
        shown.append(_table(file.title, judged, names))
    shown.append(Group(Text(), *(Text(line) for line in claim_sentences(found))))
    return shown


def claims_document(found: ClaimsAnswer) -> dict[str, Any]:
    """The same as JSON. Bounds that are open and figures that are not known are null."""
    names = study_names(found.overviews)
    return {
        "studies": [
            {"study": name, "title": each.study.facts.title, "marks": list(each.marks)}
            for name, each in zip(names, found.overviews, strict=True)
        ],
        "false_discovery_rate": RATE,
        "confidence": found.confidence,
        "judged": found.asked,
        "told": found.told,
        "files": [
            {"title": file.title, "claims": [_document(one, names) for one in judged]}
            for file, judged in zip(found.files, found.judged, strict=True)
        ],
        "sentences": list(claim_sentences(found)),
    }


def claim_sentences(found: ClaimsAnswer) -> tuple[str, ...]:
    """How many claims came to which end, and how sure the intervals are."""
    sentences = [findings_sentence([one for judged in found.judged for one in judged])]
    if found.asked:
        sentences.append(
            f"{found.told} of {found.asked} claims with an interval can be told. Of findings that are given together, "
            f"{RATE:.0%} are wrong on average; for that every interval here has a confidence of "
            f"{100 * found.confidence:.4g} % or more."
        )
        sentences.append(
            "The figure beside a claim is the one that it rests on: of the part that is least sure, or that refutes it."
        )
    else:
        sentences.append("No claim here has an interval, so none can be told.")
    return tuple(sentences)


def findings_sentence(judged: Sequence[JudgedClaim]) -> str:
    """How many of these came to which end."""
    counts = Counter(one.finding for one in judged)
    ends = ", ".join(f"{counts[finding]} {finding.value}" for finding in Finding if counts[finding])
    return f"{len(judged)} claims: {ends}."


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


def _table(title: str, judged: Sequence[JudgedClaim], names: Sequence[str]) -> RenderableType:
    notes = Notes()
    table = plain_table()
    table.add_column("claim", min_width=30, max_width=40)
    table.add_column("ratio or\ndifference", justify="right", no_wrap=True)
    table.add_column("finding", min_width=14, max_width=18)
    for one in judged:
        table.add_row(_claim_text(one, names), _estimate(one), _finding(one, notes))
    return Group(Text(f"\n{title}", style="bold"), table, *notes.lines())


def _claim_text(one: JudgedClaim, names: Sequence[str]) -> Text:
    text = Text(one.claim.sentence)
    below = [one.claim.id]
    if one.study is not None and len(names) > 1:
        below.append(f"in {names[one.study]}")
    text.append(f"\n{', '.join(below)}", style="dim")
    if one.words:
        text.append(f"\n{one.metric}: {one.words}", style="dim")
    return text


def _estimate(one: JudgedClaim) -> Text:
    text = Text(claim_figure(one, one.estimate))
    if one.low is not None or one.high is not None:
        bounds = [claim_figure(one, bound) if bound is not None else "…" for bound in (one.low, one.high)]
        text.append(
            f"\n{bounds[0]}–{bounds[1]}" if one.is_ratio else f"\n{bounds[0]} to {bounds[1]}", style="dim"
        )
    return text


def claim_figure(one: JudgedClaim, value: float | None) -> str:
    """A ratio or a signed difference of a claim; a dash where it is not known."""
    if value is None:
        return "–"
    if not one.is_ratio:
        return f"{value:+.3g}"
    return f"{value:.3f}" if 0.01 <= value < 10 else number(value)


def _finding(one: JudgedClaim, notes: Notes) -> Text:
    text = Text(one.finding.value, style=_STYLES[one.finding])
    sentences = [*one.reasons, *one.notes, *([one.claim.note] if one.claim.note else [])]
    text.append(",".join(notes.number(sentence) for sentence in sentences), style="dim")
    if one.n:
        text.append(f"\nn {one.n}", style="dim")
    return text


def _document(one: JudgedClaim, names: Sequence[str]) -> dict[str, Any]:
    claim: Claim = one.claim
    return {
        "id": claim.id,
        "sentence": claim.sentence,
        "study": None if one.study is None else names[one.study],
        "finding": one.finding.value,
        "metric": one.metric or None,
        "rests_on": one.words or None,
        "kind": "ratio" if one.is_ratio else "difference",
        "estimate": one.estimate,
        "low": one.low,
        "high": one.high,
        "confidence": one.confidence,
        "n": one.n,
        "reasons": list(one.reasons),
        "notes": list(one.notes),
        "reading": claim.note,
        "checks": [check_words(check) for check in claim.check],
    }
