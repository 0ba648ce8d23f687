"""How used a recorded disk is, and which aged file system it began as."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from bedplate.model.cell import FilesystemLevels
from bedplate.model.free_space import AgedCopy
from bedplate.model.levels import Levels
from bedplate.workloads.power_cut import log
from bedplate.workloads.power_cut.log import RecordedAge, make_filesystem


def test_a_recording_knows_the_aged_file_system_that_its_disk_began_as(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = SimpleNamespace(key="0123456789abcdef", identity="a UUID", settled=False)
    made: list[str] = []
    monkeypatch.setattr(log, "restore_aged", lambda *_, **__: kept)
    monkeypatch.setattr(log, "free_space_of", lambda *_: None)
    monkeypatch.setattr(
        log, "filesystem_for", lambda type_: SimpleNamespace(mkfs=lambda _: made.append(type_))
    )
    levels = FilesystemLevels("ext4", features=Levels(aged="mixed"))
    site = cast("Any", SimpleNamespace(levels=levels, target=None))
    copy = make_filesystem(site, ledger=cast("Any", None))
    assert AgedCopy("0123456789abcdef", "a UUID", settled=False) == copy
    assert RecordedAge.begin(site, copy).aged == copy
    site.levels = FilesystemLevels("ext4")
    assert make_filesystem(site, ledger=cast("Any", None)) is None
    assert ["ext4"] == made
