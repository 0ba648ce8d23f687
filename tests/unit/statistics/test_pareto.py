"""Pareto's comparison made of verdicts: the classical front where all is told, and no more than is told elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bedplate.statistics.heat_map import Front, Standing, front, told_apart

LEADING, OPEN, RULED_OUT = Standing.LEADING, Standing.OPEN, Standing.RULED_OUT

# Scores of alternatives, higher is better: few values, so that ties come up.
scores = st.tuples(st.integers(1, 4), st.integers(1, 7)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 4))
)


def told(found: np.ndarray, known: np.ndarray | None = None) -> Front:
    """The front of true scores, objectives x alternatives, of which `known` pairs are told."""
    better = found[:, :, None] > found[:, None, :]
    same = found[:, :, None] == found[:, None, :]
    if known is not None:
        better, same = better & known, same & known
    return front(better, same)


def dominates(first: np.ndarray, second: np.ndarray) -> bool:
    return bool((first >= second).all() and (first > second).any())


@settings(deadline=None)
@given(scores)
def test_where_all_is_told_it_is_the_classical_front(found: np.ndarray) -> None:
    expected = tuple(
        RULED_OUT if any(dominates(other, own) for other in found.T) else LEADING for own in found.T
    )
    assert expected == told(found).standings


@settings(deadline=None)
@given(scores, st.data())
def test_nothing_is_ruled_out_that_the_truth_does_not_rule_out(
    found: np.ndarray, data: st.DataObject
) -> None:
    count = found.shape[1]
    half = data.draw(arrays(np.bool_, (found.shape[0], count, count)))
    known = half | half.transpose(0, 2, 1)
    judged = told(found, known)
    for number, (standing, ahead) in enumerate(zip(judged.standings, judged.ahead, strict=True)):
        assert bool(ahead) == (standing is not LEADING)
        for other in ahead:
            assert (found[:, other] > found[:, number])[known[:, other, number]].any()
            if standing is RULED_OUT:
                assert dominates(found[:, other], found[:, number])


@settings(deadline=None)
@given(scores, st.randoms(use_true_random=False))
def test_the_order_of_the_alternatives_does_not_matter(found: np.ndarray, random: object) -> None:
    places = list(range(found.shape[1]))
    random.shuffle(places)  # type: ignore[attr-defined]
    assert tuple(told(found).standings[place] for place in places) == told(found[:, places]).standings


def test_what_cannot_be_told_rules_nothing_out() -> None:
    nothing = np.zeros((2, 3, 3), dtype=np.bool_)
    assert (LEADING,) * 3 == front(nothing, nothing).standings
    assert not told_apart(nothing).any()


def test_better_in_one_and_untold_in_the_other_leaves_it_open() -> None:
    better, same = np.zeros((2, 2, 2), dtype=np.bool_), np.zeros((2, 2, 2), dtype=np.bool_)
    better[0, 0, 1] = True
    found = front(better, same)
    assert ((LEADING, OPEN), ((), (0,))) == (found.standings, found.ahead)
    same[1, 0, 1] = same[1, 1, 0] = True
    assert (LEADING, RULED_OUT) == front(better, same).standings


def test_of_two_that_are_each_ahead_in_something_both_lead() -> None:
    assert (LEADING, LEADING) == told(np.array([[2, 1], [1, 2]])).standings
    assert told_apart(np.array([[[False, True], [False, False]]])).all(where=~np.eye(2, dtype=bool))


@pytest.mark.parametrize("shape", [(2, 3), (1, 2, 3)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    nothing = np.zeros(shape, dtype=np.bool_)
    with pytest.raises(ValueError, match="objectives x alternatives"):
        front(nothing, nothing)


def test_verdicts_that_contradict_each_other_are_refused() -> None:
    all_better = np.ones((1, 2, 2), dtype=np.bool_)
    with pytest.raises(ValueError, match="both better and worse"):
        front(all_better, np.zeros_like(all_better))
