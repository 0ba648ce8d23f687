"""A plan kept to one cell and dataset: read again, it comes to these and to nothing else."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bedplate.errors import PlanError
from bedplate.model.cell import Dataset
from bedplate.model.levels import Levels
from bedplate.plan.load import load_plan, narrowed
from bedplate.plan.toml import toml_text

PLANS = Path(__file__).parents[3] / "plans"
READY = (
    "faulty-disk",
    "faulty-disk-postgresql",
    "faulty-disk-quick",
    "faulty-disk-guests",
    "faulty-disk-ext4",
    "page-images",
)


@pytest.mark.parametrize("name", READY)
def test_every_cell_and_dataset_of_a_ready_plan_can_be_had_alone(name: str) -> None:
    text = (PLANS / f"{name}.toml").read_text(encoding="utf-8")
    plan = load_plan(text, source=name, directory=PLANS)
    pairs = [
        (cell, Dataset(workload.type, levels))
        for cell in plan.cells()
        for workload in plan.workloads_of(cell)
        for levels in workload.datasets
    ]
    assert len(pairs) > 1
    for cell, dataset in pairs:
        alone = load_plan(
            toml_text(narrowed(text, cell, dataset, directory=PLANS)), source=name, directory=PLANS
        )
        assert [cell] == list(alone.cells())
        (workload,) = alone.workloads_of(cell)
        assert (dataset.workload, (dataset.levels,)) == (workload.type, workload.datasets)
        assert plan.scratch_device == alone.scratch_device


def test_the_kernel_that_an_executor_chose_is_none_that_the_plan_has_to_name() -> None:
    text = (PLANS / "faulty-disk-quick.toml").read_text(encoding="utf-8")
    plan = load_plan(text, source="quick", directory=PLANS)
    cell = next(plan.cells())
    (workload,) = plan.workloads_of(cell)
    chosen = replace(cell, kernel=replace(cell.kernel, release="6.12"))
    dataset = Dataset(workload.type, workload.datasets[0])
    assert narrowed(text, chosen, dataset, directory=PLANS) == narrowed(text, cell, dataset, directory=PLANS)


def test_kernels_and_file_systems_that_are_varied_are_told_apart() -> None:
    text = """executor = "qemu"
machine.kernel = { vary = ["6.1", "6.12"] }
filesystem = [{ type = "ext4" }, { type = "xfs", block_size = { vary = ["1 kB", "4 kB"] } }]
[[workload]]
type = "faulty_disk"
engine = { vary = ["lmdb", "sqlite"] }
"""
    plan = load_plan(text, source="kernels", directory=PLANS)
    cells = list(plan.cells())
    assert 12 == len(cells)
    for cell in cells:
        (workload,) = plan.workloads_of(cell)
        (levels,) = workload.datasets
        values = narrowed(text, cell, Dataset(workload.type, levels), directory=PLANS)
        assert [cell] == list(load_plan(toml_text(values), source="alone", directory=PLANS).cells())


def test_an_engine_of_your_own_keeps_its_table() -> None:
    text = (PLANS / "own-engine.toml").read_text(encoding="utf-8")
    text = re.sub(
        r"(?s)\[\[workload\]\].*", '[[workload]]\ntype = "faulty_disk"\nengine = "own-engine"\n', text
    )
    plan = load_plan(text, source="own", directory=PLANS)
    cell = next(plan.cells())
    (workload,) = plan.workloads_of(cell)
    values = narrowed(text, cell, Dataset(workload.type, workload.datasets[0]), directory=PLANS)
    assert [cell] == list(load_plan(toml_text(values), source="alone", directory=PLANS).cells())


def test_a_cell_or_dataset_that_the_plan_has_not_is_refused() -> None:
    text = (PLANS / "faulty-disk-quick.toml").read_text(encoding="utf-8")
    cell = next(load_plan(text, source="quick", directory=PLANS).cells())
    with pytest.raises(PlanError, match=r"has no cell ext4-.* with faulty_disk"):
        narrowed(text, cell, Dataset("faulty_disk", Levels(engine="postgresql")), directory=PLANS)
    with pytest.raises(PlanError, match="unknown"):
        narrowed(f"{text}\n[nonsense]\na = 1\n", cell, Dataset("faulty_disk"), directory=PLANS)
