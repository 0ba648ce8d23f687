"""What the two engines' halves of a power cut say and read, without an engine."""

from __future__ import annotations

import json
import lzma
import os
import random
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.cuts.records import RECORDING_FILE, CutPoint, Placement, Profile, RecordingFacts
from bedplate.engines.lmdb import oracle as lmdb
from bedplate.engines.mariadb.oracle import transaction as mariadb_transaction
from bedplate.engines.postgresql import oracle as postgresql
from bedplate.engines.postgresql import oracle as postgresql_oracle
from bedplate.engines.postgresql.settings import configuration_text
from bedplate.errors import BedplateError, KilledFromOutside, OutputNotUnderstood, StudyError
from bedplate.model import codec
from bedplate.model.cell import BuildLevels, ClusterLevels, FilesystemLevels
from bedplate.model.levels import Levels
from bedplate.model.reason import Reason
from bedplate.units import GIB, MIB
from bedplate.visit import cuts
from bedplate.visit.cuts import CutClients, ServerWriter, Subject, drive
from bedplate.visit.server import CONNECTION_LOST, NO_ANSWER_IN_TIME, SessionFailed
from bedplate.workloads.power_cut.bench import ReplayJob, worker_count
from bedplate.workloads.power_cut.log import LOG_BYTES_MOST, LogPacking, most_unpacked_bytes, unpack_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bedplate.engines.postgresql.visit import Session

RECORDING = RecordingFacts(9, 0, 3, 3, 0, 9, 9, 1, 1.0, 9, 9)
SETTINGS = {"fsync": "on", "synchronous_commit": "off", "wal_writer_delay": "200ms"}


def document(**changes: Any) -> dict[str, Any]:
    """What the driver's check says of a whole environment, and what a test changes in it."""
    whole = {
        "accounts": cuts.ACCOUNTS,
        "clients": [{"client": 0, "last": 5, "entries": 5, "gaps": 0}],
        "balances_wrong": 0,
        "values_wrong": 0,
        "order_wrong": 0,
        "counts_wrong": 0,
        "pages_unaccounted": 0,
        "failure": None,
    }
    return {**whole, **changes}


def test_a_bounded_loss_is_three_times_the_wal_writers_delay() -> None:
    assert postgresql.bound_ms(SETTINGS) == pytest.approx(600.0)
    assert postgresql.bound_ms({**SETTINGS, "wal_writer_delay": "1s"}) == pytest.approx(3000.0)


@pytest.mark.parametrize("changed", [{"fsync": "off"}, {"synchronous_commit": "on"}])
def test_what_allows_no_loss_or_any_has_no_bound(changed: dict[str, str]) -> None:
    assert postgresql.bound_ms({**SETTINGS, **changed}) is None


def test_small_settings_yield_to_the_plans_and_to_its_own_file() -> None:
    asked = ClusterLevels(settings=Levels(shared_buffers="64MB"), configuration="jit = on")
    levels = postgresql.recorded_levels(asked, clients=2)
    assert levels.settings == asked.settings
    text = configuration_text(levels, BuildLevels(), "/socket")
    in_force = {}
    for line in text.splitlines():
        name, equals, value = line.partition(" = ")
        if equals:
            in_force[name] = value.strip("'")
    assert in_force["shared_buffers"] == "64MB"
    assert in_force["jit"] == "on"
    assert in_force["max_wal_size"] == "16MB"
    assert in_force["max_connections"] == "20"


def test_many_clients_all_have_a_connection_unless_the_plan_says_how_many() -> None:
    assert "max_connections = '118'" in (
        postgresql.recorded_levels(ClusterLevels(), clients=100).configuration or ""
    )
    asked = ClusterLevels(settings=Levels(max_connections=200))
    assert "max_connections" not in (postgresql.recorded_levels(asked, clients=100).configuration or "")


def test_a_transaction_is_one_message() -> None:
    text = postgresql.transaction(1, 2, 3)
    assert text.count("\\;") == 3
    assert text.count(";") == 3
    assert text.endswith("COMMIT")


def test_a_servers_log_is_quoted_for_what_is_wrong_and_not_for_its_end() -> None:
    log = (
        "1 2 3 LOG:  database system was interrupted; last known up at …\n"
        "1 2 3 FATAL:  invalid page in block 7 of relation base/16384/16395\n"
        "1 2 3 CONTEXT:  WAL redo at …\n"
        "1 2 3 LOG:  startup process (PID 5) exited with exit code 1\n"
        "1 2 3 FATAL:  the database system is starting up\n"
    )
    assert postgresql_oracle.grave_words(log) == (
        "FATAL:  invalid page in block 7 of relation base/16384/16395",
    )
    assert postgresql_oracle.grave_words("") == ()


def test_an_error_of_the_disk_is_said_by_a_servers_log_whatever_its_level() -> None:
    of_wal = "LOG:  could not read from WAL segment 000000010000000000000008, LSN 0/2180000, offset 1572864: Input/output error"
    log = (
        f"1 2 3 {of_wal}\n"
        "1 2 3 LOG:  redo done at 0/217E0F0\n"
        f"1 2 3 {of_wal}\n"
        "1 2 3 WARNING:  could not fsync file “x”: Structure needs cleaning\n"
        "1 2 3 LOG:  could not open file “y”: No such file or directory\n"
        "1 2 3 STATEMENT:  SELECT 'LOG: not said: Input/output error'\n"
        "1 2 3 LOG:  database system is ready to accept connections\n"
    )
    assert postgresql_oracle.disk_errors(log) == (
        of_wal,
        "WARNING:  could not fsync file “x”: Structure needs cleaning",
    )
    assert postgresql_oracle.disk_errors("") == ()


@pytest.mark.parametrize(
    ("code", "said", "is_detected"),
    [
        (NO_ANSWER_IN_TIME, "", True),
        (CONNECTION_LOST, "", True),
        (SessionFailed.code, 'ERROR:  invalid page in block 7 of relation "base/1/2"', True),
        (SessionFailed.code, "FATAL:  terminating connection because of a crash", True),
        (SessionFailed.code, "ERROR:  heap tuple (22,3) lacks matching index tuple within index", False),
    ],
)
def test_a_check_finds_alone_what_nobody_else_would_notice(
    code: str, said: str, *, is_detected: bool
) -> None:
    sentence = f"SELECT connection …: {said}"

    class Refusing:
        def rows(self, statement: str, *, timeout_s: float) -> list[list[str | None]]:
            raise SessionFailed(Reason(code, sentence), message=said)

    detected: list[str] = []
    silent: list[str] = []
    assert postgresql_oracle._ask(cast("Session", Refusing()), "SELECT 1", detected, silent) == []
    assert (detected, silent) == (([sentence], []) if is_detected else ([], [sentence]))


def test_a_whole_environment_has_what_was_promised() -> None:
    answer = cuts.judge_document(document(), {0: 5}, oracle_s=0.1)
    assert (answer.present, answer.detected, answer.silent) == ({0: 5}, (), ())


@pytest.mark.parametrize(
    "name", ["balances_wrong", "values_wrong", "order_wrong", "counts_wrong", "pages_unaccounted"]
)
def test_what_only_the_check_counts_is_silent(name: str) -> None:
    (problem,) = cuts.judge_document(document(**{name: 4}), {0: 5}, oracle_s=None).silent
    assert problem.startswith("4 ")


def test_the_librarys_own_error_is_detected() -> None:
    failure = {
        "error": "MDB_CORRUPTED: Located page was wrong type",
        "code": -30796,
        "step": "walk the entries",
    }
    answer = cuts.judge_document(document(failure=failure), {0: 5}, oracle_s=None)
    assert answer.present is None
    assert answer.detected == ("MDB_CORRUPTED: Located page was wrong type (walk the entries)",)


def test_a_gap_and_a_transaction_of_nobody_are_silent() -> None:
    gap = [{"client": 0, "last": 5, "entries": 4, "gaps": 1}]
    assert (
        "some are missing between"
        in cuts.judge_document(document(clients=gap), {0: 5}, oracle_s=None).silent[0]
    )
    assert "3 was the last" in cuts.judge_document(document(), {0: 3}, oracle_s=None).silent[0]
    assert cuts.judge_document(document(), {0: 4}, oracle_s=None).silent == ()


def test_missing_accounts_are_silent() -> None:
    assert cuts.judge_document(document(accounts=9_999), {0: 5}, oracle_s=None).silent == (
        "10000 accounts were made, 9999 are there",
    )


@pytest.mark.parametrize("name", ["clients", "accounts", "order_wrong", "failure"])
def test_a_document_without_a_part_is_not_understood(name: str) -> None:
    broken = {key: value for key, value in document().items() if key != name}
    with pytest.raises(OutputNotUnderstood, match=name):
        cuts.judge_document(broken, {0: 5}, oracle_s=None)


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_other_document_is_an_answer_or_not_understood(clients: Any) -> None:
    try:
        answer = cuts.judge_document(json.loads(json.dumps(document(clients=clients))), {0: 5}, oracle_s=None)
    except OutputNotUnderstood:
        return
    # Nothing to iterate over: an environment without a transaction.
    assert answer.present == {}


def test_by_test_means_synchronous_here() -> None:
    assert lmdb.POWER_CUT.facts_of(Levels())["sync"] == "full"
    assert (
        lmdb.POWER_CUT.facts_of(Levels(sync="mapasync")).items()
        >= {"sync": "mapasync", "pressure_ms": 30}.items()
    )
    assert lmdb.bound_transactions(Levels(sync="nometasync")) == 1
    assert lmdb.bound_transactions(Levels(sync="nosync")) is None


def test_a_kept_log_comes_back_whole_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    log, kept, back = tmp_path / "log", tmp_path / "log.xz", tmp_path / "back"
    page = bytes(range(256)) * 16
    log.write_bytes(b"".join(page + number.to_bytes(8, "little") for number in range(3000)))
    with LogPacking(log, kept) as packing:
        assert packing.finish()
    unpack_log(kept, back, log.stat().st_size)
    assert log.read_bytes() == back.read_bytes()
    assert kept.stat().st_size < log.stat().st_size / 20
    assert not list(tmp_path.glob(".*"))
    content = kept.read_bytes()
    kept.write_bytes(content[: len(content) // 2])
    with pytest.raises(StudyError, match="damaged"):
        unpack_log(kept, back, log.stat().st_size)


def test_a_log_is_unpacked_to_what_its_recording_says_and_no_further(tmp_path: Path) -> None:
    kept, back = tmp_path / "log.xz", tmp_path / "back"
    # A gigabyte of zeros is 150 KB.
    with lzma.open(kept, "wb", preset=0) as packed:
        for _ in range(64):
            packed.write(bytes(MIB))
    with pytest.raises(StudyError, match=r"log\.xz is not unpacked: it comes to more than 9,999,999 bytes"):
        unpack_log(kept, back, 9_999_999)
    assert back.stat().st_size < 10_000_000
    kept.unlink()
    os.mkfifo(kept)
    with pytest.raises(StudyError, match="no plain file"):
        unpack_log(kept, back, 10)


def test_the_room_of_a_log_is_what_was_recorded_at_most(tmp_path: Path) -> None:
    codec.write(tmp_path / RECORDING_FILE, replace(RECORDING, log_bytes=5000))
    assert 5000 == most_unpacked_bytes(tmp_path)
    # An older recording does not say it.
    codec.write(tmp_path / RECORDING_FILE, RECORDING)
    assert 5000 < most_unpacked_bytes(tmp_path) <= LOG_BYTES_MOST
    codec.write(tmp_path / RECORDING_FILE, replace(RECORDING, log_bytes=2**62))
    assert most_unpacked_bytes(tmp_path) <= LOG_BYTES_MOST


def test_a_log_that_packs_badly_is_given_up_at_its_limit(tmp_path: Path) -> None:
    log, kept = tmp_path / "log", tmp_path / "log.xz"
    log.write_bytes(random.Random(1).randbytes(3_000_000))
    with LogPacking(log, kept, limit_bytes=1_000_000) as packing:
        assert not packing.finish()
    assert [log] == list(tmp_path.iterdir())
    with LogPacking(log, kept, limit_bytes=4_000_000) as packing:
        assert packing.finish()
    assert kept.exists()


def test_a_log_that_turns_out_to_be_wanted_is_packed_whatever_its_size(tmp_path: Path) -> None:
    log, kept, back = tmp_path / "log", tmp_path / "log.xz", tmp_path / "back"
    log.write_bytes(random.Random(1).randbytes(300_000))
    with LogPacking(log, kept, limit_bytes=0) as packing:
        packing.want()
        assert packing.finish()
    unpack_log(kept, back, log.stat().st_size)
    assert log.read_bytes() == back.read_bytes()


def test_a_packing_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(bytes(1000))
    with pytest.raises(KeyError), LogPacking(log, tmp_path / "log.xz", limit_bytes=0):
        raise KeyError
    with LogPacking(tmp_path / "gone", tmp_path / "log.xz") as packing, pytest.raises(FileNotFoundError):
        packing.finish()
    assert [log] == list(tmp_path.iterdir())


class Answering:
    """A session that acknowledges everything; `said` is of all of them."""

    said: ClassVar[list[str]] = []
    was_killed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""

    def execute(self, statement: str) -> None:
        self.said.append(statement)
        if self.was_killed:
            raise SessionFailed("the server closed the connection: no message")

    def abandon(self) -> None:
        """Nothing to end."""


def answering() -> CutClients:
    def transaction(*which: int) -> tuple[str, ...]:
        return (postgresql.transaction(*which),)

    return CutClients(cast("Any", Answering), transaction, postgresql.ACCOUNTS, "CHECKPOINT", "18.0")


def test_clients_end_after_the_transaction_that_they_are_at_once_the_log_is_nearly_full(
    tmp_path: Path,
) -> None:
    marks = tmp_path / "mark"
    marks.touch()
    driven = drive(
        answering(), marks, clients=2, duration_s=600, seed=1, enough=lambda: marks.stat().st_size > 0
    )
    assert driven.ended_early
    assert driven.acknowledged
    assert 0 < driven.seconds < 300
    whole = drive(answering(), marks, clients=1, duration_s=0.01, seed=1)
    assert not whole.ended_early


def test_a_client_does_not_commit_behind_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MariaDB takes back the statement alone: its client would commit the other half."""

    def execute(session: Answering, statement: str) -> None:
        session.said.append(statement)
        if "INSERT" in statement:
            raise SessionFailed("ERROR 1114 (HY000): The table 'note' is full")

    monkeypatch.setattr(Answering, "execute", execute)
    monkeypatch.setattr(Answering, "said", [])
    (marks := tmp_path / "mark").touch()
    mariadb = CutClients(cast("Any", Answering), mariadb_transaction, 10, "FLUSH", "10.11")
    with pytest.raises(BedplateError, match="is full"):
        drive(mariadb, marks, clients=1, duration_s=600, seed=1)
    assert ["SELECT 1", mariadb_transaction(0, 1, 2)[0][:20]] == [each[:20] for each in Answering.said]
    assert 0 == marks.stat().st_size


def test_a_client_that_the_kernel_killed_is_no_trouble_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (marks := tmp_path / "mark").touch()
    monkeypatch.setattr(Answering, "was_killed", True)
    with pytest.raises(KilledFromOutside):
        drive(answering(), marks, clients=2, duration_s=600, seed=1)


def test_a_servers_clients_work_between_its_marks_and_beside_whoever_makes_checkpoints(
    tmp_path: Path,
) -> None:
    told: list[str] = []
    marks = tmp_path / "mark"
    marks.touch()

    class Setup:
        mark_file = marks

        def settle(self) -> None:
            told.append("settle")

        def mark(self, text: str) -> None:
            told.append(text)

        def pace(self, duration_s: float) -> Callable[[], float]:
            told.append(f"pace of {duration_s:g} s")
            return lambda: 0.0

        def is_log_nearly_full(self) -> bool:
            return marks.stat().st_size > 0

    @contextmanager
    def beside() -> Iterator[None]:
        told.append("others come")
        yield
        told.append("others go")

    writer = ServerWriter(
        *(answering(), cast("Any", Setup())), clients=1, facts={}, bound_ms=2000.0, was_killed=lambda: False
    )
    checkpoints = writer.checkpoints()
    assert checkpoints is not None
    with checkpoints as session:
        session.checkpoint()
    assert "CHECKPOINT" == Answering.said[-1]
    driven = writer.drive(tmp_path / "unused", duration_s=600.0, seed=1, companion=beside())
    assert ["settle", "begin", "pace of 600 s", "others come", "others go", "end"] == told
    assert driven.acknowledged == len(marks.read_text().splitlines())
    assert driven.ended_early


@pytest.mark.parametrize(
    ("type_", "processors", "room_bytes", "points", "workers"),
    [
        # Another beside two waits less; it has room where a third image and its copy have.
        ("ext4", 2, 100 * GIB, 70, 3),
        ("ext4", 2, 4 * GIB, 70, 2),
        ("ext4", 2, 0, 70, 2),
        ("ext4", 1, 100 * GIB, 70, 2),
        ("ext4", 16, 100 * GIB, 70, 4),
        ("ext4", 2, 100 * GIB, 1, 1),
        # A pool of ZFS is known by its name.
        ("zfs", 2, 100 * GIB, 70, 1),
    ],
)
def test_so_many_workers_keep_the_processors_busy_as_memory_has_room_for(
    type_: str, processors: int, room_bytes: int, points: int, workers: int
) -> None:
    point = CutPoint(0, 1, Profile.ORDERED, Placement.UNIFORM, 1)
    job = ReplayJob(
        FilesystemLevels(type_), Subject("postgresql", 1, Levels({}), Levels({})), (point,) * points, 1, 1, 1
    )
    assert workers == worker_count(job, log_bytes=GIB, room_bytes=room_bytes, processors=processors)
