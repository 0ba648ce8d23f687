"""The cells of a search for the terminal, and as one document: what was measured beside what the model makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from bedplate.analysis.factors import level_text, short_name
from bedplate.analysis.search.matters import factors_that_matter
from bedplate.analysis.search.sentences import chance_words, progress_words
from bedplate.analysis.search.words import left_out_words, predicted_words, shown_first
from bedplate.analysis.wording import BASIS_MARKS, figure, ratio_figure
from bedplate.model.codec import to_json
from bedplate.model.metrics import METRICS
from bedplate.terminal.table_parts import label_name, mark_lines, plain_table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bedplate.analysis.search.searched import Searched
    from bedplate.statistics.summary import Summary

# The rest have no chance worth a line; the page and the export have all.
_SHOWN = 20
_WITHOUT = "-"


def searched_tables(found: Searched) -> list[RenderableType]:
    """The cells of the last proof, then those with the best chances, and a line on those that are left out."""
    ordered = shown_first(found)
    metric = found.metric
    table = plain_table()
    table.add_column("cell")
    for head in ("visits", metric.name, "by the model", "proved", "best"):
        table.add_column(head, justify="right")
    for cell in ordered[:_SHOWN]:
        proved = None if cell.proved is None else figure(cell.proved)
        measured = figure(cell.measured)
        table.add_row(
            label_name(cell.label),
            str(cell.visits),
            f"{measured.mean}{_doubt(cell.measured)}" if cell.measured.n else _WITHOUT,
            "\n".join(predicted_words(cell.predicted)),
            _WITHOUT if proved is None else f"{proved.mean}\n{proved.between('–')}".rstrip(),
            chance_words(cell.best) if cell.predicted is not None else _WITHOUT,
        )
    lines = [
        (
            f"{metric.name} of {' and '.join(found.record.runs)}. By the model: its median, 95 % of its draws below; it holds the cells together by their "
            "factors. Proved: fresh runs that took no part in the choice. Best: the model's chance to be the best of all."
        ),
        *(
            (
                f"{len(ordered) - _SHOWN} more cells have less chance; the page and the table `search` of an export have them.",
            )
            if len(ordered) > _SHOWN
            else ()
        ),
        *left_out_words(found),
    ]
    return [Text("\nThe search", style="bold"), table, Text("\n".join(lines))]


def _doubt(summary: Summary) -> str:
    """Behind the mean of runs that are not believed, the mark that they have in every table."""
    mark = BASIS_MARKS.get(summary.basis or "")
    return f" {mark}" if mark else ""


def searched_document(found: Searched) -> dict[str, Any]:
    """The same for a program, with every cell."""
    return {
        "best": found.record.best,
        "dataset": found.record.dataset,
        "runs": list(found.record.runs),
        "budget_s": found.budget_s,
        "spent_s": found.spent_s,
        "ending": None if found.end is None else str(found.end.ending),
        "named": [] if found.end is None else [found.id_of(number) for number in found.end.cells],
        "cells": [
            {
                "cell": cell.id,
                "label": cell.label.full,
                "visits": cell.visits,
                "believed": cell.believed,
                "measured": to_json(cell.measured),
                "proved": to_json(cell.proved),
                "predicted": to_json(cell.predicted),
                "chance_near_best": cell.near,
                "chance_best": cell.best,
                "left_out": None if cell.closed is None else cell.closed.sentence,
            }
            for cell in found.cells
        ],
    }


def modelled_effects(found: Searched) -> list[RenderableType]:
    """`bedplate effects` of a search: what each factor matters by the model."""
    title = Text(found.overview.study.facts.title, style="bold")
    matters = factors_that_matter(found)
    if not matters:
        return [title, *mark_lines(found.overview), Text(progress_words(found))]
    table = plain_table()
    for head in ("factor", "best / worst level"):
        table.add_column(head)
    for head in ("ratio", "95 % of draws"):
        table.add_column(head, justify="right")
    for each in matters:
        better, worse = (level_text(each.factor, level) for level in (each.better, each.worse))
        table.add_row(
            short_name(each.factor),
            f"{better} / {worse}",
            ratio_figure(each.ratio),
            f"{ratio_figure(each.low)}–{ratio_figure(each.high)}",
        )
    metric = METRICS[found.record.best]
    lines = (
        f"{metric.name} of {' and '.join(found.record.runs)}, how many times better the first level is: matched cells, all else alike, by the model of "
        "the search. It holds for the cells that may be named. A factor that was hardly visited has a wide interval, and no share of the variation "
        "is given: the cells were chosen."
    )
    return [title, *mark_lines(found.overview), table, Text(lines)]


def modelled_effects_document(found: Searched) -> dict[str, Any]:
    """The same for a program."""
    return {
        "study": str(found.overview.study.directory),
        "title": found.overview.study.facts.title,
        "marks": list(found.overview.marks),
        "by": "model of the search",
        "metric": found.record.best,
        "dataset": found.record.dataset,
        "runs": list(found.record.runs),
        "factors": [to_json(each) for each in factors_that_matter(found)],
    }
