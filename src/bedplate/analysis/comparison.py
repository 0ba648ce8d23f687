"""Which cells may be held against each other, and what comes of it: ratios, intervals, verdicts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bedplate.analysis.cell_filter import STUDY, Candidate, Lacking, Selection, choose, select
from bedplate.analysis.fleet import NODE, nodes_of_repetitions
from bedplate.analysis.labels import DEFAULT, TYPE, factor_levels, short_name, study_marks
from bedplate.analysis.overview import (
    SCORES,
    VISIT_FIGURES,
    WHOLE,
    CellFacts,
    Measurement,
    Overview,
    default_metric,
    is_chosen,
    overview,
    score_summaries,
    score_views,
    search_marks,
)
from bedplate.analysis.run_heads import answers_first, has_speed, is_meant, writes
from bedplate.analysis.wording import (
    NO_RUN_IN_BOTH,
    about_counts,
    durability_class,
    promises_differ,
    words_on_device,
)
from bedplate.errors import PlanError
from bedplate.model.cell import library_levels
from bedplate.model.course import filled, first_of
from bedplate.model.durability import CLASSES
from bedplate.model.figure import Better, Status
from bedplate.model.levels import Scalar
from bedplate.model.metrics import METRICS, unknown_metric
from bedplate.model.reason import Reason, because
from bedplate.model.visit import LOADED, Outcome, Validity, VisitRecord
from bedplate.near_names import unknown_run
from bedplate.statistics.comparison import (
    MARGIN,
    Comparison,
    EstimateKind,
    Verdict,
    compare,
    differences,
    judged_together,
    usable,
)
from bedplate.statistics.contrast import LevelTable, is_named
from bedplate.statistics.estimation import blocks
from bedplate.statistics.summary import Observation, Summaries, Summary, summarise
from bedplate.units import format_count

if TYPE_CHECKING:
    from bedplate.statistics.contrast import CodeArray


def accepting(overviews: Sequence[Overview], words: Sequence[str]) -> tuple[Overview, ...]:
    """The studies with those runs trusted, suspect or of unknown validity, of which every doubt has one of `words` as its code or in its sentence; small letters do.

    Only what stands for single runs is changed, and the marks: summaries keep what they were made of. Words that are in no
    doubt accept nothing; what is still left out is counted beside the verdicts as ever.
    """
    wanted = tuple(word.casefold() for word in words)
    if not wanted:
        return tuple(overviews)
    return tuple(_accepting(found, wanted, words) for found in overviews)


def _accepting(found: Overview, wanted: Sequence[str], words: Sequence[str]) -> Overview:
    accepted = {number for number, m in enumerate(found.measurements) if _is_accepted(m, wanted)}
    if not accepted:
        return found
    named = " or ".join(f"“{word}”" for word in words)
    runs = "a run in doubt counts" if len(accepted) == 1 else f"{len(accepted)} runs in doubt count"
    return replace(
        found,
        measurements=tuple(
            replace(m, validity=Validity.VALID) if number in accepted else m
            for number, m in enumerate(found.measurements)
        ),
        marks=(*found.marks, f"{runs} here, as all that speaks against them was accepted: {named}"),
    )


def _is_accepted(m: Measurement, wanted: Sequence[str]) -> bool:
    if m.outcome is not Outcome.COMPLETED or m.validity.is_trusted or not m.reasons:
        return False
    return not left_doubts(m.reasons, wanted)


def left_doubts(reasons: Sequence[Reason], words: Sequence[str]) -> tuple[Reason, ...]:
    """Those that none of the words accepts."""
    wanted = [word.casefold() for word in words]
    return tuple(reason for reason in reasons if not any(_is_meant(reason, word) for word in wanted))


def _is_meant(reason: Reason, word: str) -> bool:
    """The word is the asker's own, so that it is looked for in the sentence that the asker has read."""
    return word == reason.code or word in reason.sentence.casefold()


@dataclass(frozen=True)
class Pair:
    """A contender and the baseline that it is held against."""

    baseline: Candidate
    contender: Candidate

    @property
    def is_within_a_study(self) -> bool:
        """Whether both were measured in the same repetitions."""
        return self.baseline.study == self.contender.study

    def levels(self, side: Candidate) -> Mapping[str, Scalar]:
        """Of one of the two; within a study only its own factors count."""
        return side.own_levels if self.is_within_a_study else side.levels


@dataclass(frozen=True)
class Matched:
    """Pairs in the order of the contenders, and what is to be known of how they came about.

    `alone` are selected cells that no other one matches. `one_sided` are factors that only one side has, so that
    cells differ in them although no filter names them. `hindering` are factors that alone keep cells apart, told
    where there is no pair.
    """

    pairs: tuple[Pair, ...]
    alone: tuple[Candidate, ...]
    one_sided: tuple[str, ...]
    hindering: tuple[str, ...] = ()


def matched(baseline: Selection, contender: Selection) -> Matched:
    """Pair the cells of two filters.

    What a filter names, in either, may differ between the two; so may what only one of the two can have (ext4's `data`
    beside XFS), whatever cells at other levels of what is named can have. Two studies are paired where a filter names
    `study`, or where a cell has no partner in its own. A cell is not compared with itself, and no two cells twice. Within a
    study only its own factors count: what a cell of another one was asked for keeps no two of its cells apart.
    """
    names = baseline.names | contender.names
    compared = {STUDY, *names}
    every = tuple({_place(cell): cell for cell in (*baseline.cells, *contender.cells)}.values())
    rows = {_place(cell): row for row, cell in enumerate(every)}
    sides = [
        np.array([rows[_place(cell)] for cell in side.cells], dtype=np.intp) for side in (baseline, contender)
    ]
    table, own = (
        LevelTable.of(cells)
        for cells in ([cell.levels for cell in every], [cell.own_levels for cell in every])
    )
    # Of one kind are cells at the same levels of what is compared: which factors two sides share is a matter of two kinds.
    named = [at for at, name in enumerate(table.names) if is_named(name, compared)]
    kinds = [[np.array(group) for (group,) in table.strata([side], named)] for side in sides]
    studies = np.array([cell.study for cell in every])
    found = [
        pair
        for study in set(studies.tolist())
        for two in product(*kinds)
        for pair in _pairs_of_rows(own, [group[studies[group] == study] for group in two], compared)
    ]
    if len(set(studies)) > 1:
        at_home = {second for _, second in found}
        found += [
            (first, second)
            for two in product(*kinds)
            for first, second in _pairs_of_rows(table, two, compared)
            if studies[first] != studies[second] and (STUDY in names or second not in at_home)
        ]
    order = {row: number for number, row in enumerate(sides[1].tolist())}
    found.sort(key=lambda pair: (order[pair[1]], studies[pair[0]] != studies[pair[1]], pair[0]))
    once: dict[frozenset[int], Pair] = {}
    for first, second in found:
        once.setdefault(frozenset({first, second}), Pair(every[first], every[second]))
    paired = frozenset().union(*once)
    apart = () if once else table.apart(sides, table.shared(sides, compared)[0])
    return Matched(
        pairs=tuple(once.values()),
        alone=tuple(cell for row, cell in enumerate(every) if row not in paired),
        one_sided=tuple(sorted({name for pair in once.values() for _, name in one_sided(pair, names)})),
        hindering=tuple(sorted(apart)),
    )


def _pairs_of_rows(
    level_table: LevelTable, sides: Sequence[CodeArray], compared: Collection[str]
) -> Iterator[tuple[int, int]]:
    for first, second in level_table.strata(sides, level_table.shared(sides, compared)[0]):
        yield from (pair for pair in product(first, second) if pair[0] != pair[1])


def one_sided(pair: Pair, named: frozenset[str]) -> Iterator[tuple[Candidate, str]]:
    """The factors that one cell of a pair alone has, and no filter names."""
    for cell, other in ((pair.baseline, pair.contender), (pair.contender, pair.baseline)):
        for name in pair.levels(cell).keys() - pair.levels(other).keys():
            if not is_named(name, named):
                yield cell, name


def _place(cell: Candidate) -> tuple[int, str]:
    return cell.study, cell.cell


IMPORTED_BESIDE_MEASURED = "imported-beside-measured"


def require_one_origin(overviews: Sequence[Overview]) -> None:
    """PlanError with the code `imported-beside-measured` where some of the studies are imported and some are not."""
    sides = {True: "", False: ""}
    for found in overviews:
        sides[found.study.facts.is_imported] = str(found.study.directory)
    imported, measured = sides[True], sides[False]
    if imported and measured:
        raise PlanError(
            because(
                IMPORTED_BESIDE_MEASURED,
                f"{imported} was imported and {measured} was measured here: they are not compared, as nobody knows in "
                "what else they differ; show, compare or report each by itself",
                imported=imported,
                measured=measured,
            )
        )


# What the page's script says too.
VISITS_DIFFER = "visits of {cell} differ: {words}"

RUNS_DIFFER = "{name} of the run {run}: {levels}"

# Which surroundings follow from a factor, by the start of its name.
FOLLOWING = {
    "kernel.": ("kernel",),
    "build.": ("build",),
    "build.engine": ("tools",),
    **dict.fromkeys(sorted(library_levels()), ("tools",)),
}


class Surroundings:
    """Of all completed visits of some studies. `declared` are surroundings that differ on purpose."""

    def __init__(self, overviews: Sequence[Overview], declared: Sequence[str]) -> None:
        self._overviews = overviews
        self._declared = declared
        # By study, cell and dataset: visits of two datasets may have been lived with other tools and protocols, and
        # are never held against each other.
        self._found: dict[tuple[int, str, str], list[Mapping[str, str]]] = defaultdict(list)
        for number, found in enumerate(overviews):
            for visit in found.study.visits:
                record = visit.record
                if not record.key.canary and record.outcome is Outcome.COMPLETED:
                    place = (number, record.key.cell, record.key.dataset)
                    self._found[place].append(surroundings_of(record))

    def of_pair(self, pair: Pair, run: tuple[str, str]) -> tuple[str, ...]:
        """What keeps a pair from being compared in a run; empty where nothing does."""
        sides = (pair.baseline, pair.contender)
        return (*self.of_cells(sides, run), *self._of_runs(sides, run))

    def of_cells(self, cells: Sequence[Candidate], run: tuple[str, str]) -> tuple[str, ...]:
        """In what visits of the run's dataset differ beside the factors of their cells; empty where nothing does."""
        own = [
            filled(VISITS_DIFFER, cell=cell.labels[1], words=words)
            for cell in cells
            for words in self._overviews[cell.study].cells[cell.cell].incomparable
        ]
        known = [each for cell in cells for each in self._found[cell.study, cell.cell, run[0]]]
        explained = {*self._declared, *_explained([cell.levels for cell in cells])}
        groups = [known]
        if len({cell.study for cell in cells}) == 1:
            # Within a study cells meet on one node at a time, and nodes may differ where the plan says so.
            nodes = dict.fromkeys(each.get(NODE) for each in known)
            groups = [[each for each in known if each.get(NODE) == node] for node in nodes]
        told = (words for group in groups for words in differences(group, declared=explained))
        return tuple(dict.fromkeys((*own, *told)))

    def _of_runs(self, cells: Sequence[Candidate], run: tuple[str, str]) -> Iterator[str]:
        """Two plans may call two ways of measuring alike."""
        specs = [self._overviews[cell.study].spec(run) for cell in cells]
        levels = [{} if spec is None else dict(spec.levels) for spec in specs]
        for name in sorted({*levels[0], *levels[1]}):
            asked = [str(found.get(name, DEFAULT)) for found in levels]
            if asked[0] != asked[1]:
                yield filled(RUNS_DIFFER, name=name, run=run[1], levels=", ".join(asked))


def surroundings_between(overviews: Sequence[Overview], declared: Sequence[str] = ()) -> Surroundings:
    """Those of some studies; of one alone they are worked out once."""
    if len(overviews) == 1 and not declared:
        return overviews[0].once(_surroundings_within)
    return Surroundings(overviews, declared)


def _surroundings_within(found: Overview) -> Surroundings:
    return Surroundings([found], ())


def surroundings_of(record: VisitRecord) -> Mapping[str, str]:
    """What a visit says of where it was lived, with its device where the executor did not say it."""
    device = [
        str(record.device_facts[name]) for name in ("kind", "vendor", "model") if name in record.device_facts
    ]
    stack = {"disk": " ".join(device)} if device else {}
    # Before a visit said so, each had loaded its dataset.
    return {**stack, "executor": record.executor, "dataset": LOADED, **record.provenance}


def _explained(levels: Sequence[Mapping[str, object]]) -> frozenset[str]:
    """The surroundings that differ because some factor does."""
    names = {name for found in levels for name in found}
    varying = [name for name in names if len({repr(found.get(name)) for found in levels}) > 1]
    return frozenset(
        key for start, keys in FOLLOWING.items() for name in varying if name.startswith(start) for key in keys
    )


def measurements_with(
    found: Overview, cell: str, run: tuple[str, str], metric: str
) -> tuple[Measurement, ...]:
    """The runs of a cell in which a figure stands: those of `run`, of a visit's own figure those of all its dataset's runs."""
    runs = [one for one in found.runs if one[0] == run[0]] if metric in VISIT_FIGURES else [run]
    return tuple(m for one in runs for m in found.of(cell, one))


def observed(
    found: Overview, cell: str, run: tuple[str, str], metric: str, part: tuple[str, str] = (WHOLE, "")
) -> Mapping[int, Observation]:
    """One observation for each repetition; `part` is the phase and the item, of a whole run unless it is given.

    A visit's own figure (`load_s`) stands with each run of the visit, and is one value: it is taken from the run that
    there is least doubt about, as the doubt is about that run and not about what went before it.
    """
    every: defaultdict[int, list[Observation]] = defaultdict(list)
    for m in measurements_with(found, cell, run, metric):
        every[m.repetition].append(m.observation(metric, *part))
    return {repetition: min(told, key=_doubt) for repetition, told in every.items()}


def _doubt(one: Observation) -> tuple[bool, bool, bool]:
    return one.outcome is not Outcome.COMPLETED, one.value is None, not one.validity.is_trusted


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
    asked = asked_of(overviews, question.workload, question.metrics)
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

    A visit's own figure stands with each run on its dataset, and is one question. PlanError for a workload or a metric that there is not.
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
        once: dict[tuple[Run | str, str, str, str], ComparedMetric] = {}
        for each in asked:
            whose = each.run[0] if each.of_visit else each.run
            once.setdefault((whose, each.metric, each.phase, each.item), each)
        return tuple(once.values())
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
    notes += [*_words_about_counts(found), *_words_about_nodes(overviews, pair, found)]
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


def _words_about_nodes(overviews: Sequence[Overview], pair: Pair, found: Comparison) -> Iterable[str]:
    """What each node of a fleet says of a pair within it, and whether they agree."""
    nodes = nodes_of_repetitions(overviews[pair.baseline.study].study)
    if (
        not nodes
        or found.kind is not EstimateKind.RATIO
        or not pair.is_within_a_study
        or not found.differences
    ):
        return
    within = blocks({r: value for r, value in found.differences[0].items() if r in nodes}, nodes)
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


# What the page's script says too.
KEPT_WITHOUT = "kept although no {factor} can be asked of them, as what was chosen holds there anyway: {n} cell{s} ({types})"

PASSED_OVER = "passed over, as no {factor} can be asked of them: {n} cell{s} ({types})"


def selected_overviews(studies: Sequence[Path], filters: Sequence[str] = ()) -> tuple[Overview, ...]:
    """The studies, narrowed to the cells that any of the filters selects; all of them without a filter.

    A study of which nothing is selected is left out. PlanError for a filter that selects nothing, StudyError for a
    damaged study.
    """
    return selected([overview(path) for path in studies], filters)


def selected(overviews: Sequence[Overview], filters: Sequence[str]) -> tuple[Overview, ...]:
    """The same of studies that were read."""
    if not filters:
        return tuple(overviews)
    cells, lacking = choose(filters, candidates_of(overviews))
    words = ", or ".join(" ".join(text.split()) for text in filters)
    return tuple(
        _narrowed(found, own, words, _without_a_factor(lacking, number))
        for number, found in enumerate(overviews)
        if (own := frozenset(one.cell for one in cells if one.study == number))
    )


def best_first(
    found: Overview, runs: Sequence[tuple[str, str]], metric: str, top: int | None = None
) -> Overview:
    """The study with its cells in the order of a metric, the best first, of which the first `top` are kept.

    By the means of the first of `runs` that has the metric, of one that writes if there is one; cells without a value come
    last. Nothing is made anew: scores stay those over all cells. PlanError where no run has the metric.
    """
    keys = {(key.dataset, key.run) for key in found.summaries if key.metric == metric}
    having = [run for run in runs if run in keys]
    if not having:
        raise PlanError(f"no run shown has {metric} as a whole; `show --metric {metric}` says where it is")
    run = next((each for each in having if writes(found, each)), having[0])
    sign = 1 if METRICS[metric].better is Better.LOWER else -1

    def place(cell: str) -> tuple[bool, float]:
        figure = found.summary(cell, run, metric).centre
        return figure is None, 0.0 if figure is None else sign * figure

    ordered = sorted(found.cells, key=place)[:top]
    kept = (
        "" if len(ordered) == len(found.cells) else f", the first {len(ordered)} of {len(found.cells)} cells"
    )
    return replace(
        found,
        cells={cell: found.cells[cell] for cell in ordered},
        marks=(f"sorted by {metric} of {run[1]}{kept}", *found.marks),
    )


# Of a study with more cells than this a terminal shows the best of each class alone.
CELLS_MOST = 20

_OF_EACH_CLASS = 10


def best_of_classes(
    found: Overview, runs: Sequence[tuple[str, str]], metric: str | None = None, *, all_cells: bool = False
) -> Overview:
    """The study with its cells by what a power cut leaves and then the best first, by `metric` or by what the first run that writes is about.

    Of many cells the first ten of each class, unless `all_cells` are wanted. As it is where no run has such a figure, or a search
    chose the cells.
    """
    if is_chosen(found.study):
        return found
    asked = []
    for run in (run for run in runs if has_speed(found, run)):
        having = {key.metric for key in found.summaries if (key.dataset, key.run) == run}
        name = default_metric(found, run, having) if metric is None else metric
        if name in having and METRICS[name].better is not Better.NEITHER:
            asked.append((answers_first(found, run, name), run, name))
    if not asked:
        return found
    _, run, name = min(asked)
    sign = 1 if METRICS[name].better is Better.LOWER else -1
    by_class: dict[str, list[str]] = {each: [] for each in CLASSES}
    for cell, facts in found.cells.items():
        by_class[durability_class(facts.durability, facts.cache)].append(cell)
    centres = {cell: found.summary(cell, run, name).centre for cell in found.cells}
    places = {cell: math.inf if centre is None else sign * centre for cell, centre in centres.items()}
    most = _OF_EACH_CLASS if len(found.cells) > CELLS_MOST and not all_cells else None
    kept = [cell for own in by_class.values() for cell in sorted(own, key=places.__getitem__)[:most]]
    mark = f"the {most} best of each class by {name} of {run[1]}, {len(kept)} of {len(found.cells)} cells; --all shows every one"
    marks = (mark, *found.marks) if len(kept) < len(found.cells) else found.marks
    return replace(found, cells={cell: found.cells[cell] for cell in kept}, marks=marks)


def _without_a_factor(lacking: Iterable[Lacking], study: int) -> tuple[str, ...]:
    """What became of the cells that cannot have a factor that a filter names."""
    return tuple(
        filled(
            KEPT_WITHOUT if each.kept else PASSED_OVER,
            factor=short_name(each.factor),
            n=len(own),
            types=", ".join(sorted({str(one.levels.get(TYPE, "?")) for one in own})),
        )
        for each in lacking
        if (own := [one for one in each.cells if one.study == study])
    )


def _narrowed(found: Overview, chosen: frozenset[str], words: str, without: tuple[str, ...]) -> Overview:
    measurements = tuple(m for m in found.measurements if m.canary or m.cell in chosen)
    plain = [m for m in measurements if not m.canary]
    runs = tuple(run for run in found.runs if any((m.dataset, m.run) == run for m in plain))
    cells = {cell: _among(facts, chosen) for cell, facts in found.cells.items() if cell in chosen}
    specs = {run: spec for run in runs if (spec := found.spec(run)) is not None}
    views = score_views(plain, tuple(cells), specs)
    scores = {
        key: replace(summary, low=None, high=None) if cells[key.cell].incomparable else summary
        for view in views
        for key, summary in score_summaries(view).items()
    }
    keys = [key for key in found.summaries if key.cell in chosen and key.metric not in SCORES]
    summaries = Summaries((*keys, *scores), lambda key: scores.get(key) or found.summaries[key])
    visits = tuple(
        visit for visit in found.study.visits if visit.record.key.canary or visit.record.key.cell in chosen
    )
    here = [found.study.schedule.cells[cell] for cell in cells]
    selection = f"{words}: {len(cells)} of {len(found.cells)} cells"
    return replace(
        found,
        study=replace(found.study, visits=visits),
        cells=cells,
        runs=runs,
        measurements=measurements,
        summaries=summaries,
        marks=(
            f"a selection, {selection}; scores, scales and averages are over these alone",
            *without,
            *search_marks(found.study),
            *study_marks(here, [visit.record for visit in visits]),
            *found.study.marks,
        ),
        # What was pruned was selected by nobody.
        pruned=(),
        scores=views,
        selection=selection,
    )


def _among(facts: CellFacts, chosen: frozenset[str]) -> CellFacts:
    """A cell that names no other outside the selection."""
    return replace(facts, identical_to=tuple(other for other in facts.identical_to if other in chosen))
