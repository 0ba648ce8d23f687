"""The section of a search: how sure it became over time, every cell as predicted, measured and proved, what mattered, the proof."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bedplate.analysis.comparison.sentences import ratio_words
from bedplate.analysis.factors import level_text, short_name
from bedplate.analysis.rounding import rounded
from bedplate.analysis.search.marks import search_marks
from bedplate.analysis.search.matters import factors_that_matter
from bedplate.analysis.search.searched import search_of
from bedplate.analysis.search.sentences import bounded_words, chance_words, name, progress_words
from bedplate.analysis.search.words import (
    accepted_words,
    doubted_words,
    left_out_words,
    predicted_words,
)
from bedplate.analysis.wording import capital, figure, verdict_word
from bedplate.statistics.heat_map import common_scale
from bedplate.units import asked_percent, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from bedplate.analysis.labels import CellLabel
    from bedplate.analysis.overview import Overview
    from bedplate.analysis.search.searched import Searched, SearchedCell
    from bedplate.statistics.comparison import Comparison
    from bedplate.statistics.heat_map import CommonScale

_DIGITS = 4
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
        "minutes": [rounded(moment.spent_s / 60, _DIGITS) for moment in moments],
        "near": [rounded(moment.chance, _DIGITS) for moment in moments],
        "leaders": [found.labels[moment.leader].full for moment in moments],
        "proofs": [moment.proof for moment in moments],
        "visits": [len(moment.cells) for moment in moments],
        "margin": percent(found.question.margin),
        "lines": [
            [
                found.labels[cell].full,
                [rounded(moment.best.get(cell, 0.0), _DIGITS) for moment in moments],
            ]
            for cell in lines
        ],
        "rest": [
            rounded(max(0.0, 1 - sum(moment.best.get(cell, 0.0) for cell in lines)), _DIGITS)
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
                        None if cell is None else _square(cell, scale, is_named=cell.id in named)
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


def _square(cell: SearchedCell, scale: CommonScale | None, *, is_named: bool) -> SearchSquare:
    value, bounds = predicted_words(cell.predicted)
    return SearchSquare(
        predicted=value,
        bounds=bounds,
        measured=_measured_words(cell),
        proved="" if cell.proved is None else figure(cell.proved).mean,
        chance="" if cell.predicted is None else chance_words(cell.best),
        share=None if scale is None or cell.predicted is None else _share(scale, cell.predicted.value),
        is_named=is_named,
        why="" if cell.closed is None else cell.closed.sentence,
    )


def _measured_words(cell: SearchedCell) -> str:
    if cell.believed:
        return f"{figure(cell.measured).mean} in {cell.visits}"
    return "not believed" if cell.visits else "not visited"


def _share(scale: CommonScale, value: float) -> float:
    """Where a value lies between the ends of the colours, as `statistics/heat_scale.js` has it."""
    if scale.high == scale.low:
        return 0.5
    if scale.logarithmic:
        return math.log(value / scale.low) / math.log(scale.high / scale.low)
    return (value - scale.low) / (scale.high - scale.low)
