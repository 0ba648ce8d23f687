"""What is to be said of a study that was lived on several nodes: who they are, what is incomplete on which.

A repetition is whole on one node, so every comparison within a repetition is one within a node, and the node is
a block like the repetition itself. What is missing on a node is said, and not filled up by another one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bedplate.model.visit import Outcome, VisitRecord

if TYPE_CHECKING:
    from bedplate.model.machine import NodeFacts
    from bedplate.study.stored import Study

NODE = "node"

_SHOWN_WORDS = 8

_NUMBERED = re.compile(r"(.*?)(\d{1,9})", re.ASCII)

# Two in a row are shorter by their names.
_SHORTEST_RANGE = 3


@dataclass(frozen=True)
class NodeKind:
    """Nodes of which all that is known is the same, but for the names of their hosts; `facts` are the first one's."""

    nodes: tuple[str, ...]
    hosts: tuple[str, ...]
    facts: NodeFacts


def node_kinds(study: Study) -> tuple[NodeKind, ...]:
    """The nodes of a fleet's study, those that are alike together, in the order of their names; empty without one."""
    found: dict[str, list[NodeFacts]] = defaultdict(list)
    for facts in study.nodes.values():
        machine = replace(facts.machine, hostname="", boot_id="")
        found[repr(replace(facts, node="", machine=machine))].append(facts)
    return tuple(
        NodeKind(
            nodes=tuple(facts.node for facts in alike),
            hosts=tuple(dict.fromkeys(facts.machine.hostname for facts in alike)),
            facts=alike[0],
        )
        for alike in found.values()
    )


def folded(names: Sequence[str]) -> str:
    """Names as Slurm writes them: `n[01-16], m3`; no more than two in a row are listed, and no more than eight words."""
    rows: list[list[str]] = []
    for name in names:
        if rows and _follows(rows[-1][-1], name):
            rows[-1].append(name)
        else:
            rows.append([name])
    words: list[str] = []
    for number, row in enumerate(rows):
        if len(words) >= _SHOWN_WORDS:
            return f"{', '.join(words)} and {sum(map(len, rows[number:]))} more"
        if len(row) < _SHORTEST_RANGE:
            words += row
            continue
        first, last = (_NUMBERED.fullmatch(name) for name in (row[0], row[-1]))
        assert first is not None  # noqa: S101 -- or nothing had followed it
        assert last is not None  # noqa: S101 -- as above
        words.append(f"{first[1]}[{first[2]}-{last[2]}]")
    return ", ".join(words)


def _follows(one: str, other: str) -> bool:
    first, second = _NUMBERED.fullmatch(one), _NUMBERED.fullmatch(other)
    if first is None or second is None or first[1] != second[1]:
        return False
    return second[2] == f"{int(first[2]) + 1:0{len(first[2])}d}"


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
        return (f"ran on node {nodes[0]}",)
    names = folded(nodes)
    words = (
        "each repetition runs on one of them, a node is a block, and no cell is held against one on another"
    )
    marks = [f"{len(nodes)} nodes ({names}): {words}"]
    marks += (
        f"nodes {folded(shared)} are one machine and share its processors and disks: this shows that it works, "
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
