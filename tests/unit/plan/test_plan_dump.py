"""`dump` of a pgbench workload: what it comes to, what a study keeps of it, and what is refused before anything is touched."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.sources.toy_postgresql import toy_postgresql
from tests.support.studies.own_data_plan import own_data_plan

from bedplate.engines.postgresql.own_data import read_archive
from bedplate.host.git import GitRevisions
from bedplate.model.cell import Dataset
from bedplate.model.plan import Plan
from bedplate.plan.differences import differences
from bedplate.plan.estimate import StudyEstimate, device_bytes_needed, estimate
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan
from bedplate.plan.order import order
from bedplate.units import MIB
from bedplate.workloads.pgbench.model import RunScript, without_data
from bedplate.workloads.pgbench.plan import ESTIMATE
from bedplate.workloads.pgbench.visit import _TEMPORARY, _named_tables, _without_names

ReasonsOf = Callable[..., tuple[str, ...]]


def head(
    dump: str = "18.6 (Debian 18.6-3)", *, compression: int = 1, kind: int = 1, minor: int = 16
) -> bytes:
    """What an archive of pg_dump begins with, by pg_backup_archiver.c (WriteHead)."""

    def integer(value: int) -> bytes:
        return bytes([value < 0]) + abs(value).to_bytes(4, "little")

    def text(value: str) -> bytes:
        return integer(len(value)) + value.encode()

    compressed = bytes([compression]) if minor >= 15 else integer(compression)
    date = b"".join(map(integer, (1, 2, 3, 4, 5, 126, -1)))
    return (
        b"PGDMP"
        + bytes((1, minor, 0, 4, 8, kind))
        + compressed
        + date
        + text("shop")
        + text("17.2")
        + text(dump)
    )


def listed(*entries: str, minor: int = 16, offset_bytes: int | None = 8) -> bytes:
    """The list behind a head (WriteToc): each entry as its kind and its name."""

    def integer(value: int) -> bytes:
        return bytes([value < 0]) + abs(value).to_bytes(4, "little")

    def text(value: str) -> bytes:
        return integer(len(value)) + value.encode()

    none = integer(-1)
    found = integer(len(entries))
    for number, entry in enumerate(entries):
        kind, _, name = entry.rpartition(" ")
        found += integer(number + 1) + integer(0) + text("3079") + text("16386") + text(name) + text(kind)
        # Section, definition, drop, copy, schema, tablespace, method of access, kind, owner, no OIDs, what it depends on.
        found += integer(2) + text(f"CREATE {entry};\n") + text("DROP") + none + text("public") + none
        found += (none if minor >= 14 else b"") + (integer(0) if minor >= 16 else b"")
        found += text("me") + text("false") + text("5") + text("6") + none
        found += text("") if offset_bytes is None else bytes(1 + offset_bytes)
    return found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a script and an archive."""
    (tmp_path / "mine.sql").write_text("SELECT 1;\n")
    (tmp_path / "mine.dump").write_bytes(head() + b"rest")
    return tmp_path


def plan_of(place: Path, lines: str) -> Plan:
    return load_plan(own_data_plan(lines), source="p.toml", directory=place)


def test_an_archive_is_a_dataset_by_its_checksum(place: Path) -> None:
    (place / "after.sql").write_text("CREATE INDEX ON t (a);\n")
    plan = plan_of(place, 'dump = "mine.dump"\nprepare = "after.sql"')
    (workload,) = plan.workloads
    (levels,) = workload.datasets
    assert ((), "mine.dump", "CREATE INDEX ON t (a);\n") == (
        workload.scales,
        levels["dump"],
        levels["prepare_text"],
    )
    dataset = Dataset("pgbench", levels)
    # Neither checksums nor texts are read by people.
    assert dataset.id.startswith("pgbench-dump-mine.dump-source-bytes")
    assert "CREATE" not in dataset.words
    (cell,) = expand(plan, None).cells
    assert device_bytes_needed(cell.cell, cell.loads[0]) > 64 * MIB
    assert {str(place / "mine.dump")} == set(plan.archives.values())
    (warning,) = [each for each in plan.warnings if "dump" in each]
    assert "keeps no data" in warning


def test_what_a_dump_takes_beforehand_is_reckoned_for_each_build_and_more_in_a_guest(place: Path) -> None:
    text = own_data_plan('dump = "mine.dump"').replace('"ext4"', '{ vary = ["ext4", "xfs"] }')
    blocks = '[postgresql]\nblock_size = { vary = ["4 kB", "8 kB"] }\n'

    def estimated(text: str, executor: str = "local") -> StudyEstimate:
        plan = load_plan(text, source="p.toml", directory=place)
        expansion = expand(plan, None)
        return estimate(plan, expansion, order(plan, expansion, executor=executor), executor=executor)

    one, two = estimated(text), estimated(text + blocks)
    assert 64 * MIB < one.data_bytes < 65 * MIB
    assert (2 * one.data_bytes, 2 * one.data_seconds) == (two.data_bytes, two.data_seconds)
    assert one.data_seconds > 5
    assert (
        0
        == estimated(
            text.replace('dump = "mine.dump"', "scale = 1").replace('"mine.sql"', '"read-only"')
        ).data_seconds
    )
    (cell, load), *_ = expand(load_plan(text, source="p.toml", directory=place), None).by_visit.values()
    here, in_guest = (
        ESTIMATE.load_seconds(cell, load.dataset, emulated=emulated) for emulated in (False, True)
    )
    assert in_guest > here > 0.5


def test_another_archive_of_the_same_name_is_another_dataset_and_its_place_decides_nothing(
    place: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    first = plan_of(place, 'dump = "mine.dump"')
    other = tmp_path_factory.mktemp("other")
    for name in ("mine.sql", "mine.dump"):
        (other / name).write_bytes((place / name).read_bytes())
    assert first.digest == plan_of(other, 'dump = "mine.dump"').digest
    (other / "mine.dump").write_bytes(head() + b"changed")
    changed = plan_of(other, 'dump = "mine.dump"')
    assert first.digest != changed.digest
    told = " ".join(differences(first, changed))
    assert "added" in told
    assert "taken out" in told
    (other / "after.sql").write_text("DROP TABLE t;\n")
    prepared = plan_of(other, 'dump = "mine.dump"\nprepare = "after.sql"')
    told = " ".join(differences(changed, prepared))
    assert "prepare_text" in told
    assert "DROP" not in told


def test_a_study_keeps_a_note_in_the_place_of_the_archive(
    place: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    plan = plan_of(place, 'dump = "mine.dump"')
    kept = tmp_path_factory.mktemp("kept")
    for name, text in plan.files.items():
        (kept / name).parent.mkdir(exist_ok=True)
        (kept / name).write_text(text)
    assert {"mine.sql"} == {name for name in plan.files if not name.startswith("dumps/")}
    again = plan_of(kept, 'dump = "mine.dump"')
    assert (plan.digest, plan.files) == (again.digest, again.files)
    (note,) = (kept / "dumps").iterdir()
    note.write_text("[]")
    with pytest.raises(Exception, match="note of it"):
        plan_of(kept, 'dump = "mine.dump"')


def test_a_directory_is_known_by_all_of_its_files(place: Path) -> None:
    parts = place / "parts"
    parts.mkdir()
    (parts / "toc.dat").write_bytes(head(kind=3))
    (parts / "1.dat.gz").write_bytes(b"rows")
    before = read_archive(parts)
    assert ("gzip", 18, len(head()) + 4) == (before.compression, before.major, before.size_bytes)
    (parts / "1.dat.gz").write_bytes(b"rowS")
    assert before.sha256 != read_archive(parts).sha256
    (parts / "link").symlink_to("/etc/passwd")
    with pytest.raises(ValueError, match="no regular file"):
        read_archive(parts)


@pytest.mark.parametrize(
    ("minor", "number", "expected"), [(14, 0, "none"), (14, -1, "gzip"), (16, 0, "none")]
)
def test_compression_of_every_format_is_known(place: Path, minor: int, number: int, expected: str) -> None:
    (place / "mine.dump").write_bytes(head(minor=minor, compression=number))
    assert expected == read_archive(place / "mine.dump").compression


@pytest.mark.parametrize("minor", [12, 13, 14, 15, 16])
@pytest.mark.parametrize("is_directory", [False, True])
def test_extensions_stand_in_the_list_of_every_format(place: Path, minor: int, is_directory: bool) -> None:
    names = (
        "TABLE t",
        "EXTENSION uuid-ossp",
        "TABLE DATA t",
        "EXTENSION hstore",
        "PROCEDURAL LANGUAGE plperl",
    )
    content = head(minor=minor, kind=3 if is_directory else 1) + listed(
        *names, minor=minor, offset_bytes=None if is_directory else 8
    )
    archive = place / "shop"
    if is_directory:
        archive.mkdir()
    (archive / "toc.dat" if is_directory else archive).write_bytes(content)
    assert ("uuid-ossp", "hstore", "plperl") == read_archive(archive).extensions


@pytest.mark.parametrize("algorithm", [0, 1, 2, 3])
def test_an_archive_may_be_compressed_as_pg_dump_does(place: Path, algorithm: int) -> None:
    (place / "mine.dump").write_bytes(head(compression=algorithm) + listed("EXTENSION pgcrypto"))
    assert plan_of(place, 'dump = "mine.dump"').workloads


def test_a_list_that_is_damaged_is_left_to_pg_restore(place: Path) -> None:
    whole = head() + listed("EXTENSION hstore", "EXTENSION postgis")
    for content in (whole[:-40], head() + b"\0\xff\xff\xff\x7f" + b"\0\xff\xff\xff\x7f" * 20, head()):
        (place / "mine.dump").write_bytes(content)
        assert "postgis" not in read_archive(place / "mine.dump").extensions


def test_what_a_commit_has_is_not_known_before_it_is_built(place: Path) -> None:
    (place / "mine.dump").write_bytes(head() + listed("EXTENSION of_mine"))
    tree = toy_postgresql(place / "postgres")
    engine = f'[postgresql]\nsource = {{ tree = "{tree}", commit = "master" }}'
    text = own_data_plan('dump = "mine.dump"', engine)
    plan = load_plan(text, source="p.toml", directory=place, revisions=GitRevisions())
    assert plan.workloads


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty, or was truncated"),
        (b"--\n-- PostgreSQL database dump\n--\n\\! touch /tmp/x\n", "it is text, perhaps a plain dump"),
        (b"toc.dat\0\0\0", "archive in tar format"),
        (b"\x7fELF\0\0\0\0\0", "no archive of pg_dump"),
        (head()[:30], "it was truncated"),
        (head(kind=5), "damaged, or in a format other"),
        (head(compression=9), "compressed with algorithm 9"),
        (head(minor=11), "of a pg_dump before 9.0"),
        (head("x" * 2000), "more than 1000 bytes"),
        (head("19.1"), "was written by pg_dump 19"),
        (
            head() + listed("EXTENSION pg_trgm", "EXTENSION postgis", "TABLE t"),
            "does not have: postgis; dump without",
        ),
        (
            head() + listed("PROCEDURAL LANGUAGE plperl", "EXTENSION adminpack"),
            "does not have: adminpack, plperl;",
        ),
        (head(minor=14) + listed("EXTENSION vector", minor=14), "does not have: vector;"),
    ],
)
def test_what_is_no_archive_that_can_be_restored_is_refused(
    place: Path, content: bytes, words: str, reasons_of: ReasonsOf
) -> None:
    (place / "mine.dump").write_bytes(content)
    (reason,) = reasons_of(own_data_plan('dump = "mine.dump"'))
    assert words in reason


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('dump = "none.dump"', "there is no such file or directory"),
        ('dump = "."', "has no toc.dat"),
        (f'dump = "{"a" * 10_000}"', "allowed is the path of an archive"),
        (f'dump = "{"a" * 3_000}"', "cannot be read"),
        ("dump = 7", "allowed is the path of an archive"),
        ('dump = "mine.dump"\nscale = 10', "take one out"),
        ('prepare = "mine.sql"', "there is none"),
        ('dump = "mine.dump"\nprepare = "none.sql"', "there is no such file"),
        ('dump = "mine.dump"\nsettle = "VACUUM"', "there is no such file"),
        ('dump = "mine.dump"\nprepare = "shell.sql"', "bedplate starts no shell"),
    ],
)
def test_a_call_that_is_wrong_is_refused_in_a_sentence(
    place: Path, lines: str, words: str, reasons_of: ReasonsOf
) -> None:
    (place / "shell.sql").write_text("\\shell touch x\n")
    (reason,) = reasons_of(own_data_plan(lines))
    assert words in reason
    assert len(reason) < 700


def test_pgbench_s_own_scripts_and_default_runs_are_not_for_a_dump(
    place: Path, reasons_of: ReasonsOf
) -> None:
    text = own_data_plan('dump = "mine.dump"')
    (reason,) = reasons_of(text.replace('script = "mine.sql"', 'scripts = ["mine.sql", "read-write"]'))
    assert "read-write: pgbench's scripts are for its own tables" in reason
    (reason,) = reasons_of(text.partition("[[workload.run]]")[0])
    assert "run is missing" in reason


def test_an_older_version_in_the_plan_is_named(place: Path, reasons_of: ReasonsOf) -> None:
    text = own_data_plan('dump = "mine.dump"') + '[postgresql]\nversion = { vary = ["15", "18"] }\n'
    (reason,) = reasons_of(text)
    assert 'version = "15" restores none of a later version' in reason


def test_a_damaged_head_ends_in_a_sentence(tmp_path: Path) -> None:
    chance, whole, path = random.Random(7), head(), tmp_path / "mine.dump"
    for _ in range(500):
        content = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(content[: chance.randint(1, len(content))])
        with contextlib.suppress(ValueError):
            read_archive(path)


def test_what_pgbench_printed_is_kept_without_rows() -> None:
    text = (
        'pgbench: error: client 0 script 0 aborted in command 1 query 0: ERROR:  invalid input for "bob@example.org"\n'
        "DETAIL:  Key (email)=(bob\n@example.org) already exists.\nCONTEXT:  in a function\n"
        "pgbench: error: Run was aborted; the above results are incomplete.\n"
    )
    kept = without_data(text)
    assert "bob" not in kept
    assert "example" not in kept
    assert 'invalid input for "…"' in kept
    assert kept.endswith("Run was aborted; the above results are incomplete.\n")


def test_only_tables_that_a_script_names_are_named() -> None:
    scripts = (RunScript("mine", "INSERT INTO sessions VALUES (1);"),)
    tables = ["public.sessions", "public.secret", 'public."Own"']
    assert "public.sessions, 2 of the database's own" == _named_tables(tables, scripts)
    assert "1 of the database's own" == _named_tables(["public.secret"], scripts)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("CREATE TEMP TABLE own (n int);", True),
        ("create  temporary\nview v as select 1;", True),
        ("SELECT 1 INTO TEMP own;", True),
        ("INSERT INTO pg_temp.own VALUES (1);", True),
        ("CREATE TABLE temperature (n int);", False),
        ("INSERT INTO temp VALUES (1);", False),
    ],
)
def test_scripts_with_temporary_tables_are_known_by_their_text(text: str, found: bool) -> None:
    assert found is bool(_TEMPORARY.search(text))


def test_a_setting_of_a_role_is_kept_without_its_names() -> None:
    assert "a role or a database: synchronous_commit=off" == _without_names(
        "shop for app: writer: synchronous_commit=off"
    )
