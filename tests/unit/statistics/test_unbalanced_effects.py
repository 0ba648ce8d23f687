"""Effects in designs that are not complete: the planted truth, or the reason why there is none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.support.studies.unbalanced_designs import BARRIER, TYPE, Planted, design_cells, planted

from bedplate.model.levels import Scalar
from bedplate.statistics.design import DesignCell
from bedplate.statistics.effects import Effects, effects, within_classes

DESIGNS = pytest.mark.parametrize("found", planted(), ids=lambda found: found.name)


def repeated(shifts: int, repetitions: int = 5, scatter: float = 0.0) -> dict[tuple[int, int], float]:
    """What a repetition does to all of its cells, and the scatter of each run."""
    random = np.random.default_rng(shifts)
    moved = random.normal(0, 0.5, repetitions + 1)
    return {
        (cell, r): float(moved[r] + random.normal(0, scatter))
        for cell in range(20)
        for r in range(1, repetitions + 1)
    }


def told(parts: tuple[Effects, ...]) -> dict[tuple[object, ...], list[tuple[float, int]]]:
    """Every ratio with the number of its strata, in the order of the parts."""
    found: dict[tuple[object, ...], list[tuple[float, int]]] = {}
    for part in parts:
        for each in part.effects:
            found.setdefault((each.factor, each.level, each.baseline), []).append((each.ratio, each.strata))
    return found


@DESIGNS
def test_every_ratio_within_a_class_is_the_planted_one(found: Planted) -> None:
    parts, _ = within_classes(design_cells(found, repeated(1), repetitions=5))
    ratios = told(parts)
    for key, (ratio, strata) in found.ratios.items():
        assert key in ratios
        # A cell that lost most of its visits may leave a stratum; no stratum is of unlike cells.
        if not found.lost:
            assert strata == max(count for _, count in ratios[key])
        for measured, _ in ratios[key]:
            assert measured == pytest.approx(ratio)


@DESIGNS
def test_a_ratio_that_crosses_classes_is_named_and_in_no_part(found: Planted) -> None:
    classes = design_cells(found, repeated(2), repetitions=5)
    parts, crossing = within_classes(classes)
    assert not set(found.crossing) & set(told(parts))
    assert set(found.crossing) <= {(each.factor, each.level, each.baseline) for each in crossing}
    assert not {(each.factor, each.level, each.baseline) for each in crossing} & set(found.ratios)
    across = told(effects(cell for cells in classes.values() for cell in cells))
    for key, ratio in found.crossing.items():
        assert ratio == pytest.approx(across[key][0][0])
    # What is within a class stays what it is.
    for key, (ratio, _) in found.ratios.items():
        assert ratio == pytest.approx(across[key][0][0])


@DESIGNS
def test_levels_without_cells_that_are_alike_have_no_ratio_and_a_reason(found: Planted) -> None:
    parts, crossing = within_classes(design_cells(found, repeated(3), repetitions=5))
    unmatched = {(each.factor, each.level, each.baseline) for part in parts for each in part.unmatched}
    assert set(found.unmatched) <= unmatched
    known = {*told(parts), *((each.factor, each.level, each.baseline) for each in crossing)}
    assert not set(found.unmatched) & known


@DESIGNS
def test_all_else_is_equal_in_every_ratio_of_a_part(found: Planted) -> None:
    parts, _ = within_classes(design_cells(found, repeated(4), repetitions=5))
    assert all(not each.differs for part in parts for each in part.effects)


@DESIGNS
def test_the_intervals_hold_the_planted_truth(found: Planted) -> None:
    missed = told_of = wrong = 0
    for seed in range(25):
        parts, _ = within_classes(design_cells(found, repeated(seed, scatter=0.04), repetitions=5))
        for part in parts:
            for each in part.effects:
                truth = found.ratios.get((each.factor, each.level, each.baseline))
                if (
                    truth is None
                    or not each.judged.is_told_apart
                    or each.judged.low is None
                    or each.judged.high is None
                ):
                    continue
                told_of += 1
                missed += not each.judged.low <= truth[0] <= each.judged.high
                wrong += math.log(each.ratio) * math.log(truth[0]) < 0
    assert told_of > 25
    # 5 % are promised; three and a half standard errors more.
    assert missed / told_of <= 0.05 + 3.5 * math.sqrt(0.05 * 0.95 / told_of)
    assert 0 == wrong


def test_shares_are_those_of_cells_that_are_alike() -> None:
    """Between the durable cells of the nested design the file system has a share; barriers are in none of it."""
    (found, *_) = planted()
    parts, _ = within_classes(design_cells(found, repeated(5, scatter=0.001), repetitions=5))
    durable = parts[0]
    assert durable.variation is not None
    shares = {share.factors: share.share for share in durable.variation.shares}
    logs = np.log([1.0, 1.083, 0.6])
    kind = float(np.var(logs))
    database = float(np.var(np.log([1.0, 1.2])))
    assert shares[(TYPE,)] == pytest.approx(kind / (kind + database), abs=0.01)
    assert 6 == durable.variation.cells


def test_shares_hold_a_factor_of_one_type_at_its_usual_level() -> None:
    (_, found, *_) = planted()
    (whole, within), _ = within_classes(design_cells(found, repeated(6, scatter=0.001), repetitions=5))
    assert whole.variation is not None
    shares = {share.factors: share.share for share in whole.variation.shares}
    kind, database = (float(np.var(np.log(levels))) for levels in ([1.0, 1.083], [1.0, 1.2]))
    assert shares[(TYPE,)] == pytest.approx(kind / (kind + database), abs=0.01)
    assert (4, ("filesystem.data",)) == (whole.variation.cells, whole.variation.held)
    assert within.variation is not None
    assert (4, ()) == (within.variation.cells, within.variation.held)


def test_what_one_side_has_at_another_level_is_no_interaction_of_two_other_factors() -> None:
    """XFS without barriers at one database block alone: what barriers cost is nothing that the block does to XFS."""
    speeds = {("ext4", 2048, None): 1.0, ("ext4", 8192, None): 1.2, ("xfs", 2048, False): 2.0}
    levels: list[dict[str, Scalar]] = [
        {TYPE: kind, "build.block_size_bytes": size, **({} if barrier is None else {BARRIER: barrier})}
        for kind, size, barrier in [*speeds, ("xfs", 8192, True), ("xfs", 8192, False)]
    ]
    values = [*speeds.values(), 1.2, 2.4]
    found = effects(
        DesignCell(cell, dict.fromkeys(range(5), value), frozenset({BARRIER} if cell.get(BARRIER) else ()))
        for cell, value in zip(levels, values, strict=True)
    )
    assert [] == [each for part in found if part.within is None for each in part.interactions]
