"""What is built before the first visit is said with its source and its time, in a plan and where a change is offered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.sources.histories import commit, repository
from tests.support.sources.toy_kernel import toy_kernel
from tests.support.sources.toy_postgresql import toy_postgresql
from tests.support.tools.command_line import call_here

from bedplate.campaign.planning import planned_study
from bedplate.cli.measuring import build_work
from bedplate.engines.postgresql.builds import Build, stamp_text
from bedplate.engines.postgresql.prepare import PostgresqlPreparation
from bedplate.host.files import cache_directory

REST = """
[scratch_device]
image_size = "1 GB"
[[filesystem]]
type = "ext4"
[[workload]]
type = "pgbench"
scale = 2
[[workload.run]]
script = "read-only"
duration = "10 s"
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    found = toy_postgresql(tmp_path / "postgres")
    for name in ("second", "third"):
        commit(found, f"The {name}", {"note": name})
    return found


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    return tmp_path / "plan.toml"


def write(plan: Path, table: str, executor: str = "local") -> Path:
    plan.write_text(f'executor = "{executor}"\n{table}\n{REST}', encoding="utf-8")
    return plan


def vary(*values: str) -> str:
    return f"{{ vary = {json.dumps(values)} }}"


def former_build(name: str, seconds: float) -> None:
    """One in the cache that took so long."""
    prefix = cache_directory() / "builds" / name
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "postgres").touch()
    found = Build(prefix, "18.6", 8192, 8192, "", "", "cc", "x86_64", (), name, seconds, seconds)
    (prefix / "build.json").write_text(stamp_text(found), encoding="utf-8")


def test_commits_are_told_with_their_tree_and_what_former_builds_took(tree: Path, plan: Path) -> None:
    commits = vary("master~2", "master~1", "master")
    write(plan, f'[postgresql]\nsource = {{ tree = "{tree}", commit = {commits} }}')
    words = f"to build 3 commits of {tree}\n"
    assert f"and about 13 min 00 s {words}" in call_here("plan", plan, COLUMNS="300").stdout
    for name, seconds in (("a", 60.0), ("b", 90.0), ("c", 1000.0)):
        former_build(name, seconds)
    assert f"and about 4 min 30 s {words}" in call_here("plan", plan, COLUMNS="300").stdout
    (told,) = json.loads(call_here("plan", plan, "--json").stdout)["builds"]
    assert {"what": f"3 commits of {tree}", "builds": 3, "seconds": 270.0} == told


def test_a_commit_that_is_built_twice_says_so(tree: Path, plan: Path) -> None:
    write(
        plan,
        f'[postgresql]\nsource = {{ tree = "{tree}", commit = "master" }}\nblock_size = {vary("4 kB", "8 kB")}',
    )
    assert [(f"1 commit of {tree}, 2 builds", 2)] == [
        (each.what, each.builds) for each in build_work(planned_study(plan))
    ]


@pytest.mark.parametrize(
    ("sizes", "what"),
    [('"8 kB"', "PostgreSQL 18, 8 kB blocks"), (vary("4 kB", "8 kB"), "PostgreSQL, 2 builds")],
)
def test_releases_are_told_by_what_they_are(plan: Path, sizes: str, what: str) -> None:
    write(plan, f"[postgresql]\nblock_size = {sizes}")
    assert [what] == [each.what for each in build_work(planned_study(plan))]


def test_nothing_is_told_of_what_the_cache_has(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PostgresqlPreparation, "is_there", lambda *_: True)
    found = planned_study(write(plan, ""))
    assert () == build_work(found)
    assert "to build" not in call_here("plan", plan).stdout


def test_a_kernel_of_a_tree_is_built_and_no_package(tmp_path: Path, plan: Path) -> None:
    linux = repository(tmp_path / "linux")
    for subject, more in (("The kernel", {}), ("A file", {"more.c": "int more;\n"})):
        commit(linux, subject, {**toy_kernel(), **more})
    commits = vary("master~1", "master")
    write(plan, f'[machine]\nkernel = {{ tree = "{linux}", commit = {commits} }}', "qemu")
    kernels, server = build_work(planned_study(plan))
    assert (f"2 commits of {linux}", 2) == (kernels.what, kernels.builds)
    assert "PostgreSQL 18, 8 kB blocks" == server.what
