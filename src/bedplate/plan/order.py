"""The order of visits: randomised complete blocks, and canaries between them.

Every repetition is one block: all cells with all their loads, each once, in an order of its own. A
visit's place in its block is the rank of SHA-256 over (seed, repetition, cell, dataset). That gives a
random permutation like a shuffle would, and besides
- it is the same in every version of Python and of bedplate;
- a cell that is added later takes a random place and moves no other cell past another;
- added repetitions leave the earlier blocks alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from bedplate.model.plan import Expansion, Plan, Schedule, ScheduledVisit
from bedplate.plan.estimate import visit_seconds


def order(plan: Plan, expansion: Expansion, seed: int | None = None) -> Schedule:
    """The schedule of all repetitions; `seed` None takes the plan's.

    A canary visit opens and closes the study, and comes back whenever `canary.every` of estimated
    time has passed since the last, within a block as well: blocks may take days. It belongs to no
    block; its `repetition` counts canaries.
    """
    chosen = plan.seed if seed is None else seed
    seconds = {
        (cell_id, dataset_id): visit_seconds(plan, cell, load)
        for (cell_id, dataset_id, canary), (cell, load) in expansion.by_visit.items()
        if not canary
    }
    blocks = (
        (repetition, key)
        for repetition in range(1, plan.repetitions + 1)
        for key in sorted(seconds, key=lambda key: _rank(chosen, repetition, *key))
    )
    visits = tuple(_with_canaries(plan, expansion, blocks, seconds))
    return Schedule(chosen, plan.repetitions, visits)


def _rank(seed: int, repetition: int, cell_id: str, dataset_id: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{repetition}\0{cell_id}\0{dataset_id}".encode()).digest()


def _with_canaries(
    plan: Plan,
    expansion: Expansion,
    blocks: Iterator[tuple[int, tuple[str, str]]],
    seconds: dict[tuple[str, str], float],
) -> Iterator[ScheduledVisit]:
    canary = None
    if expansion.canary is not None and seconds:
        canary = next(key[:2] for key in expansion.by_visit if key[2])
    index = canaries = 0
    since_canary_s = 0.0
    for position, (repetition, key) in enumerate(blocks):
        if canary and (position == 0 or since_canary_s >= plan.canary.every_s):
            canaries += 1
            yield ScheduledVisit(index, *canary, repetition=canaries, canary=True)
            index += 1
            since_canary_s = 0.0
        yield ScheduledVisit(index, *key, repetition=repetition)
        index += 1
        since_canary_s += seconds[key]
    if canary:
        yield ScheduledVisit(index, *canary, repetition=canaries + 1, canary=True)
