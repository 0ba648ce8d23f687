"""What single pairs of cells do not tell and all of them together do: levels that are shown worse, and type against type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.analysis.comparison.compared import ComparisonQuestion, answer, candidates_of
from bedplate.analysis.comparison.pooled import pooled_pairs
from bedplate.analysis.effects.factor_effects import study_effects
from bedplate.analysis.factors import TYPE
from bedplate.errors import PlanError
from bedplate.model.figure import Better, Metric, Scale

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bedplate.analysis.advice.advised import Run
    from bedplate.analysis.comparison.pooled import PooledPairs
    from bedplate.analysis.overview import Overview
    from bedplate.model.levels import Scalar
    from bedplate.statistics.effects import Effects


def not_beaten(
    found: Overview, run: Run, metric: Metric, durability: str, cells: Sequence[str]
) -> tuple[str, ...]:
    """Of some cells of one class those at no level that `effects` shows worse than a level of another of them.

    Not by a factor whose effect depends on another one beyond chance: then a ratio over all pairs is not that of each. All of
    them where none would be left, or the figure has no logarithm.
    """
    if len(cells) < 2 or metric.scale is not Scale.RATIO:
        return tuple(cells)
    levels = {one.cell: one.levels for one in candidates_of([found]) if one.cell in cells}
    worse = [
        pair
        for each in study_effects(found, workload=run[1], metrics=(metric.name,)).found
        if each.asked.run == run
        for part in each.parts
        if part.durability == durability
        for pair in _worse_levels(part, metric)
    ]
    left = tuple(
        cell
        for cell in cells
        if not any(
            levels[cell].get(factor) == low and any(own.get(factor) == high for own in levels.values())
            for factor, low, high in worse
        )
    )
    return left or tuple(cells)


def _worse_levels(part: Effects, metric: Metric) -> Iterator[tuple[str, Scalar, Scalar]]:
    """Factor, the level that is shown worse, and the one that it is worse than."""
    depending = {name for each in part.interactions if each.judged.real for name in (each.factor, each.by)}
    for each in part.effects:
        if each.judged.real and each.factor not in depending:
            is_better = (each.judged.ratio > 1) == (metric.better is Better.HIGHER)
            levels = (each.baseline, each.level) if is_better else (each.level, each.baseline)
            yield (each.factor, *levels)


def beside_other_types(
    found: Overview, run: Run, metric: Metric, durability: str, cell: str
) -> tuple[PooledPairs, ...]:
    """The type of a cell beside each other one, over all pairs of cells of its class that differ in the type alone.

    As `compare` pools them, the most pairs first; none where no two pairs do.
    """
    kinds: Mapping[str, str] = {
        each: found.study.schedule.cells[each].filesystem.type for each in found.cells if found.of(each, run)
    }
    others = sorted(set(kinds.values()) - {kinds[cell]})
    if not others:
        return ()
    question = ComparisonQuestion(
        f"{TYPE}={','.join(others)}", f"{TYPE}={kinds[cell]}", workload=run[1], metrics=(metric.name,)
    )
    try:
        lines = pooled_pairs(answer([found], question))
    except PlanError:
        return ()
    own = [
        each
        for each in lines
        if each.asked.run == run and not each.beside and each.classes[0][0] == (durability,)
    ]
    return tuple(sorted(own, key=lambda each: -len(each.pairs)))
