"""What `status` says of a study on the nodes of a Slurm cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.cli.printing import say
from bedplate.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bedplate.executors.slurm.progress import NodeProgress

_SHOWN_NODES = 40


def nodes_of(study: Path) -> tuple[NodeProgress, ...]:
    """Where the nodes of a study are, empty without a fleet; Slurm is asked where its commands are here."""
    from bedplate.executors.slurm.controller import Slurm  # noqa: PLC0415
    from bedplate.executors.slurm.progress import read_fleet  # noqa: PLC0415
    from bedplate.host.requirement import find_tool  # noqa: PLC0415

    return read_fleet(study, Slurm() if find_tool("squeue") else None)


def print_nodes(nodes: Sequence[NodeProgress]) -> None:
    """One line for each node, and when the slowest will be done."""
    if not nodes:
        return
    if not nodes[0].seen:
        say("  nodes        Slurm does not answer here; this is what the jobs wrote down")
    for node in nodes[:_SHOWN_NODES]:
        job = "no job"
        if node.state is not None:
            number = f"job {node.job} " if node.job else "job "
            job = f"{number}{node.state}, repetition {node.repetition}"
        waiting = f", {node.waiting} to be collected" if node.waiting else ""
        failed = f", {node.failed} failed" if node.failed else ""
        left = f", {node.left} left" if node.left else ""
        if node.left and node.seconds_left is not None:
            left += f" ({format_duration(node.seconds_left)})"
        say(f"  {node.node:<12} {node.completed} completed{failed}{left}; {job}{waiting}")
    if len(nodes) > _SHOWN_NODES:
        say(f"  … and {len(nodes) - _SHOWN_NODES} more nodes; --json has all of them")
    times = [node.seconds_left for node in nodes if node.seconds_left is not None]
    if times and max(times) > 0:
        say(f"  left         about {format_duration(max(times))}, on the node that has most to do")
