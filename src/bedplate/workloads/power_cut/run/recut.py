"""Which recoveries are cut again, and where: power that goes once more while what a cut left is mounted and its engine starts.

A recovery is short, and between two flushes a medium that loses its cache has one content. So a cut in recovery lies between
any two flushes alike, wherever something waits, and the same two come again only once all were drawn.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from bedplate.model.power_cut import RECUTS_EACH, CutPoint, Placement, Profile
from bedplate.workloads.power_cut.run.positions import SEED_BITS
from bedplate.workloads.power_cut.run.window import cache_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bedplate.workloads.power_cut.run.log import Log


_DRAWN = (Placement.UNIFORM, Placement.WEIGHTED)


@dataclass(frozen=True)
class Recut:
    """The recovery from cut number `first`, to be cut `cuts` times; these are numbered from `number` on, and behind them the whole."""

    first: int
    number: int
    cuts: int
    seed: int


def choose_recuts(
    log: Log,
    points: Sequence[CutPoint],
    *,
    cuts: int,
    seed: int,
    measured_from: int,
    window_bytes: int,
) -> tuple[Recut, ...]:
    """The recoveries that `cuts` are spread over, of drawn cuts at which a write waited as long as there are such.

    Their profiles take turns, those of a volatile cache first. The same for the same arguments.
    """

    def is_idle(point: CutPoint) -> bool:
        return point.profile is Profile.ORDERED or not _waits(
            log, point.position, window_bytes, measured_from=measured_from
        )

    # A stream of its own, so that the points of a seed are those that they would be without these.
    draw = random.Random(f"power cut {seed}, recut")  # noqa: S311 -- chance, not secrecy
    drawn = [point for point in points if not point.control and point.placement in _DRAWN]
    draw.shuffle(drawn)
    turns: Counter[tuple[bool, Profile]] = Counter()
    ranked = []
    for point in drawn:
        kind = (is_idle(point), point.profile)
        ranked.append((kind[0], turns[kind], point))
        turns[kind] += 1
    ranked.sort(key=lambda each: each[:2])
    chosen = ranked[: -(-cuts // RECUTS_EACH)]
    found: list[Recut] = []
    number = max((point.number for point in points), default=-1) + 1
    for place, (_, _, point) in enumerate(chosen):
        share = cuts // len(chosen) + (place < cuts % len(chosen))
        found.append(Recut(point.number, number, share, draw.getrandbits(SEED_BITS)))
        number += share + 1
    return tuple(found)


def recovery_points(
    log: Log, recut: Recut, *, profiles: Sequence[Profile], window_bytes: int
) -> tuple[CutPoint, ...]:
    """The cuts of a recorded recovery, and behind them the whole of it; that alone where nothing ever waited for a flush."""
    draw = random.Random(f"recovery {recut.seed}")  # noqa: S311 -- chance, not secrecy
    spans = tuple(_spans(log, window_bytes))
    left: list[range] = []
    found = []
    for place in range(recut.cuts if spans else 0):
        left = left or draw.sample(spans, len(spans))
        found.append(
            CutPoint(
                number=recut.number + place,
                position=draw.choice(left.pop()),
                profile=profiles[place % len(profiles)],
                placement=Placement.SPAN,
                seed=draw.getrandbits(SEED_BITS),
                recovery_of=recut.first,
            )
        )
    whole = CutPoint(
        number=recut.number + recut.cuts,
        position=len(log),
        profile=Profile.ORDERED,
        placement=Placement.WHOLE,
        seed=0,
        recovery_of=recut.first,
    )
    return (*found, whole)


def _spans(log: Log, window_bytes: int) -> Iterator[range]:
    """The positions between each two flushes at which a write or a discard waits."""
    flushes = sorted({index for history in log.histories for index in history.flushes})
    changes = sorted(index for history in log.histories for index in history.changes)
    for first, last in zip((0, *(index + 1 for index in flushes)), (*flushes, len(log)), strict=True):
        # Nothing begins to wait but behind a change, or where it is issued that comes later.
        within = changes[bisect_left(changes, first) : bisect_left(changes, last)]
        starts = chain((first,), (index + 1 for index in within), (last,))
        waiting = next((at for at in starts if _waits(log, at, window_bytes)), None)
        if waiting is not None:
            yield range(waiting, last + 1)


def _waits(log: Log, position: int, window_bytes: int, *, measured_from: int = 0) -> bool:
    caches = (
        cache_at(history, position, window_bytes, measured_from=measured_from) for history in log.histories
    )
    return any(cache.waiting for cache in caches)
