"""One's own database is restored once for each build and choice of checksums, whatever else the cells differ in."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from bedplate.campaign.preparation import MadeAnyway
from bedplate.engines.postgresql.own_data import ClusterLayout, copy_data, obstacles_to_copy
from bedplate.engines.postgresql.prepare import DatabaseSource, ensure_restored
from bedplate.errors import BedplateError, PlanError, RequirementMissing
from bedplate.host.account import server_account
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    Dataset,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
)
from bedplate.model.levels import Levels
from bedplate.workloads.pgbench import prepare, visit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bedplate.model.visit import EngineBuild

_OWN = Dataset(
    "pgbench", Levels(dump="mine.dump", source_sha256="ab", source_bytes=1, prepare_text="SELECT 1;")
)


def _cell(filesystem: str, block_size_bytes: int, *, checksums: bool | None = None) -> Cell:
    return Cell(
        DeviceLevels(),
        KernelLevels(),
        FilesystemLevels(filesystem),
        BuildLevels(block_size_bytes=block_size_bytes),
        ClusterLevels(data_checksums=checksums),
    )


def test_a_copy_for_each_layout_and_none_for_the_tables_of_pgbench(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def ensure(source: Any, layout: Any, *, archive: Path | None, **_: object) -> Path:
        asked.append((source.name, dict(source.scripts), layout.key, archive))
        return Path("/cache") / str(layout.key)

    monkeypatch.setattr(prepare, "ensure_restored", ensure)
    cells = [
        *(_cell(kind, size) for kind in ("ext4", "xfs") for size in (4096, 8192)),
        _cell("ext4", 8192, checksums=False),
    ]
    builds = {
        cell.build: cast(
            "EngineBuild",
            SimpleNamespace(
                digest=f"{cell.build.block_size_bytes}-build", block_size_bytes=cell.build.block_size_bytes
            ),
        )
        for cell in cells
    }
    made = MadeAnyway(builds, cells, {"ab": "/home/mine.dump"})
    found = prepare.INPUTS.make(_OWN, made, lambda *_: None)
    assert 3 == len(found) == len(asked)
    assert {("mine.dump", Path("/home/mine.dump"))} == {(name, archive) for name, _, _, archive in asked}
    assert [{"prepare": "SELECT 1;"}] * 3 == [scripts for _, scripts, _, _ in asked]
    assert {} == prepare.INPUTS.make(Dataset("pgbench", Levels(scale=1)), made, lambda *_: None)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory as far as a copy looks at it."""
    for name in ("data/base/5", "data/pg_wal", "data/pg_replslot/kept", "data/pg_tblspc", "target"):
        (tmp_path / name).mkdir(parents=True)
    for name in (
        "PG_VERSION",
        "postgresql.conf",
        "postmaster.pid",
        "standby.signal",
        "base/5/112",
        "pg_replslot/kept/state",
    ):
        (tmp_path / "data" / name).write_text("theirs")
    (tmp_path / "target/postgresql.conf").write_text("ours")
    (tmp_path / "target/base").mkdir()
    (tmp_path / "target/base/1").write_text("old")
    return tmp_path / "data"


def test_a_copy_brings_data_and_no_configuration(data: Path) -> None:
    target = data.with_name("target")
    assert 12 == copy_data(data, target, server_account())
    there = sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file())
    assert ["PG_VERSION", "base/5/112", "postgresql.conf"] == there
    assert "ours" == (target / "postgresql.conf").read_text()
    assert {0o600} == {(target / name).stat().st_mode & 0o777 for name in ("PG_VERSION", "base/5/112")}


def _link(path: Path) -> None:
    path.symlink_to("/etc")


def _wal_elsewhere(path: Path) -> None:
    path.rmdir()
    path.symlink_to(path.parents[1])


def _wal_nowhere(path: Path) -> None:
    path.rmdir()
    path.symlink_to("/no/such")


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))


def _map(path: Path) -> None:
    # Of a base backup: its server would make links of it.
    path.write_text("16400 /var\n")


def _of_another(path: Path) -> None:
    os.chown(path, 12345, -1)


_NOT_COPIED: Mapping[str, tuple[str, Callable[[Path], None], str]] = {
    "pg_wal": ("pg_wal", _wal_elsewhere, r"its pg_wal is a link.*pg_basebackup"),
    "a dangling pg_wal": (
        "pg_wal",
        _wal_nowhere,
        r"its pg_wal is a link.*pg_basebackup",
    ),
    "a link to a folder": ("base/6", _link, "its base/6 is a link or no regular file"),
    "a link to a file": (
        "base/5/113",
        lambda path: path.symlink_to("/etc/passwd"),
        "its base/5/113 is a link",
    ),
    "a pipe": ("base/5/pipe", _pipe, "its base/5/pipe is a link or no regular file"),
    "a socket": ("socket", _socket, "its socket is a link or no regular file"),
    "a tablespace": ("pg_tblspc/16400", _link, r"tablespaces \(16400\).*SET TABLESPACE pg_default"),
    "a tablespace in place": ("pg_tblspc/16400", lambda path: path.mkdir(), r"tablespaces \(16400\)"),
    "a map of tablespaces": ("tablespace_map", _map, "tablespaces, whose files lie elsewhere"),
    "another owner": ("base/5/112", _of_another, "its base/5/112 belongs to account 12345"),
    "a folder of another owner": ("base/5", _of_another, "its base/5 belongs to account 12345"),
}


@pytest.mark.parametrize("what", _NOT_COPIED)
def test_what_is_not_copied_is_known_before_the_copy_in_the_same_words(data: Path, what: str) -> None:
    name, change, words = _NOT_COPIED[what]
    assert [] == list(obstacles_to_copy(data))
    change(data / name)
    (obstacle,) = obstacles_to_copy(data)
    assert re.search(words, obstacle)
    with pytest.raises(BedplateError, match=re.escape(obstacle)):
        copy_data(data, data.with_name("target"), server_account())


def test_all_that_is_not_copied_is_said_at_once_and_what_is_left_out_is_no_obstacle(data: Path) -> None:
    for name in ("pg_replslot/link", "postgresql.auto.conf", "recovery.signal", "log"):
        (data / name).symlink_to("/etc")
    assert [] == list(obstacles_to_copy(data))
    for name, change, _ in (_NOT_COPIED["pg_wal"], _NOT_COPIED["a tablespace"], _NOT_COPIED["a pipe"]):
        change(data / name)
    assert 3 == len(list(obstacles_to_copy(data)))


def test_a_data_directory_is_taken_from_where_it_is_if_nothing_ran_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copied = Dataset("pgbench", Levels(copy="main", database="shop", source_sha256="ef"))
    asked: list[Path] = []
    monkeypatch.setattr(prepare, "demand_unchanged", lambda data, _: asked.append(data))
    made = MadeAnyway(archives={"ef": "/srv/main"})
    assert {"copy": "/srv/main"} == prepare.INPUTS.make(copied, made, lambda *_: None)
    assert [Path("/srv/main")] == asked
    with pytest.raises(PlanError, match="begin with the plan beside it"):
        prepare.INPUTS.make(copied, MadeAnyway(), lambda *_: None)


def test_what_does_not_fit_the_device_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visit, "demand_unchanged", lambda *_: None)
    monkeypatch.setattr(visit, "size_of", lambda _: 2**45)
    server = SimpleNamespace(build=SimpleNamespace(digest="ab"))
    context = SimpleNamespace(
        server=server,
        dataset=Dataset("pgbench", Levels(copy="main", database="shop")),
        request=SimpleNamespace(cell=_cell("ext4", 8192)),
        inputs={"copy": "/srv/main"},
        mount_point=tmp_path,
    )
    with pytest.raises(BedplateError, match=r"the database has 32 TiB, and the file system .* free"):
        visit.RUN.load(context.dataset, cast("Any", context))


def test_a_cluster_is_shipped_no_database_and_an_account_without_rights_restores_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copied = Dataset("pgbench", Levels(copy="main", database="shop"))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    for own in (_OWN, copied):
        assert "ships no database to the nodes" in (prepare.INPUTS.obstacle(own, on_nodes=True) or "")
    assert "needs root" in (prepare.INPUTS.obstacle(_OWN, on_nodes=False) or "")
    assert None is prepare.INPUTS.obstacle(copied, on_nodes=False)
    assert None is prepare.INPUTS.obstacle(Dataset("pgbench", Levels(scale=1)), on_nodes=True)


def test_without_root_nothing_is_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    layout = ClusterLayout(cast("EngineBuild", SimpleNamespace(digest="ab")), None)
    source = DatabaseSource("mine.dump", "cd", {})
    with pytest.raises(RequirementMissing, match=r"restoring mine.dump needs root"):
        ensure_restored(source, layout, archive=tmp_path, cache_directory=tmp_path, tell=lambda _: None)
    with pytest.raises(RequirementMissing, match="needs root"):
        ensure_restored(source, layout, archive=None, cache_directory=tmp_path, tell=lambda _: None)
