"""The order of a study on several nodes: every repetition whole on one node, canaries on each of them.

A node lives its repetitions in their order, as if they were a study of its own: a canary opens and closes
them and comes back between visits. So what a node is like belongs to the repetition, which is a block, and
no cell is ever held against a cell on another node. Repetition r is on node (r - 1) modulo their number, so
that repetitions that are added later move nothing.

Canaries of all nodes are counted together: the i-th of node k, both from 1, is number (i - 1) x nodes + k,
whatever is added later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bedplate.model.fleet import Fleet
from bedplate.model.plan import ScheduledVisit


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
