"""The recorder's document as it is read, and what is asked before it starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.errors import OutputNotUnderstood, RequirementMissing
from bedplate.host import recorder
from bedplate.host.command import Commands
from bedplate.host.ledger import Ledger
from bedplate.host.recorder import Recorder, RecorderSizes, parse_status, recorder_reasons
from bedplate.units import MIB

# As libfuse 3.14 and the recorder printed it, after mkfs.ext4 and 500 synchronous writes.
DOCUMENT = """{"entries": 2541, "log_bytes": 30837760, "marks": 1, "sealed": true, "fault_hits": 0, "fault_at": 0, "fault_bytes": 0, "memory_locked": true, \
"io_flusher": false, "real_time": false, "served": 0, "late": 0, "due_ns": 0, "late_ns": 0, "late_ns_max": 0, "library": "3.14.0", "devices": [{"name": "disk", "bytes": 536870912, "writes": 1523, \
"write_bytes": 29536256, "flushes": 1017, "discards": 0, "reads": 62, "read_bytes": 1139712}, {"name": "journal", \
"bytes": 67108864, "writes": 0, "write_bytes": 0, "flushes": 0, "discards": 0, "reads": 0, "read_bytes": 0}], \
"failure": null}
"""


def test_the_document_is_read_whole() -> None:
    found = parse_status(DOCUMENT)
    assert (2541, 30837760, 1, None) == (found.entries, found.log_bytes, found.marks, found.failure)
    assert (True, True, False, "3.14.0") == (
        found.is_sealed,
        found.memory_locked,
        found.io_flusher,
        found.library,
    )
    disk, journal = found.devices
    assert ("disk", 1523, 1017, 29536256, 62) == (
        disk.name,
        disk.writes,
        disk.flushes,
        disk.write_bytes,
        disk.reads,
    )
    assert ("journal", 67108864, 0) == (journal.name, journal.bytes, journal.flushes)
    # One sector of superblock, one of header for each entry, and what was written.
    assert found.log_bytes == 512 + 512 * found.entries + disk.write_bytes


@settings(deadline=None)
@given(st.text())
def test_a_failure_is_told_in_its_own_words(words: str) -> None:
    document = {**json.loads(DOCUMENT), "failure": words}
    assert words == parse_status(json.dumps(document)).failure


@settings(deadline=None)
@given(st.integers(0, len(DOCUMENT) - 3))
def test_a_document_that_was_cut_off_is_quoted(length: int) -> None:
    with pytest.raises(OutputNotUnderstood, match="power-cut recorder"):
        parse_status(DOCUMENT[:length])


@pytest.mark.parametrize("name", list(json.loads(DOCUMENT)))
def test_a_document_that_lacks_a_key_is_quoted(name: str) -> None:
    document = json.loads(DOCUMENT)
    del document[name]
    with pytest.raises(OutputNotUnderstood, match="power-cut recorder"):
        parse_status(json.dumps(document))


def test_without_fuse_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "FUSE", tmp_path / "fuse")
    assert (
        f"{tmp_path / 'fuse'} is not there, through which the power-cut recorder works; run `modprobe fuse`",
    ) == recorder_reasons()


def test_every_reason_comes_at_once_and_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "FUSE", tmp_path / "fuse")
    monkeypatch.setattr(recorder, "type_below", lambda _: "ext4")
    folder = tmp_path / "recording"
    folder.mkdir()
    commands = Commands()
    with Ledger.open(tmp_path / "state", "test") as ledger:
        with pytest.raises(RequirementMissing) as caught:
            Recorder.start(
                tmp_path / "driver",
                folder,
                RecorderSizes(64 * MIB, 64 * MIB),
                ledger=ledger,
                commands=commands,
            )
        assert () == ledger.holdings()
    assert ["modprobe fuse" in reason for reason in caught.value.reasons] == [True, False]
    assert "which is on ext4; name a directory on a tmpfs" in caught.value.reasons[1]
    assert [] == commands.record
    assert [] == list(folder.iterdir())


def test_a_tmpfs_that_is_larger_than_the_memory_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = tmp_path / "meminfo"
    memory.write_text("MemTotal:       16384 kB\nMemAvailable:     102400 kB\n")
    monkeypatch.setattr(recorder, "_MEMORY", memory)
    monkeypatch.setattr(recorder, "type_below", lambda _: "ramfs")
    sizes = RecorderSizes(64 * MIB, 64 * MIB)
    (reason,) = recorder.room_reasons(tmp_path, sizes)
    assert "100 MiB of memory available; a log of 64 MiB and what the disks hold need 128 MiB" in reason
    assert () == recorder.room_reasons(tmp_path, RecorderSizes(64 * MIB, 50 * MIB))
    memory.write_text("MemTotal:       16384 kB\n")
    assert () == recorder.room_reasons(tmp_path, sizes)
