"""What each wal_sync_method costs, by pg_test_fsync: which program is taken, what it leaves, and what is said."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from tests.support.tools.command_line import begin_apart, call_here

from bedplate.engines.postgresql.builds import Build, stamp_text
from bedplate.errors import CommandFailed
from bedplate.host.account import server_account
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory
from bedplate.host.ledger import Ledger, release_orphans
from bedplate.workloads.fio.prepare import measure_syncs


@pytest.fixture(autouse=True)
def _own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BEDPLATE_STATE", str(tmp_path / "state"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    found = tmp_path / "data"
    found.mkdir()
    return found


@pytest.fixture
def said(repository: Path) -> str:
    return (repository / "tests/golden/pg_test_fsync/pg18-ext4.txt").read_text(encoding="utf-8")


def built(version: str, script: str, *, commit_digits: str = "") -> None:
    """A build in the cache whose pg_test_fsync is a script: as an account without rights it reads its own build alone."""
    prefix = cache_directory() / "builds" / f"postgresql-{version}{commit_digits}"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "postgres").touch()
    program = prefix / "bin" / "pg_test_fsync"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    found = Build(
        prefix, version, 8192, 8192, "", "", "cc", "x86_64", (), "d", 1.0, 1.0, commit_digits=commit_digits
    )
    (prefix / "build.json").write_text(stamp_text(found), encoding="utf-8")


def golden(said: str) -> str:
    return f"test $4 -le 5 && echo x > $2 && cat << END\n{said}END"


def test_each_method_is_told_in_its_part_and_the_folder_is_left_as_it_was(place: Path, said: str) -> None:
    built("18.6", golden(said))
    done = call_here("device", "measure", place, "--seconds", "600", COLUMNS="200")
    assert 0 == done.returncode, done.stderr
    assert "pg_test_fsync of PostgreSQL 18.6, writes of 8 kB:" in done.stdout
    assert any(
        line.split() == ["one", "write", "fdatasync", "16,450", "per", "s"]
        for line in done.stdout.splitlines()
    )
    assert "fsync_writethrough" in done.stdout
    assert [] == list(place.iterdir())


def test_the_figures_stand_in_the_document(place: Path, said: str) -> None:
    built("18.6", golden(said))
    found = json.loads(call_here("device", "measure", place, "--json").stdout)
    assert (None, [], []) == (found["plan"], found["measured"], found["left_out"])
    assert "PostgreSQL 18.6" == found["syncs"]["program"]
    assert 8192 == found["syncs"]["result"]["write_size_bytes"]
    first = found["syncs"]["result"]["methods"][0]
    assert ("one write", "open_datasync", 17795.879) == (first["part"], first["method"], first["ops_per_s"])


def test_the_newest_release_is_taken_and_never_a_tree_of_somebodys(
    place: Path, tmp_path: Path, said: str
) -> None:
    for version, digits in (("17.9", ""), ("18.6", ""), ("19.0", "0123456789ab")):
        built(version, golden(said), commit_digits=digits)
    with Ledger.open(tmp_path / "state", "test") as ledger:
        assert "PostgreSQL 18.6" == measure_syncs(place, 1, ledger, Commands()).program


def test_without_a_build_the_way_to_one_is_named(place: Path) -> None:
    done = call_here("device", "measure", place)
    assert 3 == done.returncode
    assert "pg_test_fsync is a program of PostgreSQL" in done.stderr
    assert "doctor quick --install` builds one" in done.stderr


def test_what_is_no_place_for_it_is_refused(tmp_path: Path, place: Path) -> None:
    (tmp_path / "file").touch()
    done = call_here("device", "measure", tmp_path / "file")
    assert (3, True) == (done.returncode, "name a disk, a partition or a directory" in done.stderr)
    done = call_here("device", "measure", place, "--erase", place)
    assert (3, True) == (done.returncode, "of which nothing is erased" in done.stderr)


def test_one_that_fails_leaves_nothing_and_is_quoted(place: Path, tmp_path: Path) -> None:
    built("18.6", "echo x > $2; echo 'could not write' >&2; exit 1")
    with Ledger.open(tmp_path / "state", "test") as ledger:
        with pytest.raises(CommandFailed, match="could not write"):
            measure_syncs(place, 1, ledger, Commands())
        assert [] == list(place.iterdir())
        assert () == ledger.holdings()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root shuts anything in")
def test_it_runs_as_an_account_without_rights_that_writes_to_its_folder_alone(
    place: Path, tmp_path: Path
) -> None:
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)
    # Its folder may lie where no other account gets to.
    place.chmod(0o700)
    built(
        "18.6",
        f"grep -E '^(Uid|NoNewPrivs|Seccomp):' /proc/self/status >&2; touch {tmp_path}/open/mark 2> /dev/null;"
        "echo x > $2 && echo wrote >&2; tail -n +3 /proc/net/dev | cut -d: -f1 >&2; exit 1",
    )
    uid = server_account().uid
    with (
        Ledger.open(tmp_path / "state", "test") as ledger,
        pytest.raises(
            CommandFailed,
            match=rf"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\nNoNewPrivs:\t1\nSeccomp:\t2\nwrote\n +lo$",
        ),
    ):
        measure_syncs(place, 1, ledger, Commands())
    assert [] == list((tmp_path / "open").iterdir())


def test_what_a_killed_call_left_is_given_back(place: Path, tmp_path: Path) -> None:
    built("18.6", f"echo x > $2; echo > {cache_directory()}/builds/postgresql-18.6/pipe; sleep 600")
    pipe = cache_directory() / "builds/postgresql-18.6/pipe"
    os.mkfifo(pipe)
    pipe.chmod(0o666)
    with begin_apart("device", "measure", place) as running:
        # Until it is under way.
        pipe.read_bytes()
        running.kill()
    assert -signal.SIGKILL == running.returncode
    assert [] != list(place.iterdir())
    assert () == release_orphans(tmp_path / "state", Commands()).problems
    assert [] == list(place.iterdir())
