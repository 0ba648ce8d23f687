"""`--executor` and what a plan shows of who would run it, without root, kernels or a network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.tools.command_line import Done, call_apart, call_here

from bedplate.cli import doctor
from bedplate.host import requirement

PLAN = """
title = "one cell"
[scratch_device]
image_size = "1 GB"
[[filesystem]]
type = "ext4"
journal = { vary = ["internal", "external"] }
[journal_device]
device = "/dev/disk/by-id/second"
[[workload]]
type = "pgbench"
scale = 1
[[workload.run]]
script = "read-only"
duration = "1 s"
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


def show(plan: Path, *words: str) -> Done:
    cache = str(plan.parent / "cache")
    return call_here("plan", plan, *words, cwd=plan.parent, COLUMNS="200", BEDPLATE_CACHE=cache)


def document(plan: Path, *words: str) -> dict[str, Any]:
    done = show(plan, "--json", *words)
    # The second device is nowhere, which a start would refuse.
    assert 3 == done.returncode, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_plan_says_who_would_run_it_and_why(plan: Path) -> None:
    local = document(plan)
    assert ("local", "local", ["executor local: nothing else is asked for"]) == (
        local["executor"],
        local["executor_asked"],
        local["executor_reasons"],
    )
    assert {None} == {visit["boot"] for visit in local["schedule"]}
    guest = document(plan, "--executor", "qemu")
    assert "qemu" == guest["executor"]
    assert "not fetched yet" in guest["executor_reasons"][1]
    assert None not in {visit["boot"] for visit in guest["schedule"]}
    assert {} == guest["kernels"]
    # Another executor is another plan, and costs other times.
    assert local["digest"] != guest["digest"]
    assert local["estimate"]["seconds"] < guest["estimate"]["seconds"]


def test_the_terminal_says_the_same(plan: Path) -> None:
    shown = show(plan, "--executor", "qemu").stdout
    assert "executor         qemu: the plan or --executor asks for it" in shown
    assert "journal device   /dev/disk/by-id/second, WHICH WILL BE ERASED" in shown
    assert "  boot 1\n" in shown
    assert "reckoned for emulated processors" in shown
    assert "boot" not in show(plan).stdout


def test_an_executor_that_does_not_exist_is_refused(plan: Path) -> None:
    done = show(plan, "--executor", "docker")
    assert 2 == done.returncode
    assert "docker" in done.stderr


def test_every_device_that_is_erased_must_be_named(plan: Path) -> None:
    study = plan.parent / "study"
    done = call_apart("run", plan, "--study", study)
    assert 2 == done.returncode
    assert "this plan erases /dev/disk/by-id/second; say that you mean it" in done.stderr
    done = call_apart("run", plan, "--study", study, "--erase", "/dev/disk/by-id/third")
    assert "--erase /dev/disk/by-id/third: this plan uses /dev/disk/by-id/second alone" in done.stderr
    assert not study.exists()


def test_a_path_that_is_no_kernel_is_an_error_of_the_plan(plan: Path) -> None:
    plan.write_text(f'{PLAN}[machine]\nkernel = "{plan.parent}/nothing"\n')
    done = show(plan, "--executor", "qemu")
    assert 2 == done.returncode
    assert f"{plan.parent}/nothing" in done.stderr


def test_the_doctor_says_what_guests_would_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path))
    for there, line in ((True, "QEMU; kernels in the cache: none yet"), (False, "no QEMU (package")):
        monkeypatch.setattr(requirement, "find_tool", lambda _, there=there: Path("/q") if there else None)
        assert {"qemu": there, "kernels": [], "zfs": []} == doctor._guests()
        assert doctor._guests_line().startswith(line)
