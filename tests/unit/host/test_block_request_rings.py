"""What the kernel's ring of a tracepoint says: whole requests, wherever the ring begins anew, and how many were lost."""

from __future__ import annotations

import mmap
import os
import platform
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bedplate.host import block_requests
from bedplate.host.block_requests import (
    BlockRequest,
    CallsNotCounted,
    CallTrace,
    Hit,
    RequestTrace,
    Tracepoint,
    request_trace,
    ring_bytes_for,
    tracepoints,
)
from bedplate.units import KIB, MIB

FIELDS = {
    "common_pid": (4, 4),
    "dev": (8, 4),
    "sector": (16, 8),
    "nr_sector": (24, 4),
    "rwbs": (28, 10),
    "comm": (38, 16),
}
# No process has that number: it is above the kernel's most (PID_MAX_LIMIT).
GONE = 2**22 + 1
RING = 2 * 1024 * 1024


def sample(time_ns: int, flags: str, sector: int, *, thread: int = GONE) -> bytes:
    # The number in the tracepoint's own fields is that of the machine, which a container does not know.
    raw = struct.pack("=4xII4xQI10s16s6x", 1, 7 << 20 | 3, sector, 8, flags.encode(), b"writer")
    content = struct.pack("=IIQI", thread, thread, time_ns, len(raw)) + raw
    return struct.pack("=IHH", 9, 0, 8 + len(content)) + content


def lost(number: int) -> bytes:
    content = struct.pack("=QQ", 1, number)
    return struct.pack("=IHH", 2, 0, 8 + len(content)) + content


class Ring:
    """A ring as the kernel fills it; what was read is room again."""

    def __init__(self, begin: int) -> None:
        self.memory = bytearray(mmap.PAGESIZE + RING)
        self.head = begin
        struct.pack_into("=QQ", self.memory, 1024, begin, begin)
        self.reader = block_requests._Ring(Tracepoint(1, FIELDS), 0, "", is_done=False)
        self.reader._memory = cast("Any", self.memory)

    def say(self, *records: bytes) -> None:
        for byte in b"".join(records):
            self.memory[mmap.PAGESIZE + self.head % RING] = byte
            self.head += 1
        struct.pack_into("=Q", self.memory, 1024, self.head)

    def requests(self) -> list[BlockRequest]:
        return [self.reader.request(each) for each in self.reader.samples() if isinstance(each, Hit)]

    @property
    def tail(self) -> int:
        (found,) = struct.unpack_from("=Q", self.memory, 1032)
        return int(found)


def test_a_thread_that_has_ended_or_is_outside_of_the_container_has_no_number() -> None:
    ring = Ring(0)
    ring.say(sample(5, "W", 8, thread=2**32 - 1), sample(6, "W", 16, thread=0))
    assert [0, 0] == [each.thread for each in ring.requests()]


def test_requests_are_read_once_and_across_the_end_of_the_ring() -> None:
    ring = Ring(RING - 20)
    ring.say(sample(5, "FWFS", 77), sample(6, "WFS", 88))
    found = ring.requests()
    assert [
        BlockRequest(5, 7 << 20 | 3, "FWFS", 77, 8, is_done=False, thread=GONE, name="writer"),
        BlockRequest(6, 7 << 20 | 3, "WFS", 88, 8, is_done=False, thread=GONE, name="writer"),
    ] == found
    assert ring.head == ring.tail
    assert [] == ring.requests()
    ring.say(sample(7, "FWS", 0))
    assert [7] == [each.time_ns for each in ring.requests()]


def test_a_trace_that_lost_requests_is_none() -> None:
    ring = Ring(0)
    ring.say(sample(5, "FWS", 0), lost(3))
    trace = RequestTrace((1,), ())
    trace._rings = [ring.reader]
    trace._ended.set()
    trace._read()
    with pytest.raises(CallsNotCounted, match="3 requests were lost"):
        assert trace.requests


def test_who_asked_is_looked_up_while_the_trace_runs() -> None:
    ring = Ring(0)
    ring.say(sample(5, "W", 8))
    trace = RequestTrace((1,), ())
    trace._rings = [ring.reader]
    trace._ended.set()
    trace._read()
    assert {GONE: None} == trace.titles
    assert ["writer"] == [each.name for each in trace.requests]


def call(time_ns: int, process: int, kind: str, *words: int) -> bytes:
    number = next(number for number, name in block_requests._BY_NUMBER["x86_64"].items() if name == kind)
    raw = struct.pack("=8xq6Q", number, *words, *(0,) * (6 - len(words)))
    content = struct.pack("=IIQI", process, process, time_ns, len(raw)) + raw
    return struct.pack("=IHH", 9, 0, 8 + len(content)) + content


def fork(process: int, parent: int) -> bytes:
    return struct.pack("=IHHIIIIQ", 7, 0, 32, process, parent, process, parent, 0)


def traced_calls(monkeypatch: pytest.MonkeyPatch, mount_point: str, *records: bytes) -> list[str]:
    """What a trace keeps of these, whose own process is none of them."""
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    ring = Ring(0)
    ring.say(*records)
    trace = CallTrace(Tracepoint(1, {"id": (8, 8), "args": (16, 48)}), Path(mount_point))
    trace._is_own = {}
    trace._rings = [ring.reader]
    trace._ended.set()
    trace._read()
    return [each.kind for each in trace.calls]


def test_calls_are_told_by_their_arguments_too(monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.getpid()
    found = traced_calls(
        monkeypatch,
        "/",
        call(9, own, "unlink"),
        call(1, own, "openat", 0, 0, os.O_RDWR),
        call(2, own, "openat", 0, 0, os.O_RDWR | os.O_CREAT),
        call(3, own, "openat", 0, 0, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        call(4, own, "open", 0, os.O_CREAT),
        call(5, own, "allocate", 0, 0),
        call(6, own, "allocate", 0, 1),
        call(7, own, "allocate", 0, 3),
    )
    assert ["create", "truncate", "create", "allocate", "allocate", "punch", "unlink"] == found


def test_calls_of_whoever_sees_the_mount_count_and_of_those_that_they_began(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = os.getpid()
    of_all = (
        fork(GONE, own),
        call(1, own, "rename"),
        call(2, GONE, "unlink"),
        call(3, GONE + 1, "link"),
        fork(GONE, own),
    )
    assert ["rename", "unlink"] == traced_calls(monkeypatch, "/", *of_all)
    assert [] == traced_calls(monkeypatch, "/nobody/mounted/this", *of_all)


def test_a_trace_that_lost_calls_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CallsNotCounted, match="2 calls were lost"):
        traced_calls(monkeypatch, "/", lost(2))


@pytest.mark.parametrize(
    ("rings", "size"), [(2, 2 * MIB), (32, 2 * MIB), (33, MIB), (256, 256 * KIB), (4096, 128 * KIB)]
)
def test_many_processors_share_the_memory_of_few(rings: int, size: int) -> None:
    assert size == ring_bytes_for(rings)


def test_fields_are_found_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "events/block/block_bio_queue"
    folder.mkdir(parents=True)
    (folder / "id").write_text("1234\n")
    (folder / "format").write_text(
        "format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
        "\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\tfield:char rwbs[10];\toffset:28;\tsize:10;\tsigned:0;\n"
    )
    monkeypatch.setattr(block_requests, "TRACEFS", (tmp_path,))
    unused = cast("Any", SimpleNamespace())
    (point,) = tracepoints(tmp_path / "unused", ("block/block_bio_queue",), ledger=unused, commands=unused)
    assert 1234 == point.number
    assert {"common_type": (0, 2), "dev": (8, 4), "rwbs": (28, 10)} == point.fields
    done = tmp_path / "events/block/block_rq_complete"
    done.mkdir()
    for name in ("id", "format"):
        (done / name).write_text((folder / name).read_text())
    with pytest.raises(CallsNotCounted, match="lack comm, nr_sector, sector"):
        request_trace((1,), tmp_path / "unused", ledger=unused, commands=unused)
