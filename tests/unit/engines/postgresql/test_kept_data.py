"""What a kept cluster has of its configuration, and which settings decide its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.postgresql.visit import KEPT_DATA, Cluster
from bedplate.host.command import Account, Commands
from bedplate.host.ledger import Ledger
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, DeviceLevels, FilesystemLevels, KernelLevels
from bedplate.model.levels import Levels
from bedplate.model.visit import EngineBuild
from bedplate.visit.server import ServerSite

if TYPE_CHECKING:
    from pathlib import Path

BUILD = EngineBuild("/nowhere", "18.6", 8192, 8192, "0" * 64, "test", "cc", (), "0" * 64)


def cell_with(**settings: str) -> Cell:
    cluster = ClusterLevels(settings=Levels(settings))
    return Cell(DeviceLevels(), KernelLevels(), FilesystemLevels("ext4"), BuildLevels(), cluster)


def test_a_kept_cluster_has_initdbs_configuration_and_a_restored_one_its_cells(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    file = data / "postgresql.conf"
    file.write_text("# as initdb wrote it\n", encoding="utf-8")
    with Ledger.open(tmp_path / "state", "test") as ledger:
        site = ServerSite(
            BUILD, data, tmp_path / "socket", tmp_path / "log", Account("nobody", 1, 1), Commands(), ledger
        )
        made = Cluster(site)
        made.configure(cell_with(max_wal_size="1GB"))
        assert "max_wal_size = '1GB'" in file.read_text(encoding="utf-8")
        KEPT_DATA.take_configuration_out(made)
        assert "# as initdb wrote it\n" == file.read_text(encoding="utf-8")
        KEPT_DATA.configure(Cluster(site), cell_with(shared_buffers="64MB"))
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# as initdb wrote it\n")
    assert ("shared_buffers = '64MB'" in text, "max_wal_size" in text) == (True, False)


def test_what_may_show_in_the_files_decides() -> None:
    harmless = {
        "shared_buffers": "1GB",
        "synchronous_commit": "off",
        "work_mem": "16MB",
        "wal_buffers": "16MB",
    }
    deciding = {"max_wal_size": "3GB", "wal_level": "minimal", "an.unknown_setting": "1", "fsync": "off"}
    levels = ClusterLevels(
        settings=Levels({**harmless, **deciding}),
        configuration="x = 1",
        data_checksums=False,
        scaled_page_costs=True,
    )
    found = KEPT_DATA.deciding(levels)
    assert deciding == dict(found.settings)
    assert ("x = 1", False, False) == (found.configuration, found.data_checksums, found.scaled_page_costs)
