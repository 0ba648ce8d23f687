"""The oracle of PostgreSQL on planted faults: what was done to a whole database by hand, and what it calls it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.host.test_power_cut_strangers import made, reproduced
from tests.support.tools.inner_process import outer_pid

from bedplate.engines.postgresql import oracle as postgresql
from bedplate.engines.postgresql import oracle as postgresql_oracle
from bedplate.engines.postgresql.oracle import REPRODUCTION
from bedplate.engines.postgresql.visit import Cluster
from bedplate.errors import KilledFromOutside
from bedplate.host.account import server_account
from bedplate.host.command import Account, Commands
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
)
from bedplate.model.levels import Levels
from bedplate.visit import cuts
from bedplate.visit.cuts import OracleAnswer, Subject
from bedplate.visit.server import ServerSite
from bedplate.workloads.power_cut.bench import ReplayJob

if TYPE_CHECKING:
    from bedplate.engines.postgresql.visit import Session
    from bedplate.model.visit import EngineBuild

    BuildOf = Callable[[int], EngineBuild]

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

PROMISED = {0: 60, 1: 40}


def cell_with(levels: ClusterLevels) -> Cell:
    return Cell(DeviceLevels(), KernelLevels(), FilesystemLevels("ext4"), BuildLevels(), levels)


PAGE = 8192


class _NoLedger:
    """A test's server is ended by the test."""

    def note(self, holding: Any) -> None:
        """Nothing."""

    def settled(self, holding: Any) -> None:
        """Nothing."""


def _postmaster(directory: Path) -> int:
    return outer_pid(int((directory / "postmaster.pid").read_text().split()[0]), os.getpid())


@dataclass
class Database:
    """A data directory that was stopped in order, with the transactions of PROMISED in it, to be copied."""

    base: Path
    build: EngineBuild
    account: Account

    def cluster(self, directory: Path) -> Cluster:
        socket = self.base / "socket"
        return Cluster(
            ServerSite(
                build=self.build,
                data_directory=directory,
                socket_directory=socket,
                log=self.base / "server.log",
                account=self.account,
                commands=Commands(),
                ledger=_NoLedger(),
            )
        )

    def started(self, directory: Path) -> Cluster:
        """Its server, which leaves nothing in /dev/shm however it ends."""
        cluster = self.cluster(directory)
        try:
            cluster.start(options=postgresql.START_OPTIONS)
        except BaseException:
            cluster.kill()
            raise
        return cluster

    def copy(self, whole: str = "whole") -> Path:
        target = self.base / "copy"
        shutil.rmtree(target, ignore_errors=True)
        # Not shutil: owners and modes have to stay.
        subprocess.run(["cp", "-a", str(self.base / whole), str(target)], check=True)
        return target

    def after(self, *statements: str, whole: str = "whole") -> Path:
        """A copy in which these statements were executed and checkpointed."""
        target = self.copy(whole)
        self.work_on(target, *statements)
        return target

    def work_on(self, target: Path, *statements: str) -> None:
        """Execute these statements on a copy, and checkpoint."""
        cluster = self.started(target)
        try:
            with cluster.session() as session:
                for statement in statements:
                    session.execute(statement)
            cluster.stop()
        finally:
            cluster.kill()

    def path_of(self, relation: str, whole: str = "whole") -> str:
        """The file of a table or an index, below the data directory."""
        target = self.copy(whole)
        cluster = self.started(target)
        try:
            with cluster.session() as session:
                return session.value(f"SELECT pg_relation_filepath('{relation}')")
        finally:
            cluster.kill()

    def examine(
        self, directory: Path, promised: dict[int, int] | None = None, *, oracle: int = postgresql.ORACLE
    ) -> OracleAnswer:
        cluster = self.cluster(directory)
        cluster.configure_apart(postgresql.recorded_levels(ClusterLevels(), clients=0))
        return postgresql_oracle.examine(
            cluster,
            PROMISED if promised is None else promised,
            rows=postgresql.ACCOUNTS,
            oracle=oracle,
        )


@pytest.fixture(scope="module")
def database(build_of_pages: BuildOf) -> Iterator[Database]:
    with made_database(build_of_pages(PAGE)) as found:
        yield found


@contextmanager
def made_database(build: EngineBuild) -> Iterator[Database]:
    """One with the transactions of PROMISED, and one without checksums."""
    base = Path(tempfile.mkdtemp(prefix="bedplate-test-oracle-", dir="/dev/shm"))
    base.chmod(0o755)
    account = server_account()
    found = Database(base, build, account)
    socket = base / "socket"
    socket.mkdir()
    shutil.chown(socket, account.uid, account.gid)
    try:
        for name, checksums in (("whole", True), ("unchecked", False)):
            directory = base / name
            directory.mkdir(mode=0o700)
            shutil.chown(directory, account.uid, account.gid)
            cluster = found.cluster(directory)
            try:
                postgresql.prepare(
                    cluster, cell_with(ClusterLevels(data_checksums=checksums)), clients=len(PROMISED)
                )
                with cluster.session() as session:
                    assert "mmap" == session.value("SHOW dynamic_shared_memory_type")
                    for client, last in PROMISED.items():
                        for sequence in range(1, last + 1):
                            session.execute(
                                postgresql.transaction(client, sequence, 1 + (7 * sequence + client) % 20)
                            )
                cluster.stop()
            finally:
                cluster.kill()
        yield found
    finally:
        shutil.rmtree(base)


@pytest.fixture(scope="module")
def build_of_pages() -> BuildOf:
    from tests.host.conftest import built  # noqa: PLC0415

    return built


def filler_of(account: int, balance: int) -> bytes:
    """As `postgresql.filler` says it to the server."""
    return (f"1{account:05}{balance:06}" * 30).encode()


def scribble(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


@pytest.mark.parametrize("whole", ["whole", "unchecked"])
def test_a_whole_database_has_every_promise_and_no_problem(database: Database, whole: str) -> None:
    answer = database.examine(database.copy(whole))
    assert (PROMISED, (), ()) == (answer.present, answer.detected, answer.silent)
    assert answer.start_s is not None
    assert answer.oracle_s is not None


def test_a_server_that_was_cut_off_recovers_with_a_stale_process_id(database: Database) -> None:
    target = database.copy()
    cluster = database.started(target)
    with cluster.session() as session:
        session.execute(postgresql.transaction(0, 61, 3))
    stale = (target / "postmaster.pid").read_text()
    cluster.kill()
    # Ours runs for certain, so a server would take it for another server.
    (target / "postmaster.pid").write_text(stale.replace(stale.split("\n", 1)[0], str(os.getpid()), 1))
    answer = database.examine(target)
    assert ({0: 61, 1: 40}, (), ()) == (answer.present, answer.detected, answer.silent)


@pytest.mark.parametrize("victim", ["a process of the server", "the whole server", "psql"])
def test_what_was_killed_from_outside_has_found_nothing(
    database: Database, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = database.copy()
    asked = cuts.notes

    def kill(session: Session, *rest: Any) -> Any:
        processes = {
            "a process of the server": outer_pid(int(session.value("SELECT pg_backend_pid()")), os.getpid()),
            "the whole server": _postmaster(target),
            "psql": session.pid,
        }
        os.kill(processes[victim], signal.SIGKILL)
        return asked(session, *rest)

    monkeypatch.setattr(postgresql_oracle, "notes", kill)
    with pytest.raises(KilledFromOutside, match="from outside"):
        database.examine(target)


def test_a_server_that_dies_by_itself_has_been_caught(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = cuts.notes

    def crash(session: Session, *rest: Any) -> Any:
        os.kill(outer_pid(int(session.value("SELECT pg_backend_pid()")), os.getpid()), signal.SIGSEGV)
        return asked(session, *rest)

    monkeypatch.setattr(postgresql_oracle, "notes", crash)
    assert "closed the connection" in database.examine(database.copy()).detected[0]


def undoing(sequence: int) -> str:
    """As if client 1 had never made that transaction."""
    before = postgresql.filler("account.id", "balance - 1")
    return (
        f"BEGIN\\; UPDATE account SET balance = balance - 1, filler = {before} FROM note "  # noqa: S608
        f"WHERE id = note.account AND client = 1 AND sequence = {sequence}\\; "
        f"DELETE FROM note WHERE client = 1 AND sequence = {sequence}\\; COMMIT"
    )


def test_a_dropped_last_commit_is_lost_and_nothing_else(database: Database) -> None:
    target = database.after(undoing(40))
    answer = database.examine(target)
    assert ({0: 60, 1: 39}, (), ()) == (answer.present, answer.detected, answer.silent)


def test_a_commit_missing_between_others_is_silent_corruption(database: Database) -> None:
    target = database.after(undoing(20))
    answer = database.examine(target)
    assert () == answer.detected
    (problem,) = answer.silent
    assert "client 1 has 39 notes" in problem


@pytest.mark.parametrize(
    "half",
    [
        "INSERT INTO note VALUES (0, 61, 5)",
        postgresql.transaction(0, 61, 5).split("\\; ")[2],
    ],
)
def test_half_a_transaction_is_silent_corruption(database: Database, half: str) -> None:
    answer = database.examine(database.after(half))
    assert () == answer.detected
    (problem,) = answer.silent
    assert "1 accounts' balances are not the number of their notes" in problem


def test_an_index_without_its_row_is_silent_corruption(database: Database) -> None:
    switch = (
        "UPDATE pg_index SET indisready = {0}, indisvalid = {0} WHERE indexrelid = 'note_account'::regclass"
    )
    target = database.after(switch.format("false"), postgresql.transaction(0, 61, 5), switch.format("true"))
    answer = database.examine(target)
    assert () == answer.detected
    assert {0: 61, 1: 40} == answer.present
    counted, checked = answer.silent
    assert "note has 101 rows by its pages and 100 by note_account" in counted
    assert "lacks matching index tuple" in checked


def test_a_transaction_that_nobody_began_is_silent_corruption(database: Database) -> None:
    answer = database.examine(database.copy(), {0: 60, 1: 38})
    assert answer.silent == ("client 1 has transaction 40, but 38 was the last acknowledged",)


def test_the_transaction_under_way_may_be_there_or_not(database: Database) -> None:
    answer = database.examine(database.copy(), {0: 59, 1: 39})
    assert (PROMISED, ()) == (answer.present, answer.silent)


def test_a_zeroed_page_of_a_table_is_silent_corruption(database: Database) -> None:
    """A page of zeros is a page that was never used to PostgreSQL, checksums or not."""
    path = database.path_of("account")
    target = database.copy()
    scribble(target / path, 3 * PAGE, bytes(PAGE))
    answer = database.examine(target)
    assert any("accounts were made" in problem for problem in answer.silent), answer


def test_a_zeroed_page_of_an_index_is_found(database: Database) -> None:
    path = database.path_of("account_pkey")
    target = database.copy()
    scribble(target / path, 2 * PAGE, bytes(PAGE))
    answer = database.examine(target)
    assert answer.detected or answer.silent


def test_a_torn_page_is_the_engines_own_complaint_with_checksums(database: Database) -> None:
    path = database.path_of("account")
    target = database.copy()
    scribble(target / path, 3 * PAGE + 4096, bytes(4096))
    answer = database.examine(target)
    assert any("invalid page in block 3" in problem for problem in answer.detected), answer


def test_warnings_are_no_rows_of_an_answer(database: Database) -> None:
    """A server that was told to go on with damaged pages warns, and psql prints that among what it answers."""
    path = database.path_of("account")
    target = database.copy()
    with (target / "postgresql.auto.conf").open("a") as settings:
        settings.write("ignore_checksum_failure = on\n")
    # A letter of a row's filler.
    scribble(target / path, (target / path).read_bytes().index(filler_of(500, 0)), b"y")
    answer = database.examine(target)
    assert answer.present == PROMISED
    assert not any("WARNING" in words for words in (*answer.detected, *answer.silent))


def test_a_changed_row_is_silent_without_checksums(database: Database) -> None:
    path = database.path_of("account", "unchecked")
    target = database.copy("unchecked")
    # The balance stands before the filler and the four bytes of its length.
    at = (target / path).read_bytes().index(filler_of(500, 0)) - 4 - 4
    scribble(target / path, at, (1000).to_bytes(4, "little"))
    answer = database.examine(target)
    assert () == answer.detected
    assert any("balances are not the number" in problem for problem in answer.silent), answer


def test_a_row_of_two_versions_is_silent_without_checksums(database: Database) -> None:
    """Balance and sums are those of one version: only the filler's end is another's."""
    path = database.path_of("account", "unchecked")
    target = database.copy("unchecked")
    at = (target / path).read_bytes().index(filler_of(500, 0))
    scribble(target / path, at + 48, filler_of(500, 1)[48:])
    assert answer_of_silence(database.examine(target)) == (
        "1 accounts have a filler that does not follow from their number and balance"
    )


def test_an_older_recording_is_asked_for_the_filler_that_it_has(database: Database) -> None:
    target = database.after("UPDATE account SET filler = repeat('x', 84)", whole="unchecked")
    answer = database.examine(target, oracle=postgresql.CONSTANT_FILLER)
    assert (PROMISED, (), ()) == (answer.present, answer.detected, answer.silent)
    path = database.path_of("account", "unchecked")
    target = database.after("UPDATE account SET filler = repeat('x', 84)", whole="unchecked")
    scribble(target / path, (target / path).read_bytes().index(b"x" * 84, 600 * PAGE) + 7, b"y")
    assert "1 accounts have a filler" in answer_of_silence(
        database.examine(target, oracle=postgresql.CONSTANT_FILLER)
    )


def answer_of_silence(answer: OracleAnswer) -> str:
    """The one thing that only the oracle found."""
    assert () == answer.detected
    (problem,) = answer.silent
    return problem


@pytest.mark.parametrize("whole", ["whole", "unchecked"])
def test_an_older_visibility_map_is_silent_corruption(database: Database, whole: str) -> None:
    """An index then answers for rows of which it knows old versions only, and counts each of them."""
    path = database.path_of("account", whole) + "_vm"
    target = database.after("VACUUM account", whole=whole)
    older = (target / path).read_bytes()
    # Pages that are full: the new version goes to another page, and has an entry of its own in the index.
    later = [postgresql.transaction(0, 61 + number, 1000 + 60 * number) for number in range(20)]
    database.work_on(target, *later)
    assert older != (target / path).read_bytes()
    (target / path).write_bytes(older)
    problem = answer_of_silence(database.examine(target, {**PROMISED, 0: 80}))
    assert "account has 10000 rows by its pages and 10020 by account_pkey" in problem


def notes(first: int, last: int, account: str) -> str:
    """Whole transactions of client 0, all at once."""
    return (
        f"BEGIN\\; INSERT INTO note SELECT 0, g, {account} FROM generate_series({first}, {last}) AS g\\; "  # noqa: S608
        f"UPDATE account SET balance = noted.count, filler = {postgresql.filler('id', 'noted.count')} FROM "
        "(SELECT account, count(*) FROM note GROUP BY account) AS noted WHERE noted.account = id "
        "AND noted.count <> balance\\; COMMIT"
    )


@pytest.mark.parametrize("whole", ["whole", "unchecked"])
def test_an_older_root_of_an_index_is_silent_corruption(database: Database, whole: str) -> None:
    path = database.path_of("note_account", whole)
    target = database.after(notes(61, 2000, "1000 + 4 * g"), whole=whole)
    before = (target / path).read_bytes()
    # The meta page: a header of 24 bytes, magic, version, the root's number, its level.
    root, level = (int.from_bytes(before[at : at + 4], "little") for at in (32, 36))
    assert level == 1
    database.work_on(target, notes(2001, 4000, "1000 + 4 * (g - 1940) + 2"))
    after = (target / path).read_bytes()
    assert root == int.from_bytes(after[32:36], "little")
    older = before[root * PAGE :][:PAGE]
    assert older != after[root * PAGE :][:PAGE]
    scribble(target / path, root * PAGE, older)
    assert "note_account" in answer_of_silence(database.examine(target, {**PROMISED, 0: 4000}))


def test_a_page_that_nobody_asks_for_is_found_by_its_checksum(database: Database) -> None:
    path = database.path_of("pg_description")
    target = database.copy()
    scribble(target / path, 2 * PAGE + 5000, b"?")
    answer = database.examine(target)
    assert PROMISED == answer.present
    (problem,) = answer.detected
    assert "pg_checksums: 1 pages fail" in problem
    assert path in problem


@pytest.mark.parametrize("fork", ["_fsm", "_vm"])
def test_a_damaged_map_that_the_server_makes_again_is_no_loss(database: Database, fork: str) -> None:
    path = database.path_of("pg_proc") + fork
    target = database.copy()
    scribble(target / path, 100, b"?")
    answer = database.examine(target)
    assert (PROMISED, (), ()) == (answer.present, answer.detected, answer.silent)


def test_a_server_that_is_killed_while_it_stops_has_found_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = database.copy()
    stop = Cluster.stop

    def kill(cluster: Cluster, **how: Any) -> int | None:
        os.kill(_postmaster(target), signal.SIGKILL)
        return stop(cluster, **how)

    monkeypatch.setattr(Cluster, "stop", kill)
    with pytest.raises(KilledFromOutside, match="from outside"):
        database.examine(target)


def test_a_server_that_cannot_start_says_why(database: Database) -> None:
    target = database.copy()
    scribble(target / "global" / "pg_control", 0, bytes(PAGE))
    answer = database.examine(target)
    assert answer.present is None
    (problem,) = answer.detected
    assert "the server does not start" in problem
    assert "FATAL" in problem or "PANIC" in problem


def test_a_lost_database_is_the_engines_own_complaint(database: Database) -> None:
    target = database.copy()
    shutil.rmtree(target / "base")
    answer = database.examine(target)
    assert answer.present is None
    assert answer.detected


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    with folder_open_to_all() as folder:
        yield folder


@contextmanager
def folder_open_to_all() -> Iterator[Path]:
    """A folder of the machine in which every account may leave something, and a library that does so when it is loaded."""
    with tempfile.TemporaryDirectory(prefix="bedplate-test-", dir="/opt") as name:
        folder = Path(name)
        folder.chmod(0o777)
        (folder / "marks").mkdir(mode=0o777)
        (folder / "marks").chmod(0o777)
        source = folder / "mark.c"
        source.write_text(
            "#include <fcntl.h>\n"
            f'__attribute__((constructor)) static void mark(void) {{ open("{folder}/marks/loaded", O_CREAT, 0666); }}\n'
        )
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "mark.so", source], check=True)
        (folder / "mark.so").chmod(0o755)
        yield folder


OF_A_STRANGER = {
    "libraries": "shared_preload_libraries = '{folder}/mark.so'\njit_provider = '{folder}/mark'\n",
    "archive": "archive_mode = on\narchive_command = 'touch {folder}/marks/archived'\narchive_timeout = 1\n",
    "places": "logging_collector = on\nlog_directory = '{folder}/marks'\nexternal_pid_file = '{folder}/marks/pid'\n",
    "sockets": "unix_socket_directories = '{folder}/marks'\nlisten_addresses = '*'\nport = 54329\n",
    "secrets": "ssl = on\nssl_passphrase_command = 'touch {folder}/marks/asked'\n",
    "include": "include_dir = '{folder}'\n",
    "rights": "hba_file = '{folder}/none'\nident_file = '{folder}/none'\n",
}
RESTORING = "restore_command = 'touch {folder}/marks/restored; false'\nrecovery_end_command = 'touch {folder}/marks/end'\n"


@pytest.mark.parametrize("file", ["postgresql.conf", "postgresql.auto.conf"])
@pytest.mark.parametrize("kind", OF_A_STRANGER)
def test_no_configuration_of_an_image_is_obeyed(
    database: Database, open_to_all: Path, kind: str, file: str
) -> None:
    target = database.copy()
    with (target / file).open("a") as opened:
        opened.write(OF_A_STRANGER[kind].format(folder=open_to_all))
    answer = database.examine(target)
    assert (PROMISED, (), ()) == (answer.present, answer.detected, answer.silent)
    assert [] == list((open_to_all / "marks").iterdir())


@pytest.mark.parametrize("order", ["recovery.signal", "standby.signal"])
def test_no_order_of_an_image_to_restore_is_obeyed(database: Database, open_to_all: Path, order: str) -> None:
    target = database.copy()
    (target / order).touch()
    (target / "pg_hba.conf").write_text("local all all reject\n")
    with (target / "postgresql.auto.conf").open("a") as opened:
        opened.write(RESTORING.format(folder=open_to_all))
    answer = database.examine(target)
    assert (PROMISED, (), ()) == (answer.present, answer.detected, answer.silent)
    assert [] == list((open_to_all / "marks").iterdir())


def test_no_library_of_a_role_or_a_database_is_loaded(database: Database, open_to_all: Path) -> None:
    target = database.after(
        f"ALTER DATABASE bedplate SET session_preload_libraries = '{open_to_all}/mark.so'",
        f"ALTER ROLE {database.account.name} SET local_preload_libraries = '../../..{open_to_all}/mark.so'",
    )
    answer = database.examine(target)
    assert (PROMISED, (), ()) == (answer.present, answer.detected, answer.silent)
    assert [] == list((open_to_all / "marks").iterdir())


def test_a_program_that_the_data_of_an_image_start_reaches_nothing(
    database: Database, open_to_all: Path
) -> None:
    """What lies in a database runs when it is asked; nothing but the kernel keeps it from the machine."""
    target = database.copy()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        program = (
            f"touch {open_to_all}/marks/ran /etc/ran; (: > /dev/tcp/127.0.0.1/{port}) && touch {target}/reached; "
            f'grep -E "^(NoNewPrivs|Seccomp):" /proc/self/status > {target}/rights; ls /proc > {target}/processes'
        )
        database.work_on(
            target,
            "ALTER TABLE note RENAME TO own",
            "CREATE FUNCTION run() RETURNS boolean LANGUAGE plpgsql AS "
            f"$x$ BEGIN EXECUTE $y$ COPY (SELECT 1) TO PROGRAM $z$ bash -c '{program}' $z$ $y$; RETURN true; END $x$",
            "CREATE VIEW note AS SELECT * FROM own WHERE run()",
        )
        for name in ("rights", "processes", "reached"):
            (target / name).unlink(missing_ok=True)
        database.examine(target)
        assert ["NoNewPrivs:\t1", "Seccomp:\t2"] == (target / "rights").read_text().splitlines()
        assert not (target / "reached").exists()
        assert str(os.getpid()) not in (target / "processes").read_text().split()
    assert not Path("/etc/ran").exists()
    assert [] == list((open_to_all / "marks").iterdir())


@pytest.mark.skipif(shutil.which("mkfs.ext4") is None, reason="mkfs.ext4 is not installed")
def test_the_script_of_a_bundle_obeys_no_configuration_of_its_image(
    database: Database, open_to_all: Path, tmp_path: Path
) -> None:
    target = database.copy()
    for text in OF_A_STRANGER.values():
        with (target / "postgresql.conf").open("a") as opened:
            opened.write(text.format(folder=open_to_all))
    (target / "recovery.signal").touch()
    (target / "postgresql.auto.conf").write_text(RESTORING.format(folder=open_to_all))
    (target / "pg_hba.conf").write_text("local all all reject\n")
    (tmp_path / "content").mkdir()
    shutil.move(target, tmp_path / "content/data")
    subject = Subject(
        "postgresql", postgresql.ACCOUNTS, Levels(), Levels(), database.build, postgresql.ORACLE
    )
    job = ReplayJob(FilesystemLevels("ext4"), subject, (), 2**28, 2**20, 0)
    places = REPRODUCTION.places(subject)
    lines = list(REPRODUCTION.lines(subject, database.account))
    bundle = made(tmp_path, job, tmp_path / "content", lines, {}, size="256M", variables=tuple(places))
    (bundle / "promised.txt").write_text("".join(f"{client} {last}\n" for client, last in PROMISED.items()))
    done = reproduced(bundle, **places)
    assert "all is well\n" == done.stdout, done.stderr
    assert [] == list((open_to_all / "marks").iterdir())
