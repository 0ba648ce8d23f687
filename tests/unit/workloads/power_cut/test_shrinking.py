"""The smallest set of losses that breaks, asked of an oracle that is planted."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from bedplate.cuts.blame import NoMoreQuestions, Questions, shrink

Breaks = Callable[[frozenset[int]], bool]


def needs(*parts: int) -> Breaks:
    """Breaks where all of these are lost."""
    return lambda lost: lost.issuperset(parts)


def writes_of(count: int, parts_each: int) -> list[list[int]]:
    return [list(range(parts_each * number, parts_each * (number + 1))) for number in range(count)]


@pytest.mark.parametrize("planted", [(0,), (799,), (400, 401), (3, 555, 780), tuple(range(0, 800, 100))])
def test_the_planted_parts_are_left_and_no_others(planted: tuple[int, ...]) -> None:
    questions = Questions(needs(*planted), 2000)
    shrunk = shrink(writes_of(100, 8), questions)
    assert (planted, True) == (shrunk.parts, shrunk.is_smallest)
    assert questions.count < 100 * len(planted)


def test_one_of_a_hundred_writes_of_many_blocks_takes_few_questions() -> None:
    questions = Questions(needs(777), 1000)
    assert (777,) == shrink(writes_of(100, 8), questions).parts
    assert questions.count <= 24


def test_nothing_that_is_left_can_be_spared_whatever_breaks() -> None:
    """Of several sets that break any may be left; never one with a part too many."""
    draw = random.Random(4)
    for _ in range(60):
        sets = [frozenset(draw.sample(range(60), draw.randint(1, 6))) for _ in range(3)]
        questions = Questions(lambda lost, sets=sets: any(lost >= each for each in sets), 10_000)  # type: ignore[misc]
        shrunk = shrink(writes_of(12, 5), questions)
        assert shrunk.is_smallest
        assert questions.ask(shrunk.parts)
        assert not any(questions.ask(set(shrunk.parts) - {part}) for part in shrunk.parts)


def test_an_oracle_that_is_not_monotone_leaves_a_set_that_was_seen_to_break() -> None:
    seen: set[frozenset[int]] = set()

    def breaks(lost: frozenset[int]) -> bool:
        if lost == frozenset(range(64)) or (len(lost) % 3 == 1 and 17 in lost):
            seen.add(lost)
            return True
        return False

    shrunk = shrink(writes_of(16, 4), Questions(breaks, 10_000))
    assert frozenset(shrunk.parts) in seen


def test_a_set_is_asked_once() -> None:
    asked: list[frozenset[int]] = []

    def breaks(lost: frozenset[int]) -> bool:
        asked.append(lost)
        return lost >= {2, 9}

    shrink(writes_of(8, 2), Questions(breaks, 1000))
    assert len(asked) == len(set(asked))


def test_too_few_questions_leave_more_and_say_so() -> None:
    questions = Questions(needs(5, 700), 6)
    shrunk = shrink(writes_of(100, 8), questions)
    assert 6 == questions.count
    assert not shrunk.is_smallest
    assert {5, 700} < set(shrunk.parts)
    with pytest.raises(NoMoreQuestions):
        questions.ask([1])
