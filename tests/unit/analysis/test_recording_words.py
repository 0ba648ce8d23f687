"""What is said of a recording beside its verdict: its disk, and who else committed it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from bedplate.analysis.recording_words import recording_words
from bedplate.terminal.power_cut_tables import _disks


def said(**of_verdict: Any) -> list[str]:
    told = {"image_bytes": 2**32, "lacks_metadata_room": False, "foreign_syncs": 0, **of_verdict}
    return recording_words(cast("Any", SimpleNamespace(verdict=SimpleNamespace(**told))))


def test_a_recording_that_nobody_disturbed_on_a_large_disk_needs_no_words() -> None:
    assert said() == []
    assert said(foreign_syncs=None) == []


def test_a_small_disk_of_btrfs_is_named_with_what_it_does() -> None:
    (words,) = said(image_bytes=2**29, lacks_metadata_room=True)
    assert words.startswith("recorded on a disk of 512 MiB: there Btrfs may have little room for metadata")


def test_syncs_of_other_programs_are_counted_aloud() -> None:
    assert "another program called sync(2) once meanwhile" in said(foreign_syncs=1)[0]
    assert "another program called sync(2) 6 times meanwhile" in said(foreign_syncs=6)[0]


def test_the_table_names_the_sizes_of_the_recorded_disks() -> None:
    runs = [SimpleNamespace(verdict=SimpleNamespace(image_bytes=size)) for size in (2**32, 2**29, 2**32)]
    assert _disks(cast("Any", [(None, run) for run in runs])) == ", recorded on disks of 512 MiB, 4 GiB"
    assert _disks([]) == ""
