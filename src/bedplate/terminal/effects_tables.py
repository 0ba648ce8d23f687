"""`bedplate effects` for the terminal, readable at 80 columns, and the same as one document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from bedplate.analysis.effects.sentences import (
    DESCRIPTIONS_ONLY,
    NO_EFFECTS,
    NO_FACTOR,
    NO_FACTOR_IN_A_CLASS,
    NO_INTERPLAY,
    NOT_POSITIVE_RUNS,
    SHARE,
    STOPPED_CELLS,
    all_else_equal,
    crossing_sentences,
    effect_notes,
    figure_words,
    interaction_sentences,
    part_words,
    share_name,
    strongest_sentence,
)
from bedplate.analysis.factors import level_text, short_name
from bedplate.analysis.wording import ratio_figure
from bedplate.model.codec import to_json
from bedplate.model.metrics import METRICS
from bedplate.model.template import filled
from bedplate.statistics.comparison import EstimateKind, left_out_words
from bedplate.statistics.estimation import REPETITIONS_MIN
from bedplate.terminal.interval_bars import Span, bar_scale, interval_bar
from bedplate.terminal.table_parts import bar, mark_lines, plain_table
from bedplate.units import format_count

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bedplate.analysis.effects.factor_effects import FactorEffects, StudyEffects
    from bedplate.model.figure import Metric
    from bedplate.statistics.effects import Effect, Effects

_BAR_COLUMNS = 15
# A pair of factors whose share may be nothing and is this small says nothing.
_SHARE_SHOWN = 0.01
_ACROSS = "`bedplate effects STUDY --across-durability` judges them all the same."


def effects_tables(found: StudyEffects) -> list[RenderableType]:
    """For each metric of each run: shares of the variation, ratios of levels, interactions in sentences."""
    title = Text(found.overview.study.facts.title, style="bold")
    shown: list[RenderableType] = [Group(title, *mark_lines(found.overview))]
    for each in found.found:
        shown += _tables(each)
    return shown


def effects_document(found: StudyEffects) -> dict[str, Any]:
    """The same as JSON, with every pair of levels and every interaction, those that are not real too."""
    return {
        "study": str(found.overview.study.directory),
        "title": found.overview.study.facts.title,
        "marks": list(found.overview.marks),
        "effects": [
            {
                "dataset": each.asked.run[0],
                "run": each.asked.run[1],
                "metric": each.asked.metric,
                "phase": each.asked.phase,
                "item": each.asked.item,
                "suspect": each.suspect,
                "unknown": each.unknown,
                "unusable": each.unusable,
                "stopped": each.stopped,
                "incomparable": list(each.incomparable),
                "strongest": strongest_sentence(each),
                "classes": dict(each.classes),
                "across_durability": each.across,
                "crossing": to_json(each.crossing),
                "sentences": list(crossing_sentences(each)),
                "parts": [
                    {
                        **to_json(part),
                        "sentences": list(interaction_sentences(part, METRICS[each.asked.metric])),
                    }
                    for part in each.parts
                ],
            }
            for each in found.found
        ],
    }


def _tables(each: FactorEffects) -> list[RenderableType]:
    metric = METRICS[each.asked.metric]
    name = f"{each.asked.run[1]}: {figure_words(each)}"
    shown: list[RenderableType] = [Text(f"\n{name}", style="bold"), Text(f"{metric.definition}", style="dim")]
    if each.incomparable:
        words = "; ".join(each.incomparable)
        return [*shown, Text(filled(NO_EFFECTS, reasons=words), style="yellow")]
    if not each.parts:
        words = NO_FACTOR_IN_A_CLASS if each.crossing else NO_FACTOR
        return [*shown, Text(words), *_crossing(each), *_left_out(each)]
    strongest = strongest_sentence(each)
    if strongest is not None:
        shown.append(Text(strongest))
    for part in each.parts:
        shown += _part(each, part, metric)
    return [*shown, *_crossing(each), *_left_out(each)]


def _crossing(each: FactorEffects) -> list[RenderableType]:
    sentences = crossing_sentences(each)
    if not sentences:
        return []
    words = sentences if each.across else (*sentences, _ACROSS)
    return [Group(Text(), *(Text(line, style="yellow") for line in words))]


def _left_out(each: FactorEffects) -> list[RenderableType]:
    unusable = filled(NOT_POSITIVE_RUNS, n=each.unusable) if each.unusable else ""
    stopped = filled(STOPPED_CELLS, n=each.stopped) if each.stopped else ""
    words = ", ".join(filter(None, (left_out_words(each.suspect, each.unknown), unusable, stopped)))
    return [Text(f"Left out: {words}.", style="dim")] if words else []


def _part(each: FactorEffects, part: Effects, metric: Metric) -> list[RenderableType]:
    where = part_words(each, part)
    size = f"{where[0].upper()}{where[1:]}: {format_count(part.cells, 'cell')}, {format_count(len(part.repetitions), 'repetition')}"
    shown: list[RenderableType] = [Text(f"\n{size}", style="bold")]
    if len(part.repetitions) < REPETITIONS_MIN:
        shown.append(Text(DESCRIPTIONS_ONLY, style="yellow"))
    if part.variation is not None and part.variation.shares:
        shown.append(_shares(part))
    if part.effects:
        shown.append(_ratios(part))
    sentences = interaction_sentences(part, metric)
    if sentences:
        shown.append(Group(Text("Interactions", style="bold"), *(Text(f"· {words}") for words in sentences)))
    elif part.interactions and len(part.repetitions) >= REPETITIONS_MIN:
        shown.append(Text(NO_INTERPLAY))
    notes = list(effect_notes(part))
    return [*shown, Group(*(Text(note, style="dim") for note in notes))] if notes else shown


def _shares(part: Effects) -> RenderableType:
    variation = part.variation
    table = plain_table()
    table.add_column("factor", min_width=12, max_width=34)
    table.add_column("\n".join(SHARE.rsplit(" ", 1)), justify="right", no_wrap=True)
    table.add_column("interval", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, width=_BAR_COLUMNS)
    shares = () if variation is None else variation.shares
    for share in sorted(shares, key=lambda share: -share.share):
        if len(share.factors) != 1 and share.share < _SHARE_SHOWN:
            continue
        bounds = (
            ""
            if share.low is None or share.high is None
            else f"{100 * share.low:.0f}–{100 * share.high:.0f} %"
        )
        table.add_row(
            share_name(share),
            f"{100 * share.share:.1f} %",
            Text(bounds, style="dim"),
            Text(bar(share.share, 1.0, cells=_BAR_COLUMNS), style="cyan"),
        )
    return table


def _ratios(part: Effects) -> RenderableType:
    """Each level beside the first of its factor; the document has every pair."""
    shown = [each for each in part.effects if each.baseline == _first(part, each.factor)]
    scale = bar_scale(EstimateKind.RATIO, map(_span, shown))
    table = plain_table()
    table.add_column("factor", min_width=10, max_width=20)
    table.add_column("level / baseline", min_width=12, max_width=24)
    table.add_column("ratio", justify="right", no_wrap=True)
    table.add_column("interval", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, width=_BAR_COLUMNS)
    before = None
    for each in shown:
        judged = each.judged
        bounds = (
            ""
            if judged.low is None or judged.high is None
            else "–".join(map(ratio_figure, (judged.low, judged.high)))
        )
        table.add_row(
            short_name(each.factor) if each.factor != before else "",
            f"{level_text(each.factor, each.level)} / {level_text(each.factor, each.baseline)}",
            Text(ratio_figure(judged.ratio), style="bold" if judged.real else ""),
            Text(bounds, style="dim"),
            Text(interval_bar(_span(each), scale, columns=_BAR_COLUMNS) if scale else "", style="cyan"),
        )
        before = each.factor
    ends = f" Bars reach from {scale.words}, │ is equality." if scale else ""
    words = f"{all_else_equal(part)}; bold where the interval leaves out 1.{ends}"
    has_intervals = any(each.judged.p_value is not None for each in shown)
    confidence = (
        f" Confidence of each interval: {100 * part.effects_confidence:.4g} %." if has_intervals else ""
    )
    return Group(table, Text(words + confidence, style="dim"))


def _first(part: Effects, factor: str) -> object:
    return next(each.baseline for each in part.effects if each.factor == factor)


def _span(each: Effect) -> Span:
    return Span(each.judged.ratio, each.judged.low, each.judged.high)
