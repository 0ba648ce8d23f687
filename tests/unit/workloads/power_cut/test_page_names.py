"""What engines call the parts of their files."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from bedplate.cuts.blame import WrittenPlace
from bedplate.filesystem.blocks import Owner
from bedplate.model.levels import Levels
from bedplate.model.visit import EngineBuild
from bedplate.visit.cuts import Subject
from bedplate.workloads.power_cut.tearing import ImageNames, log_files, page_names

PAGE = struct.pack("<IIHHHHHH", 0x1, 0xA2B3C0, 0, 0, 28, 8000, 8192, 8192 | 4).ljust(8192, b"\0")
META = struct.pack("<QHH", 1, 0, 8).ljust(16 + 128, b"\0") + struct.pack("<Q", 77)
BUILD = EngineBuild("/", "18.1", 32768, 8192, "0" * 64, "here", "cc", (), "1" * 64)
SEGMENT = "pg_wal/000000010000000A00000003"


def subject(engine: str, **settings: int) -> Subject:
    return Subject(engine, 1, Levels(settings), Levels())


def wal_page(address: int) -> bytes:
    return struct.pack("<HHIQ", 0xD116, 0, 1, address)


@pytest.mark.parametrize(
    ("engine", "path", "offset", "written", "expected"),
    [
        ("postgresql", "base/16384/16397", 8192 * 504, PAGE, "relation 16397, page 504, LSN 1/A2B3C0"),
        (
            "postgresql",
            "base/16384/16397",
            8192 * 504 + 4096,
            b"x" * 4096,
            "relation 16397, page 504, byte 4096 of it",
        ),
        ("postgresql", "base/16384/16397_vm", 0, b"", "relation 16397 (vm), page 0"),
        ("postgresql", "base/16384/16397.2", 8192, b"", f"relation 16397, page {2 * 2**17 + 1}"),
        ("postgresql", "pg_wal/000000010000000A00000003", 4096, b"", "WAL, byte 4096 of a segment"),
        ("postgresql", "global/pg_control", 0, b"", "the control file"),
        ("postgresql", "postgresql.conf", 0, b"", None),
        ("sqlite", "base", 0, b"SQLite format 3\0", "page 1, the database's header"),
        ("sqlite", "base", 8192, b"\x0d", "page 3, leaf of a table"),
        ("sqlite", "base-journal", 0, bytes.fromhex("d9d505f920a163d7"), "rollback journal, its header"),
        ("sqlite", "base-wal", 32 + 4120, b"", "WAL, frame 2"),
        ("lmdb", "data.mdb", 4096, META, "page 1, meta page of transaction 77"),
        ("lmdb", "data.mdb", 8192, struct.pack("<QHH", 2, 0, 2), "page 2, leaf page"),
        ("lmdb", "data.mdb", 8192, struct.pack("<QHH", 9, 0, 2), "page 2"),
        (
            "mariadb",
            "b/account.ibd",
            16384 * 120,
            struct.pack(">IIIIQ", 1, 120, 0, 0, 99),
            "page 120, log sequence number 99",
        ),
        ("mariadb", "ib_logfile0", 512, b"", "InnoDB's log"),
    ],
)
def test_a_part_has_the_engines_name(
    engine: str, path: str, offset: int, written: bytes, expected: str | None
) -> None:
    names = page_names(engine)
    assert names is not None
    assert expected == names.name(path, offset, written, {}, subject(engine))


@pytest.mark.parametrize(
    ("engine", "path", "place"),
    [
        ("postgresql", "data/pg_wal/000000010000000A00000003", WrittenPlace.ENGINE_LOG),
        ("postgresql", "data/base/5/16397", WrittenPlace.ENGINE),
        ("mariadb", "data/ib_logfile0", WrittenPlace.ENGINE_LOG),
        ("mariadb", "data/ibdata1", WrittenPlace.ENGINE),
        ("lmdb", "data/data.mdb", WrittenPlace.ENGINE),
        ("own-engine", "data/wal", WrittenPlace.ENGINE),
        ("postgresql", "neighbour/pg_wal/1", WrittenPlace.OTHER_FILE),
    ],
)
def test_a_write_to_the_engines_log_is_told_from_one_to_its_data(
    engine: str, path: str, place: WrittenPlace
) -> None:
    names = ImageNames((), None, log_files=log_files(engine))
    owner = Owner(WrittenPlace.OTHER_FILE, f"{path}, byte 0", path, 0, 0, 8)
    assert place is names._label(owner, bytes(8)).place


def test_a_relation_has_its_name_in_each_of_its_forks_and_segments() -> None:
    names = page_names("postgresql")
    assert names is not None
    called, whose = {"base/5/16397": "account", "base/5/16398": "a\nb"}, subject("postgresql")
    assert "relation account, page 1" == names.name("base/5/16397", 8192, b"", called, whose)
    assert "relation account (fsm), page 1" == names.name("base/5/16397_fsm", 8192, b"", called, whose)
    assert "relation account, page 131072" == names.name("base/5/16397.1", 0, b"", called, whose)
    assert "relation a?b, page 0" == names.name("base/5/16398", 0, b"", called, whose)
    assert "relation 16399, page 0" == names.name("base/5/16399", 0, b"", called, whose)


@pytest.mark.parametrize("engine", ["postgresql", "sqlite", "lmdb", "mariadb"])
@pytest.mark.parametrize("written", [b"", b"\0", b"\xff" * 7, b"\xff" * 64])
def test_bytes_of_any_kind_do_no_harm(engine: str, written: bytes) -> None:
    names = page_names(engine)
    assert names is not None
    for path in (
        "base/1/2",
        "pg_wal/000000010000000A00000003",
        "data.mdb",
        "x-wal",
        "x-journal",
        "x.ibd",
        "",
    ):
        names.name(path, 16384, written, {"pg_wal": "16 of something"}, subject(engine, page_size=-1))


def test_an_engine_of_others_has_none() -> None:
    assert page_names("own-engine") is None


@pytest.mark.parametrize(
    ("told", "written", "expected"),
    [
        (str(4 * 2**20), b"", "WAL at A/C02000"),
        (str(64 * 2**20), wal_page(0), "WAL at A/C002000"),
        (None, wal_page(0xA00C02000), "WAL at A/C02000"),
        # Where this page of an older segment stood, which was renamed since.
        (None, wal_page(0xA00902000), "WAL, byte 8192 of a segment"),
        ("much", bytes(16), "WAL, byte 8192 of a segment"),
    ],
)
def test_a_position_of_the_wal_follows_from_the_size_of_its_segments(
    told: str | None, written: bytes, expected: str
) -> None:
    names = page_names("postgresql")
    assert names is not None
    called = {} if told is None else {"pg_wal": told}
    assert expected == names.name(SEGMENT, 8192, written, called, subject("postgresql"))


@pytest.mark.parametrize(
    ("whose", "path", "expected"),
    [
        (subject("sqlite", page_size=512), "test.db", "page 129"),
        (subject("sqlite", page_size=65536), "test.db", "page 2"),
        (subject("sqlite", page_size=512), "test.db-wal", "WAL, frame 123"),
        (subject("mariadb", innodb_page_size=4096), "b/account.ibd", "page 16 of 4 kB"),
        (subject("mariadb"), "b/account.ibd", "page 4 of 16 kB"),
        (replace(subject("postgresql"), build=BUILD), "base/5/16397", "relation 16397, page 2"),
    ],
)
def test_pages_are_counted_by_the_size_of_the_cell(whose: Subject, path: str, expected: str) -> None:
    names = page_names(whose.engine)
    assert names is not None
    assert expected == names.name(path, 65536, b"", {}, whose)
