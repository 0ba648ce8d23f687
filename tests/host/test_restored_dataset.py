"""Restored datasets: loaded once, kept in the cache, and copied onto the device of every visit that may share them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from bedplate.filesystem.kept_dataset import RECORD, RESTORE_STEP
from bedplate.model.cell import DeviceLevels, FilesystemLevels, Throttle
from bedplate.model.levels import Levels
from bedplate.model.visit import RESTORED, Outcome
from bedplate.visit.server import READ_STEP

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.model.visit import VisitRecord

    Bench = Any

pytestmark = pytest.mark.host

_LOADING = {"mkfs", "initdb", "load"}


def facts_of(record: VisitRecord) -> dict[str, object]:
    return {item.name: item.effective for item in record.comparisons}


def kept(cache: Path) -> list[Path]:
    return sorted(path.parent for path in (cache / "datasets").glob(f"*/{RECORD}"))


@pytest.fixture
def cache(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Path:
    place: Path = bench.base / "cache"
    monkeypatch.setenv("BEDPLATE_CACHE", str(place))
    return place


def lived(bench: Bench, levels: FilesystemLevels, **changes: Any) -> VisitRecord:
    shutil.rmtree(bench.directory, ignore_errors=True)
    record: VisitRecord = bench.live(replace(bench.request(levels, **changes), dataset_by=RESTORED))
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)
    assert [] == bench.left_behind()
    return record


@pytest.mark.parametrize("kind", ["ext2", "ext3", "ext4", "xfs", "btrfs"])
def test_a_dataset_is_loaded_once_and_restored_under_other_mounts_and_settings(
    bench: Bench, cache: Path, kind: str
) -> None:
    first = lived(bench, FilesystemLevels(kind, mount_options=("noatime",)))
    (folder,) = kept(cache)
    again = lived(
        bench,
        FilesystemLevels(kind, mount_options=("relatime",)),
        device=DeviceLevels(read_ahead_kb=4096),
        settings={"shared_buffers": "32MB", "synchronous_commit": "off"},
    )
    assert [folder] == kept(cache)
    for record in (first, again):
        steps = {timing.step for timing in record.timings}
        assert {RESTORE_STEP, READ_STEP, "configure"} <= steps
        assert not steps & _LOADING
        assert folder.name == facts_of(record)["dataset.restored.key"]
    identities = {facts_of(record)["dataset.restored.identity"] for record in (first, again)}
    assert 1 == len(identities)
    # What the visit asks for is effective, and nothing of the one that loaded.
    settings = {item.name: item for item in again.comparisons}
    assert settings["setting shared_buffers"].matches
    assert settings["setting synchronous_commit"].matches
    told = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    assert kind == told["levels"]["filesystem.type"]
    assert "filesystem.mount_options" not in told["levels"]
    assert 0 < told["kept_bytes"] < told["size_bytes"]
    # What the load left in the page cache, tables and log.
    assert {"base", "pg_wal"} <= {file["path"].partition("/")[0] for file in told["cached"]}


def test_what_is_copied_is_copied_before_the_limits_of_the_cell(bench: Bench, cache: Path) -> None:
    """Under control groups of version 1 a throttle holds for everybody: copying 400 MB through that of a disk took longer than loading."""
    slow = DeviceLevels(throttle=Throttle("slow", write_iops=2000))
    for _ in range(2):
        steps = [timing.step for timing in lived(bench, FilesystemLevels("ext4"), device=slow).timings]
        assert steps.index(RESTORE_STEP) < steps.index("control group")
    assert 1 == len(kept(cache))


def test_what_decides_the_files_gets_an_image_of_its_own(bench: Bench, cache: Path) -> None:
    plain = FilesystemLevels("ext4")
    lived(bench, plain)
    lived(bench, plain, settings={"max_wal_size": "128MB"})
    lived(bench, FilesystemLevels("ext4", features=Levels({"data": "journal"})))
    assert 3 == len(kept(cache))


def test_an_image_without_its_record_is_made_anew(bench: Bench, cache: Path) -> None:
    first = lived(bench, FilesystemLevels("xfs"))
    (folder,) = kept(cache)
    (folder / RECORD).unlink()
    again = lived(bench, FilesystemLevels("xfs"))
    assert [folder] == kept(cache)
    name = "dataset.restored.identity"
    assert facts_of(first)[name] != facts_of(again)[name]
