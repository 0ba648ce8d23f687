"""`bedplate plan` says what a plan would meet here: the device, what is missing, and nothing is touched."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.support.tools.command_line import call_here

from bedplate.campaign.planning import planned_study
from bedplate.cli.what_a_plan_needs import plan_needs
from bedplate.host import requirement

if TYPE_CHECKING:
    from pathlib import Path

PLAN = """
title = "t"
executor = "local"
[scratch_device]
device = "/dev/disk/by-id/nothing-there"
[[filesystem]]
type = "ext4"
[[workload]]
type = "pgbench"
scale = 5
[[workload.run]]
script = "read-only"
duration = "60 s"
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "plan.toml"


def test_a_device_that_is_not_there_is_told_before_a_start(plan: Path) -> None:
    done = call_here("plan", plan, COLUMNS="200")
    assert 0 == done.returncode
    assert "  refused          /dev/disk/by-id/nothing-there does not exist" in done.stdout
    # That it has to be named again is the start's to ask.
    assert "--erase" not in done.stdout
    (device,) = json.loads(call_here("plan", plan, "--json").stdout)["erased_devices"]
    assert ("/dev/disk/by-id/nothing-there", []) == (device["device"], device["holds"])
    assert ["does not exist"] == [
        word for reason in device["refused"] for word in ("does not exist",) if word in reason
    ]


def test_what_is_missing_is_told_with_the_command_that_installs_it(
    plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = planned_study(plan)
    monkeypatch.setattr(requirement.look, "__kwdefaults__", {"find": lambda _: None})
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    missing = plan_needs(found).missing
    assert any(words.startswith("mke2fs is missing (package e2fsprogs)") for words in missing)
    assert any(words.startswith("install them: sudo apt-get install") for words in missing)
    assert missing[-1].startswith("root: measuring here formats and mounts")
    in_guest = plan_needs(planned_study(plan, executor="qemu")).missing
    assert any("qemu-system" in words for words in in_guest)
    assert not any(words.startswith("root: ") for words in in_guest)


def test_restored_datasets_are_told_with_how_many_images_they_need(plan: Path) -> None:
    image = PLAN.replace('device = "/dev/disk/by-id/nothing-there"', 'image_size = "2 GB"')
    restored = 'dataset = "restored"' + image.replace(
        'type = "ext4"', 'type = "ext4"\nbarrier = { vary = [true, false] }', 1
    )
    plan.write_text(restored)
    assert (
        "  dataset          restored from 1 image, each loaded once"
        in call_here("plan", plan, COLUMNS="200").stdout
    )
    assert "restored" == json.loads(call_here("plan", plan, "--json").stdout)["dataset"]
    plan.write_text(image)
    assert "dataset  " not in call_here("plan", plan, COLUMNS="200").stdout
