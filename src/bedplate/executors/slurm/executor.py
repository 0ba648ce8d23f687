"""The Slurm executor: a repetition of a study is a job on a node of a cluster."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bedplate.errors import PlanError, StudyError
from bedplate.executors.protocol import Executor
from bedplate.executors.slurm.controller import Slurm, require_slurm
from bedplate.executors.slurm.layout import FleetLayout
from bedplate.model.fleet import common_machine, fleet_identity
from bedplate.plan.platforms import SLURM
from bedplate.study.layout import StudyLayout
from bedplate.study.nodes import read_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from bedplate.executors.protocol import Listener, Start, StartOutcome
    from bedplate.host.requirement import Need
    from bedplate.model.fleet import NodeFacts
    from bedplate.model.machine import Machine
    from bedplate.model.plan import Plan
    from bedplate.study.records import StudyFacts
    from bedplate.study.store import StudyStore


class ClusterNodes:
    """The nodes that a plan names."""

    def machine(self, plan: Plan, nodes: Mapping[str, NodeFacts]) -> Machine | None:
        """What all nodes have; None before somebody has looked at them."""
        if plan.fleet is None:
            raise PlanError('executor = "slurm" needs the table [slurm] with nodes = ["n1", "n2"]')
        return common_machine(nodes) if nodes else None

    def look(
        self, plan: Plan, study: Path, listener: Listener, *, erase_foreign: bool
    ) -> Mapping[str, NodeFacts]:
        """Find out what the nodes are, by a job on each; RequirementMissing with every reason against them."""
        from bedplate.executors.slurm.fleet_run import Manner  # noqa: PLC0415
        from bedplate.executors.slurm.nodes import find_node_facts, words_about  # noqa: PLC0415

        facts = find_node_facts(
            plan,
            FleetLayout.of_study(study),
            Slurm(),
            listener,
            manner=Manner.of_this_checkout(os.environ),
            erase_foreign=erase_foreign,
        )
        for words in words_about(facts.values()):
            listener.note(words)
        return facts

    def require_same(self, plan: Plan, store: StudyStore, listener: Listener, *, erase_foreign: bool) -> None:
        """That the nodes are those of the study; looks at them again where somebody took away what was known.

        A visit compares its node with these facts, and without them would take any. StudyError if they are other
        machines or run another kernel.
        """
        study, facts = store.layout.directory, store.facts
        known = read_nodes(StudyLayout(study))
        if plan.fleet is None or not set(plan.fleet.nodes) <= known.keys():
            known = self.look(plan, study, listener, erase_foreign=erase_foreign)
        kernels = {node.machine.kernel_release for node in known.values()}
        if fleet_identity(known) != facts.machine_identity or facts.kernel_release not in kernels:
            raise StudyError(
                f"{study} was begun on other nodes, or under kernel {facts.kernel_release} and they run "
                f"{', '.join(sorted(kernels))} now; figures of two machines are never one study: name another --study"
            )


class SlurmExecutor(Executor):
    """Nodes of a cluster, from the machine where jobs are submitted."""

    name = SLURM
    runs_here = False

    @property
    def fleet(self) -> ClusterNodes:
        """The nodes that the plan names."""
        return ClusterNodes()

    def needs(self, filesystems: Iterable[str], workloads: Iterable[str]) -> tuple[Need, ...]:  # noqa: ARG002
        """Slurm's commands; no program that only a visit starts. Each node's kernel and device are looked at there, by the visit that uses them."""
        require_slurm()
        return ()

    def another_machine(self, plan: Plan, begun: StudyFacts, machine: Machine) -> str | None:  # noqa: ARG002
        """Each visit looks at its own node."""
        return None

    def run(self, start: Start) -> StartOutcome:
        """A job for each repetition, results collected as they come."""
        from bedplate.executors.slurm.fleet_run import FleetRun, Manner  # noqa: PLC0415

        manner = Manner.of_this_checkout(os.environ)
        return FleetRun(start, Slurm(), manner=manner).run()
