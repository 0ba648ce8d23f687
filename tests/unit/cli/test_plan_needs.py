"""`bedplate plan` says what a plan would meet here: the device, what is missing, and nothing is touched."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.support.tools.command_line import call_here

from bedplate.campaign.planning import planned_study
from bedplate.cli.planning import plan_needs
from bedplate.errors import RequirementMissing
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
    assert 3 == done.returncode
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


GOOD = PLAN.replace('device = "/dev/disk/by-id/nothing-there"', 'image_size = "2 GB"')


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (GOOD, 0, ""),
        (GOOD.replace('type = "ext4"', 'type = "ext4"\nblock_size = "512 B"'), 2, ""),
        # No kernel has one.
        (
            GOOD.replace('type = "ext4"', 'type = "xfs"\njournal = "none"'),
            2,
            "error: no cell of this plan can run here\nerror: xfs has no journal = 'none'",
        ),
        (PLAN, 3, ""),
    ],
)  # fmt: skip
def test_the_exit_code_is_0_only_where_a_start_would_begin(
    plan: Path, monkeypatch: pytest.MonkeyPatch, text: str, code: int, words: str
) -> None:
    plan.write_text(text)
    monkeypatch.setattr("bedplate.cli.planning._missing", lambda _: iter(()))
    done = call_here("plan", plan, COLUMNS="200")
    assert code == done.returncode
    assert words in done.stderr
    if code != 2 or words:
        found = call_here("plan", plan, "--json")
        assert code == found.returncode
        assert bool(words) == bool(json.loads(found.stdout)["refused"])


def test_what_is_missing_makes_the_exit_code_3_and_a_dataset_that_cannot_be_2(
    plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan.write_text(GOOD)
    found = planned_study(plan)
    monkeypatch.setattr("bedplate.cli.planning._missing", lambda _: iter(["fio is missing"]))
    assert 3 == plan_needs(found).exit_code

    def refuse(_: object) -> None:
        raise RequirementMissing("the dump stays on this machine")

    monkeypatch.setattr("bedplate.cli.planning.refuse_datasets", refuse)
    assert (2, ("the dump stays on this machine",)) == (
        plan_needs(found).exit_code,
        plan_needs(found).refused,
    )
