"""SQLite under both drivers: what is written is read back by SQLite itself, and planted damage is found."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.tools.patience import AT_MOST_S

from bedplate.campaign.preparation import prepare_drivers
from bedplate.engines.sqlite.visit import LIBSQLITE3
from bedplate.host.command import Commands
from bedplate.host.native_driver import library_requirement, library_version
from bedplate.visit.cuts import judge_document
from bedplate.workloads.microbenchmark.figures import BenchDocument, parse_document

pytestmark = [pytest.mark.host, pytest.mark.third_lane]


@pytest.fixture(scope="module")
def drivers() -> dict[str, str]:
    requirement = library_requirement(LIBSQLITE3, reason="the drivers of SQLite", commands=Commands())
    if not requirement.found:
        pytest.skip(requirement.sentence)
    return dict(prepare_drivers(["microbenchmark", "power_cut"], ["sqlite"]))


@pytest.fixture
def memory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bedplate-test-sqlite-", dir="/dev/shm") as folder:
        yield Path(folder)


def bench(drivers: dict[str, str], folder: Path, *words: str) -> tuple[int, BenchDocument]:
    argv = [
        drivers["microbenchmark_sqlite"],
        f"--directory={folder}",
        "--entries=3000",
        "--threads=2",
        *words,
    ]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=AT_MOST_S)
    assert done.stdout, done.stderr
    return done.returncode, parse_document(done.stdout)


def cut(drivers: dict[str, str], mode: str, folder: Path, *words: str) -> dict[str, Any]:
    argv = [drivers["power_cut_sqlite"], mode, f"--directory={folder}", *words]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=AT_MOST_S)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("journal_mode", ["delete", "truncate", "persist", "wal"])
def test_every_test_runs_and_every_pragma_is_what_was_set(
    drivers: dict[str, str], memory: Path, journal_mode: str
) -> None:
    tests = "fillrandsync,fillrandbatch,fillseqsync,fillseqbatch,overwrite,readrandom,readseq,readreverse,readwhilewriting"
    asked = {
        "journal_mode": journal_mode,
        "page_size": 8192,
        "cache_size": 2**20,
        "mmap_size": 2**20,
        "auto_vacuum": "full",
    }
    words = [f"--set={name}={level}" for name, level in asked.items()]
    status, found = bench(drivers, memory, f"--tests={tests}", "--flush-after", *words)
    assert (0, None) == (status, found.failure)
    assert library_version(LIBSQLITE3, commands=Commands()) == found.library.header
    for test in found.tests:
        assert asked.items() <= test.settings.items()
        assert (
            "full" if test.test.endswith("sync") or (test.prepare_ns is None and not test.flush_ns) else "off"
        ) == test.settings["synchronous"]
    counts = {test.test: test.operations for test in found.tests}
    assert (3000, 3000, 6000) == (counts["readseq"], counts["readreverse"], counts["readwhilewriting"])
    with closing(sqlite3.connect(memory / "test.db")) as database:
        assert ("ok",) == database.execute("PRAGMA integrity_check").fetchone()
        assert (3000,) == database.execute("SELECT count(*) FROM test").fetchone()
        assert (8192,) == database.execute("PRAGMA page_size").fetchone()


def test_a_wrong_setting_touches_nothing(drivers: dict[str, str], memory: Path) -> None:
    for words, said in (
        (["--set=page_size=1000"], "--set page_size takes a whole number from 512 to 65536, in steps of 512"),
        (["--set=journal_mode=wall"], "--set journal_mode does not know 'wall'"),
        (["--set=sync=full"], "sqlite has no setting 'sync'"),
        (["--set=locking_mode=exclusive", "--tests=fillseq,readwhilewriting"], "has several connections"),
        (["--set=locking_mode=exclusive", "--tests=tpcb"], "has several connections"),
        (["--tests=tpcb,readseq"], "readseq needs a database"),
        (["--set=begin=later", "--tests=tpcb"], "--set begin does not know 'later'"),
        (["--set=library=3.0.0-0123456789"], "--set library=3.0.0-0123456789 was asked for, and this is 3."),
        (["--set=synchronous=off"], "fillrandsync commits synchronously"),
    ):
        argv = [drivers["microbenchmark_sqlite"], f"--directory={memory}", *words]
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
        assert (2, "") == (done.returncode, done.stdout)
        assert said in done.stderr.splitlines()[0]
    assert [] == list(memory.iterdir())


@pytest.mark.parametrize(
    ("journal_mode", "begin", "busy_timeout"),
    [
        ("wal", "immediate", 5000),
        ("wal", "deferred", 5000),
        ("delete", "immediate", 0),
        ("delete", "deferred", 0),
    ],
)
def test_processes_move_what_they_say_and_count_the_locks_that_they_meet(
    drivers: dict[str, str], memory: Path, journal_mode: str, begin: str, busy_timeout: int
) -> None:
    asked = {"journal_mode": journal_mode, "begin": begin, "busy_timeout": busy_timeout}
    words = [f"--set={name}={level}" for name, level in asked.items()]
    status, found = bench(
        drivers, memory, "--tests=tpcb", "--threads=3", "--duration-s=1", "--flush-after", *words
    )
    assert (0, None) == (status, found.failure)
    (test,) = found.tests
    assert {**asked, "synchronous": "full"}.items() <= test.settings.items()
    assert (3, None, True) == (len(test.threads or ()), test.writer, test.complete)
    assert test.latency is not None
    assert ("transaction", 1, test.operations) == (test.latency.of, test.latency.every, test.latency.count)
    # No upper bound: a process that gets no processor ends its last transaction late.
    assert test.elapsed_ns > 0.9e9
    # Who waits for a lock long enough meets none, unless what it read before is old by then.
    if (begin, busy_timeout) == ("immediate", 5000):
        assert 0 == test.busy
    else:
        assert test.busy
    with closing(sqlite3.connect(memory / "test.db")) as database:
        assert ("ok",) == database.execute("PRAGMA integrity_check").fetchone()
        count, delta = database.execute("SELECT count(*), sum(delta) FROM history").fetchone()
        assert test.operations == count
        sums = (
            "SELECT sum(abalance), count(*) FROM accounts",
            "SELECT sum(tbalance), count(*) FROM tellers",
            "SELECT sum(bbalance), count(*) FROM branches",
        )
        assert [(delta, 3000), (delta, 10), (delta, 1)] == [
            database.execute(each).fetchone() for each in sums
        ]


def test_a_process_that_fails_says_why_in_the_one_document(drivers: dict[str, str], memory: Path) -> None:
    argv = [drivers["microbenchmark_sqlite"], f"--directory={memory}", "--entries=1000", "--threads=2"]
    with subprocess.Popen(
        [*argv, "--tests=tpcb", "--duration-s=60"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        # The first line of progress: they are at work.
        running.stderr.readline()
        with closing(sqlite3.connect(memory / "test.db", timeout=AT_MOST_S)) as database:
            database.execute("DROP TABLE history")
            database.commit()
        out, _ = running.communicate(timeout=AT_MOST_S)
    found = parse_document(out)
    assert running.returncode == 1
    assert found.failure is not None
    assert ("no such table: history", "insert into history") == (found.failure.error, found.failure.step)


def test_what_the_writer_acknowledged_is_there_and_what_is_planted_is_found(
    drivers: dict[str, str], memory: Path
) -> None:
    marks = memory / "marks"
    marks.write_text("")
    data = memory / "data"
    data.mkdir()
    words = [
        f"--mark={marks}",
        "--duration-s=1",
        "--set=journal_mode=wal",
        "--set=synchronous=full",
        "--seed=3",
    ]
    done = cut(drivers, "write", data, *words)
    lines = marks.read_text().split("\n")
    assert ("begin", "end", done["transactions"]) == (lines[0], lines[-2], len(lines) - 3)
    promised: dict[int, int] = {}
    for line in lines[1:-2]:
        _, client, sequence, _ = line.split()
        promised[int(client)] = int(sequence)
    whole = cut(drivers, "check", data)
    answer = judge_document(whole, promised, oracle_s=None)
    assert (promised, (), ()) == (answer.present, answer.detected, answer.silent)
    with closing(sqlite3.connect(data / "test.db")) as database:
        database.execute("DELETE FROM entries WHERE rowid = 5")
        database.commit()
    silent = judge_document(cut(drivers, "check", data), promised, oracle_s=None).silent
    assert any("are missing between" in words for words in silent)
    assert any("are not the sum of their entries" in words for words in silent)
    with (data / "test.db").open("r+b") as file:
        file.seek(4096 * 10)
        file.write(b"\xff" * 4096)
    assert judge_document(cut(drivers, "check", data), promised, oracle_s=None).detected
