"""`bedplate advise` for the terminal, readable at 80 columns, and the same as one document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from bedplate.analysis.advice import (
    Advised,
    ComparisonEvidence,
    Contest,
    Limit,
    NextVisits,
    Sentence,
    Standing,
    cell_words,
    closing_sentences,
    contest_sentences,
    ranked_cells,
)
from bedplate.analysis.claims import (
    ClaimsAnswer,
    Finding,
    JudgedClaim,
    check_words,
    claim_bounds,
    claim_figure,
    claim_sentences,
    is_measured,
    unmeasured_sentence,
)
from bedplate.analysis.comparison import study_names
from bedplate.analysis.headline import NO_BREAK, Headline, fitted, headline_lines
from bedplate.analysis.wording import device_sectors, figure, unit_words
from bedplate.model.codec import json_fields
from bedplate.model.figure import Scale
from bedplate.statistics.false_discovery import RATE
from bedplate.statistics.summary import Summary
from bedplate.terminal.table_parts import Notes, mark_lines, plain_table

_ROWS = 12

_ORDER = (Standing.LEADING, Standing.OPEN, Standing.RULED_OUT)

_WORDS = {Standing.LEADING: "leads", Standing.OPEN: "open", Standing.RULED_OUT: "ruled out"}

_STYLES = {Standing.LEADING: "bold green", Standing.OPEN: "yellow", Standing.RULED_OUT: "dim"}

_LEGEND = (
    "leads: no cell is shown better in the first column. ruled out: one is. The other columns say what that costs; --not-worse "
    "sets limits to them. Geometric means, with the 95 % interval of the first alone."
)

_NOT_JUDGED = "Means of few repetitions, with an interval or else their range: what was found, and no order."


def advice_tables(found: Advised, headline: Headline | None = None) -> list[RenderableType]:
    """The answer where one is given, for each run and class a table and its sentences, then what holds for all."""
    overview = found.overview
    shown: list[RenderableType] = [
        Group(Text(overview.study.facts.title, style="bold"), *mark_lines(overview))
    ]
    if headline is not None:
        shown.append(Text("\n".join(["", *fitted(headline_lines(headline), most=None)])))
    for contest in found.contests:
        shown.append(_table(found, contest))
        shown.append(_lines(contest_sentences(found, contest)))
    if closing := closing_sentences(found):
        shown.append(Group(Text("\nThe whole study", style="bold"), _lines(closing)))
    return shown


def advice_document(found: Advised, headline: Headline | None = None) -> dict[str, Any]:
    """The same as JSON. Bounds that are open and figures that are absent are null."""
    overview = found.overview
    return {
        "study": str(overview.study.directory),
        "title": overview.study.facts.title,
        "marks": list(overview.marks),
        "cache": found.cache,
        "device_sector_bytes": device_sectors(overview),
        "false_discovery_rate": RATE,
        "verdicts": found.verdicts,
        "judged": found.judged,
        "answer": None if headline is None else _answer_document(headline),
        "durability": {
            cell: {"label": cell_words(overview, cell), "class": name} for cell, name in found.classes.items()
        },
        "contests": [_contest_document(found, contest) for contest in found.contests],
        "sentences": [_sentence_document(each) for each in closing_sentences(found)],
    }


def _answer_document(headline: Headline) -> dict[str, Any]:
    """What to take and what not, by run, what would show more, and the lines that say it."""
    return {
        "runs": [
            {
                "dataset": own.run[0],
                "run": own.run[1],
                "metric": own.metric.name,
                "durability": own.durability or None,
                "answered": own.answered.value,
                "judged_cells": own.cells,
                "taken": None if own.taken is None else own.taken.cell,
                "as_good": [each.other.cell for each in own.tied],
                "not_taken": [
                    {
                        "why": each.why.value,
                        "cells": list(each.cells),
                        "reason": each.reason or None,
                        "looks_better": [one.cell for one in each.seen if each.looks_better(own, one)],
                    }
                    for each in own.not_taken
                ],
            }
            for own in headline.answers
        ],
        "next": [
            {
                "kind": step.kind.value,
                "count": step.count,
                "command": step.command or None,
                "seconds": step.seconds,
            }
            for step in headline.following
        ],
        "lines": [
            {"head": line.head, "text": line.text.replace(NO_BREAK, " ")} for line in headline_lines(headline)
        ],
    }


def _table(found: Advised, contest: Contest) -> RenderableType:
    table = plain_table()
    table.add_column("cell", min_width=14, max_width=26)
    for objective in contest.objectives:
        unit = unit_words(objective.metric)
        words = objective.head.replace(" ", "\n", 1)
        table.add_column(f"{words}\n{unit}" if unit else words, justify="right")
    table.add_column("", no_wrap=True, is_there=contest.can_judge)
    rows = list(_rows(found, contest))
    for cell, standing in rows[:_ROWS]:
        figures = [
            _figure(found.summary(contest, objective, cell), with_bounds=place == 0)
            for place, objective in enumerate(contest.objectives)
        ]
        mark = Text() if standing is None else Text(_WORDS[standing], style=_STYLES[standing])
        table.add_row(Text(cell_words(found.overview, cell)), *figures, mark)
    title = Text(f"\n{contest.run[1]}: {contest.durability} with a {found.cache_words}", style="bold")
    legend = _LEGEND if contest.can_judge else _NOT_JUDGED
    definitions = "; ".join(f"{each.head}: {each.metric.definition}" for each in contest.objectives)
    more = (
        [Text(f"{len(rows) - _ROWS} more cells are in the document (--json).")] if len(rows) > _ROWS else []
    )
    return Group(title, table, *more, Text(legend, style="dim"), Text(f"{definitions}.", style="dim"))


def _rows(found: Advised, contest: Contest) -> Iterable[tuple[str, Standing | None]]:
    """Cells by their standing and then by the first figure; where nothing can be judged all as they are scheduled."""
    if not contest.can_judge:
        yield from ((cell, None) for cell in (*contest.cells, *contest.left_out))
        return
    standings = dict(zip(contest.cells, contest.standings, strict=True))
    ranked = ranked_cells(found, contest, contest.objectives[0])
    for wanted in _ORDER:
        yield from ((cell, wanted) for cell in ranked if standings[cell] is wanted)


def _figure(summary: Summary, *, with_bounds: bool) -> Text:
    words = figure(summary)
    text = Text(words.mean)
    if with_bounds and words.low:
        text.append(f"\n{words.between('–')}", style="dim")
    return text


def _lines(sentences: Iterable[Sentence]) -> RenderableType:
    return Padding(Group(*(Text(f"• {each.text}") for each in sentences)), (1, 0, 0, 0))


def _contest_document(found: Advised, contest: Contest) -> dict[str, Any]:
    standings = contest.standings
    cells = [
        {
            "cell": cell,
            "label": cell_words(found.overview, cell),
            "standing": standing.value if contest.can_judge else None,
            "limit": _limit_document(contest.limits[cell]) if cell in contest.limits else None,
            "behind": [contest.cells[other] for other in ahead],
            "same_in_force_as": list(contest.same_as.get(cell, ())),
            "figures": {
                objective.metric.name: json_fields(
                    found.summary(contest, objective, cell),
                    "mean=centre low high minimum maximum n suspect unknown",
                )
                for objective in contest.objectives
            },
        }
        for cell, standing, ahead in zip(contest.cells, standings, contest.ahead, strict=True)
    ]
    return {
        "dataset": contest.run[0],
        "run": contest.run[1],
        "durability": contest.durability,
        "objectives": [
            {
                **json_fields(each, "metric=metric.name parts unit=metric.unit better=metric.better"),
                "kind": "ratio" if each.metric.scale is Scale.RATIO else "difference",
                **json_fields(confidence, "confidence_difference=difference confidence_same=sameness"),
            }
            for each, confidence in zip(contest.objectives, contest.confidences, strict=True)
        ],
        "judged": contest.can_judge,
        "not_ruled_out": [
            each["cell"] for each in cells if each["standing"] in (Standing.LEADING, Standing.OPEN)
        ],
        "cells": cells,
        "not_judged": dict(contest.left_out),
        "sentences": [_sentence_document(each) for each in contest_sentences(found, contest)],
    }


def _limit_document(limit: Limit) -> dict[str, Any]:
    return {**json_fields(limit, "share holds"), **_evidence_document(limit.evidence)}


def _sentence_document(sentence: Sentence) -> dict[str, Any]:
    return {
        **json_fields(sentence, "kind text cells"),
        "evidence": [_evidence_document(each) for each in sentence.evidence],
        "visits": None if sentence.visits is None else _visits_document(sentence.visits),
        "command": sentence.command or None,
    }


def _visits_document(visits: NextVisits) -> dict[str, Any]:
    return {
        **json_fields(visits, "leader chance among"),
        "rivals": [
            {"cell": cell, "chance": chance, "seconds": seconds} for cell, chance, seconds in visits.rivals
        ],
        "seconds": visits.seconds,
    }


def _evidence_document(each: ComparisonEvidence) -> dict[str, Any]:
    return {
        **json_fields(each, "metric=comparison.metric.name baseline contender"),
        **json_fields(each.comparison, "estimate low high verdict confidence n more_repetitions"),
    }


_FINDING_STYLES = {
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
        *(_claim_table(file.title, judged, names) for file, judged in files if is_measured(judged)),
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


def _claim_table(title: str, judged: Sequence[JudgedClaim], names: Sequence[str]) -> RenderableType:
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
    text = Text(one.finding.value, style=_FINDING_STYLES[one.finding])
    sentences = [*one.reasons, *one.notes, *([one.claim.note] if one.claim.note else [])]
    text.append(notes.marks(*sentences), style="dim")
    if one.n:
        text.append(f"\nn {one.n}", style="dim")
    return text


def _document(one: JudgedClaim, names: Sequence[str]) -> dict[str, Any]:
    return {
        **json_fields(one.claim, "id sentence"),
        "study": None if one.study is None else names[one.study],
        "finding": one.finding.value,
        "metric": one.metric or None,
        "rests_on": one.words or None,
        "kind": "ratio" if one.is_ratio else "difference",
        **json_fields(one, "estimate low high confidence n reasons notes reading=claim.note"),
        "checks": [check_words(check) for check in one.claim.check],
    }
