"""A small request, a kernel that is none and a guest that pretends, for tests that boot nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.guests.pretended_guest import Stage

from bedplate.executors.qemu import slot as module
from bedplate.executors.qemu.guest import TCG, Guest
from bedplate.executors.qemu.kernels import GuestKernel
from bedplate.executors.qemu.runner import GuestRunner
from bedplate.executors.qemu.slot import GuestSlot
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
from bedplate.model.visit import FORMAT_VERSION, EngineBuild, ScratchDevice, VisitKey, VisitRequest
from bedplate.units import MIB


@pytest.fixture
def kernel(tmp_path: Path) -> GuestKernel:
    modules = tmp_path / "kernel"
    (modules / "lib/modules/6.12.1").mkdir(parents=True)
    image = modules / "vmlinuz"
    image.write_bytes(b"no kernel")
    return GuestKernel("6.12", "6.12.1", image, modules, "a test", "0123456789ab", None)


@pytest.fixture
def request_of(tmp_path: Path) -> Any:
    """Makes requests; `image_bytes`, `memory_bytes`, `journal`, `filesystem`, `release` may be given."""
    (tmp_path / "prefix/bin").mkdir(parents=True)

    def make(
        *,
        image_bytes: int = 2 * MIB,
        memory_bytes: int | None = None,
        journal: ScratchDevice | None = None,
        filesystem: str = "ext4",
        release: str | None = None,
        device: str | None = None,
    ) -> VisitRequest:
        cell = Cell(
            DeviceLevels(memory_bytes=memory_bytes),
            KernelLevels(release),
            FilesystemLevels(filesystem),
            BuildLevels(),
            ClusterLevels(),
        )
        return VisitRequest(
            format_version=FORMAT_VERSION,
            key=VisitKey(cell.id, "pgbench-1", 1, 1),
            cell=cell,
            dataset=Dataset("pgbench", Levels(scale=1)),
            runs=(RunSpec("r", "pgbench", Levels({"duration_s": 1.0})),),
            scratch_device=ScratchDevice(
                device=device,
                image_bytes=None if device else image_bytes,
                image_directory=None if device else str(tmp_path),
            ),
            build=EngineBuild(str(tmp_path / "prefix"), "18.1", 8192, 8192, "", "", "", (), "d"),
            native_drivers={},
            state_directory=str(tmp_path / "state"),
            seed=1,
            provenance={"machine": "m"},
            journal_device=journal,
        )

    return make


@pytest.fixture
def stage(tmp_path: Path, kernel: GuestKernel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    found = Stage(tmp_path)
    monkeypatch.setattr(Guest, "boot", found.boot)
    monkeypatch.setattr(module, "find_accelerator", lambda *_, **__: TCG)
    monkeypatch.setattr(module, "make_initramfs", lambda _, target: target.write_bytes(b""))
    monkeypatch.setattr(module, "qemu_version", lambda _: "7.2.22")
    slot = GuestSlot(
        tmp_path / "place",
        cache_directory=tmp_path / "cache",
        state_directory=tmp_path / "state",
        find=lambda asked, cache_directory: None if asked == "9.9" else kernel,
    )
    found.executor = GuestRunner(slot)
    yield found
    found.executor.close()
    found.executor.close()
    assert [] == found.left()
