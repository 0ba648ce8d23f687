"""The visits of one block that a search decided: appended to a schedule, with the canaries that are due before it.

A block is a repetition of its own. Its order is the search's, which is a random one. Where visits run under several kernels, the visits of a
boot stay together, as in a repetition of all cells (room `boots`). On a fleet a block is on one node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bedplate.model.plan import Expansion, Plan, Schedule, ScheduledVisit
from bedplate.plan.boots import Boot, RankedVisit, by_kernel, drawn_boots
from bedplate.plan.estimate import visit_seconds
from bedplate.plan.platforms import QEMU, SLURM

_RANK_BYTES = 4


def block_visits(
    plan: Plan,
    expansion: Expansion,
    block: Sequence[tuple[str, str]],
    *,
    repetition: int,
    standing: Sequence[ScheduledVisit],
    executor: str,
) -> tuple[ScheduledVisit, ...]:
    """The visits of a block, by ids of cell and dataset, behind those that stand; a canary first where one is due."""
    node = plan.fleet.node_of(repetition) if executor == SLURM and plan.fleet is not None else None
    visits = [
        replace(visit, node=node)
        for visit in _in_boots(
            plan, expansion, block, repetition=repetition, standing=standing, executor=executor
        )
    ]
    made: list[ScheduledVisit] = []
    if _seconds_since_canary(plan, expansion, standing, node, executor) >= plan.canary.every_s:
        made += canary_visit(plan, expansion, (*standing, *visits), node=node, executor=executor)
    return tuple(replace(visit, index=len(standing) + at) for at, visit in enumerate((*made, *visits)))


def canary_visit(
    plan: Plan,
    expansion: Expansion,
    standing: Sequence[ScheduledVisit],
    *,
    node: str | None,
    executor: str,
) -> tuple[ScheduledVisit, ...]:
    """The next canary of a node, or of the machine, behind what stands; none where the plan has none."""
    key = next((key[:2] for key in expansion.by_visit if key[2]), None)
    if key is None:
        return ()
    own = sum(visit.canary and visit.node == node for visit in standing)
    number = own + 1
    if node is not None and plan.fleet is not None:
        # As in room `fleet_order`: canaries of all nodes are counted together.
        number = own * len(plan.fleet.nodes) + plan.fleet.nodes.index(node) + 1
    boot = _last_boot(standing) + 1 if executor == QEMU else None
    return (ScheduledVisit(len(standing), *key, repetition=number, canary=True, boot=boot, node=node),)


def _seconds_since_canary(
    plan: Plan, expansion: Expansion, standing: Sequence[ScheduledVisit], node: str | None, executor: str
) -> float:
    """Estimated seconds of the visits after the last canary; more than any limit before the first."""
    seconds = 0.0
    for visit in reversed(standing):
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
    block: Sequence[tuple[str, str]],
    *,
    repetition: int,
    standing: Sequence[ScheduledVisit],
    executor: str,
) -> Iterator[ScheduledVisit]:
    ranked = []
    for at, key in enumerate(block):
        cell, _ = expansion.find(*key)
        place = at.to_bytes(_RANK_BYTES, "big")
        ranked.append(RankedVisit(place, *key, cell.kernel.release, cell.device.memory_bytes))
    boots: Sequence[Boot] = (Boot(None, tuple(ranked)),)
    before = Schedule(plan.seed, plan.repetitions, tuple(standing))
    if executor == QEMU:
        ((_, boots),) = drawn_boots(
            {repetition: ranked}, plan.guest.visits_per_boot, seed=plan.seed, standing=before
        )
    elif any(entry.kernel is not None for entry in ranked):
        ((_, boots),) = by_kernel({repetition: ranked}, seed=plan.seed)
        boots = [Boot((boot.number or 0) + _last_boot(standing), boot.visits) for boot in boots]
    for boot in boots:
        for entry in boot.visits:
            yield ScheduledVisit(0, entry.cell_id, entry.dataset_id, repetition, boot=boot.number)


def _last_boot(standing: Sequence[ScheduledVisit]) -> int:
    return max((visit.boot for visit in standing if visit.boot is not None), default=0)
