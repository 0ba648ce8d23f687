"""`copy` of a pgbench workload: a data directory fixes levels, and one that cannot be copied is refused before anything is touched."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.studies.own_data_plan import own_data_plan

from bedplate.engines.postgresql.own_data import CATALOGUES, read_control_file
from bedplate.errors import BedplateError
from bedplate.model.cell import Dataset
from bedplate.model.levels import Levels
from bedplate.model.plan import Plan
from bedplate.model.reason import sentences
from bedplate.plan.estimate import device_bytes_needed
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan
from bedplate.units import MIB
from bedplate.workloads.pgbench.own_files import demand_unchanged

ReasonsOf = Callable[..., tuple[str, ...]]
COPY = 'copy = "data"\ndatabase = "shop"'
_SHUT_DOWN, _IN_RECOVERY, _IN_PRODUCTION = 1, 2, 6


def control(
    *,
    state: int = _SHUT_DOWN,
    catalogue: int = CATALOGUES[18],
    sizes: tuple[int, int, int] = (8192, 8192, 16 * MIB),
    checksums: int = 1,
    name_bytes: int = 64,
    float_format: bytes = struct.pack("<d", 1234567.0),
) -> bytes:
    """A control file as PostgreSQL 18 writes it, as far as it is read (src/include/catalog/pg_control.h)."""
    block, wal_block, segment = sizes
    start = struct.pack("<QIII", 7_000_000_000_000_000_001, 1800, catalogue, state)
    behind = struct.pack(
        "<8I?3xI", block, 2**30 // block, wal_block, segment, name_bytes, 32, 1996, 2048, True, checksums
    )
    return (start.ljust(224, b"\3") + float_format + behind).ljust(8192, b"\0")


_STARTED: list[subprocess.Popen[bytes]] = []


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder with a script and a data directory as far as a plan looks at it; what works in it ends with the test."""
    (tmp_path / "mine.sql").write_text("SELECT 1;\n")
    (tmp_path / "data/global").mkdir(parents=True)
    (tmp_path / "data/PG_VERSION").write_text("18\n")
    (tmp_path / "data/global/pg_control").write_bytes(control())
    yield tmp_path
    for process in _STARTED:
        process.kill()
        process.wait()
    _STARTED.clear()


def plan_of(place: Path, lines: str = COPY, engine: str = "") -> Plan:
    return load_plan(own_data_plan(lines, engine), source="p.toml", directory=place)


def test_a_data_directory_is_a_dataset_with_what_its_files_are(place: Path) -> None:
    plan = plan_of(place)
    (levels,) = plan.workloads[0].datasets
    assert ("data", "shop", 8192 + 3) == (levels["copy"], levels["database"], levels["source_bytes"])
    assert (18, 8192, True) == (
        levels["version_fixed"],
        levels["block_bytes_fixed"],
        levels["data_checksums_fixed"],
    )
    dataset = Dataset("pgbench", levels)
    assert "fixed" not in dataset.words
    (cell,) = expand(plan, None).cells
    assert device_bytes_needed(cell.cell, cell.loads[0]) > 8192
    assert {str(place / "data")} == set(plan.archives.values())
    assert ["keeps no data" in each for each in plan.warnings if "workload.copy" in each] == [True]


@pytest.mark.parametrize(
    ("fixed", "engine", "words"),
    [
        ({}, 'version = "17"', 'is of PostgreSQL 18, not 17; version = "18" in [postgresql] fits it'),
        ({}, 'block_size = "4 kB"', 'block_size of 8 KiB, not 4 KiB; block_size = "8 kB"'),
        ({}, 'wal_block_size = "16 kB"', 'wal_block_size = "8 kB" in [postgresql]'),
        ({"checksums": 0}, "", "has no checksums; data_checksums = false"),
        ({}, "data_checksums = false", "has checksums; data_checksums = true"),
        ({"sizes": (8192, 8192, 64 * MIB)}, "", 'has WAL segments of 64 MiB; min_wal_size = "128MB" or more'),
    ],
)
def test_a_cell_that_asks_for_other_files_is_pruned_with_the_line_that_fits(
    place: Path, fixed: Mapping[str, Any], engine: str, words: str
) -> None:
    (place / "data/global/pg_control").write_bytes(control(**fixed))
    expansion = expand(plan_of(place, engine=f"[postgresql]\n{engine}"), None)
    assert () == expansion.cells
    (pruned,) = expansion.pruned
    (reason,) = sentences(pruned.reasons)
    assert words in reason


def test_what_fits_runs_beside_what_is_pruned_and_another_dataset_runs_everywhere(place: Path) -> None:
    blocks = '[postgresql]\nblock_size = { vary = ["4 kB", "8 kB"] }'
    expansion = expand(plan_of(place, engine=blocks), None)
    assert ([8192], [4096]) == (
        [each.cell.build.block_size_bytes for each in expansion.cells],
        [each.cell.build.block_size_bytes for each in expansion.pruned],
    )
    both = own_data_plan(COPY, blocks) + '[[workload]]\ntype = "pgbench"\nscale = 3\n'
    expansion = expand(load_plan(both, source="p.toml", directory=place), None)
    assert () == expansion.pruned
    assert {4096: 1, 8192: 2} == {
        each.cell.build.block_size_bytes: len(each.loads) for each in expansion.cells
    }
    segments = '[postgresql.settings]\nmin_wal_size = "128MB"'
    (place / "data/global/pg_control").write_bytes(control(sizes=(8192, 8192, 64 * MIB)))
    assert () == expand(plan_of(place, engine=segments), None).pruned


LABEL = (
    "START WAL LOCATION: 0/{0}000028 (file 00000001000000000000000{0})\nCHECKPOINT LOCATION: 0/{0}000060\n"
)


def _running(data: Path) -> None:
    # A process that works there, as a postmaster does.
    work = subprocess.Popen(["/bin/sleep", "60"], cwd=data)
    _STARTED.append(work)
    (data / "postmaster.pid").write_text(f"{work.pid}\n{data}\n")


def _not_ended(data: Path) -> None:
    (data / "postmaster.pid").write_text(f"{os.getpid()}\n{data}\n")


def _backup(data: Path, label: str = LABEL.format(2), manifest: str | None = None) -> None:
    (data / "global/pg_control").write_bytes(control(state=_IN_PRODUCTION))
    (data / "backup_label").write_text(label)
    (data / "pg_wal").mkdir()
    (data / "pg_wal/000000010000000000000002").write_bytes(b"wal")
    if manifest is not None:
        (data / "backup_manifest").write_text(manifest)


def _manifest(**sizes: int) -> str:
    files = {"PG_VERSION": 3, "global/pg_control": 8192, "backup_label": len(LABEL.format(2)), **sizes}
    return json.dumps({"Files": [{"Path": name, "Size": size} for name, size in files.items()]})


def _stale(data: Path) -> None:
    _backup(data)
    (data / "global/pg_control").write_bytes(control(state=_SHUT_DOWN))


def _with_more(data: Path) -> None:
    _backup(data, manifest=_manifest())
    (data / "more").touch()


def _archived(data: Path) -> None:
    for path in data.rglob("*"):
        if path.is_file():
            path.unlink()
    for path in (data / "global", data):
        path.rmdir()
    data.write_bytes(b"tar")


def _linked(data: Path) -> None:
    (data / "global/pg_control").unlink()
    (data / "global/pg_control").symlink_to("/dev/zero")


def _told_of(data: Path, first: str) -> None:
    (data / "postmaster.pid").write_text(first)


def _deep(data: Path) -> None:
    for _ in range(1500):
        data = data / "d"
        data.mkdir()


def _piped(data: Path) -> None:
    _backup(data)
    (data / "backup_manifest").unlink(missing_ok=True)
    os.mkfifo(data / "backup_manifest")


def _endless(data: Path) -> None:
    _backup(data, manifest="{")
    # Of no blocks.
    os.truncate(data / "backup_manifest", 2**40)


@pytest.mark.parametrize(
    ("done", "words"),
    [
        (
            lambda data: _told_of(data, "root:$y$j9T$\x1b[2J" * 50_000),
            "(postmaster.pid is there, and its process ? is not",
        ),
        (_deep, "it cannot be read: folders lie more than 8 deep"),
        (_piped, "its backup_manifest cannot be read: it is no file"),
        (_endless, "its backup_manifest has more than 128 MiB, and is not read;"),
        (lambda data: _backup(data, manifest="[" * 100_000), "backup_manifest is damaged"),
        (
            lambda data: _backup(data, manifest='{"Files": [{"Path": "\\u0000", "Size": 3}]}'),
            "backup_manifest is damaged",
        ),
        (
            lambda data: _backup(data, manifest=_manifest(**{"n" * 10_000: 1})),
            f"does not fit its files: {'n' * 80}… is missing;",
        ),
        (_running, "its server runs (process "),
        (_not_ended, "did not end well, or runs in a container or on another machine"),
        (_archived, "it is a file; unpack a backup first"),
        (_stale, "its backup_label is stale: a server was shut down on these files"),
        (
            lambda data: _backup(data, LABEL.format(3)),
            "begins with the WAL file 000000010000000000000003, which is not in pg_wal",
        ),
        (lambda data: _backup(data, "START"), "its backup_label is damaged"),
        (lambda data: _backup(data, manifest="{"), "its backup_manifest is damaged"),
        (
            lambda data: _backup(data, manifest='{"Files": [{"Path": 3, "Size": 3}]}'),
            "backup_manifest is damaged",
        ),
        (
            lambda data: _backup(data, manifest=_manifest(PG_VERSION=4, gone=1, lost=2, away=3)),
            "does not fit its files: PG_VERSION has 3 bytes, not 4, gone is missing, lost is missing and 1 more;",
        ),
        (
            _with_more,
            "does not fit its files: more is not in it;",
        ),
        (
            lambda data: _backup(data, manifest='{"System-Identifier": 5, "Files": []}'),
            "is of another cluster (number 5, the files are of 7000000000000000001)",
        ),
        (control(state=_IN_PRODUCTION), "was not shut down; start it and shut it down"),
        (control(state=_IN_RECOVERY), "was a standby; promote it"),
        (control(catalogue=202504091), "it is of a beta, or of another server"),
        (control(name_bytes=128), "compiled with other limits"),
        (control(float_format=struct.pack(">d", 1234567.0)), "damaged, or of another architecture"),
        (control()[:230], "damaged, or of another architecture"),
        (b"", "damaged"),
        (_linked, "pg_control or PG_VERSION cannot be read: it is no file"),
        (
            lambda data: (data / "PG_VERSION").write_text("14\n"),
            "of version 14; bedplate builds 15, 16, 17, 18",
        ),
        (lambda data: (data / "PG_VERSION").unlink(), "it is no data directory"),
    ],
)
def test_what_cannot_be_copied_is_refused(
    place: Path, done: Callable[[Path], Any] | bytes, words: str, reasons_of: ReasonsOf
) -> None:
    if isinstance(done, bytes):
        (place / "data/global/pg_control").write_bytes(done)
    else:
        done(place / "data")
    (reason,) = reasons_of(own_data_plan(COPY))
    # What is too deep for shutil is too deep for who tidies up.
    subprocess.run(["rm", "-rf", place / "data"], check=True)
    assert words in reason


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('copy = "data"', 'database = "shop" names the one'),
        ('database = "shop"', "copy and database belong together"),
        (f"{COPY}\nscale = 10", "copy brings others; take one out"),
        (f'{COPY}\nprepare = "mine.sql"', "run behind the restore of a dump"),
        ('copy = "data"\ndatabase = ""', "allowed is the name of a database"),
        (f'copy = "data"\ndatabase = "{"ü" * 40}"', "of 1 to 63 bytes"),
        ('copy = "nowhere"\ndatabase = "shop"', "it is no data directory"),
        ('copy_of = "data"\ndatabase = "shop"', "copy"),
    ],
)
def test_a_call_that_is_wrong_is_refused_in_a_sentence(
    place: Path, lines: str, words: str, reasons_of: ReasonsOf
) -> None:
    del place
    assert words in reasons_of(own_data_plan(lines))[0]


def test_a_base_backup_is_another_state_by_its_label(place: Path) -> None:
    data = place / "data"
    _backup(data, manifest=_manifest())
    before = read_control_file(data).digest
    assert plan_of(place)
    (data / "pg_wal/000000010000000000000003").touch()
    (data / "backup_label").write_text(LABEL.format(3))
    assert before != read_control_file(data).digest
    # A server ran on it: it renamed the label, and the manifest is of what was there before.
    (data / "backup_label").rename(data / "backup_label.old")
    (data / "global/pg_control").write_bytes(control())
    assert plan_of(place)


def _written(data: Path) -> None:
    path = data / "PG_VERSION"
    path.write_bytes(path.read_bytes())


@pytest.mark.parametrize(
    "done",
    [_written, lambda data: (data / "global/1262").touch(), lambda data: (data / "pg_xact/0000").unlink()],
)
def test_files_that_changed_since_the_plan_was_read_are_noticed(
    place: Path, done: Callable[[Path], None]
) -> None:
    data = place / "data"
    (data / "pg_xact").mkdir()
    (data / "pg_xact/0000").write_bytes(b"xact")
    for path in data.rglob("*"):
        os.utime(path, (1, 1))
    (levels,) = plan_of(place).workloads[0].datasets
    # What is not copied may change.
    (data / "postgresql.conf").touch()
    (data / "log").mkdir()
    (data / "log/today").touch()
    demand_unchanged(data, levels)
    done(data)
    with pytest.raises(BedplateError, match=r"copy = data is not what it was .*: files were written"):
        demand_unchanged(data, levels)
    # A study that was begun before this was noted goes on as it began.
    demand_unchanged(data, Levels({name: value for name, value in levels.items() if name != "files_fixed"}))


def test_a_server_that_ran_since_is_noticed_and_a_study_keeps_a_note(
    place: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    plan = plan_of(place)
    (levels,) = plan.workloads[0].datasets
    demand_unchanged(place / "data", levels)
    later = bytearray(control())
    later[100] += 1
    (place / "data/global/pg_control").write_bytes(later)
    with pytest.raises(BedplateError, match="is not what it was when the plan was read"):
        demand_unchanged(place / "data", levels)
    _not_ended(place / "data")
    with pytest.raises(BedplateError, match="copy = data: its server did not end well"):
        demand_unchanged(place / "data", levels)
    kept = tmp_path_factory.mktemp("kept")
    for name, text in plan.files.items():
        (kept / name).parent.mkdir(exist_ok=True)
        (kept / name).write_text(text)
    assert plan.digest == plan_of(kept).digest


def test_what_no_visit_would_copy_is_refused_by_the_plan_all_at_once(place: Path) -> None:
    (place / "data/pg_wal").symlink_to(place)
    (place / "data/pg_tblspc").mkdir()
    (place / "data/pg_tblspc/16400").symlink_to("/srv/ts")
    os.mkfifo(place / "data/pipe")
    with pytest.raises(BedplateError) as raised:
        plan_of(place)
    said = str(raised.value)
    for words in (
        "its pg_wal is a link",
        "pg_basebackup",
        "tablespaces (16400)",
        "pg_default",
        "its pipe is a link or no",
    ):
        assert words in said
