"""What is said of a recording beside its verdict: its disk, and who else committed it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from bedplate.analysis.wording import recording_words
from bedplate.cuts.records import COMPLETIONS, DEVICE_UNIT, IN_FLIGHT, LATE, LATE_US
from bedplate.terminal.tables import _disks


def said(**of_verdict: Any) -> list[str]:
    told = {
        "image_bytes": 2**32,
        "lacks_metadata_room": False,
        "foreign_syncs": 0,
        "states": None,
        "pages": None,
        **of_verdict,
    }
    levels = of_verdict.pop("levels", {})
    run = SimpleNamespace(
        verdict=SimpleNamespace(**told),
        dataset=SimpleNamespace(levels=levels),
        spec=SimpleNamespace(levels=of_verdict.pop("spec", {})),
        recording=of_verdict.pop("recording", None),
    )
    return recording_words(cast("Any", run))


def test_a_recording_that_nobody_disturbed_on_a_large_disk_needs_no_words() -> None:
    assert said() == []
    assert said(foreign_syncs=None) == []


def test_a_small_disk_of_btrfs_is_named_with_what_it_does() -> None:
    (words,) = said(image_bytes=2**29, lacks_metadata_room=True)
    assert words.startswith("recorded on a disk of 512 MiB: there Btrfs may have little room for metadata")


def test_syncs_of_other_programs_are_counted_aloud() -> None:
    assert "another program called sync(2) once meanwhile" in said(foreign_syncs=1)[0]
    assert "another program called sync(2) 6 times meanwhile" in said(foreign_syncs=6)[0]


def test_writes_that_complete_late_are_named_with_what_they_met() -> None:
    (words,) = said(levels={COMPLETIONS: LATE}, waiting={IN_FLIGHT: 3})
    assert (
        words == f"writes were complete up to {LATE_US / 1000:g} ms late, and 3 flushes met some on their way"
    )


def test_a_unit_that_is_written_whole_is_named_with_what_it_does_not_cover() -> None:
    recording = SimpleNamespace(uncovered_writes=1200, long_writes=3000, sought_left_out=0, facts={})
    (words,) = said(spec={DEVICE_UNIT: 16384}, recording=recording)
    assert "writes 16 KiB whole: no class of the cell on another. It does not cover 1,200 of 3,000" in words


@pytest.mark.parametrize(
    ("waiting", "why"),
    [
        ({}, "no metadata waited that a cut can tear"),
        ({"superblock": 3}, "none of the profiles tears a write"),
    ],
)
def test_cuts_that_were_to_be_sought_and_were_not_made_are_counted_with_the_reason(
    waiting: dict[str, int], why: str
) -> None:
    recording = SimpleNamespace(sought_left_out=24, waiting=waiting, facts={})
    assert said(recording=recording) == [f"24 cuts that were to be sought were not made: {why}"]
    assert said(recording=SimpleNamespace(sought_left_out=None, facts={})) == []


def test_writers_that_nobody_saw_are_named_with_the_reason() -> None:
    recording = SimpleNamespace(sought_left_out=0, facts={"writers": "not asked: no tracepoints"})
    assert ["which processes wrote was not asked: no tracepoints"] == said(recording=recording)


def test_the_table_names_the_sizes_of_the_recorded_disks() -> None:
    runs = [SimpleNamespace(verdict=SimpleNamespace(image_bytes=size)) for size in (2**32, 2**29, 2**32)]
    assert _disks(cast("Any", [(None, run) for run in runs])) == ", recorded on disks of 512 MiB, 4 GiB"
    assert _disks([]) == ""
