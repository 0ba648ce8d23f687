"""A change in words, and the plan of both its sides."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from bedplate.campaign.paired import commits_beside, kernels_beside, paired_plan, varied_key
from bedplate.campaign.planning import own_plans
from bedplate.errors import PlanError
from bedplate.plan.toml import toml_text


@pytest.mark.parametrize(
    ("words", "key", "values"),
    [
        ("barrier=true,false", ("filesystem", "barrier"), (True, False)),
        ("wal_compression=off,lz4", ("postgresql", "settings", "wal_compression"), ("off", "lz4")),
        ("postgresql.block_size=4 kB,8 kB", ("postgresql", "block_size"), ("4 kB", "8 kB")),
        ("mount_options=noatime,lazytime", ("filesystem", "mount_options"), (["noatime"], ["lazytime"])),
        (
            'mount_options=[],["noatime", "lazytime"]',
            ("filesystem", "mount_options"),
            ([], ["noatime", "lazytime"]),
        ),
        ("workload.scale=1,2", ("workload", "scale"), (1, 2)),
        # As numbers 6.1 and 6.10 were one.
        ("kernel=6.1,6.10", ("machine", "kernel"), ("6.1", "6.10")),
        ('machine.kernel="6.1", "6.12"', ("machine", "kernel"), ("6.1", "6.12")),
    ],
)
def test_a_key_by_its_name_or_its_path(
    words: str, key: tuple[str, ...], values: tuple[object, object]
) -> None:
    found = varied_key(words)
    assert (key, values) == (found.key, found.values)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("barrier", "write a key of a plan and two values"),
        ("barrier=true", "has 1; write barrier=ONE,OTHER"),
        ("barrier=true,false,true", "has 3"),
        ("barrier=true,true", "the same value twice"),
        ("block_size=4 kB,8 kB", "write filesystem.block_size or postgresql.block_size"),
        ("filesytem.barrier=true,false", "did you mean filesystem"),
    ],
)
def test_what_is_no_change_is_refused_with_what_would_do(words: str, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        varied_key(words)


def test_kernels_of_a_key_run_in_guests_as_those_of_the_option() -> None:
    assert kernels_beside("6.1", "6.12") == varied_key("kernel=6.1,6.12")


def test_a_change_of_an_engine_that_no_workload_runs_on_says_what_would_do() -> None:
    with pytest.raises(
        PlanError, match=r"changes no cell of the plan: .* of a workload that is about it \(--plan\)"
    ):
        paired_plan(varied_key("innodb_page_size=4 kB,16 kB"), types=("ext4",), repetitions=4)


def test_both_sides_are_cells_of_one_plan_and_differ_in_the_change_alone() -> None:
    plan = paired_plan(varied_key("barrier=true,false"), types=("ext4",), repetitions=4)
    cells = {planned.cell.id: planned.cell for planned in plan.found.expansion.cells}
    (pair,) = plan.pairs
    baseline, contender = cells[pair.baseline], cells[pair.contender]
    differing = {
        name
        for name in baseline.levels.keys() | contender.levels.keys()
        if baseline.levels.get(name) != contender.levels.get(name)
    }
    assert {"filesystem.barrier"} == differing
    assert ("barrier=true", "barrier=false") == plan.names
    assert 4 == tomllib.loads(plan.text)["repetitions"]
    assert {"enabled": False} == tomllib.loads(plan.text)["canary"]


def test_each_file_system_of_a_plan_has_a_pair_of_its_own() -> None:
    plan = paired_plan(varied_key("full_page_writes=on,off"), plan=own_plans() / "quick.toml", repetitions=4)
    cells = {planned.cell.id: planned.cell for planned in plan.found.expansion.cells}
    assert len(plan.pairs) * 2 == len(cells)
    for pair in plan.pairs:
        assert cells[pair.baseline].filesystem == cells[pair.contender].filesystem


def test_kernels_run_in_guests() -> None:
    plan = paired_plan(kernels_beside("6.1", "6.12"), types=("ext4", "xfs"), repetitions=4)
    assert "qemu" == tomllib.loads(plan.text)["executor"]
    assert 2 == len(plan.pairs)


def test_a_patch_is_a_side_upon_the_commit_that_it_is_for(tmp_path: Path) -> None:
    patch = tmp_path / "v3-0001-foo.patch"
    patch.write_text("diff --git a/x b/x\n")
    found = commits_beside("~/src/postgres", "master", str(patch))
    assert (("postgresql", "patches"), ([], [str(patch)])) == (found.key, found.values)
    assert "master" == found.beside["postgresql", "source", "commit"]
    assert ("master", "master with v3-0001-foo.patch") == found.names
    with pytest.raises(PlanError, match="is a patch; the first side is the commit that it is for"):
        commits_beside("~/src/postgres", str(patch), "master")


@pytest.mark.parametrize("words", ["6.1", "master"])
def test_one_thing_named_twice_is_no_change(words: str) -> None:
    with pytest.raises(PlanError, match="named twice"):
        kernels_beside(words, words)
    with pytest.raises(PlanError, match="named twice"):
        commits_beside("/tree", words, words)


def test_a_plan_that_erases_a_device_is_refused(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[scratch_device]\ndevice = "/dev/disk/by-id/x"\n[[filesystem]]\ntype = "ext4"\n')
    with pytest.raises(PlanError, match="erases a device"):
        paired_plan(varied_key("barrier=true,false"), plan=plan, repetitions=4)


@pytest.mark.parametrize("plan", sorted(own_plans().glob("*.toml")), ids=lambda path: path.stem)
def test_every_ready_plan_is_the_same_when_it_is_written_anew(plan: Path) -> None:
    values = tomllib.loads(plan.read_text(encoding="utf-8"))
    assert values == tomllib.loads(toml_text(values))


@pytest.mark.parametrize("name", ["x\ny", "\x1b[31m", "a\u202eb"])
def test_what_a_terminal_would_obey_is_in_no_plan(name: str) -> None:
    with pytest.raises(PlanError, match="not printable"):
        paired_plan(kernels_beside("6.1", name), types=("ext4",), repetitions=4)


def test_a_plans_own_files_are_read_where_the_plan_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = paired_plan(
        varied_key("full_page_writes=on,off"), plan=own_plans() / "known-effect.toml", repetitions=4
    )
    assert ["scripts/one-block.sql"] == list(plan.found.plan.files)
