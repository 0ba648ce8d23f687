"""The smallest set of losses that still breaks, by delta debugging.

It is `ddmin` of Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input" (2002).

What is shrunk are whole writes first, with all that a cut lost of them, and then their parts alone. An answer is asked for once
for each set. A result is *smallest* where no part of it can be spared: another set that is smaller still may break too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    # Whether what was cut is still broken where only these parts are lost.
    Breaks = Callable[[frozenset[int]], bool]


@dataclass(frozen=True)
class Shrunk:
    """The parts that are left. `is_smallest` is false where the questions ended before each of them had been spared once."""

    parts: tuple[int, ...]
    is_smallest: bool


class Questions:
    """Asks `breaks` of a set once, and `most` times in all."""

    def __init__(self, breaks: Breaks, most: int) -> None:
        self._breaks, self._most = breaks, most
        self._answers: dict[frozenset[int], bool] = {}

    @property
    def asked(self) -> int:
        """How often `breaks` was called."""
        return len(self._answers)

    def ask(self, parts: Iterable[int]) -> bool:
        """NoMoreQuestions where it would be one too many."""
        lost = frozenset(parts)
        if lost not in self._answers:
            if self.asked >= self._most:
                raise NoMoreQuestions
            self._answers[lost] = self._breaks(lost)
        return self._answers[lost]


class NoMoreQuestions(Exception):
    """As many were asked as may be."""


def shrink(writes: Sequence[Sequence[int]], questions: Questions) -> Shrunk:
    """Of parts that break together, by the write that each belongs to; none of `writes` may be empty."""
    left = _Shrinking([tuple(write) for write in writes], questions)
    try:
        left.minimise()
        if any(len(write) > 1 for write in left.units):
            left.units = [(part,) for part in chain.from_iterable(left.units)]
            left.minimise()
    except NoMoreQuestions:
        return Shrunk(left.parts, is_smallest=False)
    return Shrunk(left.parts, is_smallest=True)


class _Shrinking:
    """`units` break together, and each is lost whole or not at all."""

    def __init__(self, units: list[tuple[int, ...]], questions: Questions) -> None:
        self.units = units
        self._questions = questions

    @property
    def parts(self) -> tuple[int, ...]:
        return tuple(sorted(chain.from_iterable(self.units)))

    def minimise(self) -> None:
        """The algorithm `ddmin`: one of n pieces is enough, or all but one, or finer pieces are tried."""
        pieces = 2
        while len(self.units) > 1:
            pieces = min(pieces, len(self.units))
            chunks = _chunks(self.units, pieces)
            if (enough := self._first(chunks)) is not None:
                self.units, pieces = enough, 2
            elif pieces > 2 and (rest := self._first(_without_each(chunks))) is not None:
                self.units, pieces = rest, pieces - 1
            elif pieces == len(self.units):
                return
            else:
                pieces *= 2

    def _first(self, candidates: Iterable[list[tuple[int, ...]]]) -> list[tuple[int, ...]] | None:
        return next((each for each in candidates if self._questions.ask(chain.from_iterable(each))), None)


def _chunks(units: list[tuple[int, ...]], count: int) -> list[list[tuple[int, ...]]]:
    ends = [len(units) * number // count for number in range(count + 1)]
    return [units[first:end] for first, end in pairwise(ends)]


def _without_each(chunks: list[list[tuple[int, ...]]]) -> Iterable[list[tuple[int, ...]]]:
    return (list(chain(*chunks[:number], *chunks[number + 1 :])) for number in range(len(chunks)))
