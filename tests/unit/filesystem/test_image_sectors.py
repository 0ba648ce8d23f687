"""A kept image is for devices of one sector size: a file system made for smaller sectors is not mounted on larger ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from bedplate.filesystem import aged_image, kept_dataset, mounted, refusals
from bedplate.filesystem.adapter import Site
from bedplate.filesystem.aged_image import AgedState
from bedplate.filesystem.kept_dataset import restore_dataset
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.ledger import Ledger
from bedplate.host.scratch_device import AttachedDevice
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    Dataset,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
    RunSpec,
)
from bedplate.model.levels import Levels
from bedplate.model.visit import FORMAT_VERSION, ScratchDevice, VisitKey, VisitRequest
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SIZE = MIB


class Disk(AttachedDevice):
    """A file that plays a device, with a queue of its own."""

    @property
    def queue(self) -> Path:
        assert self.image is not None
        return self.image.parent / "queue"


def disk_of(place: Path, sector_bytes: int) -> Disk:
    folder = place / f"disk-{sector_bytes}"
    (folder / "queue").mkdir(parents=True, exist_ok=True)
    (folder / "queue/logical_block_size").write_text(f"{sector_bytes}\n")
    image = folder / "content"
    image.write_bytes(bytes(SIZE))
    return Disk(str(image), "disk", "disk", SIZE, image)


@dataclass
class Machine:
    """Loop devices and file systems that are no more than calls here."""

    asked: list[tuple[str, ...]] = field(default_factory=list)
    configuration: str = "as packaged"

    def run(self, argv: Sequence[str], **_: object) -> Any:
        self.asked.append(tuple(argv[:-1]))
        return type("Completed", (), {"stdout": "/dev/loop1\n"})

    def versions(self, **_: object) -> dict[str, str]:
        return {"mkfs": "1"}

    def mkfs_defaults(self) -> dict[str, str]:
        return {"mke2fs.conf": self.configuration}

    def mkfs(self, site: Any) -> None:
        site.device.image.write_bytes(b"made" + bytes(SIZE - 4))

    def mount(self, _site: object) -> None:
        pass

    def unmount(self, _site: object) -> bool:
        return True


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path / "cache"))


def test_a_dataset_is_loaded_once_for_each_size_of_sectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine()
    monkeypatch.setattr(kept_dataset, "filesystem_for", lambda _: machine)
    cell = Cell(DeviceLevels(), KernelLevels(), FilesystemLevels("xfs"), BuildLevels(), ClusterLevels())
    request = VisitRequest(
        format_version=FORMAT_VERSION,
        key=VisitKey(cell.id, "pgbench-1", 1, 1),
        cell=cell,
        dataset=Dataset("pgbench", Levels(scale=1)),
        runs=(RunSpec("r", "pgbench", Levels({"duration_s": 1.0})),),
        scratch_device=ScratchDevice(image_bytes=SIZE, image_directory=str(tmp_path)),
        build=None,
        native_drivers={},
        state_directory=str(tmp_path),
        seed=1,
    )
    loaded = []

    def load(site: Site, _cell: Cell) -> tuple[()]:
        loaded.append(site.device.sector_bytes)
        return ()

    commands: Any = Machine()
    for sector_bytes in (512, 4096, 4096, 512):
        site = Site(cell.filesystem, disk_of(tmp_path, sector_bytes), tmp_path / "mount", commands)
        restore_dataset(site, request, versions={}, protocol="1", load=load)
    assert [512, 4096] == loaded
    # What mkfs takes by itself makes another one.
    machine.configuration = "changed"
    restore_dataset(site, request, versions={}, protocol="1", load=load)
    assert [512, 4096, 512] == loaded


def test_an_aged_file_system_is_made_on_sectors_of_the_device_s_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine()
    commands: Any = machine
    for module in (aged_image, mounted):
        monkeypatch.setattr(module, "filesystem_for", lambda _: machine)
    monkeypatch.setattr(aged_image, "age", lambda *_: AgedState(rounds=1, settled=True, files=1))
    monkeypatch.setattr(refusals, "detach", lambda *_: None)
    levels = FilesystemLevels("xfs", features=Levels({"aged": "mixed"}))
    with Ledger.open(tmp_path / "state", "test") as ledger:
        for sector_bytes in (512, 4096, 4096, 512):
            disk = disk_of(tmp_path, sector_bytes)
            aged_image.restore_aged(Site(levels, disk, tmp_path / "mount", commands), ledger=ledger)
            assert b"made" == (tmp_path / f"disk-{sector_bytes}/content").read_bytes()[:4]
        losetup = ("losetup", "--find", "--show")
        assert [losetup, (*losetup, "--sector-size", "4096")] == machine.asked
        # What mkfs takes by itself makes another one.
        machine.configuration = "changed"
        aged_image.restore_aged(Site(levels, disk, tmp_path / "mount", commands), ledger=ledger)
        assert 3 == len(machine.asked)


def test_what_mke2fs_takes_by_itself_is_its_configuration_and_its_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[object] = []

    def look(place: Path) -> None:
        monkeypatch.setenv("MKE2FS_CONFIG", str(place))
        found.append(filesystem_for("ext4").mkfs_defaults())
        monkeypatch.delenv("MKE2FS_CONFIG")

    (one := tmp_path / "mke2fs.conf").write_text("[defaults]\n inode_size = 256\n")
    look(one)
    look(one)
    one.write_text("[defaults]\n inode_size = 512\n")
    look(one)
    (folder := tmp_path / "folder").mkdir()
    (folder / "a.conf").write_text("[defaults]\n")
    look(folder)
    (folder / "b.conf").write_text("[fs_types]\n")
    look(folder)
    look(tmp_path / "none")
    monkeypatch.setenv("MKE2FS_DEVICE_SECTSIZE", "4096")
    look(tmp_path / "none")
    first, again, *others = found
    assert first == again
    assert [*others, first] == list({str(each): each for each in (*others, first)}.values())
    assert {} == filesystem_for("xfs").mkfs_defaults()
