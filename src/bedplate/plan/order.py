"""The order of visits: randomised complete blocks, and canaries between them.

Every repetition is one block: all cells with all their loads, each once, in an order of its own. A
visit's place in its block is the rank of SHA-256 over (seed, repetition, cell, dataset). That gives a
random permutation like a shuffle would, and besides
- it is the same in every version of Python and of bedplate;
- a cell that is added later takes a random place and moves no other cell past another;
- added repetitions leave the earlier blocks alone.

Where visits run under several kernels, room `boots` says what of this holds, and how.

A search decides its blocks one after the other. Each is a repetition of its own, in the search's order, which is a random one, behind what stands;
canaries come back between blocks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bedplate.model.machine import Fleet
from bedplate.model.plan import Expansion, Plan, Schedule, ScheduledVisit
from bedplate.plan.estimate import visit_seconds
from bedplate.plan.rules import LOCAL, QEMU, SLURM


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
    ranked: Mapping[int, Sequence[RankedVisit]], visits_per_boot: int, *, seed: int, schedule: Schedule | None
) -> Iterator[tuple[int, tuple[Boot, ...]]]:
    """The boots of every repetition, those of the `schedule` schedule first of all kept as they are."""
    stands = _standing_boots(ranked, schedule)
    number = max(
        (visit.boot for visit in (schedule.visits if schedule else ()) if visit.boot is not None), default=0
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
    ranked: Mapping[int, Sequence[RankedVisit]], schedule: Schedule | None
) -> dict[int, list[Boot]]:
    """The boots of a schedule by repetition, as far as their visits are still asked for."""
    found: dict[int, dict[int, list[RankedVisit]]] = {}
    if schedule is None:
        return {}
    entries = {
        (repetition, entry.cell_id, entry.dataset_id): entry
        for repetition, of_one in ranked.items()
        for entry in of_one
    }
    for visit in schedule.visits:
        entry = entries.get((visit.repetition, visit.cell_id, visit.dataset_id))
        if not visit.canary and visit.boot is not None and entry is not None:
            found.setdefault(visit.repetition, {}).setdefault(visit.boot, []).append(entry)
    return {
        repetition: [Boot(number, tuple(visits)) for number, visits in boots.items()]
        for repetition, boots in found.items()
    }


def _cut(
    ranked_visits: Sequence[RankedVisit], visits_per_boot: int
) -> dict[object, list[tuple[RankedVisit, ...]]]:
    """The boots of each kind, from entries in the order of their ranks."""
    kinds: dict[object, list[RankedVisit]] = {}
    for entry in ranked_visits:
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


def _placed(boots: Sequence[Boot], fresh: Sequence[Boot], seed: int, repetition: int) -> Iterator[Boot]:
    """The fresh boots at random places among those that stand, both in their own order."""
    gaps = sorted(
        int.from_bytes(_hash(seed, repetition, "gap", boot.visits[0].rank.hex())[:8]) % (len(boots) + 1)
        for boot in fresh
    )
    waiting = iter(zip(gaps, fresh, strict=True))
    gap, boot = next(waiting, (None, None))
    for place in range(len(boots) + 1):
        while boot is not None and gap == place:
            yield boot
            gap, boot = next(waiting, (None, None))
        if place < len(boots):
            yield boots[place]


def _hash(seed: int, repetition: int, *words: object) -> bytes:
    return hashlib.sha256("\0".join(map(str, (seed, repetition, *words))).encode()).digest()


@dataclass(frozen=True)
class Block:
    """One repetition on one node, with the canaries about it, in order: what one job is."""

    node: str
    repetition: int
    visits: tuple[ScheduledVisit, ...]


def on_nodes(
    fleet: Fleet,
    blocks: Mapping[int, Sequence[ScheduledVisit]],
    *,
    canary: tuple[str, str] | None,
    canary_every_s: float,
    seconds: Mapping[tuple[str, str], float],
) -> tuple[ScheduledVisit, ...]:
    """The visits of each repetition on their nodes, canaries between them, numbered in order.

    `blocks` has the visits of a repetition in their order. `canary` are its cell and dataset, None without
    one. `seconds` are estimates of visits by cell and dataset.
    """
    of_node = {
        node: [repetition for repetition in blocks if fleet.node_of(repetition) == node]
        for node in fleet.nodes
    }
    made: dict[int, tuple[ScheduledVisit, ...]] = {}
    for place, (node, repetitions) in enumerate(of_node.items()):
        own = {repetition: blocks[repetition] for repetition in repetitions}
        made |= _on_node(
            node,
            own,
            canary=canary,
            canary_every_s=canary_every_s,
            seconds=seconds,
            numbers=iter(range(place + 1, 2**53, len(fleet.nodes))),
        )
    ordered = (visit for repetition in sorted(made) for visit in made[repetition])
    return tuple(replace(visit, index=index) for index, visit in enumerate(ordered))


def _on_node(
    node: str,
    blocks: Mapping[int, Sequence[ScheduledVisit]],
    *,
    canary: tuple[str, str] | None,
    canary_every_s: float,
    seconds: Mapping[tuple[str, str], float],
    numbers: Iterator[int],
) -> dict[int, tuple[ScheduledVisit, ...]]:
    made: dict[int, list[ScheduledVisit]] = {}
    since_canary_s = canary_every_s
    for repetition, visits in blocks.items():
        own = made.setdefault(repetition, [])
        for visit in visits:
            if canary and since_canary_s >= canary_every_s:
                own.append(ScheduledVisit(0, *canary, repetition=next(numbers), canary=True, node=node))
                since_canary_s = 0.0
            own.append(replace(visit, node=node))
            since_canary_s += seconds[visit.cell_id, visit.dataset_id]
    if canary and made:
        last = made[max(made)]
        last.append(ScheduledVisit(0, *canary, repetition=next(numbers), canary=True, node=node))
    return {repetition: tuple(visits) for repetition, visits in made.items()}


def blocks_of(visits: Sequence[ScheduledVisit]) -> tuple[Block, ...]:
    """The blocks of a fleet's schedule, or of what is due of it, in order.

    A canary goes with the repetition that it opens or stands in, the last one of a node with the last.
    ValueError for a visit without a node.
    """
    homeless = [visit for visit in visits if visit.node is None]
    if homeless:
        raise ValueError(f"visit {homeless[0].index} has no node; its schedule is none of a fleet")
    waiting: dict[str, list[ScheduledVisit]] = {}
    blocks: dict[tuple[str, int], list[ScheduledVisit]] = {}
    last: dict[str, tuple[str, int]] = {}
    for visit in sorted(visits, key=lambda visit: visit.index):
        node = str(visit.node)
        if visit.canary:
            waiting.setdefault(node, []).append(visit)
            continue
        key = (node, visit.repetition)
        blocks.setdefault(key, []).extend([*waiting.pop(node, ()), visit])
        last[node] = key
    for node, canaries in waiting.items():
        # Only canaries are due on a node where the rest is done.
        blocks.setdefault(last.get(node, (node, 0)), []).extend(canaries)
    return tuple(Block(node, repetition, tuple(found)) for (node, repetition), found in blocks.items())


# A place within a block of a search, as it is ranked.
_RANK_BYTES = 4


@dataclass(frozen=True)
class _Stretch:
    """Visits between which no canary comes. `boot` is None where the running system is not left."""

    visits: tuple[ScheduledVisit, ...]
    boot: int | None


def order(
    plan: Plan,
    expansion: Expansion,
    seed: int | None = None,
    *,
    executor: str = LOCAL,
    schedule: Schedule | None = None,
) -> Schedule:
    """The schedule of all repetitions; `seed` None takes the plan's.

    A canary visit opens and closes the study, and comes back whenever `canary.every` of estimated
    time has passed since the last, within a block as well (but not within a boot): blocks may take
    days. It belongs to no block; its `repetition` counts canaries.

    With an executor of several nodes each repetition is on one of them (room `fleet_order`). With one that
    has guests, visits are drawn into boots. `schedule` is the schedule of a study that is extended: its
    boots stay as they are, in their order.
    """
    chosen = plan.seed if seed is None else seed
    keys = {key[:2]: cell for key, (cell, _) in expansion.by_visit.items() if not key[2]}
    seconds = {
        key[:2]: visit_seconds(plan, cell, load, executor=executor)
        for key, (cell, load) in expansion.by_visit.items()
        if not key[2]
    }
    ranked = {
        repetition: [
            RankedVisit(rank(chosen, repetition, *key), *key, cell.kernel.release, cell.device.memory_bytes)
            for key, cell in keys.items()
        ]
        for repetition in range(1, plan.repetitions + 1)
    }
    if executor == SLURM and plan.fleet is not None:
        on_fleet = _on_fleet(plan, plan.fleet, expansion, ranked, seconds)
        return Schedule(chosen, plan.repetitions, on_fleet)
    if executor == QEMU:
        blocks = drawn_boots(ranked, plan.guest.visits_per_boot, seed=chosen, schedule=schedule)
    elif any(cell.kernel.release is not None for cell in keys.values()):
        blocks = by_kernel(ranked, seed=chosen)
    else:
        blocks = ((repetition, (Boot(None, tuple(sorted(found))),)) for repetition, found in ranked.items())
    stretches = _stretches(blocks, in_one_piece=executor == QEMU)
    visits = tuple(_with_canaries(plan, expansion, stretches, seconds))
    if executor == QEMU:
        visits = _canaries_booted(visits, schedule)
    return Schedule(chosen, plan.repetitions, visits)


def _on_fleet(
    plan: Plan,
    fleet: Fleet,
    expansion: Expansion,
    ranked: Mapping[int, Sequence[RankedVisit]],
    seconds: Mapping[tuple[str, str], float],
) -> tuple[ScheduledVisit, ...]:
    blocks = {
        repetition: [
            ScheduledVisit(0, entry.cell_id, entry.dataset_id, repetition) for entry in sorted(entries)
        ]
        for repetition, entries in ranked.items()
    }
    canary = next((key[:2] for key in expansion.by_visit if key[2]), None) if seconds else None
    return on_nodes(fleet, blocks, canary=canary, canary_every_s=plan.canary.every_s, seconds=seconds)


def rank(seed: int, repetition: int, cell_id: str, dataset_id: str) -> bytes:
    """A visit's place in its repetition: what sorts lower comes first."""
    return hashlib.sha256(f"{seed}\0{repetition}\0{cell_id}\0{dataset_id}".encode()).digest()


def _stretches(blocks: Iterator[tuple[int, Sequence[Boot]]], *, in_one_piece: bool) -> Iterator[_Stretch]:
    for repetition, boots in blocks:
        for boot in boots:
            visits = tuple(
                ScheduledVisit(0, entry.cell_id, entry.dataset_id, repetition, boot=boot.number)
                for entry in boot.visits
            )
            if in_one_piece:
                yield _Stretch(visits, boot.number)
            else:
                yield from (_Stretch((visit,), boot.number) for visit in visits)


def _with_canaries(
    plan: Plan,
    expansion: Expansion,
    stretches: Iterator[_Stretch],
    seconds: Mapping[tuple[str, str], float],
) -> Iterator[ScheduledVisit]:
    canary = None
    if expansion.canary is not None and seconds:
        canary = next(key[:2] for key in expansion.by_visit if key[2])
    index = canaries = 0
    since_canary_s = 0.0
    for position, stretch in enumerate(stretches):
        if canary and (position == 0 or since_canary_s >= plan.canary.every_s):
            canaries += 1
            yield ScheduledVisit(index, *canary, repetition=canaries, canary=True)
            index += 1
            since_canary_s = 0.0
        for visit in stretch.visits:
            yield replace(visit, index=index)
            index += 1
            since_canary_s += seconds[visit.cell_id, visit.dataset_id]
    if canary:
        yield ScheduledVisit(index, *canary, repetition=canaries + 1, canary=True)


def _canaries_booted(
    visits: tuple[ScheduledVisit, ...], schedule: Schedule | None
) -> tuple[ScheduledVisit, ...]:
    """Each canary in a boot of its own, with the number that it had."""
    had = {visit.repetition: visit.boot for visit in (schedule.visits if schedule else ()) if visit.canary}
    taken = [visit.boot for visit in visits if visit.boot is not None]
    taken += [boot for boot in had.values() if boot is not None]
    free = max(taken, default=0)
    made = []
    for visit in visits:
        if visit.canary:
            boot = had.get(visit.repetition)
            if boot is None:
                boot = free = free + 1
            made.append(replace(visit, boot=boot))
        else:
            made.append(visit)
    return tuple(made)


def block_visits(
    plan: Plan,
    expansion: Expansion,
    cell_keys: Sequence[tuple[str, str]],
    *,
    repetition: int,
    earlier_visits: Sequence[ScheduledVisit],
    executor: str,
) -> tuple[ScheduledVisit, ...]:
    """The visits of a block, by ids of cell and dataset, behind those that stand; a canary first where one is due."""
    node = plan.fleet.node_of(repetition) if executor == SLURM and plan.fleet is not None else None
    visits = [
        replace(visit, node=node)
        for visit in _in_boots(
            plan,
            expansion,
            cell_keys,
            repetition=repetition,
            earlier_visits=earlier_visits,
            executor=executor,
        )
    ]
    made: list[ScheduledVisit] = []
    if _seconds_since_canary(plan, expansion, earlier_visits, node, executor) >= plan.canary.every_s:
        made += canary_visit(plan, expansion, (*earlier_visits, *visits), node=node, executor=executor)
    return tuple(replace(visit, index=len(earlier_visits) + at) for at, visit in enumerate((*made, *visits)))


def canary_visit(
    plan: Plan,
    expansion: Expansion,
    earlier_visits: Sequence[ScheduledVisit],
    *,
    node: str | None,
    executor: str,
) -> tuple[ScheduledVisit, ...]:
    """The next canary of a node, or of the machine, behind what stands; none where the plan has none."""
    key = next((key[:2] for key in expansion.by_visit if key[2]), None)
    if key is None:
        return ()
    own = sum(visit.canary and visit.node == node for visit in earlier_visits)
    number = own + 1
    if node is not None and plan.fleet is not None:
        # As in room `fleet_order`: canaries of all nodes are counted together.
        number = own * len(plan.fleet.nodes) + plan.fleet.nodes.index(node) + 1
    boot = _last_boot(earlier_visits) + 1 if executor == QEMU else None
    return (ScheduledVisit(len(earlier_visits), *key, repetition=number, canary=True, boot=boot, node=node),)


def _seconds_since_canary(
    plan: Plan,
    expansion: Expansion,
    earlier_visits: Sequence[ScheduledVisit],
    node: str | None,
    executor: str,
) -> float:
    """Estimated seconds of the visits after the last canary; more than any limit before the first."""
    seconds = 0.0
    for visit in reversed(earlier_visits):
        if visit.node != node:
            continue
        if visit.canary:
            return seconds
        cell, load = expansion.find(visit.cell_id, visit.dataset_id)
        seconds += visit_seconds(plan, cell, load, executor=executor)
    return float("inf")


def _in_boots(
    plan: Plan,
    expansion: Expansion,
    cell_keys: Sequence[tuple[str, str]],
    *,
    repetition: int,
    earlier_visits: Sequence[ScheduledVisit],
    executor: str,
) -> Iterator[ScheduledVisit]:
    ranked = []
    for at, key in enumerate(cell_keys):
        cell, _ = expansion.find(*key)
        place = at.to_bytes(_RANK_BYTES, "big")
        ranked.append(RankedVisit(place, *key, cell.kernel.release, cell.device.memory_bytes))
    boots: Sequence[Boot] = (Boot(None, tuple(ranked)),)
    before = Schedule(plan.seed, plan.repetitions, tuple(earlier_visits))
    if executor == QEMU:
        ((_, boots),) = drawn_boots(
            {repetition: ranked}, plan.guest.visits_per_boot, seed=plan.seed, schedule=before
        )
    elif any(entry.kernel is not None for entry in ranked):
        ((_, boots),) = by_kernel({repetition: ranked}, seed=plan.seed)
        boots = [Boot((boot.number or 0) + _last_boot(earlier_visits), boot.visits) for boot in boots]
    for boot in boots:
        for entry in boot.visits:
            yield ScheduledVisit(0, entry.cell_id, entry.dataset_id, repetition, boot=boot.number)


def _last_boot(earlier_visits: Sequence[ScheduledVisit]) -> int:
    return max((visit.boot for visit in earlier_visits if visit.boot is not None), default=0)
