"""What each factor does to each figure, all else equal, and the sentences about it, as the terminal, the page and its answer write them alike."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bedplate.analysis.cell_filter import Candidate
from bedplate.analysis.comparison import (
    ComparedMetric,
    asked_of,
    candidates_of,
    observed,
    surroundings_between,
)
from bedplate.analysis.labels import TYPE, level_text, short_name
from bedplate.analysis.overview import NO_EFFECTS_OF_A_SEARCH, Overview, is_chosen
from bedplate.analysis.wording import ends_words, ratio_figure, safety, words_on_device
from bedplate.errors import PlanError
from bedplate.model.course import first_of
from bedplate.model.figure import Better, Metric, Scale, Status
from bedplate.model.levels import Scalar
from bedplate.model.metrics import METRICS
from bedplate.model.visit import Outcome, Validity
from bedplate.statistics.comparison import MARGIN, Comparison, EstimateKind, usable
from bedplate.statistics.design import DesignCell, Lack, Share, Variation
from bedplate.statistics.effects import (
    Crossing,
    Effect,
    Effects,
    Interaction,
    Unmatched,
    effects,
    within_classes,
)
from bedplate.statistics.estimation import REPETITIONS_MIN
from bedplate.statistics.summary import Observation


@dataclass(frozen=True)
class FactorEffects:
    """Effects on one metric of one run: in each durability class over all cells, then within file systems.

    `classes` are the durability classes of the cells, the safest first, and how many cells each has. `crossing` are
    ratios whose two levels no class has both of: they are in no part, unless the parts are `across` all classes.
    `suspect` runs, and those of `unknown` validity, are left out as such, `unusable` ones have no figure. `stopped` are cells of
    which a run was stopped at a limit or has a figure of 0: they are in no ratio with a cell that has this repetition. `incomparable` says why nothing is judged.
    """

    asked: ComparedMetric
    parts: tuple[Effects, ...]
    suspect: int
    unknown: int
    unusable: int
    incomparable: tuple[str, ...] = ()
    classes: tuple[tuple[str, int], ...] = ()
    crossing: tuple[Crossing, ...] = ()
    across: bool = False
    stopped: int = 0


@dataclass(frozen=True)
class StudyEffects:
    """Effects of one study on everything that was asked for."""

    overview: Overview
    found: tuple[FactorEffects, ...]


def study_effects(
    found: Overview,
    *,
    workload: str | None = None,
    metrics: Sequence[str] = (),
    across_durability: bool = False,
) -> StudyEffects:
    """Judge the factors within each durability class; where that is asked for across them, if a ratio crosses them.

    PlanError for a run or metric that there is not, for one that has no logarithm, and of a study whose cells a search chose.
    """
    if is_chosen(found.study):
        raise PlanError(*NO_EFFECTS_OF_A_SEARCH)
    asked = asked_of([found], workload, metrics)
    for each in asked:
        scale = METRICS[each.metric].scale
        if scale is not Scale.RATIO:
            raise PlanError(
                f"effects are ratios of positive figures, and {each.metric} is a {scale.value}; "
                "`bedplate compare` takes it"
            )
    judged = StudyEffects(found, tuple(factor_effects(found, each) for each in asked))
    if not across_durability:
        return judged
    across = {each.asked: each for each in across_classes(judged).found}
    return replace(judged, found=tuple(across.get(each.asked, each) for each in judged.found))


def factor_effects(found: Overview, asked: ComparedMetric) -> FactorEffects:
    """The effects on one figure; they are kept with the study, as its answer, its page and `compare` ask for the same ones."""
    known = found.once(_judged_before)
    if asked not in known:
        known[asked] = _effects(found, asked)
    return known[asked]


def _judged_before(_found: Overview) -> dict[ComparedMetric, FactorEffects]:
    return {}


def ratio_family(
    found: Overview, asked: ComparedMetric, sides: frozenset[frozenset[str]]
) -> tuple[Comparison, ...]:
    """The ratios that are judged together with the one between cells of these names; empty where there is no such ratio."""
    parts = () if is_chosen(found.study) else factor_effects(found, asked).parts
    return next(
        (part.family(each.factor) for part in parts for each in part.effects if each.cells == sides),
        (),
    )


def across_classes(found: StudyEffects) -> StudyEffects:
    """The same effects over the cells of all durability classes together, of what has ratios that cross them."""
    crossing = [each for each in found.found if each.crossing]
    candidates = candidates_of([found.overview]) if crossing else ()
    return StudyEffects(
        found.overview,
        tuple(
            replace(each, parts=effects(cells), across=True)
            for each in crossing
            for classes in [_by_class(found.overview, each.asked, candidates)]
            for cells in [[cell for own in classes.values() for cell in own]]
        ),
    )


def _by_class(
    found: Overview, asked: ComparedMetric, candidates: Sequence[Candidate]
) -> dict[str, list[DesignCell]]:
    """The cells that have a figure, by what a power cut leaves of them, the safest class first."""
    classes: dict[str, list[DesignCell]] = {}
    for cell in sorted(candidates, key=lambda cell: safety(found.cells[cell.cell])):
        counting = usable(_observed(found, asked, cell))
        without_ratio = frozenset(repetition for repetition, one in counting.items() if _has_no_ratio(one))
        values = {
            r: one.value for r, one in counting.items() if r not in without_ratio and one.value is not None
        }
        if values:
            same_as = frozenset(found.cells[cell.cell].identical_to)
            made = DesignCell(cell.levels, values, cell.usual, cell.cell, same_as, without_ratio)
            classes.setdefault(words_on_device(found.cells[cell.cell]), []).append(made)
    return classes


def _observed(found: Overview, asked: ComparedMetric, cell: Candidate) -> Mapping[int, Observation]:
    return observed(found, cell.cell, asked.run, asked.metric, (asked.phase, asked.item))


def _has_no_ratio(one: Observation) -> bool:
    return one.status is Status.CENSORED or one.value is None or one.value <= 0


def _effects(found: Overview, asked: ComparedMetric) -> FactorEffects:
    here = [cell for cell in candidates_of([found]) if _observed(found, asked, cell)]
    incomparable = surroundings_between([found]).of_cells(here, asked.run)
    every = [
        one
        for cell in here
        for one in _observed(found, asked, cell).values()
        if one.outcome is Outcome.COMPLETED
    ]
    classes = _by_class(found, asked, here)
    parts, crossing = ((), ()) if incomparable else within_classes(classes, metric=METRICS[asked.metric])
    return FactorEffects(
        asked=asked,
        parts=parts,
        suspect=sum(one.validity is Validity.SUSPECT for one in every),
        unknown=sum(one.validity is Validity.UNKNOWN for one in every),
        unusable=sum(one.validity.is_trusted and one.status is Status.ABSENT for one in every),
        stopped=sum(any(map(_has_no_ratio, usable(_observed(found, asked, cell)).values())) for cell in here),
        incomparable=incomparable,
        classes=tuple((name, len(cells)) for name, cells in classes.items()),
        crossing=crossing,
    )


_LITTLE = "matters little"

# More pairs than that fill a screen and say nothing more.
_PAIRS_SHOWN = 4

# What the page's script says too.
SHARE = "share of the variation"

NO_EFFECTS = "No effects: the cells are not comparable ({reasons})."

NO_FACTOR = "No factor varies over cells that have a figure."

NO_FACTOR_IN_A_CLASS = "No factor varies over cells of one durability class that have a figure."

RUNS_WITHOUT_FIGURE = "{n} run{s} without a figure"

STOPPED_CELLS = (
    "{n} cell{s} with a run that was stopped at a limit or has a figure of 0 (see `bedplate compare`)"
)

LEFT_OUT_AS = {
    Lack.SAME: "they are effectively the same",
    Lack.NO_RATIO: "a run was stopped at a limit or has a figure of 0",
    Lack.NO_REPETITION: "they have no repetition in common",
    Lack.FEW_REPETITIONS: "they have fewer than two repetitions in common",
}

DESCRIPTIONS_ONLY = f"Descriptions only: intervals need {REPETITIONS_MIN} repetitions."

NO_INTERPLAY = "No factor is shown to change what another one does."


def strongest_sentence(each: FactorEffects) -> str | None:
    """Which factor has the largest share of the variation between cells; None where no share has an interval."""
    part = each.parts[0] if each.parts else None
    if part is None or part.variation is None:
        return None
    between = f"between {part.variation.cells} {cells_words(each, part)}"
    if part.variation.only is not None:
        return _only_sentence(each, part, part.variation, between)
    judged = [share for share in part.variation.shares if share.factors and share.low is not None]
    if not judged:
        return None
    what = f"of the variation of {figure_words(each)} {between}"
    largest = max(judged, key=lambda share: share.share)
    if largest.low is None or largest.high is None or largest.low <= 0:
        return " ".join((f"No factor is shown to have a share {what}.", *_crossing_clause(each)))
    names = " and ".join(map(short_name, largest.factors))
    whose = f"The factor {names} has" if len(largest.factors) == 1 else f"The factors {names} together have"
    sentence = (
        f"{whose} the largest share {what}: {100 * largest.share:.0f} % "
        f"({100 * largest.low:.0f}–{100 * largest.high:.0f} %)."
    )
    return " ".join((sentence, *_crossing_clause(each)))


def _only_sentence(each: FactorEffects, part: Effects, variation: Variation, between: str) -> str | None:
    """The share of the only factor would be the whole, whatever it does: its largest ratio says more."""
    name = short_name(variation.only or "")
    own = [one for one in part.effects if one.factor == variation.only and one.judged.basis is not None]
    if not own:
        return None
    # Others vary too where levels had to be left out, or held, to make the part complete.
    within = " that make a complete part of the design" if variation.left_out or variation.held else ""
    told = [effect for effect in own if effect.judged.is_told_apart]
    largest = max(told, key=lambda effect: abs(math.log(effect.ratio)), default=None)
    if largest is None:
        words = f"Only {name} varies {between}{within}, and no two of its levels can be told apart in {figure_words(each)}."
    else:
        words = (
            f"Only {name} varies {between}{within}. The largest ratio of {figure_words(each)} is {_levels_words(largest)}: "
            f"{ratio_figure(largest.ratio)} ({_bounds(largest.judged)})."
        )
    return " ".join((words, *_crossing_clause(each)))


def _crossing_clause(each: FactorEffects) -> tuple[str, ...]:
    """What the share of the variation leaves out, since it is no matter of speed alone."""
    names = list(
        dict.fromkeys(short_name(one.factor) for one in each.crossing if _is_whole(each, one.factor))
    )
    if each.across or not names:
        return ()
    verb = "changes" if len(names) == 1 else "change"
    return (f"{_listed(names)} {verb} what a power cut leaves, and is no part of this.",)


def _is_whole(each: FactorEffects, factor: str) -> bool:
    """Whether no class has a ratio of the factor."""
    return all(effect.factor != factor for part in each.parts for effect in part.effects)


def cells_words(each: FactorEffects, part: Effects) -> str:
    """Which cells a part has, where not all are of one durability class: `cells that are durable`."""
    if each.across:
        return "cells of all durability classes"
    return f"cells that are {part.durability}" if len(each.classes) > 1 else "cells"


def part_words(each: FactorEffects, part: Effects) -> str:
    """The name of a part of the design: `over all cells`, `within file system ext4, cells that are durable`."""
    if part.within is None:
        return f"over all {cells_words(each, part)}"
    where = f"within {short_name(part.within[0])} {level_text(*part.within)}"
    return where if cells_words(each, part) == "cells" else f"{where}, {cells_words(each, part)}"


def crossing_sentences(each: FactorEffects) -> tuple[str, ...]:
    """Which ratios cross durability classes. A sentence for each factor; in a judgement across them one for all."""
    if not each.crossing:
        return ()
    by_factor: defaultdict[tuple[str, Scalar | None], list[Crossing]] = defaultdict(list)
    for one in each.crossing:
        by_factor[one.factor, one.within[1] if one.within else None].append(one)
    if each.across:
        names = _listed([short_name(name) for name, _ in by_factor])
        return (
            f"Ratios of {names} weigh speed against what a power cut leaves; they rank nothing.",
            *(_crossing_words(found) for found in by_factor.values()),
        )
    return tuple(
        f"{_crossing_words(found)} A ratio would weigh speed against what a power cut leaves, so there is none here."
        for found in by_factor.values()
    )


def _crossing_words(found: Sequence[Crossing]) -> str:
    first = found[0]
    classes: dict[Scalar, tuple[str, ...]] = {}
    for one in found:
        classes |= {one.baseline: one.classes[1], one.level: one.classes[0]}
    levels = "; ".join(
        f"{level_text(first.factor, level)} is {' or '.join(names)}" for level, names in classes.items()
    )
    where = f" within {level_text(*first.within)}" if first.within else ""
    return f"{short_name(first.factor)}{where} crosses durability classes ({levels})."


def figure_words(each: FactorEffects) -> str:
    """What the effects are on: `tps`; of a part of a run, with its name before it."""
    return f"{each.asked.part} {each.asked.metric}" if each.asked.part else each.asked.metric


def share_name(share: Share) -> str:
    """The factors of a share: `barrier`, `barrier × db block`."""
    if not share.factors:
        return "three or more together"
    return " × ".join(map(short_name, share.factors))


def interaction_sentences(interactions: Sequence[Interaction], metric: Metric) -> tuple[str, ...]:
    """The strongest real interaction of every two factors, the strongest of all first."""
    real: defaultdict[tuple[str, str], list[Interaction]] = defaultdict(list)
    for each in sorted(interactions, key=lambda each: -abs(math.log(each.ratio))):
        if each.judged.is_told_apart:
            real[each.factor, each.by].append(each)
    return tuple(_interaction_sentence(found[0], metric, more=len(found) - 1) for found in real.values())


def _interaction_sentence(each: Interaction, metric: Metric, *, more: int) -> str:
    level, baseline = level_text(each.factor, each.level), level_text(each.factor, each.baseline)
    at, against = level_text(each.by, each.at), level_text(each.by, each.against)
    factor, by = short_name(each.factor), short_name(each.by)
    sides = [_does(ratio, metric) for ratio in (each.ratio_at, each.ratio_against)]
    first, second = (
        f"where {by} is {at} ({_ratio(each.ratio_at)})",
        f"where it is {against} ({_ratio(each.ratio_against)})",
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
    if each.left_out:
        rest = f" Left out of the groups of matched cells: {_left_out_words(each)}.{rest}"
    return (
        f"{factor} {level} beside {baseline} {does}: the first ratio is {_ratio(each.ratio)} times the second "
        f"({_bounds(each.judged)}).{rest}"
    )


def _bounds(judged: Comparison) -> str:
    return ends_words(EstimateKind.RATIO, judged.low, judged.high, _bound, "–")


def _bound(bound: float) -> str:
    # A bound that leaves out 1 is not written as 1.
    words = _ratio(bound)
    return ratio_figure(bound) if words == "1.00" else words


def _ratio(value: float) -> str:
    return f"{value:.2f}" if 0.1 <= value < 100 else ratio_figure(value)


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
        scatter = f"a run scatters by {100 * part.variation.scatter:.1f} % (median)"
        shares = f"Shares are of the variation between the {part.variation.cells} cells of a complete part; {scatter}, which is in no share."
        if part.variation.only is not None:
            only = short_name(part.variation.only)
            shares = (
                f"Only {only} varies between the {part.variation.cells} cells of a complete part, so there are no "
                f"shares; {scatter}."
            )
        notes.append(shares)
        if part.variation.held:
            held = ", ".join(map(short_name, part.variation.held))
            notes.append(f"Shares hold at its usual level what not every cell has: {held}.")
        if part.variation.left_out:
            words = ", ".join(
                f"{short_name(n)} {level_text(n, level)}" for n, level in part.variation.left_out
            )
            notes.append(f"Not in that part: {words}.")
    notes += [*_equality_notes(part.effects), *_unmatched_notes(part.unmatched)]
    for repeating, factor in part.aliases:
        notes.append(
            f"{short_name(repeating)} changes with {short_name(factor)} in every cell: one effect, not two."
        )
    if part.incomplete:
        verb = "lacks" if part.incomplete == 1 else "lack"
        notes.append(
            f"{part.incomplete} of {part.cells} cells {verb} a repetition; each pair of matched cells counts with those that both have."
        )
    if lost := [each for each in part.effects if each.left_out]:
        words = ", ".join(
            f"{short_name(each.factor)} {level_text(each.factor, each.level)} / {level_text(each.factor, each.baseline)} "
            f"({_left_out_words(each)})"
            for each in lost
        )
        notes.append(f"Left out: matched cells of {words}.")
    return notes


def _left_out_words(effect: Effect | Interaction) -> str:
    """`2 of 6, as they have fewer than two repetitions in common`."""
    whole = effect.strata + sum(effect.left_out.values())
    return ", ".join(f"{n} of {whole}, as {LEFT_OUT_AS[lack]}" for lack, n in effect.left_out.items())


def all_else_equal(part: Effects) -> str:
    """How the sides of a part's ratios were matched, in the words that are true of all of them."""
    if any(each.differs for each in part.effects):
        return "Mean over matched cells, all else equal but for what the notes name"
    return "All else equal, mean over matched cells"


def _equality_notes(effects: Sequence[Effect]) -> Iterable[str]:
    """At which levels one side was held, and in what sides differ beside their own factor."""
    held: defaultdict[tuple[tuple[str, Scalar], ...], list[Effect]] = defaultdict(list)
    differs: defaultdict[tuple[tuple[str, tuple[Scalar, ...]], ...], list[Effect]] = defaultdict(list)
    for each in effects:
        if each.held:
            held[each.held].append(each)
        if each.differs:
            differs[each.differs].append(each)
    for levels, found in held.items():
        words = ", ".join(f"{short_name(name)} {level_text(name, level)}" for name, level in levels)
        yield f"Held at what is usual, as one side alone has it: {words} ({_pairs_words(found)})."
    for others, found in differs.items():
        words = ", ".join(
            f"{short_name(name)} ({', '.join(level_text(name, level) for level in levels)})"
            for name, levels in others
        )
        yield f"Not all else is equal in {_pairs_words(found)}: the sides differ in {words} as well."


def _unmatched_notes(unmatched: Sequence[Unmatched]) -> Iterable[str]:
    """Which levels have no ratio, and why."""
    by_reason: defaultdict[tuple[Lack, tuple[str, ...]], list[Unmatched]] = defaultdict(list)
    for each in unmatched:
        by_reason[each.lack, each.factors].append(each)
    for (lack, factors), found in by_reason.items():
        names = _listed([short_name(name) for name in factors])
        why = {
            Lack.NO_CELLS: "no cell has the one or the other",
            Lack.NO_USUAL_LEVEL: f"one side alone has {names}, in several levels of which none is the usual one",
            Lack.NOTHING_MATCHES: f"no two of their cells are alike in {names}",
            **LEFT_OUT_AS,
        }[lack]
        yield f"No ratio of {_pairs_words(found)}: {why}."


def _pairs_words(found: Sequence[Effect] | Sequence[Unmatched]) -> str:
    return first_of([_levels_words(each) for each in found], _PAIRS_SHOWN)


def _levels_words(each: Effect | Unmatched) -> str:
    """`xfs / ext4`; of a factor whose levels say nothing by themselves with its name, `barrier no / yes`."""
    level, baseline = (level_text(each.factor, value) for value in (each.level, each.baseline))
    name = "" if each.factor == TYPE else f"{short_name(each.factor)} "
    return f"{name}{level} / {baseline}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""
