"""[[workload]] of type power_cut: its datasets and run, and the cells that it is kept to."""

from __future__ import annotations

from pathlib import Path

import pytest

from bedplate.errors import PlanError
from bedplate.model.codec import dumps, loads
from bedplate.model.levels import Levels
from bedplate.model.plan import Plan
from bedplate.plan.differences import differences, obstacles_to_extend
from bedplate.plan.estimate import visit_seconds
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan
from bedplate.units import MIB

ROOT = Path(__file__).parents[3]
HEAD = """
title = "x"
repetitions = 3
seed = 7
[scratch_device]
image_size = "6 GB"
[[filesystem]]
type = { vary = ["ext4", "xfs"] }
[[filesystem]]
type = { vary = ["ext4", "xfs"] }
barrier = false
"""
SETTINGS = """
[postgresql]
data_checksums = { vary = [true, false] }
[postgresql.settings]
fsync = { vary = ["on", "off"] }
"""


def plan_of(text: str) -> Plan:
    return load_plan(HEAD + text, source="p.toml", directory=Path("/nowhere"))


def cuts(text: str = "") -> str:
    return f'[[workload]]\ntype = "power_cut"\n{text}\n'


def refused(text: str) -> str:
    with pytest.raises(PlanError) as caught:
        plan_of(text)
    return "\n".join(caught.value.reasons)


def test_the_defaults_are_those_that_are_promised() -> None:
    (workload,) = plan_of(cuts()).workloads
    assert workload.datasets == (
        Levels(engine="postgresql", image_bytes=4096 * MIB, clients=2, duration_s=20.0, points=160),
    )
    (run,) = workload.runs
    assert (run.name, run.workload) == ("power-cut", "power_cut")
    assert run.levels == Levels(
        points=160, profiles="subset-4k,subset-512,lost,ordered", cache_bytes=8 * MIB, seed=7
    )


@pytest.mark.parametrize(("asked", "level"), [("all", "all"), ("bad", "bad"), ("small", None)])
def test_logs_are_kept_as_asked_and_the_default_names_no_level(asked: str, level: str | None) -> None:
    """A run's name follows from its levels, and older studies have none."""
    (workload,) = plan_of(cuts(f'keep_logs = "{asked}"')).workloads
    assert level == workload.runs[0].levels.get("keep_logs")


def test_what_is_asked_for_reaches_dataset_and_run() -> None:
    (workload,) = plan_of(
        cuts(
            'points = 60\nprofiles = ["ordered", "lost"]\ncache_bytes = "256 kB"\nseed = 0\nclients = 3\n'
            'duration = "10 s"\nimage_size = "1 GB"\nram_journal = { vary = ["lost", "kept"] }'
        )
    ).workloads
    assert [levels.get("ram_journal") for levels in workload.datasets] == [None, "kept"]
    assert (3, 10.0, 1024 * MIB) == tuple(
        workload.datasets[1][name] for name in ("clients", "duration_s", "image_bytes")
    )
    assert dict(workload.runs[0].levels) == {
        "points": 60,
        "profiles": "lost,ordered",
        "cache_bytes": 256 * 1024,
        "seed": 0,
    }


def test_late_completions_are_datasets_of_their_own_and_the_usual_ones_are_not_named() -> None:
    (workload,) = plan_of(cuts('completions = { vary = ["at once", "late"] }')).workloads
    assert [levels.get("completions") for levels in workload.datasets] == [None, "late"]


def test_a_disk_with_fua_is_a_dataset_of_its_own_and_one_without_is_not_named() -> None:
    (workload,) = plan_of(cuts("fua = { vary = [false, true] }")).workloads
    assert [None, True] == [levels.get("fua") for levels in workload.datasets]


def test_sectors_are_datasets_of_their_own_and_large_ones_are_not_torn_within() -> None:
    (workload,) = plan_of(cuts('sector_size = "4 kB"')).workloads
    assert [4096] == [levels.get("sector_bytes") for levels in workload.datasets]
    assert "subset-4k,lost,ordered" == workload.runs[0].levels["profiles"]
    (usual,) = plan_of(cuts('sector_size = "512 B"')).workloads
    assert [None] == [levels.get("sector_bytes") for levels in usual.datasets]
    assert "subset-4k,subset-512,lost,ordered" == usual.runs[0].levels["profiles"]
    torn = 'profiles = ["subset-512", "ordered"]\nsector_size = { vary = ["512 B", "4 kB"] }'
    assert '"subset-512" tears sectors of 512 bytes, and sector_size has some of 4 kB' in refused(cuts(torn))
    assert "allowed: 512 B, 4 kB" in refused(cuts('sector_size = "8 kB"'))


@pytest.mark.parametrize(("asked", "level"), [("", None), ("states = 0", None), ("states = 3000", 3000)])
def test_states_are_a_level_of_the_run_where_any_are_asked_for(asked: str, level: int | None) -> None:
    (workload,) = plan_of(cuts(asked)).workloads
    assert level == workload.runs[0].levels.get("states")


@pytest.mark.parametrize(("asked", "level"), [("none", None), ("8 kB", 8192), ("16 kB", 16384)])
def test_a_device_unit_is_a_level_of_the_run_where_there_is_one(asked: str, level: int | None) -> None:
    (workload,) = plan_of(cuts(f'device_unit = "{asked}"')).workloads
    assert level == workload.runs[0].levels.get("device_unit")


def test_a_unit_that_no_device_promises_is_refused() -> None:
    with pytest.raises(PlanError, match="allowed: 8 kB, 16 kB, none"):
        plan_of(cuts('device_unit = "12 kB"'))


def test_each_engine_gets_cells_and_only_its_own_datasets() -> None:
    plan = plan_of(cuts('engine = { vary = ["lmdb", "postgresql"] }') + '[lmdb]\nsync = "full"\n')
    expansion = expand(plan, None)
    found = {
        (planned.cell.build.engine, load.dataset.levels["engine"])
        for planned in expansion.cells
        for load in planned.loads
    }
    assert found == {("lmdb", "lmdb"), ("postgresql", "postgresql")}
    assert len([*plan.cells()]) == len(expansion.cells) == 8


def test_a_plan_of_lmdb_alone_has_a_canary_and_builds_no_postgresql() -> None:
    plan = plan_of(cuts('engine = "lmdb"'))
    canary = expand(plan, None).canary
    assert canary is not None
    assert canary.loads[0].dataset.workload == "microbenchmark"
    assert not any(build.is_built for build in plan.builds)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('engine = "oracle"', "allowed: postgresql, lmdb, sqlite"),
        ("points = 0", "whole number from 1"),
        ("points = 3", "points = 3 leave some of 4 profiles without a cut: give 4 or more"),
        (
            'device_unit = "16 kB"\nstates = 50',
            "states are of a device that writes 4 KiB whole, and a device_unit makes it another one",
        ),
        (
            'profiles = ["lost", "whole"]',
            'profiles lack "ordered": only cuts in order show that a recording is whole',
        ),
        ('points = 1\nprofiles = ["lost", "ordered"]', "points = 1 leave some of 2 profiles"),
        ('profiles = ["torn"]', "list of subset-4k"),
        ('cache_bytes = "1 kB"', "4 KiB to 1 GiB"),
        ('image_size = "64 MB"', "128 MiB to 16 GiB"),
        ('keep_logs = "some"', "allowed: small, all, bad"),
        ('ram_journal = "perhaps"', "allowed: lost, kept"),
        ("cells = []", "a list of tables"),
        ("cells = [1]", "a list of tables"),
        ('cells = [{ filesystem = "xfs" }]', "a table names keys of filesystem"),
        ("cells = [{ filesystem.barrier = [] }]", "takes a level, or a list of levels"),
        ("cells = [{}, {}]", "there twice"),
        ('cells = [{ filesystem.type = "btrfs" }]', "no cell of the plan has filesystem.type btrfs"),
        ("cells = [{ filesystem.barrier = true }]", "no cell of the plan has filesystem.barrier True"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(text: str, words: str) -> None:
    assert words in refused(cuts(text))


def test_one_factor_at_a_time_is_one_table_each() -> None:
    text = (
        'cells = [{ filesystem.type = ["ext4", "xfs"] }, { filesystem.barrier = false }, '
        "{ postgresql.settings.fsync = false, postgresql.data_checksums = false }]"
    )
    plan = plan_of(SETTINGS + cuts(text))
    levels = [
        {
            name: cell.levels.get(name)
            for name in (
                "filesystem.type",
                "filesystem.barrier",
                "cluster.settings.fsync",
                "cluster.data_checksums",
            )
        }
        for cell in plan.cells()
    ]
    assert sorted(map(tuple, (found.values() for found in levels)), key=str) == sorted(
        [
            ("ext4", None, "on", True),
            ("xfs", None, "on", True),
            ("ext4", False, "on", True),
            ("ext4", None, "off", False),
        ],
        key=str,
    )
    assert len([*plan.cells()]) == 4
    assert plan == loads(Plan, dumps(plan))


def test_two_workloads_of_one_dataset_share_a_plan_by_their_cells() -> None:
    many, few = (
        cuts("points = 200\ncells = [{}]"),
        cuts("points = 60\ncells = [{ filesystem.barrier = false }]"),
    )
    expansion = expand(plan_of(many + few), None)
    points = {
        planned.cell.slug: [load.runs[0].levels["points"] for load in planned.loads]
        for planned in expansion.cells
    }
    assert points == {"ext4-pg8k": [200], "ext4-pg8k-nobarrier": [60]}
    assert "load the same dataset in ext4" in refused(few + few)
    assert "give it another number of points" in refused(few + cuts("points = 60\nseed = 1\ncells = [{}]"))
    assert "loads the same dataset as workload[0]" in refused(few + cuts("points = 60"))


def test_speeds_are_measured_in_the_cells_that_they_name() -> None:
    speeds = '[[workload]]\ntype = "pgbench"\nscale = 5\ncells = [{ filesystem.barrier = false }]\n'
    expansion = expand(plan_of(cuts() + speeds), None)
    workloads = {
        planned.cell.slug: [load.dataset.workload for load in planned.loads] for planned in expansion.cells
    }
    assert {
        "ext4-pg8k": ["power_cut"],
        "ext4-pg8k-nobarrier": ["power_cut", "pgbench"],
        "xfs-pg8k": ["power_cut"],
        "xfs-pg8k-nobarrier": ["power_cut"],
    } == workloads


def test_a_unit_and_states_share_a_plan_as_two_recordings_and_the_error_says_so() -> None:
    unit, states = 'points = 60\ndevice_unit = "16 kB"', "points = 60\nstates = 100"
    for said in (refused(cuts(f"{unit}\nstates = 100")), refused(cuts(unit) + cuts(states))):
        assert "another number of points" in said
    plan = plan_of(cuts(unit) + cuts(states.replace("60", "61")))
    assert 2 == len({load.dataset.id for load in expand(plan, None).cells[0].loads})


def test_a_cell_of_another_workload_stays_when_the_power_cuts_leave_it() -> None:
    pgbench = (
        '[[workload]]\ntype = "pgbench"\nscale = 1\n[[workload.run]]\nscript = "read-only"\nduration = 5\n'
    )
    expansion = expand(plan_of(cuts("cells = [{}]") + pgbench), None)
    assert [len(planned.loads) for planned in expansion.cells] == [2, 1, 1, 1]


def test_the_cells_decide_a_result() -> None:
    before, after = (
        plan_of(cuts(f"cells = [{table}]")) for table in ("{}", '{ filesystem.type = ["ext4", "xfs"] }')
    )
    assert before.digest != after.digest
    assert any("cells added" in words for words in differences(before, after))
    assert not differences(before, plan_of(cuts("cells = [{}]")))
    assert obstacles_to_extend(after, before)


def test_the_estimate_follows_the_points() -> None:
    def seconds(text: str) -> float:
        plan = plan_of(cuts(text))
        planned = expand(plan, None).cells[0]
        return visit_seconds(plan, planned.cell, planned.loads[0])

    assert seconds("points = 400") - seconds("points = 200") == pytest.approx(50)
    assert seconds('engine = "lmdb"\npoints = 600') - seconds(
        'engine = "lmdb"\npoints = 200'
    ) == pytest.approx(60)


@pytest.mark.parametrize(("executor", "each_s"), [("local", 1.5), ("qemu", 7.5)])
def test_a_pool_takes_longer_to_come_back_than_other_images(executor: str, each_s: float) -> None:
    def seconds(points: int) -> dict[str, float]:
        text = '[[filesystem]]\ntype = { vary = ["ext4", "zfs"] }\n' + cuts(f"points = {points}")
        plan = load_plan(text, source="p.toml", directory=Path("/nowhere"))
        return {
            planned.cell.filesystem.type: visit_seconds(
                plan, planned.cell, planned.loads[0], executor=executor
            )
            for planned in expand(plan, None).cells
        }

    few, many = seconds(100), seconds(200)
    assert many["zfs"] - few["zfs"] - (many["ext4"] - few["ext4"]) == pytest.approx(100 * each_s)


def test_the_quick_plan_is_what_was_asked_for() -> None:
    path = ROOT / "plans" / "power-cut-quick.toml"
    plan = load_plan(path.read_text(encoding="utf-8"), source=path.name, directory=path.parent)
    points: dict[int, int] = {}
    for planned in expand(plan, None).cells:
        (load,) = planned.loads
        asked = load.runs[0].levels.integer("points") or 0
        points[asked] = points.get(asked, 0) + 1
    assert points == {160: 3, 48: 13, 80: 5}
