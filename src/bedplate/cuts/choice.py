"""Where a log is cut: which positions, with which profiles and seeds."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, zip_longest
from typing import TypeVar

from bedplate.cuts.log import FUA, MARK, Acknowledgements, Log, cache_at, changes_at, free_parts
from bedplate.cuts.records import (
    DRAWN,
    RECUTS_EACH,
    SHORT_RECOVERY_WRITES,
    SMALL_WINDOW_WRITES,
    UNIT_PROFILES,
    ChosenState,
    CutPoint,
    Placement,
    Profile,
    recoveries_for,
)
from bedplate.errors import BedplateError

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
    commit_spans: Sequence[Waiting] = (),
    placed: int = 0,
    enumerated: Sequence[CutPoint] = (),
) -> tuple[CutPoint, ...]:
    """The points of a log in the order of their numbers, the controls last; the same for the same arguments.

    `waiting` are the spans in which `sought` more points are chosen, and `commit_spans` those for up to `placed` more; without any there is none of
    these. `enumerated` are taken in as they are, but for their numbers.

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
    more = (*placed_points(commit_spans, profiles, placed, seed), *enumerated)
    chosen += [replace(point, number=number) for number, point in enumerate(more, start=len(chosen))]
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


# Of the placed cuts every so many tears a block that is written over.
_OVER_EACH = 6


def placed_points(
    spans: Sequence[Waiting], profiles: Sequence[Profile], count: int, seed: int
) -> Iterator[CutPoint]:
    """So many, or as many as there are, no cut twice: of blocks that are written over every sixth, the others behind commits."""
    draw = random.Random(f"power cut {seed}, order")  # noqa: S311 -- chance, not secrecy
    taken: set[tuple[int, Profile]] = set()
    behind = _in_turns([span for span in spans if not span.blocks], profiles, draw, taken)
    over = _in_turns([span for span in spans if span.blocks], profiles, draw, taken)
    while len(taken) < count:
        first, second = (over, behind) if len(taken) % _OVER_EACH == _OVER_EACH - 1 else (behind, over)
        choice = next(chain(first, second), None)
        if choice is None:
            return
        taken.add(choice)
        yield CutPoint(0, *choice, Placement.ORDER, draw.getrandbits(SEED_BITS))


def _in_turns(
    spans: Sequence[Waiting],
    profiles: Sequence[Profile],
    draw: random.Random,
    earlier: Collection[tuple[int, Profile]],
) -> Iterator[tuple[int, Profile]]:
    """Positions and profiles of cuts that are not taken. In each round every kind of span is met once, the shortest and rarest kinds first.

    A span meets all of its kinds. Of a kind the likeliest span and one by chance take turns.
    """
    of_kind: dict[str, list[tuple[int, Waiting]]] = {}
    for span in spans:
        for kind, likely in zip_longest(span.kinds, span.likely, fillvalue=0):
            of_kind.setdefault(str(kind), []).append((int(likely), span))
    left = {}
    for kind in sorted(of_kind, key=lambda kind: (kind.count(","), len(of_kind[kind]), kind)):
        likeliest = sorted(of_kind[kind], key=lambda pair: pair[0], reverse=True)
        by_chance = draw.sample(of_kind[kind], len(of_kind[kind]))
        both = (span for pairs in zip(likeliest, by_chance, strict=True) for _, span in pairs)
        left[kind] = _choices(tuple(dict.fromkeys(both)), profiles)
    while left:
        met: set[str] = set()
        for kind in tuple(left):
            if kind in met:
                continue
            found = next((each for each in left[kind] if (each[1], each[2]) not in earlier), None)
            if found is None:
                del left[kind]
                continue
            span, position, profile = found
            met.update(span.kinds)
            yield position, profile


def _choices(spans: Sequence[Waiting], profiles: Sequence[Profile]) -> Iterator[tuple[Waiting, int, Profile]]:
    """Position and profile of each cut that the spans are worth, the spans in this order.

    Where a block can be torn, those that tear in turn. Else alternately: all is lost that came behind it, by a cut at its end, when most
    was promised; and nothing else has come yet, in order, by a cut at its beginning.
    """
    tearing = [profile for profile in _TEARING_PROFILES if profile in profiles]
    for turn in range(2):
        for place, span in enumerate(spans, start=turn):
            if span.blocks:
                if tearing:
                    yield span, span.last, tearing[place % len(tearing)]
            elif place % 2 == 0 and Profile.LOST in profiles:
                yield span, span.last, Profile.LOST
            elif place % 2 == 1 and Profile.ORDERED in profiles:
                yield span, span.first, Profile.ORDERED


def _controls(
    log: Log, draw: random.Random, numbers: range, span: range, window_bytes: int
) -> list[CutPoint]:
    marks = Acknowledgements(log)
    return [
        CutPoint(
            number=number,
            position=_control_position(log, marks, draw, span, window_bytes),
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
    log: Log, marks: Acknowledgements, draw: random.Random, span: range, window_bytes: int
) -> int:
    """A position as the module says; if none is found, the one of those tried with the most marks in the cache."""
    best, most = span.start + 1, -1
    for _ in range(_CONTROL_TRIES):
        position = draw.choice(span) + 1
        opens = span.start
        for history in log.histories:
            cache = cache_at(history, position, window_bytes, measured_from=span.start, honours_flushes=False)
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


@dataclass(frozen=True)
class Recut:
    """The recovery from cut number `first`, to be cut `cuts` times; these are numbered from `number` on, and behind them the whole.

    Behind that are up to `exhaustive` numbers more, for cuts behind each write and behind second cuts.
    """

    first: int
    number: int
    cuts: int
    seed: int
    exhaustive: int = 0


def choose_recuts(
    log: Log,
    points: Sequence[CutPoint],
    *,
    count: int,
    seed: int,
    measured_from: int,
    window_bytes: int,
    exhaustive: int = 0,
) -> tuple[Recut, ...]:
    """The recoveries that `count` are spread over, of drawn cuts at which a write waited as long as there are such.

    Their profiles take turns, those of a volatile cache first. The first ones share `exhaustive` cuts. The same for the same arguments.
    """

    def is_idle(point: CutPoint) -> bool:
        return point.profile is Profile.ORDERED or not _waits(
            log, point.position, window_bytes, measured_from=measured_from
        )

    # A stream of its own, so that the points of a seed are those that they would be without these.
    draw = random.Random(f"power cut {seed}, recut")  # noqa: S311 -- chance, not secrecy
    drawn = [point for point in points if not point.control and point.placement in DRAWN]
    draw.shuffle(drawn)
    turns: Counter[tuple[bool, Profile]] = Counter()
    ranked = []
    for point in drawn:
        kind = (is_idle(point), point.profile)
        ranked.append((kind[0], turns[kind], point))
        turns[kind] += 1
    ranked.sort(key=lambda each: each[:2])
    shared_by = min(len(ranked), recoveries_for(exhaustive))
    chosen = ranked[: max(-(-count // RECUTS_EACH), shared_by)]
    found: list[Recut] = []
    number = max((point.number for point in points), default=-1) + 1
    for place, (_, _, point) in enumerate(chosen):
        share = count // len(chosen) + (place < count % len(chosen))
        more = exhaustive // shared_by if place < shared_by else 0
        found.append(Recut(point.number, number, share, draw.getrandbits(SEED_BITS), more))
        number += share + 1 + more
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
        *_numbered(
            small, [window.subsets for window in small], _sample_numbers(draw, subsets, for_small), _subset
        ),
        *_numbered(
            large, [window.singles for window in large], _sample_numbers(draw, singles, for_singles), _single
        ),
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


def _sample_numbers(draw: random.Random, count: int, sample_size: int) -> Sequence[int]:
    return range(count) if sample_size >= count else sorted(draw.sample(range(count), sample_size))


def _numbered(
    windows: Sequence[_Window],
    counts: Sequence[int],
    numbers: Sequence[int],
    make_point: Callable[[_Window, int], CutPoint],
) -> Iterator[CutPoint]:
    """The states with these numbers, counted through all windows."""
    ends = list(accumulate(counts))
    for number in numbers:
        at = bisect_right(ends, number)
        yield make_point(windows[at], number - (ends[at - 1] if at else 0))


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


@dataclass(frozen=True)
class Waiting:
    """Positions from `first` to `last` at which the same blocks wait; `kinds` says what they are, sorted.

    `blocks` are those that a cut can tear: none where it matters only what is there and what is not. `likely` says of each kind which
    of its spans come first, those with more; none where all are alike.
    """

    first: int
    last: int
    kinds: tuple[str, ...]
    blocks: int
    likely: tuple[int, ...] = ()


_Item = TypeVar("_Item")


# Where a short recovery is cut. Nothing is promised while file system and engine recover: in order only the image counts, which a write or a discard
# changes and nothing else; and what a device loses since a flush is what it keeps in order up to that. With a volatile cache it may also keep
# one write of those that wait and none of those before it, which shows each pair of writes whose order no flush asked for.


def recovery_length(log: Log) -> int:
    """The writes and discards that a recovery consists of."""
    return sum(len(history.changes) for history in log.histories)


def every_cut(
    log: Log, whole_cut: CutPoint, *, number: int, most: int, window_bytes: int
) -> tuple[CutPoint, ...]:
    """The cuts of a recovery behind each of its writes; `whole_cut` is behind all of them, these are numbered from `number` on.

    None of one that is not short, or for which `most` are too few; those of single writes only where they are not too many besides.
    """
    changes = _changes(log)
    # Behind the last write is the whole.
    in_order = [replace(whole_cut, position=index + 1, placement=Placement.EVERY) for index in changes[:-1]]
    if len(changes) > SHORT_RECOVERY_WRITES or len(in_order) > most:
        return ()
    alone = list(_single_writes(log, whole_cut, window_bytes))
    points = in_order if len(in_order) + len(alone) > most else [*in_order, *alone]
    return tuple(replace(point, number=number + place) for place, point in enumerate(points))


def second_positions(log: Log) -> Iterator[int]:
    """Where the second cut of a third one may be, behind writes in order: first just before flushes, when most has come that belongs together.

    Of both kinds the middle first, then the middles of both halves, and so on, so that a few are spread over all of the recovery.
    """
    changes, flushes = _changes(log), _flushes(log)
    behind = [index + 1 for index in changes[:-1]]
    before_flushes = {max((at for at in behind if at <= flush), default=0) for flush in flushes} - {0}
    yield from _spread(sorted(before_flushes))
    yield from _spread([at for at in behind if at not in before_flushes])


def second_cut(point: CutPoint) -> CutPoint:
    """The second cut of a third one; ValueError of any other."""
    if point.second is None:
        raise ValueError(f"cut {point.number} is no third one")
    return replace(
        point,
        position=point.second,
        profile=Profile.ORDERED,
        placement=Placement.EVERY,
        seed=0,
        state=None,
        second=None,
    )


def _single_writes(log: Log, whole_cut: CutPoint, window_bytes: int) -> Iterator[CutPoint]:
    for position in (*_flushes(log), len(log)):
        waiting = changes_at(log, position, window_bytes)
        # The first alone is the cut in order behind it.
        for part in free_parts(log, Profile.WHOLE, waiting, position):
            if part:
                yield replace(
                    whole_cut,
                    position=position,
                    profile=Profile.WHOLE,
                    placement=Placement.EVERY,
                    state=ChosenState((part,), kept=True),
                )


def _changes(log: Log) -> list[int]:
    return sorted(chain.from_iterable(history.changes for history in log.histories))


def _flushes(log: Log) -> list[int]:
    """Those that something changed before, since the one in front."""
    changes, found, last = _changes(log), [], 0
    for flush in sorted({index for history in log.histories for index in history.flushes}):
        if any(last <= index < flush for index in changes):
            found.append(flush)
        last = flush
    return found


def _spread(items: Sequence[_Item]) -> Iterator[_Item]:
    parts = deque([(0, len(items))])
    while parts:
        start, end = parts.popleft()
        if start < end:
            middle = (start + end) // 2
            yield items[middle]
            parts += [(start, middle), (middle + 1, end)]
