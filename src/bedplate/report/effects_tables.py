"""`bedplate effects` for the terminal, readable at 80 columns, and the same as one document."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from bedplate.model.codec import to_json
from bedplate.model.figure import Better
from bedplate.model.metrics import METRICS
from bedplate.report.factors import level_text, short_name
from bedplate.report.interval_bars import Span, bar_scale, interval_bar
from bedplate.report.table_parts import bar, mark_lines, plain_table
from bedplate.statistics.comparison import MARGIN, Kind
from bedplate.statistics.estimation import REPETITIONS_MIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from bedplate.model.figure import Metric
    from bedplate.report.factor_effects import FactorEffects, StudyEffects
    from bedplate.statistics.effects import Effect, Effects, Interaction
    from bedplate.statistics.variation import Share

_BAR_COLUMNS = 15
# A pair of factors whose share may be nothing and is this small says nothing.
_SHARE_SHOWN = 0.01
_LITTLE = "matters little"


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
                "unusable": each.unusable,
                "incomparable": list(each.incomparable),
                "strongest": strongest_sentence(each),
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


def interaction_sentences(part: Effects, metric: Metric) -> tuple[str, ...]:
    """The strongest real interaction of every two factors, the strongest of all first."""
    real: defaultdict[tuple[str, str], list[Interaction]] = defaultdict(list)
    for each in sorted(part.interactions, key=lambda each: -abs(math.log(each.judged.ratio))):
        if each.judged.real:
            real[each.factor, each.by].append(each)
    return tuple(_interaction_sentence(found[0], metric, more=len(found) - 1) for found in real.values())


def strongest_sentence(each: FactorEffects) -> str | None:
    """Which factor has the largest share of the variation between cells; None where no share has an interval."""
    part = each.parts[0] if each.parts else None
    if part is None or part.variation is None:
        return None
    judged = [share for share in part.variation.shares if share.factors and share.low is not None]
    if not judged:
        return None
    what = f"of the variation of {figure_words(each)} between {part.variation.cells} cells"
    largest = max(judged, key=lambda share: share.share)
    if largest.low is None or largest.high is None or largest.low <= 0:
        return f"No factor can be told to have a share {what}."
    names = " and ".join(map(short_name, largest.factors))
    whose = f"The factor {names} has" if len(largest.factors) == 1 else f"The factors {names} together have"
    return (
        f"{whose} the largest share {what}: {100 * largest.share:.0f} % "
        f"({100 * largest.low:.0f}–{100 * largest.high:.0f} %)."
    )


def figure_words(each: FactorEffects) -> str:
    """What the effects are on: `tps`; of a part of a run, with its name before it."""
    return f"{each.asked.part} {each.asked.metric}" if each.asked.part else each.asked.metric


def _tables(each: FactorEffects) -> list[RenderableType]:
    metric = METRICS[each.asked.metric]
    name = f"{each.asked.run[1]}: {figure_words(each)}"
    shown: list[RenderableType] = [Text(f"\n{name}", style="bold"), Text(f"{metric.definition}", style="dim")]
    if each.incomparable:
        words = "; ".join(each.incomparable)
        return [*shown, Text(f"No effects: the cells are not comparable ({words}).", style="yellow")]
    if not each.parts:
        return [*shown, Text("No factor varies over cells that have a figure."), *_left_out(each)]
    strongest = strongest_sentence(each)
    if strongest is not None:
        shown.append(Text(strongest))
    for part in each.parts:
        shown += _part(part, metric)
    return [*shown, *_left_out(each)]


def _left_out(each: FactorEffects) -> list[RenderableType]:
    if not (each.suspect or each.unusable):
        return []
    words = f"Left out: {each.suspect} suspect runs, {each.unusable} without a positive figure."
    return [Text(words, style="dim")]


def _part(part: Effects, metric: Metric) -> list[RenderableType]:
    where = (
        "Over all cells" if part.within is None else f"Within {short_name(part.within[0])} {part.within[1]}"
    )
    count = len(part.repetitions)
    size = f"{where}: {part.cells} cells, {count} repetition{'' if count == 1 else 's'}"
    left_out = f"; left out for want of one: {part.left_out}" if part.left_out else ""
    shown: list[RenderableType] = [Text(f"\n{size}{left_out}", style="bold")]
    if len(part.repetitions) < REPETITIONS_MIN:
        shown.append(
            Text(f"Descriptions only: intervals need {REPETITIONS_MIN} repetitions.", style="yellow")
        )
    if part.variation is not None:
        shown.append(_shares(part))
    if part.effects:
        shown.append(_ratios(part))
    sentences = interaction_sentences(part, metric)
    if sentences:
        shown.append(Group(Text("Interactions", style="bold"), *(Text(f"· {words}") for words in sentences)))
    elif part.interactions and len(part.repetitions) >= REPETITIONS_MIN:
        shown.append(Text("No factor can be told to change what another one does."))
    notes = list(effect_notes(part))
    return [*shown, Group(*(Text(note, style="dim") for note in notes))] if notes else shown


def _shares(part: Effects) -> RenderableType:
    variation = part.variation
    table = plain_table()
    table.add_column("factor", overflow="fold", min_width=12, max_width=34)
    table.add_column("share of the\nvariation", justify="right", no_wrap=True)
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


def share_name(share: Share) -> str:
    """The factors of a share: `barrier`, `barrier × db block`."""
    if not share.factors:
        return "three or more together"
    return " × ".join(map(short_name, share.factors))


def _ratios(part: Effects) -> RenderableType:
    """Each level beside the first of its factor; the document has every pair."""
    shown = [each for each in part.effects if each.baseline == _first(part, each.factor)]
    scale = bar_scale(Kind.RATIO, map(_span, shown))
    table = plain_table()
    table.add_column("factor", overflow="fold", min_width=10, max_width=20)
    table.add_column("level / baseline", overflow="fold", min_width=12, max_width=24)
    table.add_column("ratio", justify="right", no_wrap=True)
    table.add_column("interval", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, width=_BAR_COLUMNS)
    before = None
    for each in shown:
        judged = each.judged
        bounds = "" if judged.low is None or judged.high is None else f"{judged.low:.3f}–{judged.high:.3f}"
        table.add_row(
            short_name(each.factor) if each.factor != before else "",
            f"{level_text(each.factor, each.level)} / {level_text(each.factor, each.baseline)}",
            Text(f"{judged.ratio:.3f}", style="bold" if judged.real else ""),
            Text(bounds, style="dim"),
            Text(interval_bar(_span(each), scale, columns=_BAR_COLUMNS) if scale else "", style="cyan"),
        )
        before = each.factor
    ends = f" Bars reach from {scale.words}, │ is equality." if scale else ""
    words = f"All else equal, mean over matched cells; bold where the interval leaves out 1.{ends}"
    has_intervals = any(each.judged.p_value is not None for each in shown)
    confidence = (
        f" Confidence of each interval: {100 * part.effects_confidence:.4g} %." if has_intervals else ""
    )
    return Group(table, Text(words + confidence, style="dim"))


def _first(part: Effects, factor: str) -> object:
    return next(each.baseline for each in part.effects if each.factor == factor)


def _span(each: Effect) -> Span:
    return Span(each.judged.ratio, each.judged.low, each.judged.high)


def _interaction_sentence(each: Interaction, metric: Metric, *, more: int) -> str:
    level, baseline = level_text(each.factor, each.level), level_text(each.factor, each.baseline)
    at, against = level_text(each.by, each.at), level_text(each.by, each.against)
    judged = each.judged
    factor, by = short_name(each.factor), short_name(each.by)
    sides = [_does(ratio, metric) for ratio in (each.ratio_at, each.ratio_against)]
    first, second = (
        f"where {by} is {at} ({each.ratio_at:.2f})",
        f"where it is {against} ({each.ratio_against:.2f})",
    )
    if sides[0] != sides[1]:
        does = f"{sides[0]} {first}, {sides[1]} {second}"
    elif sides[0] == _LITTLE:
        does = f"{_LITTLE} {first} and {second}"
    elif abs(math.log(each.ratio_at)) < abs(math.log(each.ratio_against)):
        does = f"{sides[0]} less {first} than {second}"
    else:
        does = f"{sides[0]} more {first} than {second}"
    rest = f" {more} more of these two." if more else ""
    return (
        f"{factor} {level} beside {baseline} {does}: the first ratio is {judged.ratio:.2f} times the second "
        f"({_bound(judged.low)}–{_bound(judged.high)}).{rest}"
    )


def _bound(bound: float | None) -> str:
    return "…" if bound is None else f"{bound:.2f}"


def _does(ratio: float, metric: Metric) -> str:
    """What a ratio of two levels means to somebody who runs a database; within the margin it matters little."""
    if 1 / (1 + MARGIN) <= ratio <= 1 + MARGIN:
        return _LITTLE
    if metric.better is Better.NEITHER:
        return "raises it" if ratio > 1 else "lowers it"
    return "helps" if (ratio > 1) == (metric.better is Better.HIGHER) else "hurts"


def effect_notes(part: Effects) -> Sequence[str]:
    """What is to be known beside the effects of one part of the design."""
    notes = []
    if part.variation is not None:
        notes.append(
            f"Shares are of the variation between the {part.variation.cells} cells of a complete part; a run scatters "
            f"by {100 * part.variation.scatter:.1f} % (median), which is in no share."
        )
        if part.variation.left_out:
            words = ", ".join(
                f"{short_name(n)} {level_text(n, level)}" for n, level in part.variation.left_out
            )
            notes.append(f"Not in that part: {words}.")
    averaged = sorted({name for each in part.effects for name in each.averaged_over})
    if averaged:
        notes.append(f"Averaged over where only one level has it: {', '.join(map(short_name, averaged))}.")
    for repeating, factor in part.aliases:
        notes.append(
            f"{short_name(repeating)} changes with {short_name(factor)} in every cell: one effect, not two."
        )
    if part.unmatched:
        notes.append(f"Without matched cells: {', '.join(map(short_name, part.unmatched))}.")
    return notes
