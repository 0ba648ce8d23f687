"""Building a kernel of a tree: what is compiled, what is kept, and how it ends where it cannot be."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.sources.histories import commit, git, repository, working_changes
from tests.support.sources.toy_kernel import made, toy_kernel

from bedplate.errors import CommandFailed, RequirementMissing, VerifyFailed
from bedplate.executors.qemu import kernels as build_module
from bedplate.executors.qemu.kernels import GuestKernel, build_seconds, ensure_built, find_built
from bedplate.executors.qemu.own_kernel import KernelWork, build_kernel
from bedplate.host.command import Commands
from bedplate.host.git import resolve
from bedplate.host.native_driver import BuildProgress, count_objects
from bedplate.host.requirement import Requirement, find_tool
from bedplate.model.cell import KernelSource, SourceTree

pytestmark = pytest.mark.skipif(
    not all(map(find_tool, ("gcc", "make", "git"))), reason="a toy is built with gcc and make"
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    found = repository(tmp_path / "linux")
    commit(found, "The kernel", toy_kernel())
    return found


@pytest.fixture
def cache() -> Iterator[Path]:
    # Not in tmp_path, which an account that builds cannot pass.
    with tempfile.TemporaryDirectory(prefix="bedplate-test-kernels-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder) / "cache"


@pytest.fixture(autouse=True)
def _tools_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A toy needs no libelf."""
    monkeypatch.setattr(build_module, "missing_requirements", tuple)


def source_of(tree: Path, revision: str = "master", **changes: Any) -> KernelSource:
    found = resolve(tree, revision)
    return KernelSource(SourceTree(str(tree), str(tree), revision, found), **changes)


def freely(work: KernelWork) -> None:
    """The recipe without confinement, for which these tests have no rights."""
    build_kernel(replace(work, confined=False))


Build = Callable[..., GuestKernel]


@pytest.fixture
def build(cache: Path) -> Build:
    def make(source: KernelSource, recipe: Callable[[KernelWork], None] = freely) -> GuestKernel:
        return ensure_built(
            source, cache_directory=cache, commands=Commands(), progress=lambda _: None, recipe=recipe
        )

    return make


def objects_of(cache: Path) -> Path:
    (found,) = (cache / "kernels/trees").glob("linux-*")
    return found / "objects"


def test_a_commit_becomes_a_kernel_that_says_which_commit_it_is(
    tree: Path, cache: Path, build: Build
) -> None:
    source = source_of(tree)
    kernel = build(source)
    assert kernel.release == f"6.12.1-g{source.tree.commit.hash[:12]}"
    assert kernel.modules is None
    assert kernel.configuration is not None
    assert kernel.configuration.value("EXT4_FS") == "y"
    assert source.tree.commit.hash in kernel.origin
    assert find_built(source.level, cache_directory=cache, commands=Commands()) == kernel
    assert made(objects_of(cache)) == ["fsync", "main"]
    assert build(source) == kernel
    assert made(objects_of(cache)) == []


def test_the_next_commit_compiles_what_it_changed_and_nothing_else(
    tree: Path, cache: Path, build: Build
) -> None:
    first = build(source_of(tree))
    made(objects_of(cache))
    commit(tree, "ext4: flush once more", {"fsync.c": "int second = 3;\n"})
    second = build(source_of(tree))
    assert made(objects_of(cache)) == ["fsync"]
    assert first.digest != second.digest
    # Going back is a step too, as in a bisect; the kernel that was built is kept.
    assert build(source_of(tree, "master~1")) == first
    shutil.rmtree(first.image.parent)
    assert build(source_of(tree, "master~1")).digest == first.digest
    assert made(objects_of(cache)) == ["fsync"]


def test_of_the_next_commit_the_objects_count_that_were_compiled_anew(
    tree: Path, cache: Path, build: Build
) -> None:
    build(source_of(tree))
    assert 0 < count_objects(objects_of(cache))
    commit(tree, "ext4: flush once more", {"fsync.c": "int second = 3;\n"})
    seen: list[BuildProgress] = []
    ensure_built(
        source_of(tree), cache_directory=cache, commands=Commands(), progress=seen.append, recipe=freely
    )
    assert BuildProgress("compile what changed", 0) in seen


def test_the_tree_is_never_written(tree: Path, build: Build) -> None:
    (tree / "untracked").write_text("mine")
    (tree / "main.c").write_text("not committed")
    before = {str(path): path.stat().st_mtime_ns for path in tree.rglob("*") if path.is_file()}
    build(source_of(tree))
    assert before == {str(path): path.stat().st_mtime_ns for path in tree.rglob("*") if path.is_file()}


def test_what_is_not_committed_is_built_beside_its_commit_and_gone_with_the_next(
    tree: Path, cache: Path, build: Build
) -> None:
    (tree / "fsync.c").write_text("int second = 4;\n")
    (tree / "empty").touch()
    (tree / "bytes").write_bytes(bytes(range(256)))
    (tree / "main.c").chmod(0o755)
    git(tree, "add", "empty", "bytes")
    found = working_changes(tree)
    changed = KernelSource(SourceTree(str(tree), str(tree), "working tree", found.commit, {}, found.patch))
    kernel = build(changed)
    assert kernel.release.startswith(f"6.12.1-g{found.commit.hash[:12]}-")
    place = objects_of(cache).parent
    assert (place / "source/fsync.c").read_text() == "int second = 4;\n"
    assert (place / "source/bytes").stat().st_uid == os.geteuid()
    clean = build(source_of(tree))
    assert (place / "source/fsync.c").read_text() == "int second = 2;\n"
    assert not {"empty", "bytes"} & {path.name for path in (place / "source").iterdir()}
    assert 0o644 == (place / "source/main.c").stat().st_mode & 0o777
    assert clean.digest != kernel.digest


def test_an_own_fragment_decides_and_is_another_kernel(tree: Path, cache: Path, build: Build) -> None:
    plain = build(source_of(tree))
    own = source_of(tree, name="mine.config", fragment="CONFIG_TOY=y\n# CONFIG_BTRFS_FS is not set\n")
    kernel = build(own)
    assert plain.configuration is not None
    assert kernel.configuration is not None
    assert (plain.configuration.value("TOY"), plain.configuration.value("BTRFS_FS")) == ("n", "y")
    assert (kernel.configuration.value("TOY"), kernel.configuration.value("BTRFS_FS")) == ("y", "n")
    assert own.level.endswith(")")
    assert find_built(source_of(tree).level, cache_directory=cache, commands=Commands()) == plain


def test_every_option_that_did_not_survive_is_named_before_anything_is_compiled(
    tree: Path, cache: Path, build: Build
) -> None:
    commit(tree, "Without", toy_kernel(without=("9P_FS", "SYSVIPC", "IOSCHED_BFQ")))
    own = source_of(tree, name="mine.config", fragment="CONFIG_NOBODY_KNOWS=y\nCONFIG_TOY=y\n")
    with pytest.raises(VerifyFailed) as lost:
        build(own)
    first, *options = lost.value.reasons
    assert first == f"kernel {own.level} was not built"
    assert {words.split(" ")[0] for words in options} == {
        "CONFIG_9P_FS=y",
        "CONFIG_SYSVIPC=y",
        "CONFIG_NOBODY_KNOWS=y",
    }
    assert made(objects_of(cache)) == []


def test_what_a_kernel_may_not_know_is_left_out_and_noted(tree: Path, build: Build) -> None:
    commit(tree, "Without", toy_kernel(without=("IOSCHED_BFQ",)))
    kernel = build(source_of(tree))
    assert '"IOSCHED_BFQ"' in (kernel.image.parent / "kernel.json").read_text()


def test_a_build_that_fails_shows_the_end_of_its_log_and_keeps_the_whole(
    tree: Path, cache: Path, build: Build
) -> None:
    commit(tree, "Broken", {"fsync.c": "int second = no_such_thing;\n"})
    source = source_of(tree)
    with pytest.raises(CommandFailed, match=f"building kernel {source.tree.commit.hash[:12]}") as failed:
        build(source)
    assert "no_such_thing" in failed.value.reasons[0]
    (log,) = (cache / "kernels").glob("failed-commit-*.log")
    assert "no_such_thing" in log.read_text()
    assert find_built(source.level, cache_directory=cache, commands=Commands()) is None
    commit(tree, "Mended", {"fsync.c": "int second = 5;\n"})
    build(source_of(tree))
    assert not list((cache / "kernels").glob(".work-*"))


@pytest.mark.parametrize("name", ["arch/x86/boot/bzImage", ".config", "include/config/kernel.release"])
def test_a_link_in_the_place_of_what_a_build_writes_is_not_followed(
    tree: Path, cache: Path, tmp_path: Path, build: Build, name: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("mine alone")

    def linking(work: KernelWork) -> None:
        freely(work)
        (work.objects / name).unlink()
        (work.objects / name).symlink_to(secret)
        work.product(name)

    with pytest.raises(VerifyFailed, match="leads out of the folder"):
        build(source_of(tree), linking)
    assert [] == list((cache / "kernels").glob("commit-*"))


def test_a_folder_that_is_a_link_is_not_followed(tree: Path, tmp_path: Path, build: Build) -> None:
    def linking(work: KernelWork) -> None:
        freely(work)
        (work.objects / "arch").rename(tmp_path / "arch")
        (work.objects / "arch").symlink_to(tmp_path / "arch")

    with pytest.raises(VerifyFailed, match="leads out of the folder"):
        build(source_of(tree), linking)


def test_what_a_killed_build_half_wrote_is_compiled_again(tree: Path, cache: Path, build: Build) -> None:
    build(source_of(tree))
    commit(tree, "Next", {"fsync.c": "int second = 6;\n"})

    def killed(work: KernelWork) -> None:
        def run(*_: Any, **__: Any) -> None:
            (work.objects / "fsync.o").write_bytes(b"half an object")
            raise KeyboardInterrupt

        commands = Commands()
        commands.run = run  # type: ignore[assignment,method-assign]
        build_kernel(replace(work, confined=False, commands=commands))

    with pytest.raises(KeyboardInterrupt):
        build(source_of(tree), killed)
    made(objects_of(cache))
    build(source_of(tree))
    assert "fsync" in made(objects_of(cache))
    assert (objects_of(cache) / "fsync.o").read_bytes().startswith(b"\x7fELF")


def test_tools_that_are_missing_are_named_by_their_packages_before_anything_is_done(
    tree: Path, cache: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = (
        Requirement("flex", "flex", "generates", found=False),
        Requirement("libelf with its headers", "libelf-dev", "objtool", found=False),
    )
    monkeypatch.setattr(build_module, "missing_requirements", lambda: lacking)
    with pytest.raises(RequirementMissing) as missing:
        build(source_of(tree))
    assert "package libelf-dev" in "; ".join(missing.value.reasons)
    assert not list((cache / "kernels/trees").glob("*")) if (cache / "kernels").exists() else True


def test_a_kernel_built_by_another_compiler_does_not_stand_for_this_one(
    tree: Path, cache: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of(tree)
    first = build(source)
    monkeypatch.setattr(build_module, "_compiler", lambda _: "gcc (another) 99")
    assert find_built(source.level, cache_directory=cache, commands=Commands()) is None
    second = build(source)
    assert first.image != second.image
    monkeypatch.setattr(build_module, "_compiler", lambda _: None)
    assert find_built(source.level, cache_directory=cache, commands=Commands()) is not None


@pytest.mark.parametrize("damage", ["", "{}", "[]", '{"format": 2}', "not json"])
def test_a_damaged_stamp_is_no_kernel(tree: Path, cache: Path, build: Build, damage: str) -> None:
    source = source_of(tree)
    kernel = build(source)
    (kernel.image.parent / "kernel.json").write_text(damage)
    assert find_built(source.level, cache_directory=cache, commands=Commands()) is None
    assert build(source) == kernel


def test_a_bare_repository_serves_as_well(tree: Path, tmp_path: Path, build: Build) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(tree), "bare.git")
    assert build(source_of(tmp_path / "bare.git")).release.startswith("6.12.1-g")


def test_nothing_of_the_users_environment_becomes_part_of_a_kernel(
    tree: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCALVERSION", "-mine")
    monkeypatch.setenv("MAKEFLAGS", "--no-such-flag")
    monkeypatch.setenv("ARCH", "vax")
    assert "mine" not in build(source_of(tree)).release
    assert os.environ["ARCH"] == "vax"


def test_the_first_build_of_a_tree_is_reckoned_longest_and_the_next_by_former_ones(
    tree: Path, cache: Path, build: Build
) -> None:
    for number in range(3):
        commit(tree, f"Change {number}", {"more.c": f"int more = {number};\n"})
    sources = {each.level: each for each in (source_of(tree, f"master~{back}") for back in range(4))}

    def reckoned() -> list[float]:
        return list(build_seconds(sources, cache_directory=cache, commands=Commands()).values())

    first, *rest = reckoned()
    assert 3 == len(rest)
    assert first > 10 * rest[0]
    assert 1 == len(set(rest))
    for number, (source, took) in enumerate(
        zip(list(sources.values())[:3], (300.0, 20.0, 30.0), strict=True)
    ):
        build(source)
        (stamp,) = (path for path in cache.glob("kernels/commit-*/kernel.json") if source.digits in str(path))
        stamp.write_text(json.dumps({**json.loads(stamp.read_text()), "build_seconds": took}))
        assert 3 - number == len(reckoned())
    # The folder of the tree is there: what is left compiles what it changes.
    assert [25.0] == reckoned()
