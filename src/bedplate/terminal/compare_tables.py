"""`bedplate compare` for the terminal, readable at 80 columns, and the same as one document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from bedplate.analysis.cell_filter import Candidate
from bedplate.analysis.comparison import (
    Compared,
    ComparedMetric,
    ComparisonAnswer,
    study_names,
)
from bedplate.analysis.condition import Condition, ConditionSubject, Truth, answer_truths, exit_status, truth
from bedplate.analysis.effects import (
    DESCRIPTIONS_ONLY,
    NO_EFFECTS,
    NO_FACTOR,
    NO_FACTOR_IN_A_CLASS,
    NO_INTERPLAY,
    RUNS_WITHOUT_FIGURE,
    SHARE,
    STOPPED_CELLS,
    FactorEffects,
    StudyEffects,
    all_else_equal,
    crossing_sentences,
    effect_notes,
    figure_words,
    interaction_sentences,
    part_words,
    share_name,
    strongest_sentence,
)
from bedplate.analysis.labels import level_text, short_name
from bedplate.analysis.overview import BAD_CUTS, BAD_SHARE, CellFacts, Trouble
from bedplate.analysis.pooled import Dependence, PooledPairs, closing_pooled_sentences, pooled_lines
from bedplate.analysis.wording import (
    CAN_TELL,
    IDENTICAL,
    LEFT_OUT,
    NO_MORE_THAN_ITS_SOURCE,
    NONE_CAN_TELL,
    SIDES,
    STOPPED,
    VALUES,
    WRONG_ON_AVERAGE,
    block_words,
    confidence_words,
    ends_words,
    figure,
    number_words,
    ratio_figure,
    unit_words,
    verdict_word,
)
from bedplate.installation import COMMAND
from bedplate.model.codec import json_fields
from bedplate.model.course import filled, first_of
from bedplate.model.figure import Better, Metric, Scale
from bedplate.model.metrics import METRICS
from bedplate.statistics.comparison import (
    CHANCE,
    MARGIN,
    REPETITIONS_MAX,
    EstimateKind,
    Verdict,
    left_out_words,
)
from bedplate.statistics.estimation import REPETITIONS_MIN
from bedplate.statistics.false_discovery import RATE
from bedplate.terminal.table_parts import Notes, Span, bar, bar_scale, interval_bar, mark_lines, plain_table
from bedplate.units import format_count, percent

if TYPE_CHECKING:
    from bedplate.statistics.comparison import Comparison, Counted
    from bedplate.statistics.effects import Effect, Effects, Interaction

_COMPARISON_BAR_COLUMNS = 13

_ALONE_SHOWN = 5

# Of the repetitions that both sides have: the ratio is that of the two.
_MEAN = "mean"

_SHARES = (Scale.PROPORTION, Scale.SHARE)

_STYLES = {
    Verdict.FASTER: "green",
    Verdict.SLOWER: "red",
    Verdict.HIGHER: "cyan",
    Verdict.LOWER: "cyan",
    Verdict.SAME: "bold",
    Verdict.CANNOT_TELL: "dim",
}


def compare_tables(found: ComparisonAnswer, condition: Condition | None = None) -> list[RenderableType]:
    """The pooled lines, a table for each run and metric, what holds for all. PlanError where a condition does not fit."""
    shown: list[RenderableType] = [_head(found), *_pooled(found)]
    for asked in dict.fromkeys((each.asked.run, each.asked.metric) for each in found.compared):
        rows = [each for each in found.compared if (each.asked.run, each.asked.metric) == asked]
        shown.append(_table(found, rows))
    shown.append(Group(Text(), *(Text(line) for line in closing_sentences(found))))
    if condition is not None:
        shown.append(Text(condition_sentence(found, condition), style="bold"))
    return shown


def compare_document(found: ComparisonAnswer, condition: Condition | None = None) -> dict[str, Any]:
    """The same as JSON. Bounds that are open and figures that are absent are null."""
    names = study_names(found.overviews)
    document: dict[str, Any] = {
        "studies": [
            {"study": name, "title": each.study.facts.title, "marks": list(each.marks)}
            for name, each in zip(names, found.overviews, strict=True)
        ],
        **json_fields(found.question, "baseline contender margin"),
        "false_discovery_rate": RATE,
        "verdicts": found.verdicts,
        "judged": len(found.judged),
        "differ_as_well": list(found.matched.one_sided),
        "without_a_partner": [_side_document(found, cell) for cell in found.matched.alone],
        "across_durability": found.question.across_durability,
        "pooled": [_pooled_document(found, each, words) for each, words in pooled_lines(found)],
        "comparisons": [_compared_document(found, each, condition) for each in found.compared],
        "sentences": list(closing_sentences(found)),
    }
    if condition is not None:
        document["condition"] = {
            **json_fields(condition, "text word share"),
            "exit_status": exit_status(answer_truths(condition, found)),
            "sentence": condition_sentence(found, condition),
        }
    return document


def closing_sentences(found: ComparisonAnswer) -> tuple[str, ...]:
    """What is to be known of all comparisons together."""
    judged, m = found.verdicts, len(found.judged)
    sentences = []
    if m:
        told = filled(CAN_TELL, told=judged, n=m, counts="")
        wrong = filled(WRONG_ON_AVERAGE, confidence=confidence_words(found.confidences))
        sentences.append(f"{told} {wrong}")
    else:
        sentences.append(_without_interval(found))
    waiting = [each.comparison for each in found.judged if each.comparison.verdict is Verdict.CANNOT_TELL]
    more = [c.more_repetitions for c in waiting if c.more_repetitions is not None]
    if more:
        sentences.append(
            f"+n: so many more repetitions would tell with a chance of {percent(CHANCE)}, were the ratio found the true "
            f"one; none is given beyond {REPETITIONS_MAX} in all."
        )
    elif any(c.pooled is None for c in waiting):
        sentences.append(f"No number of repetitions up to {REPETITIONS_MAX} promises to tell the others.")
    if any(c.pooled is not None for c in waiting):
        sentences.append("Of shares of cuts more cuts tell smaller differences: `points` in the plan.")
    suspect = sum(each.comparison.suspect for each in found.compared)
    if suspect:
        runs = "value of a suspect run is" if suspect == 1 else "values of suspect runs are"
        sentences.append(
            f"{suspect} {runs} no part of these verdicts: a run that a rule speaks against is left out."
        )
    unknown = sum(each.comparison.unknown for each in found.compared)
    if unknown:
        verb = "is" if unknown == 1 else "are"
        sentences.append(
            f"{unknown} value{'' if unknown == 1 else 's'} of runs of unknown validity {verb} no part of these verdicts: "
            "evidence is missing; `bedplate show` says which."
        )
    if any(not each.pair.is_within_a_study for each in found.judged):
        sentences.append(
            "Two studies have no repetition in common: what drifted between them is in no interval and in every ratio."
        )
    sentences += _health_sentences(found)
    if found.matched.one_sided:
        factors = ", ".join(short_name(name) for name in found.matched.one_sided)
        sentences.append(f"The pairs differ in {factors} as well, which only one side has.")
    if found.matched.alone:
        sentences.append(_alone_sentence(found.matched.alone))
    return tuple(sentences)


def _without_interval(found: ComparisonAnswer) -> str:
    """That nothing can be told, and where repetitions are what is missing how to get them."""
    words = NONE_CAN_TELL
    candidates = [each for each in found.compared if not each.identical and not each.incomparable]
    most = max((each.comparison.n for each in candidates), default=REPETITIONS_MIN)
    if most >= REPETITIONS_MIN:
        return words
    if all(each.asked.metric == BAD_CUTS for each in candidates):
        return f"{words} A share of cuts has an interval from one recording on: `--metric {BAD_SHARE}`."
    study = found.overviews[0].study
    lacking = f"{words} A verdict needs {REPETITIONS_MIN} repetitions and there {'is' if most == 1 else 'are'} {most}"
    if study.facts.is_imported:
        return f"{lacking}: {NO_MORE_THAN_ITS_SOURCE}"
    is_due = any(m.trouble is Trouble.NOT_RUN for m in found.overviews[0].measurements)
    if study.schedule.repetitions >= REPETITIONS_MIN and not is_due:
        # More of them would lack what these lack: the notes say what.
        return f"{lacking} in which both sides have a trusted value."
    sudo = "sudo " if study.facts.executor == "local" else ""
    return f"{lacking}: `{sudo}{COMMAND} run {study.directory} --repetitions 5` adds them."


def _source(found: ComparisonAnswer, each: Compared) -> str:
    """What the figure is one of: the run, and its dataset where others have such a run; of the visit's own the dataset."""
    owner, asked = found.overviews[each.pair.contender.study], each.asked
    words = owner.dataset_words(asked.run[0])
    if asked.of_visit:
        return words
    several = sum(name == asked.run[1] for _, name in owner.runs) > 1
    return f"{asked.run[1]} ({words})" if several else asked.run[1]


def condition_sentence(found: ComparisonAnswer, condition: Condition) -> str:
    """Of how many comparisons, or contenders, the condition holds, and the exit code that follows."""
    truths = answer_truths(condition, found)
    counts = ", ".join(f"{word.value} {truths.count(word)}" for word in Truth if word in truths)
    code = f"exit code {exit_status(truths)}"
    if condition.subject is not ConditionSubject.SIDES:
        return f"{' '.join(condition.text.split())}: {counts} of {format_count(len(truths), 'contender')}; {code}"
    amount = f"{100 * condition.share:g} %"
    if all(each.comparison.metric.scale in _SHARES for each in found.compared):
        # Of a share the condition means points, as the margin does: it may be zero, and has no ratio.
        amount = f"{100 * condition.share:g} points"
    metric = f"{condition.metric} " if condition.metric else ""
    return f"{metric}{condition.word} {amount}: {counts} of {len(truths)}; {code}"


def verdict_words(found: Compared) -> str:
    """The verdict, `same within 5 %`, or why there is none."""
    if found.identical:
        return "identical"
    if found.incomparable:
        return "no verdict"
    return verdict_word(found.comparison)


def _head(found: ComparisonAnswer) -> RenderableType:
    titles = dict.fromkeys(each.study.facts.title for each in found.overviews)
    marks = {line.plain: line for each in found.overviews for line in mark_lines(each)}
    return Group(*(Text(title, style="bold") for title in titles), *marks.values())


def _pooled(found: ComparisonAnswer) -> list[RenderableType]:
    """What all matched pairs say together, each figure under its name where there are several."""
    lines = pooled_lines(found)
    several = len({each.asked for each in found.compared}) > 1
    shown: list[RenderableType] = []
    asked = None
    for each, (line, *others) in lines:
        head = []
        if several and each.asked != asked:
            head = [Text(f"\n{_source(found, each.pairs[0])}: {each.asked.metric}", style="bold")]
            asked = each.asked
        style = _STYLES[each.comparison.verdict]
        shown.append(
            Group(*head, Text(line, style=style), *(Text(f"  {words}", style="dim") for words in others))
        )
    closing = closing_pooled_sentences(found, [each for each, _ in lines])
    return [*shown, *(Text(words, style="dim") for words in closing)]


def _table(found: ComparisonAnswer, rows: Sequence[Compared]) -> RenderableType:
    notes = Notes()
    metric = METRICS[rows[0].asked.metric]
    scale = bar_scale(rows[0].comparison.kind, (_comparison_span(each.comparison) for each in rows))
    ratio = "contender /\nbaseline" if metric.scale is Scale.RATIO else "contender -\nbaseline"
    table = plain_table()
    table.add_column(SIDES.replace(" ", "\n", 1), min_width=18, max_width=27)
    table.add_column(
        f"{_MEAN},\n{unit}" if (unit := unit_words(metric)) else _MEAN, justify="right", no_wrap=True
    )
    table.add_column(ratio, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, width=_COMPARISON_BAR_COLUMNS)
    table.add_column("verdict", min_width=11, max_width=16)
    for each in rows:
        table.add_row(
            _sides(found, each),
            Text.assemble(figure(each.figures[1]).mean, "\n", (figure(each.figures[0]).mean, "dim")),
            _estimate(each.comparison),
            Text(
                interval_bar(_comparison_span(each.comparison), scale, columns=_COMPARISON_BAR_COLUMNS)
                if scale
                else "",
                style="cyan",
            ),
            _verdict(each, notes),
        )
    title = Text(f"\n{_source(found, rows[0])}: {metric.name}", style="bold")
    better = () if metric.better is Better.NEITHER else (metric.better.words,)
    direction = ", ".join((f"{metric.name}: {metric.definition}", *better))
    ends = f" Bars reach from {scale.words}, │ is equality." if scale else ""
    legend = f"{_bounds_words(rows)}{ends}\n{direction}."
    return Group(title, table, Text(legend, style="dim"), *notes.lines())


def _bounds_words(rows: Sequence[Compared]) -> str:
    """What stands below the figures of a table: intervals, ranges that are none, or both."""
    what = "ratio" if rows[0].comparison.metric.scale is Scale.RATIO else "difference"
    has_interval = any(_has_interval(each.comparison) for each in rows)
    has_range = any(
        not _has_interval(each.comparison) and each.comparison.n > 1 and each.comparison.smallest is not None
        for each in rows
    )
    words = [
        f"Below each {what} its interval." if has_interval else "",
        f"In brackets the smallest and the largest {what} of one repetition, which is no interval."
        if has_range
        else "",
    ]
    return " ".join(filter(None, words)) or f"No {what} has an interval."


def _has_interval(comparison: Comparison) -> bool:
    return comparison.low is not None or comparison.high is not None


def _sides(found: ComparisonAnswer, each: Compared) -> Text:
    sides = (each.pair.contender, each.pair.baseline)
    contender, baseline = (_cell_words(found, side) for side in sides)
    names = [study_names(found.overviews)[side.study] for side in sides]
    part = f"{each.asked.part}: " if each.asked.part else ""
    text = Text(f"{part}{contender}")
    if contender == baseline and names[0] != names[1]:
        below = f"{names[0]} beside {names[1]}"
    elif len(found.overviews) > 1:
        text = Text(f"{part}{names[0]}: {contender}")
        below = f"{names[1]}: {baseline}"
    else:
        below = baseline
    text.append(f"\n{below}", style="dim")
    return text


def _cell_words(found: ComparisonAnswer, side: Candidate) -> str:
    facts = _facts(found, side)
    return f"{facts.label.panel} {block_words(facts.label).replace(' · ', ' ')}"


def _facts(found: ComparisonAnswer, side: Candidate) -> CellFacts:
    return found.overviews[side.study].cells[side.cell]


def _comparison_span(comparison: Comparison) -> Span:
    return Span(comparison.estimate, comparison.low, comparison.high)


def _estimate(comparison: Comparison) -> Text:
    text = Text(_figure(comparison, comparison.estimate))
    if _has_interval(comparison):
        between = "–" if comparison.kind is EstimateKind.RATIO else " to "
        bounds = ends_words(
            comparison.kind, comparison.low, comparison.high, partial(_figure, comparison), between
        )
        text.append(f"\n{bounds}", style="dim")
    elif comparison.n > 1 and comparison.smallest is not None:
        ends = [_figure(comparison, end) for end in (comparison.smallest, comparison.largest)]
        text.append(f"\n({(VALUES if comparison.n == 2 else ' to ').join(ends)})", style="dim")
    return text


def _figure(comparison: Comparison, value: float | None) -> str:
    if value is None:
        return "–"
    if comparison.kind is EstimateKind.DIFFERENCE:
        return (
            "0"
            if value == 0
            else f"{value:+.3g}"
            if abs(value) < 999.5
            else f"{'+' * (value > 0)}{number_words(value)}"
        )
    return ratio_figure(value)


def _verdict(each: Compared, notes: Notes) -> Text:
    comparison = each.comparison
    words = verdict_words(each)
    plain = each.identical or each.incomparable
    text = Text(words, style="dim" if plain else _STYLES[comparison.verdict])
    text.append(notes.marks(*_footnotes(each)), style="dim")
    pooled = comparison.pooled
    counts = (
        f"n {comparison.n}" if pooled is None else "\n".join(map(_of, (pooled.contender, pooled.baseline)))
    )
    if comparison.more_repetitions is not None:
        counts += f", +{comparison.more_repetitions}"
    text.append(f"\n{counts}", style="dim")
    return text


def _of(counted: Counted) -> str:
    return f"{counted[0]} of {counted[1]}"


def _footnotes(each: Compared) -> list[str]:
    comparison = each.comparison
    found = []
    if each.identical:
        found.append(IDENTICAL)
    if each.incomparable:
        found.append(f"side by side, not comparable: {'; '.join(each.incomparable)}")
    elif not each.identical:
        found += comparison.reasons
    words = left_out_words(comparison.suspect, comparison.unknown)
    if words:
        found.append(filled(LEFT_OUT, runs=words))
    if comparison.censored:
        found.append(filled(STOPPED, n=comparison.censored))
    return [*found, *each.notes]


def _health_sentences(found: ComparisonAnswer) -> list[str]:
    """Of the studies and runs that are compared. Suspect runs are told with the verdicts that they are no part of."""
    names = study_names(found.overviews)
    runs = {each.asked.run for each in found.compared}
    used = {side.study for each in found.compared for side in (each.pair.baseline, each.pair.contender)}
    return [
        f"{names[number]}: {words}" if len(names) > 1 else words
        for number in sorted(used)
        for words in replace(found.overviews[number].health, suspect=0, unknown=0).sentences(runs)
    ]


def _alone_sentence(alone: Sequence[Candidate]) -> str:
    labels = first_of([cell.labels[1] for cell in alone], _ALONE_SHOWN, "; ")
    return f"Without a partner: {labels}. Cells are paired that differ only in what the filters name."


def _compared_document(
    found: ComparisonAnswer, each: Compared, condition: Condition | None
) -> dict[str, Any]:
    comparison = each.comparison
    asked: ComparedMetric = each.asked
    return {
        "baseline": _side_document(found, each.pair.baseline),
        "contender": _side_document(found, each.pair.contender),
        "dataset": asked.run[0],
        # A visit's own figure is of none of its runs.
        "run": None if asked.of_visit else asked.run[1],
        **json_fields(
            each, "metric=asked.metric unit=comparison.metric.unit phase=asked.phase item=asked.item"
        ),
        "kind": comparison.kind.value,
        "baseline_mean": each.figures[0].centre,
        "contender_mean": each.figures[1].centre,
        **json_fields(comparison, "estimate low high confidence confidence_difference=difference_confidence"),
        "verdict": None if each.incomparable or each.identical else comparison.verdict.value,
        "words": verdict_words(each),
        **json_fields(each, "identical incomparable reasons=comparison.reasons notes n=comparison.n"),
        "counted": None
        if comparison.pooled is None
        else {
            side: {"bad": counts[0], "cuts": counts[1]}
            for side, counts in (
                ("baseline", comparison.pooled.baseline),
                ("contender", comparison.pooled.contender),
            )
        },
        **json_fields(comparison, "paired more_repetitions suspect unknown censored"),
        **({} if condition is None else {"condition": truth(condition, each).value}),
    }


def _pooled_document(found: ComparisonAnswer, each: PooledPairs, sentences: Sequence[str]) -> dict[str, Any]:
    comparison = each.comparison
    return {
        "dataset": each.asked.run[0],
        "run": None if each.asked.of_visit else each.asked.run[1],
        **json_fields(
            each,
            "metric=asked.metric unit=comparison.metric.unit phase=asked.phase item=asked.item kind=comparison.kind",
        ),
        **{side: dict(getattr(each, side)) for side in ("baseline", "contender", "beside")},
        "classes": [{"classes": list(names), "pairs": n} for names, n in each.classes],
        "pairs": [
            {side: _side_document(found, cell)["cell"] for side, cell in _sides_of_pair(one)}
            for one in each.pairs
        ],
        "left_out": len(each.left_out),
        **json_fields(comparison, "estimate low high confidence"),
        "verdict": None if comparison.basis is None else comparison.verdict.value,
        **json_fields(each, "n=comparison.n pairs_disagree=disagree p_disagreement"),
        "depends_on": [_dependence_document(one) for one in each.dependences],
        "sentences": list(sentences),
    }


def _dependence_document(each: Dependence) -> dict[str, Any]:
    return {
        **json_fields(each, "factor real"),
        "levels": [{"level": level, "estimate": ratio, "pairs": n} for level, ratio, n in each.levels],
        "strongest": None
        if each.strongest is None
        else {
            **json_fields(
                each.strongest,
                "level baseline at against estimate=comparison.estimate low=comparison.low high=comparison.high "
                "p_value=comparison.p_difference",
            ),
            "real": each.real,
        },
    }


def _sides_of_pair(each: Compared) -> tuple[tuple[str, Candidate], tuple[str, Candidate]]:
    return ("baseline", each.pair.baseline), ("contender", each.pair.contender)


def _side_document(found: ComparisonAnswer, side: Candidate) -> dict[str, Any]:
    return {"study": study_names(found.overviews)[side.study], "cell": side.cell, "label": side.labels[1]}


_EFFECT_BAR_COLUMNS = 15

# A pair of factors whose share may be nothing and is this small says nothing.
_SHARE_SHOWN = 0.01

_ACROSS = "`bedplate show STUDY --effects --across-durability` judges them all the same."


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
                **json_fields(
                    each,
                    "metric=asked.metric phase=asked.phase item=asked.item suspect unknown unusable stopped incomparable",
                ),
                "strongest": strongest_sentence(each),
                "classes": dict(each.classes),
                **json_fields(each, "across_durability=across crossing"),
                "sentences": list(crossing_sentences(each)),
                "parts": [
                    {
                        **json_fields(part, "within cells repetitions incomplete aliases unmatched"),
                        "effects": [_effect_document(one) for one in part.effects],
                        "interactions": [_interaction_document(one) for one in part.interactions],
                        **json_fields(part, "variation interactions_confidence durability"),
                        "sentences": list(
                            interaction_sentences(part.interactions, METRICS[each.asked.metric])
                        ),
                    }
                    for part in each.parts
                ],
            }
            for each in found.found
        ],
    }


def _effect_document(effect: Effect) -> dict[str, Any]:
    return {
        **json_fields(effect, "factor level baseline"),
        "judged": _judged_document(effect),
        **json_fields(effect, "strata repetitions held differs"),
        "left_out": sum(effect.left_out.values()),
        "verdict": None if effect.judged.basis is None else effect.judged.verdict,
    }


def _interaction_document(effect: Interaction) -> dict[str, Any]:
    return {
        **json_fields(effect, "factor level baseline by at against ratio_at ratio_against"),
        "judged": _judged_document(effect),
        **json_fields(effect, "strata repetitions"),
        "left_out": sum(effect.left_out.values()),
    }


def _judged_document(effect: Effect | Interaction) -> dict[str, Any]:
    return {
        **json_fields(effect, "ratio low=judged.low high=judged.high p_value=judged.p_difference"),
        "same": effect.judged.verdict is Verdict.SAME,
        "confidence": None if effect.judged.basis is None else effect.judged.confidence,
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
    unusable = filled(RUNS_WITHOUT_FIGURE, n=each.unusable) if each.unusable else ""
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
    sentences = interaction_sentences(part.interactions, metric)
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
    table.add_column("", no_wrap=True, width=_EFFECT_BAR_COLUMNS)
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
            Text(bar(share.share, 1.0, cells=_EFFECT_BAR_COLUMNS), style="cyan"),
        )
    return table


def _ratios(part: Effects) -> RenderableType:
    """Each level beside the first of its factor; the document has every pair."""
    shown = [each for each in part.effects if each.baseline == _first(part, each.factor)]
    own = [each.judged.confidence for each in shown if each.judged.basis is not None]
    scale = bar_scale(EstimateKind.RATIO, map(_effect_span, shown))
    table = plain_table()
    table.add_column("factor", min_width=10, max_width=20)
    table.add_column("level / baseline", min_width=12, max_width=24)
    table.add_column("ratio", justify="right", no_wrap=True)
    table.add_column("interval", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, width=_EFFECT_BAR_COLUMNS)
    table.add_column("", no_wrap=True, is_there=bool(own))
    before = None
    for each in shown:
        judged = each.judged
        bounds = (
            ""
            if judged.low is None or judged.high is None
            else ends_words(EstimateKind.RATIO, judged.low, judged.high, ratio_figure, "–")
        )
        table.add_row(
            short_name(each.factor) if each.factor != before else "",
            f"{level_text(each.factor, each.level)} / {level_text(each.factor, each.baseline)}",
            Text(ratio_figure(each.ratio), style="bold" if judged.is_told_apart else ""),
            Text(bounds, style="dim"),
            Text(
                interval_bar(_effect_span(each), scale, columns=_EFFECT_BAR_COLUMNS) if scale else "",
                style="cyan",
            ),
            "" if judged.verdict is Verdict.CANNOT_TELL else str(judged.verdict),
        )
        before = each.factor
    ends = f" Bars reach from {scale.words}, │ is equality." if scale else ""
    confidence = (
        f" Intervals have a confidence of {confidence_words(own)}; the same is within {percent(MARGIN)}."
        if own
        else ""
    )
    words = f"{all_else_equal(part)}.{ends}"
    return Group(table, Text(words + confidence, style="dim"))


def _first(part: Effects, factor: str) -> object:
    return next(each.baseline for each in part.effects if each.factor == factor)


def _effect_span(each: Effect) -> Span:
    return Span(each.ratio, each.judged.low, each.judged.high)
