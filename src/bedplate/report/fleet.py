"""What is to be said of a study that was lived on several nodes: who they are, what is incomplete on which.

A repetition is whole on one node, so every comparison within a repetition is one within a node, and the node is
a block like the repetition itself. What is missing on a node is said, and not filled up by another one.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from bedplate.model.visit import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bedplate.model.visit import VisitRecord
    from bedplate.study.stored import Study

NODE = "node"
_SHOWN_NODES = 8


def node_of(record: VisitRecord) -> str | None:
    """The node that lived a visit; None without a fleet."""
    return record.provenance.get(NODE)


def nodes_of_repetitions(study: Study) -> Mapping[int, str]:
    """The node of each repetition of a fleet's schedule; empty for one machine."""
    return {
        visit.repetition: visit.node
        for visit in study.schedule.visits
        if visit.node is not None and not visit.canary
    }


def fleet_marks(study: Study) -> tuple[str, ...]:
    """Sentences that stand beside every figure of a fleet's study; empty for one machine."""
    nodes = tuple(dict.fromkeys(visit.node for visit in study.schedule.visits if visit.node is not None))
    if not nodes:
        return ()
    if len(nodes) == 1:
        return (f"lived on node {nodes[0]}",)
    names = ", ".join(nodes[:_SHOWN_NODES])
    more = f" and {len(nodes) - _SHOWN_NODES} more" if len(nodes) > _SHOWN_NODES else ""
    words = (
        "each repetition stands on one of them, a node is a block, and no cell is held against one on another"
    )
    marks = [f"{len(nodes)} nodes ({names}{more}): {words}"]
    marks += (
        f"nodes {', '.join(shared)} are one machine and share its processors and disks: this shows that it works, "
        "and no speed"
        for shared in _on_one_machine(visit.record for visit in study.visits)
    )
    return tuple(marks)


def incomplete_nodes(study: Study) -> Mapping[str, tuple[str, ...]]:
    """By cell, where repetitions are missing on a node: `n2 (1 of 3 repetitions)`."""
    due: dict[tuple[str, str], set[tuple[int, str]]] = defaultdict(set)
    for visit in study.schedule.visits:
        if visit.node is not None and not visit.canary:
            due[visit.cell_id, visit.node].add((visit.repetition, visit.dataset_id))
    done: dict[tuple[str, str], set[tuple[int, str]]] = defaultdict(set)
    for stored in study.visits:
        record = stored.record
        node = node_of(record)
        if node is not None and not record.key.canary and record.outcome is Outcome.COMPLETED:
            done[record.key.cell, node].add((record.key.repetition, record.key.dataset))
    found: dict[str, list[str]] = defaultdict(list)
    for (cell, node), wanted in due.items():
        missing = {repetition for repetition, _ in wanted - done[cell, node]}
        if missing:
            of = len({repetition for repetition, _ in wanted})
            found[cell].append(f"{node} ({len(missing)} of {of} repetitions)")
    return {cell: tuple(words) for cell, words in found.items()}


def _on_one_machine(records: Iterable[VisitRecord]) -> list[tuple[str, ...]]:
    """Nodes whose visits were lived under one boot of one kernel."""
    boots: dict[str, set[str]] = defaultdict(set)
    for record in records:
        node = node_of(record)
        if node is not None and record.boot_id:
            boots[record.boot_id].add(node)
    return sorted({tuple(sorted(nodes)) for nodes in boots.values() if len(nodes) > 1})
