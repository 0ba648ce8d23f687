"""Faults by their names in a plan, and the runs that these come to."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from bedplate import registry
from bedplate.cuts.faults import (
    CONTROLS,
    FAULTS,
    DiskFault,
    FaultEffect,
    FaultOperation,
    Place,
    Rot,
    fault_named,
)
from bedplate.model.cell import RunSpec
from bedplate.model.levels import Levels
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan
from bedplate.workloads.faulty_disk.plan import FaultyDiskTable
from bedplate.workloads.faulty_disk.visit import tries_of


def table(**keys: object) -> FaultyDiskTable:
    return FaultyDiskTable.model_validate({"type": "faulty_disk", **keys})


def test_a_plan_comes_to_a_dataset_for_each_engine_and_one_run() -> None:
    asked = table(engine={"vary": ["postgresql", "sqlite"]}, faults=["full", "flush-on"], tries=3, seed=5)
    planned = asked.planned(1, 1)
    assert ["postgresql", "sqlite"] == [dataset["engine"] for dataset in planned.datasets]
    (run,) = planned.runs
    assert {"faults": "flush-on,full", "tries": 3, "seed": 5} == dict(run.levels)
    assert (2, 1) == (asked.dataset_count(), asked.run_count())
    assert 9 == table().planned(9, 1).runs[0].levels["seed"]


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"faults": ["write-once-moon"]}, "faults"),
        ({"faults": ["control-lost"]}, "faults"),
        ({"faults": ["full", "rot-bits-data"]}, "did you mean rot-bit-data"),
        ({"faults": [None]}, "faults"),
        ({"tries": 0}, "tries"),
        ({"engine": "none"}, "engine"),
        ({"duration": "0 s"}, "duration"),
    ],
)
def test_what_is_none_is_refused_by_its_key(keys: dict[str, object], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        table(**keys)


def test_a_name_says_what_it_does() -> None:
    once = FAULTS["write-once-log"]
    assert isinstance(once, DiskFault)
    assert (FaultOperation.WRITE, FaultEffect.EIO, 1, Place.LOG) == (
        once.operation,
        once.effect,
        once.hits,
        once.place,
    )
    rot = FAULTS["rot-bit-data"]
    assert isinstance(rot, Rot)
    assert (0, Place.DATA) == (rot.length, rot.place)
    assert "every flush fails with EIO" == FAULTS["flush-on"].words
    assert "one write goes elsewhere, in the data" == FAULTS["misdirected-once-data"].words
    assert all(name == fault.name == fault_named(name).name for name, fault in FAULTS.items())


def test_two_faults_never_have_the_same_words() -> None:
    words = [fault.words for fault in (*FAULTS.values(), *CONTROLS.values())]
    assert len(words) == len(set(words))


def test_the_controls_come_first_and_each_try_has_a_seed_of_its_own() -> None:
    spec = RunSpec("faulty-disk", "faulty_disk", Levels(faults="full,flush-on", tries=2, seed=5))
    assert [
        *(("control-none", 0), ("control-lost", 0)),
        *(("full", 0), ("flush-on", 0), ("full", 1), ("flush-on", 1)),
    ] == [(fault.name, more) for fault, more in tries_of(spec)]


def test_every_engine_whose_power_is_cut_has_a_disk_that_fails() -> None:
    assert registry.engines_with("power_cut") == registry.engines_with("faulty_disk")


@pytest.mark.parametrize(
    "name",
    ["faulty-disk-quick", "faulty-disk", "faulty-disk-guests", "faulty-disk-postgresql", "faulty-disk-ext4"],
)
def test_the_ready_plans_have_faults_for_each_file_system(repository: Path, name: str) -> None:
    path = repository / "plans" / f"{name}.toml"
    plan = load_plan(path.read_text(encoding="utf-8"), source=str(path), directory=path.parent)
    assert {"faulty_disk"} == {workload.type for workload in plan.workloads}


def test_page_images_are_off_with_direct_io_too_where_a_write_fails(repository: Path) -> None:
    path = repository / "plans" / "faulty-disk-postgresql.toml"
    plan = load_plan(path.read_text(encoding="utf-8"), source=str(path), directory=path.parent)
    names = ("full_page_writes", "data_sync_retry", "debug_io_direct")
    found = {
        (each.cell.filesystem.type, *(each.cell.cluster.settings.get(name) for name in names))
        for each in expand(plan, None).cells
    }
    of_each = (("on", "off", ""), ("off", "off", ""), ("off", "off", "data"), ("on", "on", ""))
    assert {(filesystem, *levels) for filesystem in ("ext4", "xfs") for levels in of_each} == found
