from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.guests.fake_distribution import OS_RELEASE, FakeDistribution, FakePackage
from tests.support.tools.scripted_commands import ScriptedCommands

from bedplate.errors import OutputNotUnderstood, RequirementMissing, VerifyFailed
from bedplate.host import apt
from bedplate.host.apt import PackageTree, ensure_package_tree, find_package_tree, packages_directory
from bedplate.host.command import Completed

KMOD = FakePackage("30-1", {"bin/kmod": "program", "sbin/depmod": "-> /bin/kmod"}, needs=("libkmod2",))
LIBRARY = FakePackage("30-1", {"usr/lib/x86_64-linux-gnu/libkmod.so.2": "library", "etc/none": "-> /etc/x"})
SUITES = {
    "bookworm": {"kmod": KMOD, "libkmod2": LIBRARY, "old": FakePackage("1")},
    "bookworm-updates": {},
    "bookworm-security": {},
    "bookworm-backports": {"kmod": FakePackage("34-1~bpo12+1", {"bin/kmod": "newer"})},
}


@pytest.fixture
def distribution(
    tmp_path: Path, scripted: ScriptedCommands, monkeypatch: pytest.MonkeyPatch
) -> FakeDistribution:
    for module in (apt, apt):
        monkeypatch.setattr(module, "read_os_release", lambda: OS_RELEASE)
    fake = FakeDistribution(dict(SUITES), tmp_path / "sources")
    fake.answer(scripted)
    return fake


@pytest.fixture
def ensure(tmp_path: Path, scripted: ScriptedCommands) -> Callable[..., PackageTree]:
    def call(*packages: str, **words: object) -> PackageTree:
        return ensure_package_tree(
            packages,
            cache_directory=tmp_path / "cache",
            commands=scripted,
            progress=lambda _: None,
            **words,  # type: ignore[arg-type]
        )

    return call


def left(cache: Path) -> list[str]:
    return sorted(path.name for path in packages_directory(cache).iterdir() if path.suffix != ".lock")


@pytest.mark.usefixtures("distribution")
def test_a_tree_has_the_package_and_what_the_machine_lacks(ensure: Callable[..., PackageTree]) -> None:
    tree = ensure("kmod")
    assert {"kmod": "30-1", "libkmod2": "30-1"} == tree.packages
    assert set(tree.checksums) == {"kmod", "libkmod2"}
    assert tree.path == (tree.root / "sbin", tree.root / "bin")
    assert tree.library_path == (tree.root / "usr/lib/x86_64-linux-gnu",)
    assert tree.environment["PATH"] == f"{tree.root}/sbin:{tree.root}/bin:{os.environ['PATH']}"
    assert tree.environment["LD_LIBRARY_PATH"] == f"{tree.root}/usr/lib/x86_64-linux-gnu"


@pytest.mark.usefixtures("distribution")
def test_absolute_links_lead_into_the_tree_and_not_to_the_machine(
    ensure: Callable[..., PackageTree],
) -> None:
    tree = ensure("kmod")
    assert tree.program("depmod") == tree.root / "sbin/depmod"
    assert (tree.root / "sbin/depmod").read_text() == "program"
    # What the tree does not have stays the machine's.
    assert str((tree.root / "etc/none").readlink()) == "/etc/x"
    assert tree.program("fsck") is None
    with pytest.raises(RequirementMissing, match="no program fsck"):
        tree.demand_program("fsck")


def test_a_tree_in_the_cache_needs_no_network(
    distribution: FakeDistribution,
    scripted: ScriptedCommands,
    ensure: Callable[..., PackageTree],
    tmp_path: Path,
) -> None:
    tree = ensure("kmod")
    assert distribution.updates(scripted) == 1
    scripted.answers.clear()
    assert tree == ensure("kmod")
    assert tree == find_package_tree(("kmod",), cache_directory=tmp_path / "cache")
    assert find_package_tree(("kmod", "old"), cache_directory=tmp_path / "cache") is None
    assert find_package_tree(("kmod",), cache_directory=tmp_path / "cache", suite="sid") is None


@pytest.mark.usefixtures("distribution")
def test_a_suite_that_is_named_comes_first_and_is_another_tree(ensure: Callable[..., PackageTree]) -> None:
    own = ensure("kmod")
    newer = ensure("kmod", suite="bookworm-backports")
    assert {"kmod": "34-1~bpo12+1"} == newer.packages
    assert newer.library_path == ()
    assert "LD_LIBRARY_PATH" not in newer.environment
    assert own.root != newer.root
    assert own == ensure("kmod")


@pytest.mark.usefixtures("distribution")
def test_without_dependencies_there_is_what_was_named_only(ensure: Callable[..., PackageTree]) -> None:
    assert set(ensure("kmod", with_dependencies=False).packages) == {"kmod"}
    assert {"old": "1"} == ensure("old=1", with_dependencies=False).packages


def test_a_suite_that_the_mirror_lacks_is_missed_only_where_it_was_asked_for(
    distribution: FakeDistribution, ensure: Callable[..., PackageTree]
) -> None:
    distribution.suites = {"bookworm": SUITES["bookworm"]}
    assert "kmod" in ensure("kmod").packages
    with pytest.raises(RequirementMissing, match="bookworm-backports: The repository"):
        ensure("kmod", suite="bookworm-backports")


@pytest.mark.usefixtures("distribution")
@pytest.mark.parametrize("with_dependencies", [True, False])
def test_a_package_that_is_nowhere_is_named_with_the_way_out(
    ensure: Callable[..., PackageTree], tmp_path: Path, with_dependencies: bool
) -> None:
    with pytest.raises(RequirementMissing, match=r"kmod nosuch: .*package nosuch\n.*install them by hand"):
        ensure("kmod", "nosuch", with_dependencies=with_dependencies)
    assert left(tmp_path / "cache") == []


def test_what_needs_another_c_library_is_refused(
    distribution: FakeDistribution, ensure: Callable[..., PackageTree]
) -> None:
    libc = {"libc6": FakePackage("2.41"), "tool": FakePackage("1", needs=("libc6",))}
    distribution.suites = {**SUITES, "bookworm": libc}
    with pytest.raises(RequirementMissing, match="newer C library"):
        ensure("tool")


def test_a_file_that_is_not_what_the_index_promises_is_refused(
    distribution: FakeDistribution, ensure: Callable[..., PackageTree], tmp_path: Path
) -> None:
    distribution.tampered = True
    with pytest.raises(VerifyFailed, match="the index promises"):
        ensure("kmod")
    assert left(tmp_path / "cache") == []


@pytest.mark.usefixtures("distribution")
def test_an_interrupted_fetch_leaves_nothing(
    ensure: Callable[..., PackageTree], scripted: ScriptedCommands, tmp_path: Path
) -> None:
    def interrupted(argv: tuple[str, ...], directory: Path | None) -> Completed:
        del directory
        (Path(argv[-1]) / "half").write_text("half")
        raise KeyboardInterrupt

    extract = scripted.answers["dpkg-deb"]
    scripted.answers["dpkg-deb"] = interrupted
    with pytest.raises(KeyboardInterrupt):
        ensure("kmod")
    assert left(tmp_path / "cache") == []
    scripted.answers["dpkg-deb"] = extract
    # What a killed start left behind is removed by the next.
    (packages_directory(tmp_path / "cache") / ".work-killed/tree/root").mkdir(parents=True)
    (packages_directory(tmp_path / "cache") / ".killed.lock").touch()
    tree = ensure("kmod")
    assert left(tmp_path / "cache") == [tree.root.parent.name]


@pytest.mark.usefixtures("distribution")
def test_a_damaged_record_is_quoted_and_the_way_out_named(ensure: Callable[..., PackageTree]) -> None:
    record = ensure("kmod").root.parent / "tree.json"
    for text in ("{", "[]", json.dumps({"packages": {}})):
        record.write_text(text)
        with pytest.raises(OutputNotUnderstood, match="remove its folder"):
            ensure("kmod")


@pytest.mark.parametrize("packages", [(), ("",), ("-o",)])
def test_no_option_is_taken_for_a_package(ensure: Callable[..., PackageTree], packages: tuple[str]) -> None:
    with pytest.raises(ValueError, match="not a list of packages"):
        ensure(*packages)
