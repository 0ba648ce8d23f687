"""A tmpfs that is full is told by its name, and never as damage."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from bedplate.units import GIB, KIB, MIB
from bedplate.workloads.power_cut.log import (
    RECOVERY_BYTES,
    NoRoomForImages,
    Room,
    allocated_bytes,
    log_limit_bytes,
)

OWN_BYTES = 2 * MIB


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """Sparse: 512 MiB long, two of them there."""
    path = tmp_path / "disk"
    with path.open("wb") as file:
        file.write(b"x" * OWN_BYTES)
        file.truncate(512 * MIB)
    return path


def free(monkeypatch: pytest.MonkeyPatch, free_bytes: int) -> None:
    room = SimpleNamespace(f_bavail=free_bytes // KIB, f_frsize=KIB)
    monkeypatch.setattr(os, "statvfs", lambda _: room)


def test_a_hole_takes_no_room(image: Path) -> None:
    assert OWN_BYTES <= allocated_bytes((image,)) < 3 * OWN_BYTES


def test_a_point_is_examined_only_with_room_for_every_worker(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_bytes = allocated_bytes((image,))
    for workers in (1, 2, 4):
        room = Room(image.parent, workers)
        needed_bytes = (workers - 1) * (own_bytes + RECOVERY_BYTES) + RECOVERY_BYTES
        free(monkeypatch, needed_bytes)
        room.demand((image,))
        free(monkeypatch, needed_bytes - KIB)
        with pytest.raises(NoRoomForImages, match="make that tmpfs larger"):
            room.demand((image,))


def test_a_bad_point_of_a_full_tmpfs_is_not_believed_though_the_others_gave_their_images_back(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for workers in (1, 2, 4):
        # Full while it was examined; then every other worker unlinked all that it may have had.
        others_bytes = (workers - 1) * (allocated_bytes((image,)) + RECOVERY_BYTES)
        free(monkeypatch, others_bytes)
        with pytest.raises(NoRoomForImages, match=f"{image.parent} has .* not believed without"):
            Room(image.parent, workers).demand_still((image,))
        free(monkeypatch, others_bytes + RECOVERY_BYTES)
        Room(image.parent, workers).demand_still((image,))


def test_a_log_takes_a_share_of_the_memory_and_a_containers_small_one_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    free(monkeypatch, 2 * GIB)
    assert GIB // 2 == log_limit_bytes(tmp_path)
    free(monkeypatch, 128 * MIB)
    assert 32 * MIB == log_limit_bytes(tmp_path)
    free(monkeypatch, 64 * MIB)
    with pytest.raises(
        NoRoomForImages, match=r"has 64 MiB free, and a recording needs 128 MiB: .*--shm-size"
    ):
        log_limit_bytes(tmp_path)
