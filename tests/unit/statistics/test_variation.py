"""Shares of variation: exact where nothing scatters, covered where something does."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.model.levels import Scalar
from bedplate.statistics.design import DesignCell, Share, Variation, design, variation


def made(logs: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Variation | None:
    """Of an array whose axes are the repetitions and then factors `a`, `b`, …"""
    names = "abc"[: logs.ndim - 1]
    cells = [
        DesignCell(
            dict(zip(names, place, strict=True)),
            {r: math.exp(logs[(r, *place)]) for r in range(len(logs))},
        )
        for place in product(*(range(size) for size in logs.shape[1:]))
    ]
    return variation(design(cells), names)


def share(found: Variation | None, *factors: str) -> Share:
    assert found is not None
    (only,) = (s for s in found.shares if s.factors == factors)
    return only


def additive(a: float, b: float, ab: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Two factors of four and six levels with effects of these standard deviations."""
    first = np.array([-3, -1, 1, 3]) / math.sqrt(5)
    second = np.array([1, -1, 1, -1, 0, 0]) / math.sqrt(4 / 6)
    return np.asarray(a * first[:, None] + b * second + ab * first[:, None] * second)


def test_without_scatter_the_shares_are_those_of_the_effects() -> None:
    logs = np.tile(additive(0.2, 0.1, 0.05), (3, 1, 1)) + np.array([0.0, 0.5, -0.3])[:, None, None]
    found = made(logs)
    total = 0.2**2 + 0.1**2 + 0.05**2
    assert share(found, "a").share == pytest.approx(0.2**2 / total)
    assert share(found, "b").share == pytest.approx(0.1**2 / total)
    assert share(found, "a", "b").share == pytest.approx(0.05**2 / total)
    assert found is not None
    assert (24, (), ()) == (found.cells, found.left_out, found.held)
    assert found.scatter == pytest.approx(0, abs=1e-6)


def test_the_only_factor_has_no_share_whatever_it_does() -> None:
    random = np.random.default_rng(7)
    for levels in ([0.0, 0.0, 0.0], [0.0, 0.5, 1.0]):
        found = made(np.array(levels) + random.normal(0, 0.02, (5, 3)))
        assert found is not None
        assert ("a", (), 3) == (found.only, found.shares, found.cells)
        assert found.scatter < 0.05


def test_scatter_has_no_share() -> None:
    random = np.random.default_rng(1)
    logs = additive(0.2, 0.0, 0.0) + random.normal(0, 0.1, (200, 4, 6))
    found = made(logs)
    # A division of squares would give the six levels of b, which does nothing, 4 % here and the pair 13.
    assert share(found, "a").share == pytest.approx(1.0, abs=0.02)
    assert share(found, "b").share < 0.01
    assert share(found, "a", "b").share < 0.02
    assert found is not None
    assert found.scatter == pytest.approx(0.1, rel=0.1)


def test_shares_are_parts_of_one_whole_however_much_scatters() -> None:
    random = np.random.default_rng(2)
    for repetitions in (2, 3, 5):
        for _ in range(30):
            found = made(additive(0.02, 0.02, 0.0) + random.normal(0, 0.1, (repetitions, 4, 6)))
            if found is not None:
                assert sum(each.share for each in found.shares) == pytest.approx(1)


@pytest.mark.parametrize("repetitions", [3, 5])
@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("truth", [(0.2, 0.1, 0.0), (0.05, 0.3, 0.05), (0.3, 0.02, 0.1)])
def test_the_interval_holds_the_true_share(
    repetitions: int, noisy: bool, truth: tuple[float, float, float]
) -> None:
    random = np.random.default_rng(repetitions)
    deviation = np.where(random.random((4, 6)) < 0.3, 0.43, 0.04) if noisy else np.full((4, 6), 0.04)
    total = sum(part**2 for part in truth)
    held = {("a",): 0, ("b",): 0, ("a", "b"): 0}
    for _ in range(150):
        noise = random.standard_normal((repetitions, 4, 6)) * deviation
        found = made(additive(*truth) + noise + random.normal(0, 0.1, (repetitions, 1, 1)))
        for (factors, count), part in zip(held.items(), truth, strict=True):
            if found is None:
                # That nothing comes back is no wrong interval.
                held[factors] = count + 1
                continue
            one = share(found, *factors)
            assert one.low is not None
            assert one.high is not None
            held[factors] = count + (one.low - 1e-9 <= part**2 / total <= one.high + 1e-9)
    # 142.5 are promised; three and a half standard deviations are 9.3.
    assert min(held.values()) >= 133


def test_where_nothing_comes_back_nothing_is_divided() -> None:
    random = np.random.default_rng(2)
    nothing = [made(random.normal(0, 0.1, (3, 4, 6))) for _ in range(60)]
    assert any(found is None for found in nothing)
    unsure = [found for found in nothing if found is not None]
    assert unsure
    assert all((0.0, 1.0) == (s.low, s.high) for s in unsure[0].shares)


def test_two_repetitions_have_shares_and_no_bounds() -> None:
    logs = np.tile(additive(0.2, 0.1, 0.0), (2, 1, 1))
    found = share(made(logs), "a")
    assert found.share == pytest.approx(0.8)
    assert (None, None) == (found.low, found.high)
    assert made(logs[:1]) is None


def test_levels_that_lack_combinations_are_left_out_and_named() -> None:
    levels: list[Mapping[str, Scalar]] = [
        {"type": kind, "block": block}
        for kind in ("ext3", "ext4", "xfs", "btrfs")
        for block in (1024, 2048, 4096)
        if kind != "btrfs" or block == 4096
    ]
    cells = [DesignCell(found, dict.fromkeys((1, 2, 3), float(found["block"]))) for found in levels]
    found = variation(design(cells), ("type", "block"))
    assert found is not None
    assert (9, (("type", "btrfs"),)) == (found.cells, found.left_out)
    assert share(found, "block").share == pytest.approx(1.0)


@pytest.mark.parametrize("usual", ["ordered", "writeback"])
def test_a_factor_that_not_every_cell_has_is_held_at_its_usual_level(usual: str) -> None:
    levels: list[Mapping[str, Scalar]] = [
        {"type": kind, "block": block} for kind in ("xfs", "jfs", "btrfs") for block in (1, 2)
    ]
    levels += [
        {"type": "ext4", "block": block, "data": data} for block in (1, 2) for data in ("ordered", "journal")
    ]
    cells = [
        DesignCell(
            found,
            dict.fromkeys(
                (1, 2, 3),
                (2.0 if found["block"] == 2 else 1.0) * (9.0 if found.get("data") == "journal" else 1.0),
            ),
            frozenset({"data"} if found.get("data") == usual else ()),
        )
        for found in levels
    ]
    found = variation(design(cells), ("type", "block", "data"), nest="type")
    assert found is not None
    if usual == "ordered":
        assert (8, (), ("data",)) == (found.cells, found.left_out, found.held)
    else:
        # Of several levels without a usual one none can speak for the type.
        assert (6, (("type", "ext4"),)) == (found.cells, found.left_out)
    assert share(found, "block").share == pytest.approx(1.0)


@settings(deadline=None, max_examples=30)
@given(
    st.tuples(st.integers(2, 3), st.integers(2, 3), st.integers(2, 4)),
    st.integers(2, 5),
    st.integers(0, 10_000),
)
def test_shares_are_shares(sizes: tuple[int, int, int], repetitions: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    found = made(random.normal(0, 1, sizes) + random.normal(0, 0.01, (repetitions, *sizes)))
    assert found is not None
    assert 7 == len(found.shares)
    assert sum(s.share for s in found.shares) == pytest.approx(1.0, abs=0.01)
    for s in found.shares:
        assert 0 <= s.share <= 1
        if s.low is not None and s.high is not None:
            assert 0 <= s.low <= s.share <= s.high <= 1
