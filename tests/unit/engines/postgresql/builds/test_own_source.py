"""Builds of somebody's own: commits and patches, really configured, compiled and installed, of a tree that is small."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.sources.histories import commit, git
from tests.support.sources.toy_postgresql import SERVER, server, toy_postgresql

from bedplate.engines.postgresql import builds as build_module
from bedplate.engines.postgresql.builds import Build, BuildSpec, ensure_build, find_build, is_current
from bedplate.errors import BuildFailed, RequirementMissing
from bedplate.host.command import Commands
from bedplate.host.git import GitRevisions
from bedplate.host.native_driver import BuildProgress
from bedplate.host.requirement import find_tool
from bedplate.model.cell import BuildLevels, PlanSources
from bedplate.plan.load import load_plan

pytestmark = pytest.mark.skipif(
    not all(map(find_tool, ("cc", "make", "git"))), reason="a toy is built with cc and make"
)

Ensured = Callable[..., Build]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # What a real PostgreSQL needs beside a compiler is not needed here; how it is shut in, host tests show.
    monkeypatch.setattr(build_module, "missing_requirements", lambda *_, **__: ())
    monkeypatch.setattr(build_module, "builder_account", lambda **_: None)
    monkeypatch.setattr(build_module, "require_traversable", lambda *_, **__: None)
    return toy_postgresql(tmp_path / "a 'tree' of <mine>")


def planned(tree: Path, keys: str) -> tuple[list[BuildLevels], PlanSources]:
    text = f'[[filesystem]]\ntype = "ext4"\n[postgresql]\n{keys}\n'
    plan = load_plan(text, source="p.toml", directory=tree.parent, revisions=GitRevisions())
    return list(plan.builds), plan.sources


def of_commits(tree: Path, commits: str, more: str = "") -> tuple[list[BuildLevels], PlanSources]:
    return planned(tree, f'source = {{ tree = "{tree}", commit = {commits} }}\n{more}')


def ensure(
    levels: BuildLevels,
    sources: PlanSources | None,
    cache: Path,
    progress: Callable[[BuildProgress], None] = lambda _: None,
) -> Build:
    return ensure_build(
        BuildSpec.of(levels), cache_directory=cache, commands=Commands(), progress=progress, sources=sources
    )


def says(build: Build) -> str:
    return Commands().run([str(build.program("postgres")), "--version"]).stdout.strip()


def left(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "builds").iterdir() if path.name.startswith(".work-"))


def test_each_commit_is_built_once_and_found_by_its_level_alone(tree: Path, tmp_path: Path) -> None:
    commit(tree, "Another server", {SERVER: server("19devel (second)")})
    (old, new), sources = of_commits(tree, '{ vary = ["master~1", "master"] }')
    first, second = (ensure(levels, sources, tmp_path / "cache") for levels in (old, new))
    assert ["postgres (PostgreSQL) 19devel", "postgres (PostgreSQL) 19devel (second)"] == [
        says(first),
        says(second),
    ]
    assert git(tree, "rev-parse", "master~1").strip() == first.commit == first.for_visit.commit
    assert f"git: {tree}, master~1: {first.commit}" == first.source_origin
    # The tree is gone, and the build is there.
    found = find_build(BuildSpec.of(old), cache_directory=tmp_path / "cache", commands=Commands())
    assert found == first
    assert is_current(first, commands=Commands())
    assert first == ensure(old, None, tmp_path / "cache")
    assert [] == left(tmp_path / "cache")
    assert "" == git(tree, "status", "--porcelain", "--ignored")


def test_block_sizes_combine_with_a_commit(tree: Path, tmp_path: Path) -> None:
    levels, sources = of_commits(tree, '"master"', 'block_size = { vary = ["4 kB", "8 kB"] }')
    small, usual = (ensure(each, sources, tmp_path / "cache") for each in levels)
    assert (4096, 8192) == (small.block_size_bytes, usual.block_size_bytes)
    assert small.prefix != usual.prefix


def test_patches_are_applied_in_order_to_a_commit(tree: Path, tmp_path: Path) -> None:
    commit(tree, "One", {SERVER: server("19devel (one)")})
    (tree.parent / "1.patch").write_text(git(tree, "format-patch", "--stdout", "-1"))
    commit(tree, "Two", {SERVER: server("19devel (two)")})
    (tree.parent / "2.patch").write_text(git(tree, "diff", "HEAD~1"))
    (bare, both), sources = of_commits(
        tree, '"master~2"', 'patches = { vary = [[], ["1.patch", "2.patch"]] }'
    )
    cache = tmp_path / "cache"
    assert "postgres (PostgreSQL) 19devel" == says(ensure(bare, sources, cache))
    patched = ensure(both, sources, cache)
    assert "postgres (PostgreSQL) 19devel (two)" == says(patched)
    assert both.patches == patched.for_visit.patches
    assert is_current(patched, commands=Commands())


def test_a_patch_that_does_not_apply_is_named_with_gits_words_and_leaves_nothing(
    tree: Path, tmp_path: Path
) -> None:
    (tree.parent / "1.patch").write_text(
        f"--- a/{SERVER}\n+++ b/{SERVER}\n@@ -1 +1 @@\n-nothing like it\n+x\n"
    )
    (levels,), sources = of_commits(tree, '"master"', 'patches = ["1.patch"]')
    with pytest.raises(
        BuildFailed, match=r"patch 1\.patch [0-9a-f]{12} does not apply; git says: .*patch failed"
    ):
        ensure(levels, sources, tmp_path / "cache")
    assert 3 == BuildFailed.exit_code
    assert [] == left(tmp_path / "cache")


def test_a_commit_that_does_not_compile_ends_with_the_compilers_words_and_a_log(
    tree: Path, tmp_path: Path
) -> None:
    commit(tree, "Broken", {SERVER: server("19devel", more="int broken = nowhere;\n")})
    (levels,), sources = of_commits(tree, '"master"')
    with pytest.raises(BuildFailed, match="nowhere") as found:
        ensure(levels, sources, tmp_path / "cache")
    (log,) = (tmp_path / "cache/builds").glob("failed-*.log")
    assert str(log) in str(found.value)
    assert "nowhere" in log.read_text()
    assert [] == left(tmp_path / "cache")


def test_a_server_that_says_another_version_is_not_put_in_place(tree: Path, tmp_path: Path) -> None:
    commit(tree, "Another version", {SERVER: server("17.1")})
    (levels,), sources = of_commits(tree, '"master"')
    with pytest.raises(BuildFailed, match=r"the server that was built says 'postgres \(PostgreSQL\) 17\.1'"):
        ensure(levels, sources, tmp_path / "cache")


def test_a_patch_of_a_release_is_a_build_of_its_own(
    tree: Path, tmp_path: Path, make_tarball: Callable[..., Path]
) -> None:
    (tree.parent / "1.patch").write_text("--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n")
    (levels,), sources = planned(tree, 'patches = ["1.patch"]')
    spec = BuildSpec.of(levels, make_tarball("18.6"))
    seen: list[Path] = []

    def recipe(work: object) -> None:
        seen.append(work.tree)  # type: ignore[attr-defined]
        assert "x\n" == (work.tree / "new").read_text()  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensure_build(
            spec,
            cache_directory=tmp_path / "cache",
            commands=Commands(),
            progress=lambda _: None,
            sources=sources,
            recipe=recipe,
        )
    (release,) = (tmp_path / "cache/sources").glob("postgresql-18.6-*/tree")
    assert not (release / "new").exists()
    assert seen != [release]
    assert [] == left(tmp_path / "cache")


def test_two_starts_that_want_one_commit_make_one_build(tree: Path, tmp_path: Path) -> None:
    (levels,), sources = of_commits(tree, '"master"')
    steps: list[str] = []
    found: list[Build] = []

    def start() -> None:
        found.append(ensure(levels, sources, tmp_path / "cache", lambda each: steps.append(each.step)))

    starts = [threading.Thread(target=start) for _ in range(2)]
    for each in starts:
        each.start()
    for each in starts:
        each.join()
    assert found[0] == found[1]
    assert 1 == steps.count("configure")


def test_a_start_that_does_not_know_the_tree_says_so(tree: Path, tmp_path: Path) -> None:
    (levels,), _ = of_commits(tree, '"master"')
    with pytest.raises(RequirementMissing, match=r"the plan does not say where commit .* is"):
        ensure(levels, None, tmp_path / "cache")


def test_a_tree_that_is_gone_fails_its_build_alone(tree: Path, tmp_path: Path) -> None:
    (levels,), sources = of_commits(tree, '"master"')
    tree.rename(tmp_path / "moved")
    with pytest.raises(BuildFailed, match="there is no such folder"):
        ensure(levels, sources, tmp_path / "cache")
    assert [] == left(tmp_path / "cache")
