"""A write log is read as its writer meant it: bedplate's recorder, the kernel, QEMU, and one that was killed."""

from __future__ import annotations

import gzip
import hashlib
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.tools.written_log import DISCARD, FLUSH, FUA, MARK, Written, written_log

from bedplate.cuts.log import DISK, JOURNAL, LogEntry, read_log
from bedplate.cuts.records import CutPoint, Placement, Profile
from bedplate.errors import OutputNotUnderstood
from bedplate.units import MIB
from bedplate.workloads.power_cut.bench import rebuild

GOLDEN = Path(__file__).parents[3] / "golden" / "power_cut"

ENTRIES = [
    Written(sector=2, data=b"a" * 1024, time_ns=5),
    Written(device=1, sector=0, data=b"j" * 512, flags=FUA, time_ns=6),
    Written(flags=FLUSH, time_ns=7),
    Written(flags=MARK, text=b"A 0 1 4242", time_ns=8),
    Written(sector=8, discarded_sectors=64, flags=DISCARD),
    Written(sector=1, data=b"z" * 512, flags=FLUSH),
]

FLUSHED = Written(flags=FLUSH)


def test_entries_with_their_device_time_and_data(tmp_path: Path) -> None:
    with read_log(written_log(tmp_path / "log", ENTRIES)) as log:
        assert [
            LogEntry(DISK, 1024, 1024, 0, 5),
            LogEntry(JOURNAL, 0, 512, FUA, 6),
            LogEntry(DISK, 0, 0, FLUSH, 7),
            LogEntry(DISK, 0, 10, MARK, 8),
            LogEntry(DISK, 4096, 32768, DISCARD, None),
            LogEntry(DISK, 512, 512, FLUSH, None),
        ] == [log.entry(index) for index in range(len(log))]
        assert b"a" * 1024 == bytes(log.data(0))
        assert b"z" * 100 == bytes(log.data(5, 400, 100))
        assert [True, True, False, False, False, True] == [log.is_write(index) for index in range(6)]
        assert [None, None, None, b"A 0 1 4242", None, None] == [log.mark(index) for index in range(6)]


def test_what_happened_to_each_device(tmp_path: Path) -> None:
    with read_log(written_log(tmp_path / "log", ENTRIES)) as log:
        disk, journal = log.histories
        assert ([0, 4, 5], [0, 1024, 1024, 1536], [2, 5]) == tuple(
            map(list, (disk.changes, disk.bytes_before, disk.flushes))
        )
        assert ([1], [0, 512], []) == tuple(
            map(list, (journal.changes, journal.bytes_before, journal.flushes))
        )


def test_what_was_issued_before_a_position_and_complete_behind_it_was_on_its_way(tmp_path: Path) -> None:
    late = [0, 0, 2, 0, 4, 1]
    entries = [Written(sector=k, data=b"a" * 512, late=number) for k, number in enumerate(late)]
    with read_log(written_log(tmp_path / "log", entries)) as log:
        disk, journal = log.histories
        assert [(), (2, 4), (2, 4), (4,), (4,), (5,), ()] == [disk.in_flight(at) for at in range(7)]
        assert (True, False, ()) == (disk.has_late, journal.has_late, journal.in_flight(3))


def test_nothing_is_later_than_the_log_is_long(tmp_path: Path) -> None:
    with pytest.raises(OutputNotUnderstood, match=r"entry 1: .*1 entries before it or fewer"):
        read_log(written_log(tmp_path / "log", [FLUSHED, Written(data=b"a" * 512, late=2)]))


def test_marks_are_found_by_their_text(tmp_path: Path) -> None:
    marks = [Written(flags=MARK, text=text) for text in (b"begin", b"A 1 1 1", b"begin")]
    with read_log(written_log(tmp_path / "log", marks)) as log:
        assert (0, 2, None) == (log.find_mark(b"begin"), log.find_mark(b"begin", 1), log.find_mark(b"begi"))


def test_the_time_of_a_cut_is_that_of_the_last_entry_that_has_one(tmp_path: Path) -> None:
    with read_log(written_log(tmp_path / "log", ENTRIES)) as log:
        assert [None, 5, 6, 7, 8, 8, 8] == [log.time_before(position) for position in range(7)]


def test_the_kernels_longest_mark_has_no_room_for_a_time(tmp_path: Path) -> None:
    text = b"m" * 479
    path = tmp_path / "log"
    head = struct.pack("<QQQI", 0x6A736677736872, 1, 1, 512).ljust(512, b"\0")
    path.write_bytes(head + (struct.pack("<QQQQ", 0, 0, MARK, 479) + text).ljust(512, b"\0"))
    with read_log(path) as log:
        assert (text, None) == (log.mark(0), log.entry(0).time_ns)


def test_qemus_log_gives_the_disk_that_qemu_left(tmp_path: Path) -> None:
    # qemu-storage-daemon 7.2, blklogwrites over a file of 8 MiB: writes, fsyncs, a hole, a zeroed range.
    path = tmp_path / "log"
    path.write_bytes(gzip.decompress((GOLDEN / "qemu-7.2-blklogwrites.log.gz").read_bytes()))
    with read_log(path) as log:
        assert [0, 0, FLUSH, 0, DISCARD, 0, FLUSH, 0, FLUSH] == list(log.flags)
        assert {None} == {log.entry(index).time_ns for index in range(len(log))}
        end = CutPoint(0, len(log), Profile.ORDERED, Placement.UNIFORM, 0)
        built = rebuild(log, end, tmp_path, [8 * MIB], window_bytes=8 * MIB)
    assert (
        "941ae83f3d8b3c2c20831a7a9ced53de0d29183f96d90f7e78ffdfe124a78c3a"
        == hashlib.sha256(built.disk.read_bytes()).hexdigest()
    )


@settings(deadline=None)
@given(cut=st.integers(0, 10**6))
def test_a_killed_recorders_log_is_read_up_to_its_last_whole_entry(
    cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = written_log(tmp_path_factory.mktemp("log") / "log", ENTRIES, count=0)
    content = path.read_bytes()
    kept = 512 + cut % (len(content) - 511)
    path.write_bytes(content[:kept])
    ends, at = [], 512
    for entry in ENTRIES:
        at += 512 + len(entry.data)
        ends.append(at)
    with read_log(path) as log:
        assert sum(end <= kept for end in ends) == len(log)


def test_room_that_a_killed_recorder_never_used_holds_no_entries(tmp_path: Path) -> None:
    path = written_log(tmp_path / "log", ENTRIES, count=0)
    path.write_bytes(path.read_bytes() + bytes(65536))
    with read_log(path) as log:
        assert len(ENTRIES) == len(log)


def test_a_log_that_lost_its_end_is_refused(tmp_path: Path) -> None:
    path = written_log(tmp_path / "log", ENTRIES)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(OutputNotUnderstood, match=r"expected 6 entries, found 'the file ends after 5'"):
        read_log(path)


@pytest.mark.parametrize(
    ("at", "content", "expected"),
    [
        (0, b"\0", "magic"),
        (8, b"\2", "version 1"),
        (24, struct.pack("<I", 0), "a sector of 512"),
        (24, struct.pack("<I", 513), "a sector of 512"),
        (512 + 16, b"\x20", "entry 0: expected flags within"),
        (512 + 40, b"\2", "entry 0: expected device 0 or 1"),
        (512 + 16, b"\x08", "entry 0: expected a mark within its sector"),
    ],
)
def test_what_is_no_such_log_is_refused(tmp_path: Path, at: int, content: bytes, expected: str) -> None:
    path = written_log(tmp_path / "log", ENTRIES)
    whole = bytearray(path.read_bytes())
    whole[at : at + len(content)] = content
    whole[512 + 24 : 512 + 32] = struct.pack("<Q", 500)  # no writer's data have a length of their own
    path.write_bytes(whole)
    with pytest.raises(OutputNotUnderstood, match=expected):
        read_log(path)


@pytest.mark.parametrize("size", [0, 511])
def test_less_than_a_superblock_is_no_log(tmp_path: Path, size: int) -> None:
    (tmp_path / "log").write_bytes(bytes(size))
    with pytest.raises(OutputNotUnderstood, match=f"found '{size} bytes'"):
        read_log(tmp_path / "log")


_NUMBER = st.one_of(st.integers(0, 9), st.integers(0, 2**64 - 1))
_HEADER = st.builds(
    lambda numbers, device, rest: struct.pack("<QQQQQI", *numbers, device) + rest,
    st.tuples(_NUMBER, _NUMBER, st.one_of(st.integers(0, 31), _NUMBER), _NUMBER, _NUMBER),
    st.one_of(st.integers(0, 1), st.integers(0, 2**32 - 1)),
    st.binary(min_size=468, max_size=468),
)


@settings(deadline=None)
@given(headers=st.lists(_HEADER, max_size=6), count=st.integers(0, 8))
def test_garbage_is_understood_or_refused(
    headers: list[bytes], count: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    head = struct.pack("<QQQI", 0x6A736677736872, 1, count, 512).ljust(512, b"\0")
    path.write_bytes(head + b"".join(headers))
    try:
        with read_log(path) as log:
            assert len(log) == count or (count == 0 and len(log) <= len(headers))
    except OutputNotUnderstood:
        pass
