"""The claims as a page shows them: one row for each claim and study that measured it, those that nobody measured apart."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bedplate.analysis.advice import objectives_of
from bedplate.analysis.claims import (
    ClaimsAnswer,
    Finding,
    JudgedClaim,
    check_words,
    claim_bounds,
    claim_figure,
    claim_sentences,
)
from bedplate.analysis.comparison import study_names
from bedplate.analysis.effects import (
    FactorEffects,
    StudyEffects,
    across_classes,
    all_else_equal,
    crossing_sentences,
    effect_notes,
    interaction_sentences,
    part_words,
    share_name,
    strongest_sentence,
    study_effects,
)
from bedplate.analysis.fleet import folded, node_kinds
from bedplate.analysis.labels import CellLabel, level_text, short_name
from bedplate.analysis.overview import Overview, default_metric, is_chosen, search_marks
from bedplate.analysis.pooled import ratio_words
from bedplate.analysis.search import (
    Searched,
    SearchedCell,
    accepted_words,
    bounded_words,
    chance_words,
    doubted_words,
    factors_that_matter,
    left_out_words,
    name,
    predicted_words,
    progress_words,
    search_of,
)
from bedplate.analysis.wording import capital, confidence_words, figure, rounded, verdict_word
from bedplate.model.codec import json_fields
from bedplate.model.figure import Better, Scale
from bedplate.model.machine import NodeFacts, StoredMachine
from bedplate.model.metrics import METRICS
from bedplate.statistics.comparison import Comparison, Verdict, family_confidence
from bedplate.statistics.effects import Effects
from bedplate.statistics.estimation import REPETITIONS_MIN
from bedplate.statistics.heat_map import CommonScale, common_scale
from bedplate.units import asked_percent, format_size, percent

# What `same` may mean on a page, as a share.
PAGE_MARGINS = (0.01, 0.02, 0.05, 0.1, 0.2)

_CLASSES = {
    Finding.HOLDS: "holds",
    Finding.FAILS: "fails",
    Finding.CANNOT_TELL: "untold",
    Finding.NOT_MEASURED: "unmeasured",
}


@dataclass(frozen=True)
class ClaimRow:
    """A claim in a study; `study` is empty where there is one. `rests_on` is the figure of `estimate` and `bounds`."""

    id: str
    sentence: str
    study: str
    finding: str
    finding_class: str
    estimate: str
    bounds: str
    n: int
    rests_on: str
    notes: tuple[str, ...]
    checks: tuple[str, ...]


@dataclass(frozen=True)
class ClaimSource:
    """A file of claims: its title says where its sentences come from."""

    title: str
    rows: tuple[ClaimRow, ...]
    not_measured: tuple[ClaimRow, ...]


@dataclass(frozen=True)
class ClaimsView:
    """All files, and what is to be known of the findings together."""

    sources: tuple[ClaimSource, ...]
    sentences: tuple[str, ...]


def claims_view(found: ClaimsAnswer) -> ClaimsView:
    """The rows of every file in its order."""
    names = study_names(found.overviews)
    return ClaimsView(
        tuple(
            _source(file.title, judged, names) for file, judged in zip(found.files, found.judged, strict=True)
        ),
        claim_sentences(found) if found.files else (),
    )


def _source(title: str, judged: Sequence[JudgedClaim], names: Sequence[str]) -> ClaimSource:
    rows = [(one, _row(one, names)) for one in judged]
    return ClaimSource(
        title,
        tuple(row for one, row in rows if one.finding is not Finding.NOT_MEASURED),
        tuple(row for one, row in rows if one.finding is Finding.NOT_MEASURED),
    )


def _row(one: JudgedClaim, names: Sequence[str]) -> ClaimRow:
    notes = (*one.reasons, *one.notes, *((f"Read as: {one.claim.note}",) if one.claim.note else ()))
    return ClaimRow(
        id=one.claim.id,
        sentence=one.claim.sentence,
        study=names[one.study] if one.study is not None and len(names) > 1 else "",
        finding=one.finding.value,
        finding_class=_CLASSES[one.finding],
        estimate=claim_figure(one, one.estimate),
        bounds=claim_bounds(one),
        n=one.n,
        rests_on=f"{one.metric}: {one.words}" if one.words else "",
        notes=notes,
        checks=tuple(check_words(check) for check in one.claim.check),
    )


_DIGITS = 5


def page_effects(found: Overview) -> StudyEffects:
    """Effects on what a run is about, and on its latency, steadiness and space as far as these have a logarithm."""
    names: dict[str, None] = {}
    for run in found.runs:
        having = {name for cell in found.cells for m in found.of(cell, run) for name in m.metrics}
        first = default_metric(found, run, having)
        wanted = [first] if first else []
        # By the stored metric: space has another name, also where a run has the database's size alone.
        wanted += [each.parts[0] for each in objectives_of(found, run) if len(each.parts) == 1]
        names |= dict.fromkeys(name for name in wanted if METRICS[name].scale is Scale.RATIO)
    has_effects = names and not is_chosen(found.study)
    return study_effects(found, metrics=tuple(names)) if has_effects else StudyEffects(found, ())


def effects_view(effects: Sequence[StudyEffects], runs: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """One entry per study, run, metric and part of a run; `run` is the index among `runs`.

    Its designs are those within each durability class, then those across the classes where a ratio crosses them.
    """
    return [
        {
            "study": number,
            "run": runs.index(each.asked.run),
            "metric": each.asked.metric,
            "part": each.asked.part,
            "strongest": strongest_sentence(each),
            **json_fields(each, "incomparable suspect unknown unusable stopped"),
            "designs": [
                _design(part, one)
                for one in (each, across.get(each.asked))
                if one is not None
                for part in one.parts
            ],
            "crossing": list(crossing_sentences(each)),
            "families": [row for part in each.parts for row in _family_rows(part)],
        }
        for number, found in enumerate(effects)
        for across in [{one.asked: one for one in across_classes(found).found}]
        for each in found.found
    ]


def _design(part: Effects, each: FactorEffects) -> dict[str, Any]:
    variation = part.variation
    shares = () if variation is None else variation.shares
    first = {effect.factor: effect.baseline for effect in reversed(part.effects)}
    return {
        "name": part_words(each, part),
        "across": each.across,
        "cells": part.cells,
        "repetitions": len(part.repetitions),
        "judged": len(part.repetitions) >= REPETITIONS_MIN,
        "shares": [
            [share_name(share), *(rounded(value, _DIGITS) for value in (share.share, share.low, share.high))]
            for share in sorted(shares, key=lambda share: -share.share)
        ],
        "confidence": confidence_words(own) if (own := _confidences(part)) else None,
        "ratios": [
            [
                short_name(effect.factor),
                level_text(effect.factor, effect.level),
                level_text(effect.factor, effect.baseline),
                *(rounded(value, _DIGITS) for value in (effect.ratio, effect.judged.low, effect.judged.high)),
                "" if effect.judged.verdict is Verdict.CANNOT_TELL else effect.judged.verdict,
            ]
            for effect in part.effects
            if effect.baseline == first[effect.factor]
        ],
        "interactions": list(interaction_sentences(part.interactions, METRICS[each.asked.metric])),
        "notes": [
            f"{all_else_equal(part)}.",
            *effect_notes(part),
            *(crossing_sentences(each) if each.across else ()),
        ],
    }


def _family_rows(part: Effects) -> Iterator[list[Any]]:
    """By which the script knows a line over pairs again, and the confidences at which it is judged here."""
    for factor in part.factors:
        own = [family_confidence(part.family(factor), margin) for margin in PAGE_MARGINS]
        for each in part.effects:
            if each.factor == factor:
                levels = (level_text(factor, level) for level in (each.level, each.baseline))
                yield [
                    part.durability,
                    factor,
                    *levels,
                    each.strata,
                    each.ratio,
                    own[0].difference,
                    [one.sameness for one in own],
                ]


def _confidences(part: Effects) -> list[float]:
    return [each.judged.confidence for each in part.effects if each.judged.basis is not None]


@dataclass(frozen=True)
class MachineFact:
    """One fact of every machine, in their order; None where a machine does not have it."""

    name: str
    values: tuple[str | None, ...]

    @property
    def differs(self) -> bool:
        """Whether it tells the machines apart."""
        return len(set(self.values)) > 1


@dataclass(frozen=True)
class MachinesView:
    """`heads` name the studies of each machine; `details` are facts by kind."""

    heads: tuple[tuple[str, ...], ...]
    facts: tuple[MachineFact, ...]
    details: tuple[tuple[str, tuple[MachineFact, ...]], ...]


def machines_view(overviews: Sequence[Overview]) -> MachinesView:
    """Studies of one machine, unchanged, share a column, and so do nodes of a fleet that are alike."""
    names = study_names(overviews)
    columns: list[_Column] = []
    for number, found in enumerate(overviews):
        for column in _columns(found, names[number] if len(overviews) > 1 else None):
            known = next((of for of in columns if of.whole == column.whole), None)
            if known is None:
                columns.append(column)
            else:
                known.names.extend(column.names)
    return MachinesView(
        heads=tuple(tuple(of.names) for of in columns),
        facts=_facts([of.facts for of in columns]),
        details=(
            ("Tools", _facts([of.machine.tools for of in columns], by_name=True)),
            ("Tunables", _facts([of.machine.tunables for of in columns], by_name=True)),
        ),
    )


@dataclass(frozen=True)
class _Column:
    names: list[str]
    machine: StoredMachine
    facts: Mapping[str, str]

    @property
    def whole(self) -> tuple[object, ...]:
        """All that is shown: the boot, which is another after each start, is not."""
        return (dict(self.facts), dict(self.machine.tools), dict(self.machine.tunables))


def _columns(found: Overview, name: str | None) -> list[_Column]:
    """One for a machine, one for each kind of node of a fleet; `name` where there are other studies."""
    machine = found.study.machine
    kinds = node_kinds(found.study)
    if not kinds:
        facts = _of_source(machine) if found.study.facts.is_imported else dict(_of(machine))
        return [_Column([name or found.study.facts.title], machine, facts)]
    before = "" if name is None else f"{name}: "
    return [
        _Column(
            [f"{before}node{'s' * (len(kind.nodes) > 1)} {folded(kind.nodes)}"],
            kind.facts.machine,
            {**dict(_of(kind.facts.machine)), "Host": folded(kind.hosts), **_of_node(kind.facts)},
        )
        for kind in kinds
    ]


def _of_source(machine: StoredMachine) -> Mapping[str, str]:
    """What the source of an imported study says of its machine: nobody looked for the rest, so nothing is said of it."""
    return {"Host": machine.hostname, **dict(machine.stated_facts), "Identity": machine.identity}


def _of_node(facts: NodeFacts) -> Mapping[str, str]:
    """What is known of a node beyond its machine; of an image file's disk nothing is."""
    size = facts.device_size_bytes
    known = {
        "Firmware": facts.firmware,
        "Scratch device": _disk(
            facts.device_model, facts.device_firmware, None if size is None else format_size(size)
        ),
        "Journal device": _disk(facts.journal_device_model, facts.journal_device_firmware),
    }
    return {name: value for name, value in known.items() if value}


def _disk(model: str | None, firmware: str | None, size: str | None = None) -> str:
    words = (model, f"firmware {firmware}" if firmware else None, size)
    return ", ".join(word for word in words if word)


def _facts(machines: Sequence[Mapping[str, str]], *, by_name: bool = False) -> tuple[MachineFact, ...]:
    names = dict.fromkeys(name for facts in machines for name in facts)
    return tuple(
        MachineFact(name, tuple(facts.get(name) for facts in machines))
        for name in (sorted(names) if by_name else names)
    )


def _of(machine: StoredMachine) -> tuple[tuple[str, str], ...]:
    return (
        ("Host", machine.hostname),
        ("Distribution", machine.distribution),
        ("Kernel", f"{machine.kernel_release} ({machine.architecture})"),
        ("CPU", machine.cpus_words),
        ("Memory", f"{machine.memory_words}, pages of {machine.page_words}"),
        ("Virtualisation", machine.virtualisation or "none found"),
        ("File systems", ", ".join(machine.filesystems)),
        (
            "Control groups",
            f"version {machine.cgroup_version}" if machine.cgroup_version else "no memory limits",
        ),
        ("Pressure (PSI)", "recorded" if machine.pressure_available else "not available"),
        ("Identity", machine.identity),
    )


_SEARCH_DIGITS = 4

# Lines of the course; the chances of all other cells are one more.
_LINES = 7


@dataclass(frozen=True)
class SearchSquare:
    """A cell in a map. `share` is its place on the colours, None where nothing is predicted; `why` says why it may not win.

    `measured` says of a cell without a figure whether it was visited.
    """

    predicted: str
    bounds: str
    measured: str
    proved: str
    chance: str
    share: float | None
    is_named: bool
    why: str


@dataclass(frozen=True)
class SearchMap:
    """The squares of a variant: heads of columns, and rows with a head and a square for each column, None where there is no cell."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[SearchSquare | None, ...]], ...]


@dataclass(frozen=True)
class FactorRow:
    """What a factor matters: the two levels furthest apart, the ratio and its interval."""

    factor: str
    better: str
    worse: str
    ratio: str
    bounds: str


@dataclass(frozen=True)
class ProofRow:
    """A cell of the proof beside the leader, as `bedplate compare` judges it."""

    cell: str
    ratio: str
    verdict: str
    n: int
    note: str


@dataclass(frozen=True)
class SearchSection:
    """A search for the page's template; `id` tells the course of one study from another's. `proof` is empty before one."""

    id: str
    study: str
    metric: str
    runs: str
    blocks: int
    maps: tuple[SearchMap, ...]
    factors: tuple[FactorRow, ...]
    leader: str
    proof: tuple[ProofRow, ...]
    left_out: tuple[str, ...]


def chosen_sentence(overviews: Sequence[Overview], names: Sequence[str]) -> str:
    """What stands above figures of studies whose cells a search chose, with their names where others are beside them; empty without one."""
    told = [
        (name, words)
        for name, found in zip(names, overviews, strict=True)
        for words in search_marks(found.study)
    ]
    if not told:
        return ""
    if len(overviews) == 1:
        return f"{capital(told[0][1])}."
    return " ".join(f"{name}: {words}." for name, words in told)


def search_sections(overviews: Sequence[Overview], names: Sequence[str]) -> tuple[SearchSection, ...]:
    """One for each study that is a search."""
    return tuple(
        _section(search, number, study)
        for number, (found, study) in enumerate(zip(overviews, names, strict=True))
        if (search := search_of(found)) is not None
    )


def searches_document(overviews: Sequence[Overview]) -> list[dict[str, Any]]:
    """For the script: of each search the chances after each block, of the cells that came closest.

    `lines` are a name and a chance for each block, `rest` the chance of all others together. Where a proof begins is in `proofs`.
    """
    return [
        _course(search, number)
        for number, found in enumerate(overviews)
        if (search := search_of(found)) is not None
    ]


def _course(found: Searched, number: int) -> dict[str, Any]:
    moments = found.course
    highest: dict[str, float] = {}
    for moment in moments:
        for cell, chance in moment.best.items():
            highest[cell] = max(chance, highest.get(cell, 0.0))
    last = moments[-1].best if moments else {}
    lines = sorted(highest, key=lambda cell: (-last.get(cell, 0.0), -highest[cell]))[:_LINES]
    return {
        "id": _id(number),
        "note": f"{capital(progress_words(found))}.",
        "minutes": [rounded(moment.spent_s / 60, _SEARCH_DIGITS) for moment in moments],
        "near": [rounded(moment.chance, _SEARCH_DIGITS) for moment in moments],
        "leaders": [found.labels[moment.leader].full for moment in moments],
        "proofs": [moment.proof for moment in moments],
        "visits": [len(moment.cells) for moment in moments],
        "margin": percent(found.question.margin),
        "lines": [
            [
                found.labels[cell].full,
                [rounded(moment.best.get(cell, 0.0), _SEARCH_DIGITS) for moment in moments],
            ]
            for cell in lines
        ],
        "rest": [
            rounded(max(0.0, 1 - sum(moment.best.get(cell, 0.0) for cell in lines)), _SEARCH_DIGITS)
            for moment in moments
        ],
    }


def _id(number: int) -> str:
    return f"search-{number}"


def _section(found: Searched, number: int, study: str) -> SearchSection:
    proof = found.proof
    return SearchSection(
        id=_id(number),
        study=study,
        metric=found.metric.name,
        runs=" and ".join(found.record.runs),
        blocks=len(found.record.blocks),
        maps=tuple(_maps(found)),
        factors=tuple(_factors(found)),
        leader="" if proof is None else name(found, proof.leader),
        proof=() if proof is None else tuple(proof_rows(found)),
        left_out=(
            *left_out_words(found),
            *_without_map(found),
            *(f"{capital(words)}." for words in filter(None, (accepted_words(found),))),
            *(f"Doubted: {words}." for words in doubted_words(found)),
        ),
    )


def _factors(found: Searched) -> Iterable[FactorRow]:
    for each in factors_that_matter(found):
        yield FactorRow(
            short_name(each.factor),
            level_text(each.factor, each.better),
            level_text(each.factor, each.worse),
            f"×{each.ratio:.2f}",
            f"{each.low:.2f} to {each.high:.2f}",
        )


def proof_rows(found: Searched) -> Iterable[ProofRow]:
    """A row for each rival, and for the leader in each further figure; none before a proof."""
    proof = found.proof
    if proof is None:
        return
    for number, comparison in proof.rivals.items():
        is_baseline = number == found.question.baseline
        doubtful = (
            f", and whether it is worse in {bounded_words(found)} than asked"
            if number in proof.doubtful
            else ""
        )
        note = (
            "the plan's first cell"
            if is_baseline
            else f"still open{doubtful}"
            if number in proof.open
            else ""
        )
        yield _proof_row(name(found, number), comparison, note)
    for asked, comparison in zip(found.record.not_worse, proof.kept, strict=False):
        yield _proof_row(
            f"{asked.metric} of the leader", comparison, f"{asked_percent(asked.share)} worse allowed"
        )


def _proof_row(cell: str, comparison: Comparison, note: str) -> ProofRow:
    verdict = verdict_word(comparison) if comparison.low is not None else "no interval"
    return ProofRow(cell, ratio_words(comparison), verdict, comparison.n, note)


def _panels(found: Searched) -> Mapping[str, list[SearchedCell]]:
    """The cells of each variant."""
    panels: defaultdict[str, list[SearchedCell]] = defaultdict(list)
    for cell in found.cells:
        panels[cell.label.panel].append(cell)
    return panels


def _is_left_out(cells: Iterable[SearchedCell]) -> bool:
    """Whether all of a variant were left out from the beginning, so that nothing is known of any."""
    return all(cell.closed is not None and not cell.visits and cell.predicted is None for cell in cells)


def _without_map(found: Searched) -> Iterator[str]:
    names = [panel for panel, own in _panels(found).items() if _is_left_out(own)]
    if names:
        yield f"No map of what is left out whole: {'; '.join(names)}."


def _maps(found: Searched) -> Iterable[SearchMap]:
    predicted = [cell.predicted.value for cell in found.cells if cell.predicted is not None]
    scale = common_scale(predicted, found.metric.scale)
    named = set() if found.end is None else {found.id_of(number) for number in found.end.cells}
    for panel, own in _panels(found).items():
        if _is_left_out(own):
            continue
        rows = _sides(own, lambda label: (label.filesystem_block, label.filesystem_block_bytes))
        columns = _sides(own, lambda label: (label.database_block, label.database_block_bytes))
        at = {(cell.label.filesystem_block, cell.label.database_block): cell for cell in own}
        yield SearchMap(
            panel,
            columns,
            tuple(
                (
                    row,
                    tuple(
                        None
                        if cell is None
                        else _square(cell, scale, found.metric.better, is_named=cell.id in named)
                        for cell in (at.get((row, column)) for column in columns)
                    ),
                )
                for row in rows
            ),
        )


def _sides(
    cells: Sequence[SearchedCell], side: Callable[[CellLabel], tuple[str, int | None]]
) -> tuple[str, ...]:
    sizes = dict(side(cell.label) for cell in cells)
    return tuple(sorted(sizes, key=lambda label: (sizes[label] or 0, label)))


def _square(cell: SearchedCell, scale: CommonScale | None, better: Better, *, is_named: bool) -> SearchSquare:
    value, bounds = predicted_words(cell.predicted)
    return SearchSquare(
        predicted=value,
        bounds=bounds,
        measured=_measured_words(cell),
        proved="" if cell.proved is None else figure(cell.proved).mean,
        chance="" if cell.predicted is None else chance_words(cell.best),
        share=None
        if scale is None or cell.predicted is None
        else _share(scale, cell.predicted.value, better),
        is_named=is_named,
        why="" if cell.closed is None else cell.closed.sentence,
    )


def _measured_words(cell: SearchedCell) -> str:
    if cell.believed:
        return f"{figure(cell.measured).mean} in {cell.visits}"
    return "not believed" if cell.visits else "not visited"


def _share(scale: CommonScale, value: float, better: Better) -> float:
    """How deep a value is coloured, as `views/heat_maps.js` has it: what is better is never the paler one."""
    if scale.high == scale.low:
        return 0.5
    low, high, at = map(math.log if scale.logarithmic else float, (scale.low, scale.high, value))
    return (high - at if better is Better.LOWER else at - low) / (high - low)
