"""A pool of ZFS outlives its mount: what a killed visit left imported would hold the device for good."""

from __future__ import annotations

from pathlib import Path

import pytest

from bedplate.errors import DeviceInUse
from bedplate.host import ledger
from bedplate.host.command import Commands
from bedplate.host.ledger import Holding


def give_back(holding: Holding, directory: Path) -> ledger.Undone:
    return ledger.give_back(holding, Commands(), directory=directory, sweep=lambda: None)


@pytest.mark.parametrize(("was_imported", "done"), [(True, "unmounted"), (False, None)])
def test_the_pool_of_the_mounts_device_is_released(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, was_imported: bool, done: str | None
) -> None:
    asked = []

    def release(name: str, _: Commands) -> bool:
        asked.append(name)
        return was_imported

    monkeypatch.setattr(ledger, "release_pool", release)
    found = give_back(Holding("mount", str(tmp_path / "mount"), "/dev/vda"), tmp_path)
    assert asked == ["bedplate-vda"]
    assert (found.problem, found.settled) == (None, True)
    assert (found.done is None) == (done is None)


def test_a_pool_that_stays_busy_is_tried_again_later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def release(name: str, _: Commands) -> bool:
        raise DeviceInUse(f"pool {name} cannot be exported: pool is busy")

    monkeypatch.setattr(ledger, "release_pool", release)
    found = give_back(Holding("mount", str(tmp_path / "mount"), "/dev/vda"), tmp_path)
    assert found.problem is not None
    assert "pool is busy" in found.problem
    assert not found.settled
