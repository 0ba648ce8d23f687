"""A device that may be erased gets a file system, on which PostgreSQL's own program measures each wal_sync_method."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bedplate.cli.release import mounted
from bedplate.host.command import Commands
from bedplate.host.ledger import Ledger
from bedplate.host.mount import find_mount
from bedplate.host.scratch_device import attach_loop, detach_loop
from bedplate.units import MIB
from bedplate.workloads.fio.prepare import MEASURED_DISK

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bedplate.model.visit import EngineBuild

pytestmark = pytest.mark.host


def test_each_method_has_a_rate_and_nothing_stays_mounted(
    tmp_path: Path, build_of: Callable[[int], EngineBuild]
) -> None:
    build_of(8192)
    commands, image = Commands(), tmp_path / "image"
    image.write_bytes(b"")
    with image.open("r+b") as file:
        file.truncate(128 * MIB)
    with Ledger.open(tmp_path / "state", "measure") as ledger:
        device = attach_loop(image, ledger=ledger, commands=commands)
        try:
            with mounted(device, ledger, commands) as target:
                found = MEASURED_DISK.measure_syncs(target, 1, ledger, commands)
                assert [] == [path.name for path in target.iterdir() if path.name != "lost+found"]
            assert find_mount(target) is None
        finally:
            detach_loop(device, ledger=ledger, commands=commands)
        assert () == ledger.holdings()
    assert (found.result.method("fdatasync").ops_per_s or 0) > 0
    assert found.result.method("fsync_writethrough").reason is not None
