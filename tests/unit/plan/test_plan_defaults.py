"""What a plan gets that leaves things out: enough to run, and nothing that another plan's words decided."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bedplate.errors import PlanError
from bedplate.model.levels import Levels
from bedplate.model.machine import Machine
from bedplate.model.plan import Plan
from bedplate.model.visit import ScratchDevice
from bedplate.plan.expand import expand
from bedplate.units import GIB, MIB

LoadText = Callable[[str], Plan]
ReasonsOf = Callable[[str], tuple[str, ...]]
Made = Callable[..., Machine]

SHORTEST = '[[filesystem]]\ntype = { vary = ["ext4", "xfs"] }\n'
KERNELS = 'executor = "qemu"\n[machine]\nkernel = { vary = ["6.1", "6.12"] }\n[[filesystem]]\ntype = "ext4"\n'


def durations(plan: Plan) -> dict[str, Any]:
    return {run.name: run.levels["duration_s"] for run in plan.workloads[0].runs}


def test_two_lines_are_a_plan_that_reads_and_writes_over_a_whole_checkpoint(load_text: LoadText) -> None:
    plan = load_text(SHORTEST)
    assert "pgbench on ext4, xfs" == plan.title
    assert {"read-only": 10.0, "read-write": 40.0} == durations(plan)
    assert [4, 4] == [run.levels["clients"] for run in plan.workloads[0].runs]
    assert (
        Levels(checkpoint_timeout="30s", checkpoint_completion_target="0.3", max_wal_size="2GB")
        == plan.clusters[0].settings
    )
    assert ScratchDevice(image_bytes=3 * GIB) == plan.scratch_device
    assert () == plan.warnings


def test_a_kernel_against_another_is_five_lines(load_text: LoadText) -> None:
    plan = load_text(KERNELS)
    assert "pgbench on ext4 under kernels 6.1 and 6.12" == plan.title
    assert 2 == len([*plan.cells()])
    assert not plan.warnings
    (warning,) = load_text(KERNELS.partition("\n")[2]).warnings
    assert warning.startswith('machine.kernel: with executor = "local" this machine itself must boot each')


@pytest.mark.parametrize(("memory", "scale"), [(24 * GIB, 20), (2 * GIB, 20), (GIB, 17)])
def test_a_scale_that_nobody_names_suits_the_memory(
    load_text: LoadText, machine: Made, memory: int, scale: int
) -> None:
    (first, *_) = expand(load_text(SHORTEST), machine(memory_bytes=memory)).cells
    assert Levels(scale=scale) == first.loads[0].dataset.levels


@pytest.mark.parametrize(
    ("settings", "duration_s", "kept"),
    [
        ('checkpoint_timeout = "5min"', 580.0, {"checkpoint_timeout": "5min"}),
        ('max_wal_size = "8GB"', 580.0, {"max_wal_size": "8GB"}),
        ('checkpoint_timeout = { vary = ["30s", "1min"] }', 115.0, None),
    ],
)
def test_checkpoints_that_a_plan_sets_are_its_own_and_decide_how_long_it_writes(
    load_text: LoadText, settings: str, duration_s: float, kept: dict[str, str] | None
) -> None:
    plan = load_text(f"{SHORTEST}[postgresql.settings]\n{settings}\n")
    assert duration_s == durations(plan)["read-write"]
    assert () == plan.warnings
    if kept is not None:
        assert Levels(kept) == plan.clusters[0].settings


def test_checkpoints_in_an_own_file_are_its_own_too(load_text: LoadText, tmp_path: Any) -> None:
    (tmp_path / "mine.conf").write_text("checkpoint_timeout = 1min\ncheckpoint_completion_target = 0.5\n")
    plan = load_text(f'{SHORTEST}[postgresql]\nconfiguration = "mine.conf"\n')
    assert Levels() == plan.clusters[0].settings
    assert 90.0 == durations(plan)["read-write"]


def test_runs_that_a_plan_names_get_no_settings_but_may_leave_the_duration(load_text: LoadText) -> None:
    plan = load_text(
        f'{SHORTEST}[[workload]]\ntype = "pgbench"\nscale = 5\n[[workload.run]]\nscript = "simple-update"\nwarmup = 0\n'
    )
    assert Levels() == plan.clusters[0].settings
    assert {"simple-update": 585.0} == durations(plan)


def test_an_image_that_nobody_sizes_holds_the_largest_visit(
    load_text: LoadText, reasons_of: ReasonsOf
) -> None:
    cuts = load_text(f'{SHORTEST}[[workload]]\ntype = "power_cut"\n')
    assert ScratchDevice(image_bytes=512 * MIB) == cuts.scratch_device
    large = load_text(f'{SHORTEST}[[workload]]\ntype = "pgbench"\nscale = 1000\n')
    assert large.scratch_device.image_bytes is not None
    assert large.scratch_device.image_bytes > 18 * GIB
    (reason,) = reasons_of(f'{SHORTEST}[[workload]]\ntype = "pgbench"\nscale = "4x memory"\n')
    assert reason.startswith("p.toml: scratch_device: missing; ")


def test_a_canary_that_cannot_be_is_no_fault_of_an_image_that_nobody_sized(
    load_text: LoadText, tmp_path: Path
) -> None:
    engine = tmp_path / "my-engine"
    engine.mkdir()
    (engine / "engine.toml").write_text('name = "my-engine"\n')
    for program in ("writer", "checker"):
        (engine / program).write_text("#!/bin/sh\n")
        (engine / program).chmod(0o755)
    plan = load_text(f'{SHORTEST}[engine]\npath = "my-engine"\n[[workload]]\ntype = "acks"\n')
    assert plan.scratch_device.image_bytes is not None
    with pytest.raises(
        PlanError, match=r"^canary: no workload .* has one; write enabled = false in \[canary\]"
    ):
        expand(plan, None)


def test_a_device_with_no_place_is_an_image_and_erases_nothing(load_text: LoadText) -> None:
    plan = load_text(f'{SHORTEST}[scratch_device]\nthrottle = "hdd-7200"\n')
    assert () == plan.devices_erased
    assert ScratchDevice(image_bytes=3 * GIB) == plan.scratch_device
