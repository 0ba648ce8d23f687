"""Where a log is cut.

Half of the points lie anywhere alike, those of a volatile cache wherever something waits in it at all: where nothing does, such
a cut is one in order. Half lie where more writes wait for a flush, in proportion to their number: a
window that is hardly ever open is found by these, and seldom by the others. Each profile gets as many of both.

Besides these, a number of cuts is *sought*: where metadata waits that can be torn (`tearable.py`), and behind a flush that met
writes on their way, each position once for each profile that tears. They are a stratum of their own, as a share of them is no share of anything that happens by itself.

A control lies where a device that ignores flushes must lose an acknowledged transaction: its cache still holds more
marks than there are clients, so one client at least was promised two transactions, and the whole of the second, since.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.model.power_cut import UNIT_PROFILES, CutPoint, Placement, Profile
from bedplate.workloads.power_cut.run.acknowledged import Acknowledgements
from bedplate.workloads.power_cut.run.log import MARK
from bedplate.workloads.power_cut.run.window import cache_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bedplate.workloads.power_cut.run.log import Log
    from bedplate.workloads.power_cut.run.tearable import Waiting

_TEARING_PROFILES = (Profile.SUBSET_512, Profile.SUBSET_4K, *UNIT_PROFILES.values())
_CONTROL_PROFILES = (Profile.LOST, Profile.SUBSET_4K)
_CONTROL_TRIES = 200
# A seed must survive JSON in a browser, which has 53 bits for a whole number.
SEED_BITS = 48


def choose_points(
    log: Log,
    *,
    points: int,
    profiles: Sequence[Profile],
    seed: int,
    measured_from: int,
    window_bytes: int,
    controls: int,
    measured_until: int | None = None,
    waiting: Sequence[Waiting] = (),
    sought: int = 0,
    enumerated: Sequence[CutPoint] = (),
) -> tuple[CutPoint, ...]:
    """The points of a log in the order of their numbers, the controls last; the same for the same arguments.

    `waiting` are the spans in which `sought` more points are chosen; without any there is none of these. `enumerated` are
    taken in as they are, but for their numbers.

    Every position lies after `measured_from` and not after `measured_until` (else the log's end): what comes later,
    a server that is stopped, is no part of the measurement. BedplateError if nothing lies between the two.
    """
    until = len(log) if measured_until is None else min(measured_until, len(log))
    if not profiles:
        raise ValueError("a point needs a profile")
    if until <= measured_from:
        raise BedplateError(
            f"the write log {log.path} has nothing to cut: the clients began at entry {measured_from} and "
            f"measuring ended at entry {until}; record for longer"
        )
    draw = random.Random(f"power cut {seed}")  # noqa: S311 -- chance, not secrecy
    weights = list(accumulate(_volatile_changes(log, measured_from, until, window_bytes)))
    before = (0, *weights)
    busy = [measured_from + 1 + index for index, weight in enumerate(weights) if weight > before[index]]
    chosen = []
    for number in range(points):
        turn, place = divmod(number, len(profiles))
        # Alternately from one profile to the next, too, so that an odd number of turns favours none.
        weighted = (turn + place) % 2 == 1 and weights[-1] > 0
        position = (
            draw.choices(range(measured_from + 1, until + 1), cum_weights=weights)[0]
            if weighted
            else draw.choice(busy)
            if busy and profiles[place] is not Profile.ORDERED
            else draw.randint(measured_from + 1, until)
        )
        chosen.append(
            CutPoint(
                number=number,
                position=position,
                profile=profiles[place],
                placement=Placement.WEIGHTED if weighted else Placement.UNIFORM,
                seed=draw.getrandbits(SEED_BITS),
            )
        )
    tearing = [profile for profile in _TEARING_PROFILES if profile in profiles]
    chosen += _sought(waiting, tearing, range(points, points + sought), seed)
    chosen += [replace(point, number=number) for number, point in enumerate(enumerated, start=len(chosen))]
    numbers = range(len(chosen), len(chosen) + controls)
    return (*chosen, *_controls(log, draw, numbers, range(measured_from, until), window_bytes))


def _sought(
    waiting: Sequence[Waiting], profiles: Sequence[Profile], numbers: range, seed: int
) -> list[CutPoint]:
    """Each kind of metadata in turn, the rarest first; the same span again only once every one of its kind was cut."""
    if not waiting or not profiles:
        return []
    # A stream of its own, so that the other points of a seed are those that they would be without these.
    draw = random.Random(f"power cut {seed}, sought")  # noqa: S311 -- chance, not secrecy
    of_kind: dict[str, list[Waiting]] = {}
    for span in waiting:
        for kind in span.kinds:
            of_kind.setdefault(kind, []).append(span)
    kinds = sorted(of_kind, key=lambda kind: (len(of_kind[kind]), kind))
    left: dict[str, list[Waiting]] = {kind: [] for kind in kinds}
    found: list[CutPoint] = []
    while len(found) < len(numbers):
        kind = kinds[len(found) // len(profiles) % len(kinds)]
        left[kind] = left[kind] or draw.sample(of_kind[kind], len(of_kind[kind]))
        span = left[kind].pop()
        position = draw.randint(span.first, span.last)
        found += [
            CutPoint(
                numbers.start + len(found) + place,
                position,
                profile,
                Placement.SOUGHT,
                draw.getrandbits(SEED_BITS),
            )
            for place, profile in enumerate(profiles)
        ]
    return found[: len(numbers)]


def _controls(
    log: Log, draw: random.Random, numbers: range, measured: range, window_bytes: int
) -> list[CutPoint]:
    marks = Acknowledgements(log)
    return [
        CutPoint(
            number=number,
            position=_control_position(log, marks, draw, measured, window_bytes),
            profile=_CONTROL_PROFILES[(number - numbers.start) % len(_CONTROL_PROFILES)],
            placement=Placement.UNIFORM,
            seed=draw.getrandbits(SEED_BITS),
            control=True,
        )
        for number in numbers
    ]


def building_order(points: Sequence[CutPoint]) -> list[CutPoint]:
    """The order in which an `ImageBuilder` never has to go back, but once before the controls."""
    return sorted(points, key=lambda point: (point.control, point.position, point.number))


def _volatile_changes(log: Log, measured_from: int, until: int, window_bytes: int) -> Iterator[int]:
    """For each position after `measured_from` up to `until`: how many changes wait for a flush there."""
    count, has_late = 0, any(history.has_late for history in log.histories)
    for position in range(measured_from + 1, until + 1):
        # A mark changes nothing, unless a write was issued before it; most entries of a run without flushes are marks.
        if position == measured_from + 1 or has_late or not log.flags[position - 1] & MARK:
            caches = (
                cache_at(history, position, window_bytes, measured_from=measured_from)
                for history in log.histories
            )
            count = sum(cache.waiting for cache in caches)
        yield count


def _control_position(
    log: Log, marks: Acknowledgements, draw: random.Random, measured: range, window_bytes: int
) -> int:
    """A position as the module says; if none is found, the one of those tried with the most marks in the cache."""
    best, most = measured.start + 1, -1
    for _ in range(_CONTROL_TRIES):
        position = draw.choice(measured) + 1
        opens = measured.start
        for history in log.histories:
            cache = cache_at(
                history, position, window_bytes, measured_from=measured.start, honours_flushes=False
            )
            if cache.first < cache.end:
                opens = max(opens, history.changes[cache.first])
        held = bisect_left(marks.positions, position) - bisect_left(marks.positions, opens)
        if held > len(marks.clients):
            return position
        if held > most:
            best, most = position, held
    return best


def with_unit(profiles: Sequence[Profile], unit: Profile | None) -> tuple[Profile, ...]:
    """The profile of the device's unit once, in place of those that tear; as they are without one."""
    if unit is None:
        return tuple(profiles)
    tearing = (Profile.SUBSET_4K, Profile.SUBSET_512)
    return tuple(dict.fromkeys(unit if profile in tearing else profile for profile in profiles))
