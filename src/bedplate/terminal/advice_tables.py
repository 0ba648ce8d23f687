"""`bedplate show STUDY --advice` for the terminal, readable at 80 columns, and the same as one document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from bedplate.analysis.advice import (
    Advised,
    ComparisonEvidence,
    Contest,
    Limit,
    NextVisits,
    Objective,
    RankedCell,
    Standing,
    cell_words,
    next_visits,
)
from bedplate.analysis.answer import (
    NO_BREAK,
    Headline,
    RunAnswer,
    beside_words,
    contest_notes,
    fitted,
    headline_lines,
    relative_words,
    run_lines,
    short_names,
    standing_words,
    table_rows,
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
from bedplate.analysis.mail import measured_line
from bedplate.analysis.wording import capital, confidence_words, device_sectors, figure, unit_words
from bedplate.model.codec import json_fields
from bedplate.model.figure import Scale
from bedplate.statistics.false_discovery import RATE
from bedplate.statistics.summary import Summary
from bedplate.terminal.table_parts import Notes, mark_lines, plain_table

_ROWS = 12

_STYLES: Mapping[Standing | None, str] = {
    Standing.LEADING: "bold green",
    Standing.OPEN: "yellow",
    Standing.RULED_OUT: "dim",
}

_LEGEND = (
    "Below a figure is its 95 % interval. × is the ratio of a cell to {base}, over the repetitions that both have, and decides: not "
    "distinguished, where its interval has 1 in it; shown worse, where all of it is worse than 1. A level is worse over all pairs of cells "
    "that differ in it alone."
)

_NO_LEGEND = "Means of few repetitions, with an interval or else their range: what was found, and no verdict."


def advice_tables(headline: Headline) -> list[RenderableType]:
    """The answer, then for each run and class its cells; of a run that the answer only mentions all that is said of it stands above."""
    advice, names = headline.advice, short_names(headline.found)
    shown: list[RenderableType] = [
        Text(headline.found.study.facts.title, style="bold"),
        Text(measured_line(headline.found)),
        Text("\n".join(["", *fitted(headline_lines(headline), most=None)])),
    ]
    contests = headline.contests
    for contest in contests:
        answer = headline.answer_of(contest)
        lines = () if answer is None or answer in headline.answers[:1] else run_lines(answer, names)
        shown.append(_table(advice, contest, answer, fitted(tuple(lines), most=None), names))
    if contests:
        bases = dict.fromkeys(relative_words(headline.answer_of(each)) for each in contests if each.can_judge)
        legend = _LEGEND.format(base=" or ".join(bases)) if bases else _NO_LEGEND
        objectives = (objective for each in contests for objective in each.objectives)
        definitions = dict.fromkeys(f"{each.head}: {each.metric.definition}" for each in objectives)
        shown.append(Text(f"\n{legend}\n{'; '.join(definitions)}.", style="dim"))
    return shown


def advice_document(headline: Headline) -> dict[str, Any]:
    """The same as JSON. Bounds that are open and figures that are absent are null."""
    advice, overview = headline.advice, headline.found
    return {
        "study": str(overview.study.directory),
        "title": overview.study.facts.title,
        "marks": list(overview.marks),
        "cache": advice.cache,
        "device_sector_bytes": device_sectors(overview),
        "false_discovery_rate": RATE,
        "verdicts": advice.verdicts,
        "judged": advice.judged,
        "answer": _answer_document(headline),
        "durability": {
            cell: {"label": cell_words(overview, cell), "class": name}
            for cell, name in advice.classes.items()
        },
        "contests": [
            _contest_document(advice, contest, table_rows(advice, contest, headline.answer_of(contest))[0])
            for contest in headline.contests
        ],
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


def _table(
    advice: Advised,
    contest: Contest,
    answer: RunAnswer | None,
    lines: Sequence[str],
    names: Mapping[str, str],
) -> RenderableType:
    """The cells below the lines; of many the first, and every one that the answer names."""
    table, (rows, left) = plain_table(), table_rows(advice, contest, answer, _ROWS)
    objectives, alike = _telling(advice, contest)
    table.add_column("cell", min_width=12, max_width=26)
    for objective in objectives:
        unit = unit_words(objective.metric)
        words = objective.head.replace(" ", "\n", 1)
        table.add_column(f"{words}\n{unit}" if unit else words, justify="right")
    table.add_column(
        _beside_head(contest, answer),
        max_width=24,
        is_there=any(each.standing or each.why_not for each in rows),
    )
    for ranked_cell in rows:
        figures = [
            _figure(advice.summary(contest, objective, ranked_cell.cell), with_bounds=place == 0)
            for place, objective in enumerate(objectives)
        ]
        table.add_row(
            Text(names[ranked_cell.cell]),
            *figures,
            _standing(ranked_cell, answer, names),
        )
    title = Text(f"\n{contest.run[1]}: {contest.durability} with a {advice.cache_words}", style="bold")
    more = f"{left} more {'cell is' if left == 1 else 'cells are'} in the document (--json)." if left else ""
    return Group(
        title,
        *map(Text, lines),
        table,
        *map(Text, filter(None, (more, *alike, *contest_notes(advice, contest, names, answer)))),
    )


def _beside_head(contest: Contest, answer: RunAnswer | None) -> str:
    """With the confidence of its intervals, which all rows share."""
    if not contest.can_judge:
        return ""
    return f"× of {relative_words(answer)}\n({confidence_words([contest.confidences[0].difference])})"


def _telling(advice: Advised, contest: Contest) -> tuple[list[Objective], list[str]]:
    """The figures that have a column, and a sentence for each that is the same in every cell."""
    cells = (*contest.cells, *contest.left_out)
    columns, alike = [*contest.objectives[:1]], []
    for objective in contest.objectives[1:]:
        summaries = [advice.summary(contest, objective, cell) for cell in cells]
        # The digits of equal means may differ, as they follow the scatter.
        means = {f"{summary.centre:.3g}" if summary.centre is not None else "" for summary in summaries}
        if len(means) > 1 or len(cells) < 2:
            columns.append(objective)
        else:
            alike.append(
                f"{capital(objective.head)} is {figure(summaries[0]).mean} {unit_words(objective.metric)} in every cell.".replace(
                    "  ", " "
                )
            )
    return columns, alike


def _standing(ranked_cell: RankedCell, answer: RunAnswer | None, names: Mapping[str, str]) -> Text:
    text = Text(standing_words(ranked_cell, answer, names), style=_STYLES.get(ranked_cell.standing, ""))
    words = ranked_cell.why_not or beside_words(ranked_cell, names)
    return text.append(f"\n{words}", style="dim") if words else text


def _figure(summary: Summary, *, with_bounds: bool) -> Text:
    words = figure(summary)
    text = Text(words.mean)
    if with_bounds and words.low:
        text.append(f"\n{words.between('–')}", style="dim")
    return text


def _contest_document(
    advice: Advised, contest: Contest, ranked_cells: Sequence[RankedCell]
) -> dict[str, Any]:
    ahead = dict(zip(contest.cells, contest.ahead, strict=True))
    visits = next_visits(advice, contest)
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
            ranked_cell.cell
            for ranked_cell in ranked_cells
            if ranked_cell.standing in (Standing.LEADING, Standing.OPEN)
        ],
        "cells": [
            {
                "cell": ranked_cell.cell,
                "label": cell_words(advice.overview, ranked_cell.cell),
                "standing": None if ranked_cell.standing is None else ranked_cell.standing.value,
                "not_judged": ranked_cell.why_not or None,
                "limit": None if ranked_cell.limit is None else _limit_document(ranked_cell.limit),
                "beside": None if ranked_cell.evidence is None else _evidence_document(ranked_cell.evidence),
                "behind": [contest.cells[other] for other in ahead.get(ranked_cell.cell, ())],
                "same_in_force_as": list(contest.same_as.get(ranked_cell.cell, ())),
                "figures": {
                    objective.metric.name: json_fields(
                        advice.summary(contest, objective, ranked_cell.cell),
                        "mean=centre low high minimum maximum n suspect unknown",
                    )
                    for objective in contest.objectives
                },
            }
            for ranked_cell in ranked_cells
        ],
        "incomparable_pairs": contest.incomparable,
        "chance": _visits_document(visits) if isinstance(visits, NextVisits) else None,
        "no_chance": visits if isinstance(visits, str) else None,
    }


def _limit_document(limit: Limit) -> dict[str, Any]:
    return {**json_fields(limit, "share holds"), **_evidence_document(limit.evidence)}


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
