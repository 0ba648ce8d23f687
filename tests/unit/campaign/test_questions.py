"""Questions become plans that parse, can run where the machine can, and say what they take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.plan.conftest import MACHINE

from bedplate.campaign.questions import (
    Question,
    asked_settings,
    engine_question,
    filesystem_question,
    kernel_question,
    safe_question,
)
from bedplate.errors import PlanError
from bedplate.model.plan import Plan
from bedplate.plan.estimate import estimate
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan
from bedplate.plan.order import order

HERE = replace(MACHINE, filesystems=("ext4", "xfs", "btrfs"))
OFF = {"full_page_writes": ("off",)}
TOY = Path(__file__).resolve().parents[3] / "examples" / "engines" / "toy"
FAULTS = {"fault": ("none", "no-checksum")}


def plan_of(question: Question) -> Plan:
    return load_plan(question.text, source=question.name, directory=Path("/nowhere"))


def minutes_of(question: Question) -> float:
    plan = plan_of(question)
    expansion = expand(plan, HERE)
    assert not expansion.pruned
    return estimate(plan, expansion, order(plan, expansion)).seconds / 60


@pytest.mark.parametrize(
    ("question", "cells", "repetitions", "minutes"),
    [
        (filesystem_question(HERE, ()), 3, 5, 20),
        (filesystem_question(HERE, ("ext4",), repetitions=2, scale="1x memory"), 1, 2, 40),
        (safe_question(HERE, {}, ()), 3, 1, 5),
        (safe_question(HERE, OFF, ()), 6, 1, 6),
        (safe_question(HERE, OFF, ("ext4",), points=4), 2, 1, 2),
        (safe_question(HERE, {"wal_sync_method": ("open_sync", "fdatasync")}, ("xfs",)), 2, 1, 4),
        (safe_question(HERE, {**OFF, "synchronous_commit": ("off",)}, ()), 6, 1, 6),
        (engine_question(HERE, TOY, {}, ("ext4",)), 1, 1, 3),
        (engine_question(HERE, TOY, FAULTS, ()), 6, 1, 6),
    ],
)
def test_each_question_is_a_plan_of_its_cells_and_its_time(
    question: Question, cells: int, repetitions: int, minutes: float
) -> None:
    plan = plan_of(question)
    assert (cells, repetitions) == (len([*plan.cells()]), plan.repetitions)
    assert () == plan.devices_erased
    assert plan.scratch_device.image_bytes
    assert 0 < minutes_of(question) < minutes


def test_a_kernel_against_another_needs_no_kernel_of_this_machine() -> None:
    question = kernel_question(("6.1", "6.12"), ("jfs",))
    plan = plan_of(question)
    assert ("qemu", 2, 3, ()) == (plan.executor, len([*plan.cells()]), plan.repetitions, question.lacking)
    assert ["read-write"] == [run.name for run in plan.workloads[0].runs]
    assert () == plan.warnings


def test_a_switch_stands_beside_its_opposite_which_comes_first() -> None:
    for value, first in (("off", "on"), ("ON", "off")):
        clusters = plan_of(safe_question(HERE, {"fsync": (value,)}, ("ext4",))).clusters
        assert [first, value.lower()] == [cluster.settings["fsync"] for cluster in clusters]
    (only,) = plan_of(safe_question(HERE, {"wal_sync_method": ("open_sync",)}, ("ext4",))).clusters
    assert "open_sync" == only.settings["wal_sync_method"]


def test_several_settings_change_together() -> None:
    cells = plan_of(safe_question(HERE, {**OFF, "fsync": ("off",)}, ("ext4",))).cells()
    assert [("on", "on"), ("off", "off")] == [
        (cell.cluster.settings["full_page_writes"], cell.cluster.settings["fsync"]) for cell in cells
    ]


def test_a_setting_without_an_opposite_is_not_taken_for_compared_with_itself() -> None:
    for several in ({**OFF, "wal_sync_method": ("open_sync",)}, {"wal_sync_method": ("x", "x"), **OFF}):
        with pytest.raises(PlanError, match=r"two values.*: wal_sync_method=fdatasync,open_sync"):
            safe_question(HERE, several, ("ext4",))
    given = {**OFF, "wal_sync_method": ("fdatasync", "open_sync")}
    assert ["fdatasync", "open_sync"] == [
        cell.cluster.settings["wal_sync_method"]
        for cell in plan_of(safe_question(HERE, given, ("ext4",))).cells()
    ]


def test_fewer_recordings_are_cut_more_often() -> None:
    points = [
        plan_of(safe_question(HERE, OFF if many else {}, types)).workloads[0].runs[0].levels["points"]
        for many, types in ((False, ("xfs",)), (False, ()), (True, ()))
    ]
    assert [160, 80, 40] == points


def test_what_the_running_kernel_lacks_is_said_and_asked_about_in_a_guest() -> None:
    question = safe_question(HERE, {}, ("ext4", "zfs"))
    assert ("zfs",) == question.lacking
    assert ("local", "qemu") == (plan_of(question).executor, plan_of(question.in_guest).executor)
    assert ("ext4",) == filesystem_question(replace(HERE, filesystems=("ext4", "vfat")), ()).types


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("full_page_writes",), "is no setting; write one as"),
        (("=off",), "is no setting"),
        (("fsync=",), "is no setting"),
        (("barrier=off",), "is a factor of file systems"),
        (("fsync=off", "FSYNC=on"), "is given twice"),
    ],
)
def test_what_is_no_setting_is_refused(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(PlanError, match=said):
        asked_settings(words)


def test_a_question_about_one_kernel_is_none() -> None:
    with pytest.raises(PlanError, match="name two kernels"):
        kernel_question(("6.1", "6.1"), ())


HOSTILE = (
    "a\x1b[31mb",
    'x" ]\n[scratch_device]\ndevice = "/dev/sda',
    "\u202e",
    "<script>",
    "😀" * 50,
    "x" * 10_000,
)


@pytest.mark.parametrize("word", HOSTILE)
def test_hostile_words_neither_leave_their_place_in_the_plan_nor_its_directory(word: str) -> None:
    makers: tuple[Callable[[], Question], ...] = (
        lambda: safe_question(HERE, asked_settings([f"{word}={word}"]), ("ext4",)),
        lambda: filesystem_question(HERE, (word,)),
        lambda: filesystem_question(HERE, ("ext4",), scale=word),
        lambda: kernel_question(("6.1", word), ("ext4",)),
    )
    for make in makers:
        try:
            question = make()
            name = question.name
            plan = plan_of(question)
        except PlanError:
            continue
        assert len(name) <= 100
        assert "/" not in name
        assert () == plan.devices_erased


def test_an_engine_of_ones_own_is_asked_about_by_its_folder_and_settings() -> None:
    question = engine_question(HERE, TOY, FAULTS, ("ext4",), points=40, duration_s=5)
    assert "try-toy-none-no-checksum-ext4" == question.name
    (setup,) = plan_of(question).engines
    assert (str(TOY), {"none", "no-checksum"}) == (
        setup.folder,
        {each.settings["fault"] for each in setup.clusters},
    )
    # A changed program is another plan, and so another study.
    assert f"# programs {setup.clusters[0].settings['programs']}" in question.text
    with pytest.raises(PlanError, match="setting 'faults' is not known; did you mean fault"):
        engine_question(HERE, TOY, {"faults": ("none",)}, ())
    with pytest.raises(PlanError, match="fault=some: allowed is one of none"):
        engine_question(HERE, TOY, {"fault": ("some",)}, ())
    with pytest.raises(PlanError, match="is no directory"):
        engine_question(HERE, TOY / "nowhere", {}, ())
