"""A PostgreSQL that somebody else compiled: which there is, what a plan may ask of it, and what is put into the cache."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.plan.conftest import MACHINE

from bedplate.campaign.questions import filesystem_question
from bedplate.engines.postgresql import ready_made
from bedplate.engines.postgresql.prepare import PREPARATION
from bedplate.engines.postgresql.ready_made import SERVER_CHOICE, PostgresqlChoice
from bedplate.errors import PlanError, RequirementMissing
from bedplate.host.apt import PackageTree
from bedplate.model.cell import BUILT, PACKAGED, BuildLevels, Cell
from bedplate.plan.load import load_plan

TRIXIE = 'ID=debian\nVERSION_CODENAME=trixie\nVERSION_ID="13"\n'
OF_17 = BuildLevels(version="17", server=PACKAGED)


def cell_of(table: str) -> Cell:
    text = f'[[filesystem]]\ntype = "ext4"\n[postgresql]\n{table}\n[[workload]]\ntype = "pgbench"\n'
    plan = load_plan(text, source="plan", directory=Path("/nowhere"))
    return next(iter(plan.cells()))


def server_in(place: Path, version: str = "17.6 (Debian 17.6-0+deb13u1)") -> Path:
    """Programs that say who they are, and with which libraries they were started."""
    (place / "bin").mkdir(parents=True)
    for name in (*ready_made.PROGRAMS, "pg_config"):
        program = place / "bin" / name
        said = "'--with-icu' 'CFLAGS=-g -O2'" if name == "pg_config" else f"{name} (PostgreSQL) {version}"
        program.write_text(f'#!/bin/sh\necho "{said}"\necho "$0 $LD_LIBRARY_PATH" >&2\n', encoding="utf-8")
        program.chmod(0o755)
    return place


@pytest.fixture(autouse=True)
def said_by_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def said(prefix: Path, program: str, option: str) -> str:
        argv = [str(prefix / "bin" / program), option]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    # Shutting in is tested where a server really runs.
    monkeypatch.setattr(ready_made, "_output_of", said)


@pytest.fixture
def trixie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(ready_made, "read_os_release", lambda: TRIXIE)
    monkeypatch.setattr(ready_made, "INSTALLED", tmp_path / "installed")
    return tmp_path


def test_a_distribution_is_known_by_its_suite() -> None:
    assert "17" == ready_made.packaged_version(TRIXIE)
    assert "16" == ready_made.packaged_version("ID=ubuntu\nVERSION_CODENAME=noble\n")
    assert ready_made.packaged_version("ID=fedora\nVERSION_ID=42\n") is None


def test_an_installed_server_comes_first_then_packages_then_a_build(
    trixie: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert OF_17 == SERVER_CHOICE.levels(None)
    for version in ("16", "17"):
        server_in(trixie / "installed" / version)
    # It can run nothing.
    (trixie / "installed" / "18" / "bin").mkdir(parents=True)
    place = str(trixie / "installed" / "17")
    assert BuildLevels(version="17", server=place) == SERVER_CHOICE.levels(None)
    assert OF_17 == SERVER_CHOICE.levels(PACKAGED)
    assert BuildLevels() == SERVER_CHOICE.levels(BUILT)
    monkeypatch.setattr(ready_made, "read_os_release", lambda: "ID=fedora\n")
    with pytest.raises(RequirementMissing, match="not known here"):
        SERVER_CHOICE.levels(PACKAGED)


def test_a_question_has_its_server_in_its_plan(trixie: Path) -> None:
    text = filesystem_question(MACHINE, ("ext4",), build_levels=PostgresqlChoice().levels(None)).text
    assert '[postgresql]\nserver = "packaged"\nversion = "17"\n' in text
    (build,) = load_plan(text, source="plan", directory=trixie).builds
    assert OF_17 == build
    assert "[postgresql]" not in filesystem_question(MACHINE, ("ext4",), build_levels=BuildLevels()).text


def test_a_build_keeps_its_identity_and_another_server_has_one_of_its_own() -> None:
    plain, built, packaged = map(cell_of, ("", 'server = "built"', 'server = "packaged"\nversion = "18"'))
    assert plain.id == built.id != packaged.id
    assert {"build.server": PACKAGED}.items() <= packaged.levels.items()


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('server = "packaged"', "which major version it is belongs into the plan"),
        ('server = "packaged"\nversion = "17.6"', "without its minor"),
        ('server = "packaged"\nversion = { vary = ["16", "17"] }', "there is one version of it"),
        ('server = "packaged"\nversion = "17"\nblock_size = "4 kB"', "other sizes are compiled"),
        ('server = "/usr/lib/postgresql/17"\nversion = "17"\nwal_block_size = "16 kB"', "other sizes"),
        ('server = "usr/lib"\nversion = "17"', "or the folder of an installed server"),
        ('server = "/usr/../lib/"\nversion = "17"', "or the folder of an installed server"),
        ('server = { vary = ["built", "packaged"] }', "or the folder of an installed server"),
    ],
)
def test_what_only_a_build_can_be_is_refused_of_another_server(table: str, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        cell_of(table)


def test_packages_become_a_folder_whose_programs_find_their_libraries(
    trixie: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = trixie / "packages" / "root"
    server_in(root / "usr/lib/postgresql/17")
    (root / "usr/share/postgresql/17/extension").mkdir(parents=True)
    (root / "usr/lib/x86_64-linux-gnu").mkdir()
    (root / "usr/lib/x86_64-linux-gnu/libpq.so.5").write_text("", encoding="utf-8")
    packages = {"postgresql-17": "17.6-0+deb13u1", "postgresql-client-17": "17.6-0+deb13u1", "libpq5": "17.6"}
    tree = PackageTree(root, packages, {name: f"sha of {name}" for name in packages})
    fetches: list[tuple[str, ...]] = []

    def ensure(names: tuple[str, ...], **_: Any) -> PackageTree:
        fetches.append(names)
        return tree

    cache = trixie / "cache"
    cache.mkdir()
    monkeypatch.setattr(ready_made, "ensure_package_tree", ensure)
    monkeypatch.setattr(ready_made, "find_package_tree", lambda *_, **__: tree if fetches else None)
    monkeypatch.setattr(ready_made, "require_traversable", lambda *_, **__: None)
    assert not ready_made.is_there(OF_17, cache)
    build = ready_made.ensure_server(OF_17, cache, lambda _: None)
    assert [("postgresql-17", "postgresql-client-17")] == fetches
    assert ready_made.is_there(OF_17, cache)
    assert build == ready_made.find_server(OF_17, cache)
    assert ("17.6", tree.digest[:16]) == (build.version, build.digest)
    assert ("--with-icu", "CFLAGS=-g -O2") == build.configure_options
    assert "the distribution's packages postgresql-17 17.6-0+deb13u1, " in build.source_origin
    assert ready_made.shared_files(Path(build.prefix)).samefile(
        Path(build.prefix, "root/usr/share/postgresql/17")
    )
    done = subprocess.run([f"{build.prefix}/bin/psql"], capture_output=True, text=True, check=True)
    own = f"{build.prefix}/root/usr/lib"
    assert f"{own}/postgresql/17/bin/psql {own}/x86_64-linux-gnu\n" == done.stderr
    # A start that was killed before the record leaves a folder that does not count.
    Path(build.prefix, "server.json").unlink()
    assert not ready_made.is_there(OF_17, cache)
    assert build == ready_made.ensure_server(OF_17, cache, lambda _: None)


def test_what_the_packages_lack_is_named(trixie: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> PackageTree:
        raise RequirementMissing("postgresql-18: the archive has no package postgresql-18")

    monkeypatch.setattr(ready_made, "ensure_package_tree", refuse)
    with pytest.raises(RequirementMissing) as caught:
        ready_made.ensure_server(BuildLevels(version="18", server=PACKAGED), trixie, lambda _: None)
    assert 'this distribution has PostgreSQL 17: version = "17"' in caught.value.reasons
    assert any('server = "built"' in reason for reason in caught.value.reasons)


def wrong_version(place: Path) -> None:
    server_in(place, "16.10")


def no_release(place: Path) -> None:
    server_in(place, "19devel")


def lacks_pgbench(place: Path) -> None:
    (server_in(place) / "bin" / "pgbench").unlink()


def not_there(_: Path) -> None:
    return


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (wrong_version, 'version = "16" fits it'),
        (no_release, "no version that bedplate runs"),
        (lacks_pgbench, "it has no program bin/pgbench"),
        (not_there, "it has no program bin/postgres"),
    ],
)
def test_an_installed_server_that_is_another_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], words: str
) -> None:
    monkeypatch.setattr(ready_made, "_changed_by_others", lambda _: [])
    place = tmp_path / "server"
    make(place)
    with pytest.raises(RequirementMissing, match=words):
        ready_made.ensure_server(BuildLevels(version="17", server=str(place)), tmp_path, lambda _: None)


@pytest.mark.parametrize("name", ["bin", "bin/postgres", "bin/pgbench", "bin/pg_controldata"])
def test_a_program_that_others_may_change_is_not_run_by_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    place = server_in(tmp_path / "server")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    (place / name).chmod(0o777)
    with pytest.raises(RequirementMissing, match=f"others than root may change {place}/{name}"):
        ready_made.ensure_server(BuildLevels(version="17", server=str(place)), tmp_path, lambda _: None)


def test_its_words_say_where_it_is_from() -> None:
    assert "PostgreSQL 17 of the distribution's packages" == PREPARATION.words(OF_17)
    there = BuildLevels(version="15", server="/usr/lib/postgresql/15")
    assert "PostgreSQL 15 as installed in /usr/lib/postgresql/15" == PREPARATION.words(there)
    assert PREPARATION.seconds(OF_17) < 60
    assert ["apt-get", "dpkg-deb"] == [need.name for need in PREPARATION.requirements([OF_17])]
    assert () == PREPARATION.requirements([there])
