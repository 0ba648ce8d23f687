"""A fleet's study goes on with the nodes that it was begun on, and with no others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.studies.synthetic_study import MACHINE

from bedplate.campaign.display import LineDisplay
from bedplate.cli.status import print_nodes
from bedplate.errors import StudyError
from bedplate.executors.slurm.controller import FleetLayout
from bedplate.executors.slurm.fleet_run import ClusterNodes, NodeProgress
from bedplate.model import codec
from bedplate.model.machine import Fleet, NodeFacts, fleet_identity

NODES = {name: NodeFacts(name, replace(MACHINE, hostname=name)) for name in ("n1", "n2")}


class Study:
    """One of two nodes, and what a look at them would find."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.layout = FleetLayout.of_study(place)
        self.found: Mapping[str, NodeFacts] = NODES
        self.looks = 0
        self.store: Any = SimpleNamespace(
            layout=SimpleNamespace(directory=place),
            facts=SimpleNamespace(
                machine_identity=fleet_identity(NODES), kernel_release=MACHINE.kernel_release
            ),
        )
        self.layout.facts_of("n1").parent.mkdir(parents=True)
        for node, facts in NODES.items():
            codec.write(self.layout.facts_of(node), facts)
        monkeypatch.setattr(ClusterNodes, "look", self._look)

    def _look(self, *_given: object, **_named: object) -> Mapping[str, NodeFacts]:
        self.looks += 1
        return self.found

    def go_on(self) -> None:
        plan: Any = SimpleNamespace(fleet=Fleet(("n1", "n2")))
        ClusterNodes().require_same(plan, self.store, LineDisplay(), erase_foreign=False)


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    return Study(tmp_path / "study", monkeypatch)


def test_nodes_that_are_known_are_not_looked_at_again(study: Study) -> None:
    study.go_on()
    assert 0 == study.looks


def test_facts_that_were_removed_are_found_out_again(study: Study) -> None:
    study.layout.facts_of("n2").unlink()
    study.go_on()
    assert 1 == study.looks


@pytest.mark.parametrize("change", [{"cpu_model": "Other CPU"}, {"kernel_release": "7.0"}])
def test_removing_facts_does_not_make_other_machines_the_same(study: Study, change: dict[str, str]) -> None:
    study.layout.facts_of("n1").unlink()
    other: dict[str, Any] = dict(change)
    study.found = {
        name: replace(facts, machine=replace(facts.machine, **other)) for name, facts in NODES.items()
    }
    with pytest.raises(StudyError, match="begun on other nodes"):
        study.go_on()


def test_the_key_of_a_study_is_one_whoever_makes_it(tmp_path: Path) -> None:
    layout = FleetLayout.of_study(tmp_path)
    assert layout.key() == FleetLayout.of_study(tmp_path).key()
    assert ["key"] == [path.name for path in layout.directory.iterdir()]


def test_a_line_of_a_node_fits_into_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    usual = NodeProgress("n1", 3, 0, 3, "15", "RUNNING", 3, 0, 65.0, seen=True)
    done = replace(usual, node="n2", completed=6, left=0, job=None, state=None, repetition=None)
    failed = replace(usual, node="n3", failed=1, waiting=2, seconds_left=None)
    print_nodes((usual, done, failed))
    lines = capsys.readouterr().out.splitlines()
    assert "  n1           3 completed, 3 left (1 min 05 s); job 15 RUNNING, repetition 3" == lines[0]
    assert "  n2           6 completed; no job" == lines[1]
    assert lines[2].endswith("3 completed, 1 failed, 3 left; job 15 RUNNING, repetition 3, 2 to be collected")
    assert 80 >= len(lines[0])
