"""What nodes are, in what they differ, and that a node needs nothing but Python."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.studies.synthetic_study import MACHINE

from bedplate.campaign.start import SharedInputs, VisitRequests
from bedplate.errors import DeviceInUse
from bedplate.executors.slurm import on_node
from bedplate.executors.slurm.controller import job_script
from bedplate.executors.slurm.nodes import words_about
from bedplate.executors.slurm.on_node import FactsRequest, find_facts
from bedplate.host.facts import read_machine
from bedplate.host.lock import device_lock, study_lock
from bedplate.model.devices import DeviceIdentity
from bedplate.model.machine import NodeFacts, common_machine, fleet_identity, unwanted_differences
from bedplate.model.visit import EngineBuild, ScratchDevice
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan
from bedplate.plan.order import order
from bedplate.plan.rules import Platform

SOURCES = Path(__file__).resolve().parents[4] / "src"
SAME = {name: NodeFacts(name, replace(MACHINE, hostname=name), firmware="A 1") for name in ("n1", "n2", "n3")}


def test_nodes_that_are_alike_differ_in_nothing() -> None:
    assert () == unwanted_differences(SAME, ())
    assert ("n1, n2, n3: 2 x Example CPU 2.4 GHz, 8 GiB, kernel 6.12.48-amd64",) == words_about(SAME.values())


@pytest.mark.parametrize(
    ("name", "said", "change"),
    [
        ("cpu", "Other CPU (n2)", {"machine": replace(MACHINE, cpu_model="Other CPU")}),
        ("memory", "16 (n2)", {"machine": replace(MACHINE, memory_bytes=16 * 2**30)}),
        ("kernel", "6.1 (n2)", {"machine": replace(MACHINE, kernel_release="6.1")}),
        ("distribution", "Fedora (n2)", {"machine": replace(MACHINE, distribution="Fedora")}),
        ("firmware", "A 2 (n2)", {"firmware": "A 2"}),
        ("firmware", "GXA7 (n2)", {"device_firmware": "GXA7"}),
    ],
)
def test_what_nodes_differ_in_is_said_unless_it_is_wanted(
    name: str, said: str, change: dict[str, object]
) -> None:
    other = replace(SAME["n2"], **change)  # type: ignore[arg-type]
    first = replace(SAME["n1"], device_firmware="GXA6") if "device_firmware" in change else SAME["n1"]
    found = {"n1": first, "n2": other}
    (sentence,) = unwanted_differences(found, ())
    assert said in sentence
    assert f'differing = ["{name}"]' in sentence
    assert () == unwanted_differences(found, (name,))


def test_a_sliver_of_memory_less_is_no_difference() -> None:
    found = {**SAME, "n4": replace(SAME["n1"], machine=replace(MACHINE, memory_bytes=8 * 2**30 - 2**20))}
    assert () == unwanted_differences(found, ())


def test_a_cell_must_be_possible_on_every_node() -> None:
    smaller = replace(MACHINE, filesystems=("ext4",), memory_bytes=2**30, cpu_count=1)
    machine = common_machine({"n1": SAME["n1"], "n2": NodeFacts("n2", smaller)})
    assert (("ext4",), 2**30, 1) == (machine.filesystems, machine.memory_bytes, machine.cpu_count)


def test_another_node_makes_another_fleet() -> None:
    assert fleet_identity(SAME) == fleet_identity(dict(reversed(SAME.items())))
    assert fleet_identity(SAME) != fleet_identity({name: SAME[name] for name in ("n1", "n2")})


def test_the_facts_of_this_machine_and_what_speaks_against_it(tmp_path: Path) -> None:
    request = FactsRequest(
        "n9", ScratchDevice(image_bytes=2**30), str(tmp_path / "none"), ("ext4",), ("pgbench",)
    )
    facts = find_facts(request)
    assert "n9" == facts.node
    assert facts.machine.cpu_count > 0
    assert any("n9: " in problem and "no directory" in problem for problem in facts.problems)
    assert (os.geteuid() == 0) != any("needs root" in problem for problem in facts.problems)


@pytest.mark.parametrize("module", ["payload", "on_node"])
def test_a_node_needs_nothing_but_python(module: str) -> None:
    program = (
        f"import bedplate.executors.slurm.{module}, sys\n"
        "foreign = {name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)\n"
        "print(*sorted(foreign))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-P", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(SOURCES)},
    )
    assert "" == done.stderr
    assert {"bedplate", "__main__"} >= set(done.stdout.split())


def test_a_script_holds_hostile_paths_as_one_word(tmp_path: Path) -> None:
    folder = tmp_path / "a b; touch $(id) 'x'"
    script = job_script(("printf", "%s|"), folder)
    file = tmp_path / "script"
    file.write_text(script)
    done = subprocess.run(["/bin/sh", str(file)], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert f"run-visits-of-job|{folder}|" == done.stdout
    assert ["script"] == [path.name for path in tmp_path.iterdir()]


JOURNALS = """
title = "Journals"
repetitions = 2
executor = "slurm"
[scratch_device]
device = "/dev/disk/by-id/a"
[journal_device]
device = "/dev/disk/by-id/j"
ram_size = "64 MB"
[slurm]
nodes = ["n1", "n2"]
journal_devices = { n2 = "/dev/disk/by-id/k" }
[[filesystem]]
type = "ext4"
journal = "external"
journal_device = { vary = ["ram", "device"] }
[[workload]]
type = "pgbench"
scale = 1
[[workload.run]]
script = "read-only"
clients = 1
duration = "60 s"
"""


def test_each_visit_is_asked_for_with_the_journal_device_of_its_node(tmp_path: Path) -> None:
    plan = load_plan(JOURNALS, source="plan.toml", directory=tmp_path)
    expansion = expand(plan, None, platform=Platform("slurm"))
    builds = {b: EngineBuild("/p", b.version, 8192, 8192, "", "", "", (), "d") for b in plan.builds}
    shared = SharedInputs(plan, expansion, builds, {}, plan.devices_erased, erase_foreign=False)
    store: Any = SimpleNamespace(facts=SimpleNamespace(machine_identity="m"))
    answers: Any = SimpleNamespace(digests={}, sources={})
    asked = set()
    for visit in order(plan, expansion, executor="slurm").visits:
        cell, load = expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)
        journal = VisitRequests(store, shared, answers).request(visit, 1, cell, load).journal_device
        if journal is not None:
            asked.add((visit.node, journal.device))
            assert journal.device is None or journal.device in journal.erase
    assert {
        ("n1", "/dev/disk/by-id/j"),
        ("n2", "/dev/disk/by-id/k"),
        ("n1", None),
        ("n2", None),
    } == asked


def test_a_journal_device_that_a_node_has_not_is_said_before_the_first_visit(tmp_path: Path) -> None:
    journal = ScratchDevice(
        device="/dev/disk/by-id/none-of-this-name", erase=("/dev/disk/by-id/none-of-this-name",)
    )
    image = ScratchDevice(image_bytes=2**20)
    request = FactsRequest("n9", image, str(tmp_path), ("ext4",), ("pgbench",), journals=(journal,))
    facts = find_facts(request)
    told = any("none-of-this-name" in problem for problem in facts.problems)
    assert told == facts.machine.is_root
    assert facts.journal_device_model is None


def test_a_visit_waits_for_who_has_its_journal_device_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEDPLATE_STATE", str(tmp_path))
    monkeypatch.setattr(on_node, "DEVICE_PATIENCE_S", 0.0)
    request: Any = SimpleNamespace(
        scratch_device=ScratchDevice(device="/dev/disk/by-id/a"),
        journal_device=ScratchDevice(device="/dev/disk/by-id/j"),
    )
    with on_node.devices_held(request, study="one"):
        pass
    for lock in (study_lock, device_lock):
        with (
            lock(tmp_path, "/dev/disk/by-id/j", study="orphan"),
            pytest.raises(DeviceInUse, match="orphan"),
            on_node.devices_held(request, study="two"),
        ):
            pytest.fail("two visits have one journal")


def test_a_node_tells_which_disk_it_has_and_is_looked_at_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = ScratchDevice(device="/dev/disk/by-path/port-1")
    found, before = (DeviceIdentity(1 << 30, serial=serial) for serial in "AB")
    seen: list[DeviceIdentity | None] = []

    def refusals(scratch: ScratchDevice, *_: object, **__: object) -> tuple[str, ...]:
        seen.append(scratch.recorded)
        return ()

    monkeypatch.setattr(on_node, "device_identity", lambda _: found)
    monkeypatch.setattr(on_node, "refusal_reasons", refusals)
    monkeypatch.setattr(on_node, "read_machine", lambda: replace(read_machine(), is_root=True))
    request = FactsRequest("n9", device, str(tmp_path), (), ())
    assert found == find_facts(request).device
    # Where the study knows the disk of the node, that stays the one.
    assert before == find_facts(replace(request, scratch_device=replace(device, recorded=before))).device
    assert [found, before] == seen
