"""`bedplate claims` for the terminal, readable at 80 columns, and the same as one document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from bedplate.analysis.claims.judged import Finding
from bedplate.analysis.claims.sentences import (
    check_words,
    claim_bounds,
    claim_figure,
    claim_sentences,
    is_measured,
    unmeasured_sentence,
)
from bedplate.analysis.comparison.compared import study_names
from bedplate.statistics.false_discovery import RATE
from bedplate.terminal.table_parts import Notes, mark_lines, plain_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from bedplate.analysis.claims.file import Claim
    from bedplate.analysis.claims.judged import ClaimsAnswer, JudgedClaim

_STYLES = {
    Finding.HOLDS: "green",
    Finding.FAILS: "red",
    Finding.CANNOT_TELL: "bold",
    Finding.NOT_MEASURED: "dim",
}


def claim_tables(found: ClaimsAnswer) -> list[RenderableType]:
    """A table for each file of which something was measured, then what holds for all of them; else one line."""
    files = list(zip(found.files, found.judged, strict=True))
    unmeasured = [(file.title, judged) for file, judged in files if not is_measured(judged)]
    if len(unmeasured) == len(files):
        every = [one for _, judged in unmeasured for one in judged]
        return [Text(unmeasured_sentence(every))]
    marks = {line.plain: line for each in found.overviews for line in mark_lines(each)}
    names = study_names(found.overviews)
    return [
        *marks.values(),
        *(_table(file.title, judged, names) for file, judged in files if is_measured(judged)),
        Text(),
        *(Text(f"{title}: {unmeasured_sentence(judged)}") for title, judged in unmeasured),
        *(Text(line) for line in claim_sentences(found)),
    ]


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
    if bounds := claim_bounds(one):
        text.append(f"\n{bounds}", style="dim")
    return text


def _finding(one: JudgedClaim, notes: Notes) -> Text:
    text = Text(one.finding.value, style=_STYLES[one.finding])
    sentences = [*one.reasons, *one.notes, *([one.claim.note] if one.claim.note else [])]
    text.append(notes.marks(*sentences), style="dim")
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
