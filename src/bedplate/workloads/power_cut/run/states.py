"""The states that a device may leave of a recording, enumerated.

A window is what waits right before a flush. Whatever is left of it earlier, some of its writes not yet issued, is a state of
the whole window too, and by its end as much was promised or more: so each window is cut there alone. Where it has
few writes, every subset of them is tried. Larger ones have more states than anybody can try: each write, and each block of
4 KiB, is missing from them alone, and is alone there, and further subsets of their blocks are drawn.

A write with FUA is on the medium whatever else is left: it is no part of a state. Right before it the states are others, which the window
at the flush does not have, so that a window ends there too.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from bedplate.model.power_cut import SMALL_WINDOW_WRITES, ChosenState, CutPoint, Placement, Profile
from bedplate.workloads.power_cut.run.log import FUA
from bedplate.workloads.power_cut.run.positions import SEED_BITS
from bedplate.workloads.power_cut.run.window import changes_at, free_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bedplate.workloads.power_cut.run.log import Log


@dataclass(frozen=True)
class Enumerated:
    """The points that were chosen, numbered from 0, and how many states all small windows have together."""

    points: tuple[CutPoint, ...] = ()
    small_states: int = 0


@dataclass(frozen=True)
class _Window:
    """What `waiting` changes at `position` leave open: writes and discards, and blocks of them, each by its number among all parts there."""

    position: int
    waiting: int
    writes: tuple[int, ...]
    blocks: tuple[int, ...]

    @property
    def is_small(self) -> bool:
        # By all that waits, as the records of the cuts count it.
        return self.waiting <= SMALL_WINDOW_WRITES

    @property
    def subsets(self) -> int:
        return int(2 ** len(self.writes))

    @property
    def singles(self) -> int:
        """States with one part missing or alone; blocks are parts of their own where a write has several."""
        has_blocks = len(self.blocks) > len(self.writes)
        return 2 * len(self.writes) + (2 * len(self.blocks) if has_blocks else 0)


def enumerate_states(
    log: Log, *, states: int, seed: int, measured_from: int, until: int, window_bytes: int
) -> Enumerated:
    """As many states as `states`, or fewer where there are no more and no larger window to draw from.

    Those of small windows come first, all of them or, where they would take more than half and what larger windows leave of the
    other, a drawn part; then single parts of larger ones, and drawn subsets of these.
    """
    if not states:
        return Enumerated()
    found = _windows(log, measured_from, until, window_bytes)
    small = [window for window in found if window.is_small]
    large = [window for window in found if not window.is_small]
    subsets, singles = (
        sum(window.subsets for window in small),
        sum(window.singles for window in large),
    )
    for_small = min(subsets, max(states // 2, states - singles) if large else states)
    for_singles = min(singles, states - for_small)
    draw = random.Random(f"power cut {seed}, states")  # noqa: S311 -- chance, not secrecy
    points = [
        *_numbered(small, [window.subsets for window in small], _drawn(draw, subsets, for_small), _subset),
        *_numbered(large, [window.singles for window in large], _drawn(draw, singles, for_singles), _single),
        *(_any_subset(draw, large) for _ in range(states - for_small - for_singles if large else 0)),
    ]
    return Enumerated(tuple(points), subsets)


def _windows(log: Log, measured_from: int, until: int, window_bytes: int) -> list[_Window]:
    """In the log's order; of positions at which the same waits the last one, by which most was promised."""
    flushes = {flush for history in log.histories for flush in history.flushes}
    through = (
        index for index in range(measured_from, until) if log.is_write(index) and log.flags[index] & FUA
    )
    ends = sorted({end for end in (*flushes, *through) if measured_from < end < until} | {until})
    last: dict[tuple[int, ...], int] = {}
    for position in ends:
        last[tuple(changes_at(log, position, window_bytes, measured_from=measured_from))] = position
    windows = (
        _Window(
            position,
            len(changes),
            free_parts(log, Profile.WHOLE, changes, position),
            free_parts(log, Profile.SUBSET_4K, changes, position),
        )
        for changes, position in last.items()
    )
    return sorted(
        (window for window in windows if window.writes),
        key=lambda window: window.position,
    )


def _drawn(draw: random.Random, count: int, wanted: int) -> Sequence[int]:
    return range(count) if wanted >= count else sorted(draw.sample(range(count), wanted))


def _numbered(
    windows: Sequence[_Window],
    counts: Sequence[int],
    chosen: Sequence[int],
    point: Callable[[_Window, int], CutPoint],
) -> Iterator[CutPoint]:
    """The states with these numbers, counted through all windows."""
    ends = list(accumulate(counts))
    for number in chosen:
        at = bisect_right(ends, number)
        yield point(windows[at], number - (ends[at - 1] if at else 0))


def _subset(window: _Window, number: int) -> CutPoint:
    parts = tuple(part for bit, part in enumerate(window.writes) if number >> bit & 1)
    return _point(window, Profile.WHOLE, ChosenState(parts, kept=True))


def _single(window: _Window, number: int) -> CutPoint:
    profile, parts = Profile.WHOLE, window.writes
    if number >= 2 * len(parts):
        profile, number, parts = Profile.SUBSET_4K, number - 2 * len(parts), window.blocks
    return _point(window, profile, ChosenState((parts[number // 2],), kept=number % 2 == 0))


def _any_subset(draw: random.Random, windows: Sequence[_Window]) -> CutPoint:
    (window,) = draw.choices(windows, [len(window.blocks) for window in windows])
    return _point(window, Profile.SUBSET_4K, None, draw.getrandbits(SEED_BITS))


def _point(window: _Window, profile: Profile, state: ChosenState | None, seed: int = 0) -> CutPoint:
    return CutPoint(0, window.position, profile, Placement.ENUMERATED, seed, state=state)
