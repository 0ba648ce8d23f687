"""Which visits share a boot, and the order of the boots.

In a guest a boot holds at most so many visits of one repetition, all of one kernel and one memory.
Within a repetition the visits of each such kind are taken in the order of their ranks, which is a random
one, and cut into boots; the boots of all kinds then come in a random order in which those of one kind
stay in their own. So every repetition is still a random complete block, a boot is a random handful of
visits of one kind, and where there is one kind the order is that of the ranks, as without boots.

When a study is extended, its boots stay what they are and in their order: the visits that are new to a
repetition are drawn into boots of their own, which come at random places between those that stand.

A machine that is booted by hand gets one boot per kernel and repetition, the kernels in a random order:
fewer reboots at the price that the time of day is shared by all visits of a kernel in a repetition.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bedplate.model.plan import Schedule


@dataclass(frozen=True, order=True)
class RankedVisit:
    """A visit of a repetition with its rank and what its boot must be."""

    rank: bytes
    cell_id: str
    dataset_id: str
    kernel: str | None
    memory_bytes: int | None

    @property
    def kind(self) -> tuple[str | None, int | None]:
        """What one boot can only be one of."""
        return self.kernel, self.memory_bytes


@dataclass(frozen=True)
class Boot:
    """Visits of one repetition, in order; `number` is None where the running system is not left."""

    number: int | None
    visits: tuple[RankedVisit, ...]


def by_kernel(
    ranked: Mapping[int, Sequence[RankedVisit]], *, seed: int
) -> Iterator[tuple[int, tuple[Boot, ...]]]:
    """One boot per kernel in every repetition. What is added moves nothing past anything else."""
    number = 0
    for repetition, entries in ranked.items():
        kernels = sorted(
            {entry.kernel for entry in entries}, key=lambda kernel: _hash(seed, repetition, "kernel", kernel)
        )
        boots = []
        for kernel in kernels:
            number += 1
            boots.append(Boot(number, tuple(sorted(entry for entry in entries if entry.kernel == kernel))))
        yield repetition, tuple(boots)


def drawn_boots(
    ranked: Mapping[int, Sequence[RankedVisit]], visits_per_boot: int, *, seed: int, standing: Schedule | None
) -> Iterator[tuple[int, tuple[Boot, ...]]]:
    """The boots of every repetition, those of the `standing` schedule first of all kept as they are."""
    stands = _standing_boots(ranked, standing)
    number = max(
        (visit.boot for visit in (standing.visits if standing else ()) if visit.boot is not None), default=0
    )
    for repetition, entries in ranked.items():
        kept = stands.get(repetition, [])
        known = {entry for boot in kept for entry in boot.visits}
        new = [entry for entry in sorted(entries) if entry not in known]
        drawn = _interleaved(_cut(new, visits_per_boot), seed, repetition)
        fresh = []
        for visits in drawn:
            number += 1
            fresh.append(Boot(number, visits))
        yield repetition, tuple(_placed(kept, fresh, seed, repetition))


def _standing_boots(
    ranked: Mapping[int, Sequence[RankedVisit]], standing: Schedule | None
) -> dict[int, list[Boot]]:
    """The boots of a schedule by repetition, as far as their visits are still asked for."""
    found: dict[int, dict[int, list[RankedVisit]]] = {}
    if standing is None:
        return {}
    entries = {
        (repetition, entry.cell_id, entry.dataset_id): entry
        for repetition, of_one in ranked.items()
        for entry in of_one
    }
    for visit in standing.visits:
        entry = entries.get((visit.repetition, visit.cell_id, visit.dataset_id))
        if not visit.canary and visit.boot is not None and entry is not None:
            found.setdefault(visit.repetition, {}).setdefault(visit.boot, []).append(entry)
    return {
        repetition: [Boot(number, tuple(visits)) for number, visits in boots.items()]
        for repetition, boots in found.items()
    }


def _cut(entries: Sequence[RankedVisit], visits_per_boot: int) -> dict[object, list[tuple[RankedVisit, ...]]]:
    """The boots of each kind, from entries in the order of their ranks."""
    kinds: dict[object, list[RankedVisit]] = {}
    for entry in entries:
        kinds.setdefault(entry.kind, []).append(entry)
    return {
        kind: [
            tuple(of_one[start : start + visits_per_boot]) for start in range(0, len(of_one), visits_per_boot)
        ]
        for kind, of_one in kinds.items()
    }


def _interleaved(
    kinds: Mapping[object, Sequence[tuple[RankedVisit, ...]]], seed: int, repetition: int
) -> list[tuple[RankedVisit, ...]]:
    """The boots of all kinds in a random order in which those of a kind stay in their own.

    Every boot draws a place; the places of a kind, in order, go to its boots, in order.
    """
    places = [
        (place, boot)
        for kind, boots in kinds.items()
        for place, boot in zip(
            sorted(_hash(seed, repetition, "boot", kind, number) for number in range(len(boots))),
            boots,
            strict=True,
        )
    ]
    return [boot for _, boot in sorted(places)]


def _placed(kept: Sequence[Boot], fresh: Sequence[Boot], seed: int, repetition: int) -> Iterator[Boot]:
    """The fresh boots at random places among those that stand, both in their own order."""
    gaps = sorted(
        int.from_bytes(_hash(seed, repetition, "gap", boot.visits[0].rank.hex())[:8]) % (len(kept) + 1)
        for boot in fresh
    )
    waiting = iter(zip(gaps, fresh, strict=True))
    gap, boot = next(waiting, (None, None))
    for place in range(len(kept) + 1):
        while boot is not None and gap == place:
            yield boot
            gap, boot = next(waiting, (None, None))
        if place < len(kept):
            yield kept[place]


def _hash(seed: int, repetition: int, *words: object) -> bytes:
    return hashlib.sha256("\0".join(map(str, (seed, repetition, *words))).encode()).digest()
