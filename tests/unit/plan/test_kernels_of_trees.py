"""Kernels in a plan: versions, paths, and commits of a tree with their configurations."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.sources.histories import commit, repository
from tests.support.sources.toy_kernel import toy_kernel

from bedplate.errors import PlanError
from bedplate.host.git import GitRevisions
from bedplate.model.cell import KernelLevels
from bedplate.model.plan import Plan
from bedplate.plan.load import load_plan

PLAN = """
repetitions = 1
executor = "qemu"
scratch_device = {{ image_size = "1 GB" }}
machine = {{ kernel = {kernel} }}
filesystem = [{{ type = "ext4" }}]
workload = [{{ type = "fio", job = [{{ job = "wal-append", size = "16 MB" }}] }}]
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    found = repository(tmp_path / "linux")
    commit(found, "The kernel", toy_kernel())
    commit(found, "ext4: flush once more", {"fsync.c": "int second = 3;\n"})
    return found


def read(kernel: str, directory: Path, **more: object) -> Plan:
    return load_plan(
        PLAN.format(kernel=kernel),
        source="plan.toml",
        directory=directory,
        revisions=GitRevisions(),
        **more,  # type: ignore[arg-type]
    )


def test_each_commit_is_a_level_by_its_first_digits_and_its_subject(tree: Path, tmp_path: Path) -> None:
    plan = read(f'{{ tree = "{tree}", commit = {{ vary = ["master~1", "master"] }} }}', tmp_path)
    first, second = (levels.release for levels in plan.kernels)
    assert first is not None
    assert second is not None
    assert (first[13:], second[13:]) == ("The kernel", "ext4: flush once more")
    assert list(plan.sources.kernels) == [first, second]
    source = plan.sources.kernels[second]
    assert source.tree.commit.hash.startswith(second[:12])
    assert source.tree.facts["version"] == "6.12.1"
    assert source.fragment is None


def test_versions_paths_and_commits_stand_side_by_side(tree: Path, tmp_path: Path) -> None:
    plan = read(
        f'{{ vary = ["6.12", "~/linux/bzImage", {{ tree = "{tree}", commit = "master" }}] }}', tmp_path
    )
    first, second, third = plan.kernels
    assert first == KernelLevels("6.12")
    assert second.is_path
    assert str(second.release).endswith("/linux/bzImage")
    assert third.is_built
    assert not first.is_built
    assert not second.is_built
    assert not third.is_path
    assert not third.takes("6.12.1")


def test_a_fragment_of_ones_own_is_another_level_and_its_text_is_kept(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "lean.config").write_text("# mine\nCONFIG_TOY=y\n# CONFIG_BTRFS_FS is not set\n")
    plan = read(
        f'{{ tree = "{tree}", commit = "master", config = {{ vary = ["guest", "lean.config"] }} }}', tmp_path
    )
    guest, lean = (str(levels.release) for levels in plan.kernels)
    assert lean.startswith(f"{guest} (lean.config ")
    source = plan.sources.kernels[lean]
    assert source.fragment is not None
    assert "CONFIG_TOY=y" in source.fragment
    notes = [name for name in plan.files if name.endswith(".config")]
    (tmp_path / "lean.config").unlink()
    again = read(
        f'{{ tree = "{tree}", commit = "master", config = "lean.config" }}',
        tmp_path,
        kept_sources={name: plan.files[name] for name in notes},
    )
    assert [levels.release for levels in again.kernels] == [lean]


def test_a_study_stays_with_its_commit_wherever_the_branch_is_by_now(tree: Path, tmp_path: Path) -> None:
    kernel = f'{{ tree = "{tree}", commit = "master" }}'
    before = read(kernel, tmp_path)
    commit(tree, "A later one", {"fsync.c": "int second = 9;\n"})
    assert read(kernel, tmp_path, kept_sources=before.files).kernels == before.kernels
    assert read(kernel, tmp_path).kernels != before.kernels


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        ('{{ tree = "{tree}" }}', "commit is missing"),
        ('{{ tree = "{tree}", commit = "mastre" }}', "has no commit"),
        ('{{ tree = "{tree}", commit = "master", config = "gone.config" }}', "there is no such file"),
        ('{{ tree = "{tree}", commit = "master", config = "wrong.config" }}', "it has 'rm -rf /'"),
        ('{{ tree = "{tree}", commit = "master", compiler = "gcc" }}', "unknown key"),
        ('{{ tree = "{tree}/none", commit = "master" }}', "no such folder"),
        ("6.12", "put it in quotes"),
    ],
)
def test_what_is_wrong_is_said(tree: Path, tmp_path: Path, kernel: str, reason: str) -> None:
    (tmp_path / "wrong.config").write_text("CONFIG_TOY=y\nrm -rf /\n")
    with pytest.raises(PlanError, match=reason):
        read(kernel.format(tree=tree), tmp_path)


def test_a_tree_that_is_no_kernel_is_refused(tmp_path: Path) -> None:
    other = repository(tmp_path / "other")
    commit(other, "Not a kernel", {"Makefile": "all:\n"})
    with pytest.raises(PlanError, match="it is no kernel"):
        read(f'{{ tree = "{other}", commit = "master" }}', tmp_path)
