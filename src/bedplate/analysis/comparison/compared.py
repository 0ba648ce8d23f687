"""Baselines and contenders of some studies, held against each other: ratios, intervals, verdicts.

Every pair of matched cells is compared in every run and metric that was asked for. Each figure is a family of
verdicts, and all families of a question hold together (`statistics/objectives.py`). Without a verdict, side by side, stand
pairs in surroundings that no factor explains. Cells that are the same in force are said to be, and not compared.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from bedplate.analysis.cell_filter import STUDY, Candidate, Selection, select
from bedplate.analysis.comparison.accepted import accepting
from bedplate.analysis.comparison.matching import Matched, matched
from bedplate.analysis.comparison.origins import require_one_origin
from bedplate.analysis.comparison.surroundings import surroundings_between
from bedplate.analysis.default_metric import default_metric
from bedplate.analysis.factors import DEFAULT, TYPE, factor_levels
from bedplate.analysis.fleet import nodes_of_repetitions
from bedplate.analysis.observed import measurements_with, observed
from bedplate.analysis.parts import VISIT_FIGURES, WHOLE
from bedplate.analysis.run_heads import is_meant
from bedplate.analysis.scores import SCORES
from bedplate.analysis.wording import (
    NO_RUN_IN_BOTH,
    about_counts,
    durability_class,
    promises_differ,
    words_on_device,
)
from bedplate.errors import PlanError
from bedplate.model.figure import Status
from bedplate.model.metrics import METRICS, unknown_metric
from bedplate.model.template import first_of
from bedplate.near_names import unknown_run
from bedplate.statistics.blocks import blocks
from bedplate.statistics.comparison import MARGIN, EstimateKind, Verdict, compare, usable
from bedplate.statistics.objectives import judged_together
from bedplate.statistics.summary import summarise
from bedplate.units import format_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bedplate.analysis.comparison.matching import Pair
    from bedplate.analysis.comparison.surroundings import Surroundings
    from bedplate.analysis.overview import Overview
    from bedplate.statistics.comparison import Comparison
    from bedplate.statistics.summary import Observation, Summary

Run = tuple[str, str]
_SHOWN_NODES = 6


@dataclass(frozen=True)
class ComparisonQuestion:
    """What to compare. `metrics` are names, none for what each run is about.

    `margin` is what `same` means, as a share. `factors` are surroundings that differ between studies on purpose
    (keys of `statistics.comparable.NAMES`). `accepted` are words of doubts for which no run is left out.
    `across_durability` pools pairs of all durability classes (`pooled.py`); by itself each class has a line of its own.
    """

    baseline: str
    contender: str
    workload: str | None = None
    metrics: tuple[str, ...] = ()
    margin: float = MARGIN
    factors: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    across_durability: bool = False


@dataclass(frozen=True)
class ComparedMetric:
    """One metric of one run, of the whole of it or of a part."""

    run: Run
    metric: str
    phase: str = WHOLE
    item: str = ""

    @property
    def part(self) -> str:
        """The part's name, empty for the whole run."""
        whole = (self.phase, self.item) == (WHOLE, "")
        return "" if whole else f"{self.phase} {self.item}".strip()

    @property
    def of_visit(self) -> bool:
        """Whether the figure is the visit's own; `run` is then the first one that it stands with."""
        return self.metric in VISIT_FIGURES


@dataclass(frozen=True)
class Compared:
    """A contender beside its baseline in one metric of one run.

    `figures` are the baseline's and the contender's, of the repetitions that are compared. `identical` pairs are the same in force, `incomparable` says why
    a pair stands side by side; neither has an interval or a verdict. `notes` stand beside whatever is said.
    """

    pair: Pair
    asked: ComparedMetric
    comparison: Comparison
    figures: tuple[Summary, Summary]
    identical: bool = False
    incomparable: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ComparisonAnswer:
    """All comparisons of a question; `selections` are the baseline's and the contender's."""

    question: ComparisonQuestion
    overviews: tuple[Overview, ...]
    selections: tuple[Selection, Selection]
    matched: Matched
    compared: tuple[Compared, ...]

    @cached_property
    def judged(self) -> tuple[Compared, ...]:
        """Those with an interval, whose verdicts hold together."""
        return tuple(found for found in self.compared if found.comparison.basis is not None)

    @property
    def confidences(self) -> tuple[float, ...]:
        """Those that a difference takes, of each comparison with an interval."""
        every = (found.comparison.difference_confidence for found in self.judged)
        return tuple(confidence for confidence in every if confidence is not None)

    @property
    def verdicts(self) -> int:
        """How many can tell."""
        return sum(found.comparison.verdict is not Verdict.CANNOT_TELL for found in self.judged)


def answer(overviews: Sequence[Overview], question: ComparisonQuestion) -> ComparisonAnswer:
    """Compare what the question names.

    PlanError where it names nothing that is there, no two cells match, or imported studies stand beside measured ones.
    """
    require_one_origin(overviews)
    overviews = accepting(overviews, question.accepted)
    candidates = candidates_of(overviews)
    baseline, contender = (select(text, candidates) for text in (question.baseline, question.contender))
    found = matched(baseline, contender)
    if not found.pairs:
        raise PlanError(_no_pair(baseline, contender, found))
    asked = _once(asked_of(overviews, question.workload, question.metrics))
    surroundings = surroundings_between(overviews, question.factors)
    compared = [
        _compared(overviews, pair, each, surroundings=surroundings, margin=question.margin)
        for each in asked
        for pair in found.pairs
        if all(
            measurements_with(overviews[side.study], side.cell, each.run, each.metric)
            for side in (pair.baseline, pair.contender)
        )
    ]
    if not compared:
        raise PlanError(f"{NO_RUN_IN_BOTH}; these studies have no workload in common")
    together = judged_together([each.comparison for each in compared], [each.asked for each in compared])
    return ComparisonAnswer(
        question=question,
        overviews=tuple(overviews),
        selections=(baseline, contender),
        matched=found,
        compared=tuple(
            replace(each, comparison=judged) for each, judged in zip(compared, together, strict=True)
        ),
    )


def candidates_of(overviews: Sequence[Overview]) -> tuple[Candidate, ...]:
    """Every cell of the studies, with its factors and the name of its study's directory."""
    return overviews[0].once(_candidates_within) if len(overviews) == 1 else _candidates(overviews)


def _candidates_within(found: Overview) -> tuple[Candidate, ...]:
    return _candidates([found])


def _candidates(overviews: Sequence[Overview]) -> tuple[Candidate, ...]:
    places = [(number, cell) for number, found in enumerate(overviews) for cell in found.cells]
    facts = [overviews[number].cells[cell] for number, cell in places]
    cells = [overviews[number].study.schedule.cells[cell] for number, cell in places]
    blocks = [each.label.filesystem_block_bytes for each in facts]
    levels = factor_levels(zip(cells, blocks, strict=True))
    names = study_names(overviews)
    alone = [
        frozenset(own)
        for number in range(len(overviews))
        for own in factor_levels(
            (cell, block)
            for (study, _), cell, block in zip(places, cells, blocks, strict=True)
            if study == number
        )
    ]
    return tuple(
        Candidate(
            study=number,
            cell=cell,
            labels=(cell, fact.label.full, fact.label.panel),
            # The type first: it is what examples and lists begin with.
            levels={TYPE: found[TYPE], **found, **({STUDY: names[number]} if len(overviews) > 1 else {})},
            unasked=frozenset(name for name in found if name not in asked or found[name] == DEFAULT),
            foreign=frozenset(found) - own,
            classes=tuple(
                dict.fromkeys((durability_class(fact.durability, fact.cache), words_on_device(fact)))
            ),
        )
        for (number, cell), fact, found, asked, own in zip(
            places, facts, levels, [each.levels for each in cells], alone, strict=True
        )
    )


def study_names(overviews: Sequence[Overview]) -> tuple[str, ...]:
    """What each study is called in filters and tables: its directory, with the one above where two are called alike."""
    paths = [found.study.directory.resolve() for found in overviews]
    short = [path.name for path in paths]
    return tuple(
        name if short.count(name) == 1 else f"{path.parent.name}/{name}"
        for path, name in zip(paths, short, strict=True)
    )


def asked_of(
    overviews: Sequence[Overview], workload: str | None, metrics: Sequence[str]
) -> tuple[ComparedMetric, ...]:
    """The runs and metrics that are meant, of whole runs where they have the metric, else of every part.

    PlanError for a workload or a metric that there is not.
    """
    unknown = [name for name in metrics if name not in METRICS]
    if unknown:
        raise PlanError(*(unknown_metric(name) for name in unknown))
    names = dict.fromkeys(run[1] for found in overviews for run in found.runs)
    chosen: dict[Run, Overview] = {}
    for found in overviews:
        for run in found.runs:
            if is_meant(found, run, workload):
                chosen.setdefault(run, found)
    if not chosen:
        raise PlanError(unknown_run(workload or "", names))
    having = {run: _having(overviews, run) for run in chosen}
    asked = [
        ComparedMetric(run, metric, phase, item)
        for run, found in chosen.items()
        for metric in (metrics or _default(found, run, having[run]))
        for phase, item in _places(having[run].get(metric, {}))
    ]
    if asked:
        return tuple(asked)
    there = sorted({metric for found in having.values() for metric in found})
    raise PlanError(
        f"no run has a value of {', '.join(metrics) or 'any metric'}; they have {', '.join(there) or 'none yet'}"
    )


def _having(overviews: Sequence[Overview], run: Run) -> Mapping[str, dict[tuple[str, str], None]]:
    """In which parts a run has which metric; scores over a selection are no figures of a run."""
    places: defaultdict[str, dict[tuple[str, str], None]] = defaultdict(dict)
    for found in overviews:
        for cell in found.cells:
            for key in found.summaries_of(cell, run):
                place = (key.phase, key.item)
                if key.metric in SCORES or place in places.get(key.metric, ()):
                    continue
                if found.summaries[key].n or found.summaries[key].censored:
                    places[key.metric][place] = None
    return places


def _default(found: Overview, run: Run, having: Mapping[str, object]) -> tuple[str, ...]:
    name = default_metric(found, run, having.keys())
    return () if name is None else (name,)


def _once(asked: Iterable[ComparedMetric]) -> tuple[ComparedMetric, ...]:
    """A visit's own figure stands with each run on its dataset, and is one question."""
    found: dict[tuple[Run | str, str, str, str], ComparedMetric] = {}
    for each in asked:
        whose = each.run[0] if each.of_visit else each.run
        found.setdefault((whose, each.metric, each.phase, each.item), each)
    return tuple(found.values())


def _places(places: Mapping[tuple[str, str], None]) -> Iterable[tuple[str, str]]:
    """Parts repeat what the whole run says."""
    return ((WHOLE, ""),) if (WHOLE, "") in places else places


def _compared(
    overviews: Sequence[Overview],
    pair: Pair,
    asked: ComparedMetric,
    *,
    surroundings: Surroundings,
    margin: float,
) -> Compared:
    sides = (pair.baseline, pair.contender)
    facts = [overviews[side.study].cells[side.cell] for side in sides]
    identical = pair.is_within_a_study and pair.contender.cell in facts[0].identical_to
    # How a run was asked for changes nothing of what the visit did before it.
    incomparable = (
        surroundings.of_cells(sides, asked.run) if asked.of_visit else surroundings.of_pair(pair, asked.run)
    )
    seen = [_observations(overviews, side, asked) for side in sides]
    found = compare(
        seen[0],
        seen[1],
        METRICS[asked.metric],
        margin=margin,
        shares_repetitions=pair.is_within_a_study,
    )
    if identical or incomparable:
        # Its estimate is kept as a description; without a basis it is in no family.
        found = replace(found, verdict=Verdict.CANNOT_TELL, low=None, high=None, basis=None)
    notes = [note for fact in facts for note in fact.notes_of_pairs]
    notes += [*_words_about_counts(found), *_words_about_nodes(overviews, pair, asked, found)]
    # The contender first, as its pair is named.
    if promises := promises_differ(*reversed(facts)):
        notes.append(promises)
    return Compared(
        pair=pair,
        asked=asked,
        comparison=found,
        figures=_figures(found, seen),
        identical=identical,
        incomparable=incomparable,
        notes=tuple(dict.fromkeys(notes)),
    )


def _figures(found: Comparison, sides: Sequence[Mapping[int, Observation]]) -> tuple[Summary, Summary]:
    """Each side, whose means have the estimate as their ratio: a pair within a study has the repetitions of both."""
    is_restricted = found.paired and (found.differences or found.pooled is not None or found.censored)
    common = usable(sides[0]).keys() & usable(sides[1]).keys() if is_restricted else set()
    limits = (seen.limit for side in sides for seen in usable(side).values() if seen.limit is not None)
    limit = min(limits, default=math.inf) if found.censored else math.inf
    first, second = (
        summarise(
            [_up_to(seen, limit) for number, seen in side.items() if number in common or not common],
            found.metric.scale,
        )
        for side in sides
    )
    return first, second


def _up_to(seen: Observation, limit: float) -> Observation:
    """A figure as it is compared where runs were stopped: what is beyond the smallest limit counts as the limit."""
    is_beyond = seen.status is Status.CENSORED or (seen.value is not None and seen.value > limit)
    return replace(seen, value=limit, status=Status.MEASURED) if is_beyond and limit < math.inf else seen


def _words_about_counts(found: Comparison) -> Iterable[str]:
    if found.pooled is not None:
        yield about_counts(found.n, has_interval=found.pooled.within is not None)


def _words_about_nodes(
    overviews: Sequence[Overview], pair: Pair, asked: ComparedMetric, found: Comparison
) -> Iterable[str]:
    """What each node of a fleet says of a pair within it, and whether they agree."""
    nodes = nodes_of_repetitions(overviews[pair.baseline.study].study)
    if not nodes or found.kind is not EstimateKind.RATIO or not pair.is_within_a_study:
        return
    sides = [
        {
            repetition: math.log(seen.value)
            for repetition, seen in _observations(overviews, side, asked).items()
            if seen.value is not None and seen.value > 0 and seen.validity.is_trusted
        }
        for side in (pair.baseline, pair.contender)
    ]
    common = sides[0].keys() & sides[1].keys() & nodes.keys()
    within = blocks({repetition: sides[1][repetition] - sides[0][repetition] for repetition in common}, nodes)
    if within is None:
        return
    each = [f"{node} {math.exp(mean):.3g} (n {within.counts[node]})" for node, mean in within.means.items()]
    shown = first_of(each, _SHOWN_NODES)
    if within.disagree:
        yield f"the nodes disagree beyond chance (p {within.p_agreement:.2g}), the verdict is about all of them: {shown}"
    else:
        yield f"by node: {shown}"


def _observations(
    overviews: Sequence[Overview], side: Candidate, asked: ComparedMetric
) -> Mapping[int, Observation]:
    return observed(overviews[side.study], side.cell, asked.run, asked.metric, (asked.phase, asked.item))


def _no_pair(baseline: Selection, contender: Selection, found: Matched) -> str:
    named = ", ".join(sorted(baseline.names | contender.names))
    sides = " and ".join(
        f"{side.text!r} ({format_count(len(side.cells), 'cell')})" for side in (baseline, contender)
    )
    if found.hindering:
        words = ", ".join(found.hindering)
        return (
            f"no cell of {sides} differs from one of the other in nothing but {named}: they have no level of "
            f"{words} in common; name it in the filters too"
        )
    if {(c.study, c.cell) for c in baseline.cells} == {(c.study, c.cell) for c in contender.cells}:
        return f"{sides} mean the same cells; a contender differs from its baseline"
    return f"no cell of {sides} differs from one of the other in nothing but {named}; name what else differs"
