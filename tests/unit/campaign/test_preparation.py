"""What must be there before the first visit: asked for once, made where it is missing, said with the way out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from bedplate.campaign import preparation
from bedplate.campaign.display import LineDisplay
from bedplate.campaign.preparation import MadeAnyway
from bedplate.engines.postgresql import prepare as postgresql
from bedplate.engines.postgresql.builds import BuildSpec
from bedplate.errors import BuildFailed, CommandFailed, RequirementMissing
from bedplate.filesystem.registry import filesystem_for
from bedplate.host import requirement
from bedplate.host.native_driver import BuildProgress
from bedplate.host.requirement import Need, Requirement
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    Dataset,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
    PlanSources,
)
from bedplate.model.levels import Levels

if TYPE_CHECKING:
    from bedplate.model.visit import EngineBuild

BISON = Requirement("bison", "bison", "generates the parser", found=False)


def cell(kind: str = "ext4", **build: Any) -> Cell:
    return Cell(DeviceLevels(), KernelLevels(), FilesystemLevels(kind), BuildLevels(**build), ClusterLevels())


class Display(LineDisplay):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []
        self.steps: list[tuple[str, int, int]] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def preparing(self, step: str, current: int, total: int) -> None:
        self.steps.append((step, current, total))


class Builds:
    """Stands for the cache of builds and the compiler behind it."""

    def __init__(self) -> None:
        self.kept: set[BuildSpec] = set()
        self.broken: set[tuple[str, ...]] = set()
        self.asked: list[BuildSpec] = []
        self.caches: set[Path] = set()

    def find(self, spec: BuildSpec, *, cache_directory: Path, commands: object) -> object | None:
        del commands
        self.caches.add(cache_directory)
        return object() if spec in self.kept else None

    def ensure(
        self, spec: BuildSpec, *, cache_directory: Path, commands: object, progress: Any, sources: PlanSources
    ) -> object:
        del commands, sources
        self.caches.add(cache_directory)
        if spec.patches in self.broken:
            raise BuildFailed("the compiler said no")
        self.asked.append(spec)
        if spec not in self.kept:
            progress(BuildProgress("source: unpacks"))
            progress(BuildProgress("compiles", 7, 700))
            self.kept.add(spec)
        return SimpleNamespace(for_visit=f"build of {spec.version} {spec.block_size_bytes}")


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Builds:
    found = Builds()
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(postgresql, "find_build", found.find)
    monkeypatch.setattr(postgresql, "ensure_build", found.ensure)
    monkeypatch.setattr(postgresql, "build_requirements", lambda _: (BISON,))
    return found


@pytest.fixture
def display() -> Display:
    return Display()


class Installer:
    """A package tool in place of the real one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[list[str], Mapping[str, str]]] = []
        self.fails_at = ""
        monkeypatch.setattr(preparation, "Commands", lambda: self)

    def run(self, argv: list[str], *, timeout_s: float, extra_environment: Mapping[str, str]) -> None:
        assert timeout_s > 60, "a mirror may be slow"
        self.calls.append((argv, extra_environment))
        if self.fails_at and self.fails_at in argv:
            raise CommandFailed("E: no such package", argv=argv, status=100, output="E: no such package")


@pytest.fixture
def installer(monkeypatch: pytest.MonkeyPatch) -> Installer:
    return Installer(monkeypatch)


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of the programs that this machine has; the test puts them in."""
    present: set[str] = set()

    def look(needs: Iterable[Need]) -> tuple[Requirement, ...]:
        return requirement.look(needs, find=lambda name: Path("/sbin", name) if name in present else None)

    monkeypatch.setattr(preparation, "look", look)
    return present


def test_every_need_is_named_once_whatever_the_number_of_cells(builds: Builds, tools: set[str]) -> None:
    cells = [cell("ext4"), cell("ext2"), cell("xfs"), cell("ext4", block_size_bytes=4096)]
    found = preparation.requirements_of(cells)
    assert len(set(found)) == len(found)
    names = {item.name for item in found}
    assert {"mount", "losetup", "blkid", "bison"} <= names
    for kind in ("ext4", "xfs"):
        assert {need.name for need in filesystem_for(kind).needs} <= names
    assert not names & {need.name for need in filesystem_for("btrfs").needs} - {"mount"}
    assert not any(item.found for item in found)
    tools |= names
    assert [BISON] == [item for item in preparation.requirements_of(cells) if not item.found]
    assert builds.asked == []


def test_what_builds_postgresql_is_needed_only_where_a_build_is_missing(
    builds: Builds, tools: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def requirements(spec: BuildSpec) -> tuple[Requirement, ...]:
        asked.append(spec.version)
        return (BISON,)

    monkeypatch.setattr(postgresql, "build_requirements", requirements)
    builds.kept = {BuildSpec("18", 8192), BuildSpec("17", 4096)}
    assert BISON not in preparation.requirements_of([cell(), cell(version="17", block_size_bytes=4096)])
    assert [] == asked
    # Two builds of one version are missing: its tools are looked for once.
    lacking = [cell(version="17"), cell(version="17", block_size_bytes=1024), cell(version="15")]
    assert BISON in preparation.requirements_of([cell(), *lacking])
    assert ["17", "15"] == asked
    assert set() == tools


def test_without_cells_only_what_every_visit_needs_is_asked_for(builds: Builds) -> None:
    assert {"mount", "losetup", "blkid"} == {item.name for item in preparation.requirements_of([])}
    assert set() == builds.caches


def test_each_build_is_made_once_and_said_once(builds: Builds, display: Display, tmp_path: Path) -> None:
    small = cell(block_size_bytes=1024, wal_block_size_bytes=4096)
    builds.kept.add(BuildSpec("18", 8192))
    made = preparation.prepare_builds([cell(), small, cell("xfs"), small], display, sources=PlanSources())
    found = {levels: str(build) for levels, build in made.made.items()}
    assert {cell().build: "build of 18 8192", small.build: "build of 18 1024"} == found
    assert [BuildSpec("18", 8192), BuildSpec("18", 1024, 4096)] == builds.asked
    assert {tmp_path / "cache"} == builds.caches
    name = "PostgreSQL 18, 1 kB blocks (2 of 2)"
    assert [f"built {name}"] == display.notes
    assert [(f"{name}: source: unpacks", 0, 0), (f"{name}: compiles", 7, 700)] == display.steps
    preparation.prepare_builds([small], display, sources=PlanSources())
    assert [f"built {name}"] == display.notes


def test_an_own_tarball_is_what_every_build_is_made_of(builds: Builds, display: Display) -> None:
    tarball = Path("/somewhere/postgresql-18.tar.bz2")
    cells = [cell(), cell(block_size_bytes=1024)]
    preparation.prepare_builds(cells, display, sources=PlanSources(), tarball=tarball)
    assert [tarball, tarball] == [spec.tarball for spec in builds.asked]


def test_a_build_that_fails_is_not_called_built(
    builds: Builds, display: Display, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RequirementMissing("no compiler")

    monkeypatch.setattr(postgresql, "ensure_build", fails)
    with pytest.raises(RequirementMissing, match="no compiler"):
        preparation.prepare_builds([cell()], display, sources=PlanSources())
    assert [] == display.notes
    assert set() == builds.kept


def test_somebodys_own_that_cannot_be_built_is_told_and_the_rest_is_built(
    builds: Builds, display: Display
) -> None:
    patch = ("x.patch 0123456789ab",)
    builds.broken.add(patch)
    cells = [cell(patches=patch), cell()]
    found = preparation.prepare_builds(cells, display, sources=PlanSources())
    assert [cell().build] == list(found.made)
    assert {cells[0].build: ("the compiler said no",)} == {
        levels: error.reasons for levels, error in found.failed.items()
    }
    name = "PostgreSQL 18, with x.patch 0123456789ab, 8 kB blocks (1 of 2)"
    assert f"{name} cannot be built: the compiler said no" == display.notes[0]


def test_a_driver_is_compiled_from_the_source_beside_the_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path))
    asked: dict[str, tuple[Path, Path]] = {}

    def ensure(
        name: str,
        *,
        source: Path,
        variant: str,
        cache_directory: Path,
        commands: object,
        libraries: object,
        is_preloaded: bool,
    ) -> Path:
        del commands, libraries
        assert variant == ""
        assert not is_preloaded
        asked[name] = (source, cache_directory)
        return cache_directory / name

    monkeypatch.setattr(preparation, "ensure_driver", ensure)
    found = preparation.prepare_drivers(["pgbench", "tpch"])
    assert {"pgbench_log": str(tmp_path / "drivers" / "pgbench_log")} == found
    source, cache = asked["pgbench_log"]
    assert source.is_file()
    assert tmp_path / "drivers" == cache


def test_packages_come_after_an_update_and_nothing_is_asked(installer: Installer, display: Display) -> None:
    command = ("apt-get", "install", "--yes", "--no-install-recommends", "xfsprogs", "bison")
    preparation.install(command, display)
    update, install = (argv for argv, _ in installer.calls)
    assert ("apt-get", "update") == (update[0], update[-1])
    # What was asked for stands as it was shown, behind what makes the tool quiet.
    assert "apt-get" == install[0]
    assert list(command[1:]) == install[-len(command) + 1 :]
    for argv in (update, install):
        assert "-qq" in argv
        assert "Dpkg::Use-Pty=0" == argv[argv.index("-o") + 1]
    assert all("noninteractive" == extra["DEBIAN_FRONTEND"] for _, extra in installer.calls)
    # A person can give the command that is shown: without the options of this process.
    assert [f"installing: {' '.join(command)}"] == display.notes


def test_another_package_tool_is_run_as_it_is(installer: Installer, display: Display) -> None:
    preparation.install(("dnf", "install", "--assumeyes", "bison"), display)
    assert [["dnf", "install", "--assumeyes", "bison"]] == [argv for argv, _ in installer.calls]


@pytest.mark.parametrize("step", ["update", "install"])
def test_a_package_tool_that_fails_is_heard(installer: Installer, display: Display, step: str) -> None:
    installer.fails_at = step
    with pytest.raises(CommandFailed, match="no such package"):
        preparation.install(("apt-get", "install", "--yes", "bison"), display)
    assert step in installer.calls[-1][0]


@pytest.mark.parametrize(("uid", "expected"), [(0, True), (1000, False)])
def test_root_is_who_has_its_rights_now(monkeypatch: pytest.MonkeyPatch, uid: int, expected: bool) -> None:
    monkeypatch.setattr("os.geteuid", lambda: uid)
    assert expected is preparation.is_root()


def test_pg_test_fsync_is_that_of_the_first_build_of_its_engine() -> None:
    asks, does_not = Dataset("fio", Levels(pg_test_fsync=True)), Dataset("fio", Levels())
    builds = {
        BuildLevels(engine, version): cast(
            "EngineBuild", SimpleNamespace(prefix=f"/builds/{engine}-{version}")
        )
        for engine, version in (("another", "1"), ("postgresql", "17"), ("postgresql", "18"))
    }
    found = preparation.prepare_inputs([asks, does_not], Display(), MadeAnyway(builds))
    assert {asks: {"pg_test_fsync": "/builds/postgresql-17/bin"}} == found
    assert {} == preparation.prepare_inputs([asks], Display(), MadeAnyway())
