"""A study keeps which disks it began with, asks every visit for them, and goes on with no others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.studies.synthetic_study import MACHINE
from tests.unit.campaign.test_study_from_python import PLAN, Nowhere

from bedplate.campaign import planning, running
from bedplate.campaign.running import Consent, extend, run
from bedplate.campaign.start import SharedInputs
from bedplate.cli.release import erased_device
from bedplate.errors import DeviceInUse, DeviceRefused, MachineUnfit
from bedplate.executors.protocol import Executor
from bedplate.host.command import Commands
from bedplate.host.files import state_directory
from bedplate.host.ledger import Ledger
from bedplate.host.lock import study_lock
from bedplate.model import codec
from bedplate.model.devices import DeviceIdentity
from bedplate.model.levels import Scalar
from bedplate.model.machine import NodeFacts
from bedplate.model.visit import ScratchDevice, VisitRequest
from bedplate.plan.load import load_plan
from bedplate.study.layout import StudyLayout
from bedplate.study.records import StudyFacts, node_devices, nodes_directory

NAME = "/dev/disk/by-path/port-1"
ON_A_DISK = PLAN.replace('image_size = "512 MB"', f'device = "{NAME}"')
CONSENT = Consent(erase=(NAME,), erase_foreign=True)
FIRST, SECOND = (DeviceIdentity(1 << 30, serial=serial) for serial in "AB")


class Asked(Nowhere):
    """Remembers what was recorded for the device of each visit; after so many visits it is unfit for more."""

    def __init__(self) -> None:
        super().__init__()
        self.recorded: list[DeviceIdentity | None] = []
        self.most = 99

    def run_visit(
        self,
        request: VisitRequest,
        directory: Path,
        on_event: Callable[[Mapping[str, Scalar]], None],
        *,
        boot: int | None = None,
    ) -> None:
        if self.visits == self.most:
            raise MachineUnfit("the machine was switched off")
        self.recorded.append(request.scratch_device.recorded)
        super().run_visit(request, directory, on_event, boot=boot)


class Port:
    """What the name of the disk leads to."""

    disk = FIRST


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Port:
    found = Port()

    def refusals(scratch: ScratchDevice, *_: object, **__: object) -> tuple[str, ...]:
        assert scratch.recorded is not None
        return scratch.recorded.differences(found.disk)

    monkeypatch.setattr(running, "device_identity", lambda _: found.disk)
    monkeypatch.setattr(running, "refusal_reasons", refusals)
    return found


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    found = Asked()
    executor: Executor = found
    monkeypatch.setattr(planning, "executor_for", lambda _: executor)
    monkeypatch.setenv("BEDPLATE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(ON_A_DISK)
    return found


def devices_of(study: Path) -> Mapping[str, DeviceIdentity]:
    return codec.read(StudyFacts, study / "study.json").devices


def test_a_study_goes_on_with_the_disk_that_it_began_with_and_with_no_other(
    tmp_path: Path, port: Port, asked: Asked
) -> None:
    plan, study = tmp_path / "plan.toml", tmp_path / "study"
    asked.most = 1
    with pytest.raises(MachineUnfit):
        run(plan, study, consent=CONSENT, doubts=False)
    assert {NAME: FIRST} == devices_of(study)
    asked.most, port.disk = 99, SECOND
    # The same command, which allows to erase whatever is there.
    with pytest.raises(DeviceRefused, match=r"serial B \(recorded: A\)"):
        run(plan, study, consent=CONSENT, doubts=False)
    assert 1 == asked.visits
    port.disk = FIRST
    assert 4 == run(plan, study, consent=CONSENT, doubts=False).visits
    port.disk = SECOND
    with pytest.raises(DeviceRefused, match=r"serial B \(recorded: A\)"):
        extend(study, repetitions=3, consent=CONSENT)
    assert [FIRST] * 4 == asked.recorded
    assert {NAME: FIRST} == devices_of(study)


def test_a_study_of_before_records_its_disk_when_it_goes_on(tmp_path: Path, port: Port, asked: Asked) -> None:
    plan, study = tmp_path / "plan.toml", tmp_path / "study"
    asked.most = 1
    with pytest.raises(MachineUnfit):
        run(plan, study, consent=CONSENT, doubts=False)
    facts = json.loads((study / "study.json").read_text())
    del facts["devices"]
    (study / "study.json").write_text(json.dumps(facts))
    asked.most, port.disk = 99, SECOND
    run(plan, study, consent=CONSENT, doubts=False)
    assert [FIRST, SECOND, SECOND, SECOND] == asked.recorded
    assert {NAME: SECOND} == devices_of(study)


def test_a_partition_of_the_scratch_device_is_no_journal_and_says_so(
    monkeypatch: pytest.MonkeyPatch, asked: Asked, tmp_path: Path
) -> None:
    monkeypatch.setattr(running, "shared_bytes_reasons", lambda *_: (f"{NAME} and /dev/x overlap",))
    devices = (ScratchDevice(device=NAME), ScratchDevice(device="/dev/x"))
    display: Any = None
    with (
        pytest.raises(DeviceRefused, match="overlap"),
        running.claim_devices(
            devices[0], study=tmp_path, display=display, journal=devices[1], executor=asked
        ),
    ):
        pass


def test_what_a_study_found_makes_no_other_plan(tmp_path: Path) -> None:
    plan = load_plan(ON_A_DISK, source="plan.toml", directory=tmp_path)
    found = replace(plan.scratch_device, recorded=FIRST)
    assert plan.digest == replace(plan, scratch_device=found).digest
    journal = ScratchDevice(device="/dev/x")
    digests = {
        replace(plan, journal_device=replace(journal, recorded=recorded)).digest for recorded in (None, FIRST)
    }
    assert 1 == len(digests)


FLEET = (
    ON_A_DISK.replace('"qemu"', '"slurm"')
    + f'[slurm]\nnodes = ["n1", "n2"]\ndevices = {{ n2 = "{NAME}-2" }}\n'
)


def test_each_node_of_a_fleet_has_a_disk_of_its_own(tmp_path: Path) -> None:
    plan = load_plan(FLEET, source="plan.toml", directory=tmp_path)
    layout = StudyLayout(tmp_path)
    nodes_directory(layout).mkdir(parents=True)
    for node, device in (("n1", FIRST), ("n2", SECOND), ("n3", None)):
        codec.write(nodes_directory(layout) / f"{node}.json", NodeFacts(node, MACHINE, device=device))
    known = node_devices(layout, plan)
    assert {"n1": {NAME: FIRST}, "n2": {f"{NAME}-2": SECOND}, "n3": {}} == known
    expansion: Any = SimpleNamespace()
    shared = SharedInputs(plan, expansion, {}, {}, (), erase_foreign=True, node_devices=known)
    assert FIRST == shared.allow_erasing(ScratchDevice(device=NAME), node="n1").recorded
    assert SECOND == shared.allow_erasing(ScratchDevice(device=f"{NAME}-2"), node="n2").recorded
    assert shared.allow_erasing(ScratchDevice(image_bytes=1), node="n1").recorded is None


def test_a_measurement_of_a_disk_waits_until_a_study_between_its_visits_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEDPLATE_STATE", str(tmp_path / "state"))
    disk = str(tmp_path / "disk")
    scratch = ScratchDevice(device=disk, erase=(disk,), erase_foreign=True)
    with (
        Ledger.open(tmp_path / "ledgers", "measure") as ledger,
        study_lock(state_directory(), disk, study="winter"),
        pytest.raises(DeviceInUse, match="study winter"),
        erased_device(scratch, ledger, Commands()),
    ):
        pass
