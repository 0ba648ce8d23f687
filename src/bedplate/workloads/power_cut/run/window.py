"""What a device's cache holds at a cut, and what of it chance keeps.

A flush puts everything that was complete before it was issued on the medium, and an entry with FUA goes there by itself. Of
what came after the last flush a cache holds no more than its size: the last `window_bytes`, of whole writes; older ones
count as written back, and so does everything that came before the clients began (`measured_from`), as in a database
that was made long ago. Each device has a cache of its own. A write that was issued before a cut and was not complete then is at risk
besides: in order it is there whole or not at all, as a protected cache may lack any request that it had not answered, else as those in
the cache. Requests count as done in the order of the log. A discard within the window is done or not, as one part.

The draw is a stream of bits, one for each block or discard, in the log's order: SHAKE-256 of the point's seed. It depends on no
library's generator, so a point gives the same image wherever and whenever it is built.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from bedplate.model.power_cut import ChosenState, Profile
from bedplate.workloads.power_cut.run.log import DISCARD, DISK, FUA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bedplate.model.power_cut import CutPoint
    from bedplate.workloads.power_cut.run.log import History, Log

_TORN_BYTES = {
    Profile.SUBSET_512: 512,
    Profile.SUBSET_4K: 4096,
    Profile.SUBSET_8K: 8192,
    Profile.SUBSET_16K: 16384,
    Profile.UNTORN_8K: 4096,
    Profile.UNTORN_16K: 4096,
}
# A write of a power of two that is aligned to itself and no longer is whole or not there (NVM Express 1.4, 6.4: of one that
# is longer than AWUPF, or crosses a boundary, nothing is promised).
_UNIT_BYTES = {Profile.UNTORN_8K: 8192, Profile.UNTORN_16K: 16384}
_KEPT_RUN = re.compile("1+")


class Piece(NamedTuple):
    """A part of an entry that is kept: `length` bytes from `start` of its data."""

    entry: int
    start: int
    length: int


class Cache(NamedTuple):
    """One device's cache at a cut: its changes from the `first`-th to before the `end`-th of its history.

    `flush_position` is the flush that emptied it; None where something else bounds it. `in_flight` are the entries that were
    on their way to it.
    """

    first: int
    end: int
    flush_position: int | None
    in_flight: tuple[int, ...] = ()

    @property
    def waiting(self) -> int:
        """How many changes are at risk."""
        return self.end - self.first + len(self.in_flight)


@dataclass(frozen=True)
class CrashState:
    """What was volatile at a cut, and what of it the medium holds afterwards.

    `durable_until` says for each device before which entry all of its changes are on the medium. `kept` are applied to
    that in their order. `flush_positions` are the flushes that emptied the caches, None where none did. A write counts
    as kept if any of it is. `volatile_discards` wait beside the writes.
    """

    durable_until: tuple[int, ...]
    flush_positions: tuple[int | None, ...]
    volatile_writes: int
    volatile_bytes: int
    kept_writes: int
    kept: tuple[Piece, ...]
    volatile_discards: int = 0

    @property
    def flush_position(self) -> int | None:
        """The last flush of the disk before the cut that counts."""
        return self.flush_positions[DISK]


def cache_at(
    history: History,
    position: int,
    window_bytes: int,
    *,
    measured_from: int = 0,
    honours_flushes: bool = True,
) -> Cache:
    """What one device's cache holds before entry `position`, by the rules above."""
    end = bisect_left(history.changes, position)
    by_size = bisect_left(history.bytes_before, history.bytes_before[end] - window_bytes)
    first = min(end, max(by_size, bisect_left(history.changes, measured_from)))
    in_flight = history.in_flight(position)
    flushes_before = bisect_left(history.flushes, position)
    if not honours_flushes or flushes_before == 0:
        return Cache(first, end, None, in_flight)
    flush = history.flushes[flushes_before - 1]
    by_flush = bisect_left(history.changes, flush)
    if by_flush < first or flush < measured_from:
        return Cache(first, end, None, in_flight)
    return Cache(by_flush, end, flush, in_flight)


@dataclass(frozen=True)
class Losses:
    """What a point lost, as parts that are kept or not each by itself.

    `point` is the same cut with those parts chosen; it is drawn by no seed, and keeps whatever else was at risk. `parts` are the lost
    ones by their numbers, in the log's order, and how many there are besides them is `kept`.
    """

    point: CutPoint
    parts: Mapping[int, Piece]
    kept: int

    def only(self, parts: Iterable[int]) -> CutPoint:
        """The same cut that loses these alone."""
        return replace(self.point, state=ChosenState(tuple(sorted(parts)), kept=False))


def losses(log: Log, point: CutPoint, window_bytes: int, *, measured_from: int = 0) -> Losses:
    """What a point lost; a cut in order lost what was on its way alone."""
    changes = _changes(log, _caches(log, point, window_bytes, measured_from))
    whole = point.profile in (Profile.LOST, Profile.ORDERED)
    profile = Profile.WHOLE if whole else point.profile
    kept = {
        (piece.entry, start) for piece in _kept(log, point, changes) for start in _starts(log, profile, piece)
    }
    found: dict[int, Piece] = {}
    number = 0
    for index in changes:
        for part in _parts(log, profile, index):
            if (index, part.start) not in kept:
                found[number] = part
            number += 1
    chosen = replace(point, profile=profile, seed=0, state=ChosenState(tuple(found), kept=False))
    return Losses(chosen, found, number - len(found))


def window(log: Log, point: CutPoint, window_bytes: int, *, measured_from: int = 0) -> CrashState:
    """The window of a point and what is kept of it; a control's device ignored every flush.

    ValueError if the log has fewer entries than the point's position.
    """
    if not 0 <= point.position <= len(log):
        raise ValueError(f"a cut at entry {point.position}: {log.path} has {len(log)} entries")
    caches = _caches(log, point, window_bytes, measured_from)
    changes = _changes(log, caches)
    kept = tuple(_kept(log, point, changes))
    writes = sum(map(log.is_write, changes))
    return CrashState(
        durable_until=tuple(
            history.changes[cache.first] if cache.first < cache.end else point.position
            for history, cache in zip(log.histories, caches, strict=True)
        ),
        flush_positions=tuple(cache.flush_position for cache in caches),
        volatile_writes=writes,
        volatile_bytes=sum(log.lengths[index] for index in changes if log.is_write(index)),
        kept_writes=len({piece.entry for piece in kept if log.is_write(piece.entry)}),
        kept=kept,
        volatile_discards=len(changes) - writes,
    )


def changes_at(log: Log, position: int, window_bytes: int, *, measured_from: int = 0) -> list[int]:
    """What is at risk on all devices at a cut before entry `position`, in the log's order."""
    caches = [
        cache_at(history, position, window_bytes, measured_from=measured_from) for history in log.histories
    ]
    return _changes(log, caches)


def free_parts(log: Log, profile: Profile, changes: Iterable[int], position: int) -> tuple[int, ...]:
    """The numbers of the parts of these changes that the profile keeps or not each by itself, at a cut before entry `position`.

    What went past the cache (FUA) is there always: its parts have numbers and no choice.
    """
    found: list[int] = []
    number = 0
    for index in changes:
        count = _blocks(log, profile, index)
        if not _is_through(log, index, position):
            found += range(number, number + count)
        number += count
    return tuple(found)


def _is_through(log: Log, index: int, position: int) -> bool:
    return bool(log.flags[index] & FUA) and index < position


def _caches(log: Log, point: CutPoint, window_bytes: int, measured_from: int) -> list[Cache]:
    return [
        cache_at(
            history,
            point.position,
            window_bytes,
            measured_from=measured_from,
            honours_flushes=not point.control,
        )
        for history in log.histories
    ]


def _changes(log: Log, caches: Iterable[Cache]) -> list[int]:
    return sorted(
        index
        for history, cache in zip(log.histories, caches, strict=True)
        for index in (*history.changes[cache.first : cache.end], *cache.in_flight)
    )


def _kept(log: Log, point: CutPoint, changes: list[int]) -> Iterator[Piece]:
    """The parts of these changes that the medium holds, in order."""
    blocks = [_blocks(log, _profile_at(point, index), index) for index in changes]
    bits = _bits(point.seed, sum(blocks)) if point.state is None else _chosen(point.state, sum(blocks))
    at = 0
    for index, count in zip(changes, blocks, strict=True):
        drawn, at = bits[at : at + count], at + count
        is_through = not point.control and _is_through(log, index, point.position)
        if is_through or (point.profile is Profile.ORDERED and index < point.position):
            yield Piece(index, 0, log.lengths[index])
        elif is_torn(log, point.profile, index):
            yield from _torn(log, index, drawn, _TORN_BYTES[point.profile])
        elif drawn == "1":
            yield Piece(index, 0, log.lengths[index])


def _profile_at(point: CutPoint, index: int) -> Profile:
    """Of what was on its way at a cut in order nobody knows whether it came."""
    in_flight = point.profile is Profile.ORDERED and index >= point.position
    return Profile.WHOLE if in_flight else point.profile


def is_torn(log: Log, profile: Profile, index: int) -> bool:
    """Whether a device may keep a part of this change: not of a write that its unit covers, nor of a discard."""
    if profile not in _TORN_BYTES or log.flags[index] & DISCARD:
        return False
    length = log.lengths[index]
    fits = length <= _UNIT_BYTES.get(profile, 0) and length & (length - 1) == 0
    return not (fits and log.offsets[index] % length == 0)


def _blocks(log: Log, profile: Profile, index: int) -> int:
    """How many parts of this change are kept or not each by itself: blocks of the device's own grid, if torn."""
    if profile in (Profile.ORDERED, Profile.LOST):
        return 0
    if not is_torn(log, profile, index):
        return 1
    block_bytes = _TORN_BYTES[profile]
    first = log.offsets[index] // block_bytes
    return -(-(log.offsets[index] + log.lengths[index]) // block_bytes) - first


def _parts(log: Log, profile: Profile, index: int) -> Iterator[Piece]:
    """The parts of a change that `_blocks` counts."""
    length = log.lengths[index]
    if not is_torn(log, profile, index):
        yield from [Piece(index, 0, length)] * _blocks(log, profile, index)
        return
    block_bytes = _TORN_BYTES[profile]
    ahead = log.offsets[index] % block_bytes
    for block in range(_blocks(log, profile, index)):
        start = max(0, block * block_bytes - ahead)
        yield Piece(index, start, min(length, (block + 1) * block_bytes - ahead) - start)


def _starts(log: Log, profile: Profile, piece: Piece) -> Iterator[int]:
    """Where the parts begin that a piece is made of."""
    end = piece.start + piece.length
    return (part.start for part in _parts(log, profile, piece.entry) if piece.start <= part.start < end)


def _torn(log: Log, index: int, drawn: str, block_bytes: int) -> Iterator[Piece]:
    offset, length = log.offsets[index], log.lengths[index]
    ahead = offset % block_bytes
    for run in _KEPT_RUN.finditer(drawn):
        start = max(0, run.start() * block_bytes - ahead)
        yield Piece(index, start, min(length, run.end() * block_bytes - ahead) - start)


def _chosen(state: ChosenState, count: int) -> str:
    """So many digits, 1 where the part is kept."""
    others, these = ("0", "1") if state.kept else ("1", "0")
    digits = [others] * count
    for part in state.parts:
        digits[part] = these
    return "".join(digits)


def _bits(seed: int, count: int) -> str:
    """So many digits 0 or 1, the same for the same seed everywhere."""
    if not count:
        return ""
    drawn = int.from_bytes(hashlib.shake_256(str(seed).encode()).digest(-(-count // 8)), "big")
    return format(drawn, f"0{-(-count // 8) * 8}b")[:count]
