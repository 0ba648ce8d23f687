"""One's own database is restored once for each build and choice of checksums, whatever else the cells differ in."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from bedplate.campaign.dataset_inputs import MadeAnyway
from bedplate.engines.postgresql.foreign_data import ClusterLayout, copy_data
from bedplate.engines.postgresql.restored import DatabaseSource, ensure_restored
from bedplate.errors import BedplateError, RequirementMissing
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
from bedplate.workloads.pgbench import inputs

if TYPE_CHECKING:
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

    monkeypatch.setattr(inputs, "ensure_restored", ensure)
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
    found = inputs.INPUTS.make(_OWN, made, lambda *_: None)
    assert 3 == len(found) == len(asked)
    assert {("mine.dump", Path("/home/mine.dump"))} == {(name, archive) for name, _, _, archive in asked}
    assert [{"prepare": "SELECT 1;"}] * 3 == [scripts for _, scripts, _, _ in asked]
    assert {} == inputs.INPUTS.make(Dataset("pgbench", Levels(scale=1)), made, lambda *_: None)


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


def test_links_tablespaces_and_files_of_others_are_not_copied(data: Path) -> None:
    target = data.with_name("target")
    (data / "base/5/link").symlink_to("/etc/passwd")
    with pytest.raises(BedplateError, match="is a link or no regular file"):
        copy_data(data, target, server_account())
    (data / "base/5/link").unlink()
    (data / "pg_wal").rmdir()
    (data / "pg_wal").symlink_to(data.with_name("elsewhere"))
    with pytest.raises(BedplateError, match="is a link or no regular file"):
        copy_data(data, target, server_account())
    (data / "pg_wal").unlink()
    (data / "pg_tblspc/16400").mkdir()
    with pytest.raises(BedplateError, match="has tablespaces"):
        copy_data(data, target, server_account())


def test_without_root_nothing_is_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    layout = ClusterLayout(cast("EngineBuild", SimpleNamespace(digest="ab")), None)
    source = DatabaseSource("mine.dump", "cd", {})
    with pytest.raises(RequirementMissing, match=r"restoring mine.dump needs root"):
        ensure_restored(source, layout, archive=tmp_path, cache_directory=tmp_path, tell=lambda _: None)
    with pytest.raises(RequirementMissing, match="needs root"):
        ensure_restored(source, layout, archive=None, cache_directory=tmp_path, tell=lambda _: None)
