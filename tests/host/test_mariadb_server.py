"""A MariaDB of the distribution's packages, started for real: what is read back, what a kill leaves, what it refuses."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bedplate.engines.mariadb import oracle
from bedplate.engines.mariadb.prepare import PREPARATION, recognise
from bedplate.engines.mariadb.visit import SERVER, MariadbInstance
from bedplate.errors import BedplateError
from bedplate.host.account import server_account
from bedplate.host.command import Commands
from bedplate.host.process import servers_of
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, DeviceLevels, FilesystemLevels, KernelLevels
from bedplate.model.levels import Levels
from bedplate.visit.server import ServerFailed, ServerSite, SessionFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bedplate.model.visit import EngineBuild
    from bedplate.visit.cuts import OracleAnswer

pytestmark = pytest.mark.host

SMALL = {
    "innodb_page_size": 4096,
    "innodb_log_file_size": "8388608",
    "innodb_buffer_pool_size": "33554432",
    "innodb_flush_method": "O_DIRECT",
}


class NotedHoldings:
    """A ledger of the test's."""

    def __init__(self) -> None:
        self.open: list[str] = []

    def note(self, holding: Any) -> None:
        self.open.append(holding.kind)

    def settled(self, holding: Any) -> None:
        self.open.remove(holding.kind)


@pytest.fixture(scope="module")
def build() -> EngineBuild:
    try:
        return PREPARATION.ensure(BuildLevels.unbuilt("mariadb"), lambda _: None, tarball=None)
    except BedplateError as error:
        pytest.skip(f"the packages cannot be had here: {error}")


@pytest.fixture
def place() -> Iterator[Path]:
    """Where the account without rights gets to."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.fixture
def make(place: Path, build: EngineBuild) -> Iterator[Callable[..., tuple[MariadbInstance, Cell]]]:
    account = server_account()
    made: list[MariadbInstance] = []
    place.chmod(0o755)
    for name in ("data", "socket"):
        (place / name).mkdir(mode=0o700)
        shutil.chown(place / name, account.uid, account.gid)
    ledger = NotedHoldings()
    site = ServerSite(
        build, place / "data", place / "socket", place / "server.log", account, Commands(), ledger
    )

    def at(settings: dict[str, Any]) -> tuple[MariadbInstance, Cell]:
        cluster = ClusterLevels(settings=Levels(settings))
        cell = Cell(
            DeviceLevels(),
            KernelLevels(),
            FilesystemLevels("ext4"),
            BuildLevels.unbuilt("mariadb"),
            cluster,
        )
        server = SERVER.at(site)
        assert isinstance(server, MariadbInstance)
        made.append(server)
        return server, cell

    yield at
    for server in made:
        server.kill()
    assert [] == ledger.open
    assert () == servers_of(place / "data", Path(build.prefix))


def test_what_a_superuser_asks_of_the_server_reaches_nothing(
    make: Callable[..., tuple[MariadbInstance, Cell]],
) -> None:
    server, cell = make(SMALL)
    server.initialise(cell)
    server.start()
    server.create_database()
    with (
        tempfile.TemporaryDirectory(prefix="bedplate-test-", dir="/opt") as name,
        server.session() as session,
    ):
        folder, secret = Path(name, "open"), Path(name, "secret")
        folder.mkdir()
        secret.write_text("secret")
        secret.chmod(0o600)
        for path in (folder, folder.parent):
            path.chmod(0o777)
        session.execute("CREATE TABLE words (word TEXT)")
        for statement in (
            f"SELECT 1 INTO OUTFILE '{folder}/file'",
            f"SELECT 1 INTO DUMPFILE '{folder}/dump'",
            f"LOAD DATA INFILE '{secret}' INTO TABLE words",
            f"LOAD DATA LOCAL INFILE '{secret}' INTO TABLE words",
            f"CREATE TABLE elsewhere (id INT PRIMARY KEY) ENGINE=InnoDB DATA DIRECTORY='{folder}'",
            f"INSTALL SONAME '../../../../..{folder}/library'",
        ):
            with pytest.raises(SessionFailed):
                session.execute(statement)
        assert [[None]] == session.rows(f"SELECT LOAD_FILE('{secret}')")
        assert "0" == session.value("SELECT count(*) FROM words")
        assert [] == list(folder.iterdir())
    assert 0 == server.stop()


def test_it_is_read_back_survives_a_kill_and_leaves_nothing(
    make: Callable[..., tuple[MariadbInstance, Cell]],
) -> None:
    server, cell = make(SMALL)
    server.initialise(cell)
    server.start()
    server.create_database()
    found = server.in_force(cell)
    asked = {item.name: item.matches for item in found.comparisons if item.asked is not None}
    assert {f"setting {name}" for name in SMALL} <= set(asked)
    assert not [name for name, matches in asked.items() if matches is False]
    assert found.versions["mariadb"].startswith(server.programs.version)
    seen = recognise(server.data_directory)
    assert seen is not None
    assert ["4096", "1", "O_DIRECT", "ON"] == list(seen.settings.values())
    # It is shut in: whoever has it recognised by its data directory alone cannot tell which files it reads.
    assert (server.programs.version, False) == (seen.version, seen.knows_settings)
    with server.session() as session:
        session.execute("CREATE TABLE kept (id INT PRIMARY KEY) ENGINE=InnoDB")
        session.execute("INSERT INTO kept VALUES (7)")
        # The workload's account reads no file and sets nothing of the server's.
        rights = session.rows("SHOW GRANTS FOR bedplate_client@localhost")
        assert ["GRANT USAGE", "GRANT ALL P"] == [str(row[0])[:11] for row in rights]
        server.kill()
    server.start()
    with server.session() as session:
        assert "7" == session.value("SELECT id FROM kept")
    assert 0 == server.stop()
    assert not server.has_crashed
    seen = recognise(server.data_directory)
    assert seen is not None
    assert not seen.knows_settings
    with pytest.raises(ServerFailed, match="the server died"):
        server.check_alive()


def test_an_unknown_setting_is_refused_in_the_servers_words(
    make: Callable[..., tuple[MariadbInstance, Cell]],
) -> None:
    server, cell = make({**SMALL, "innodb_nosuch": "1"})
    with pytest.raises(ServerFailed, match=r"MariaDB [\d.]+ refuses: .*unknown variable 'innodb_nosuch=1'"):
        server.initialise(cell)


def test_without_packages_it_says_so(build: EngineBuild, tmp_path: Path) -> None:
    site = ServerSite(
        None, tmp_path, tmp_path, tmp_path / "log", server_account(), Commands(), NotedHoldings()
    )
    with pytest.raises(BedplateError, match="a MariaDB needs its packages"):
        SERVER.at(site)
    assert os.access(SERVER.at(replace(site, build=build)).programs.path("sbin/mariadbd"), os.X_OK)  # type: ignore[attr-defined]


def test_the_oracle_tells_what_is_planted_from_what_is_whole(
    make: Callable[..., tuple[MariadbInstance, Cell]], place: Path
) -> None:
    server, cell = make(SMALL)
    oracle.prepare(server, cell, clients=1)
    with server.session() as session:
        for sequence in (1, 2, 3):
            for statement in oracle.transaction(0, sequence, sequence):
                session.execute(statement)
    server.stop()
    shutil.copytree(place / "data", place / "whole", symlinks=True)
    promised = {0: 3}

    def examined() -> OracleAnswer:
        return oracle.examine(server, promised, rows=oracle.ACCOUNTS)

    assert ({0: 3}, (), ()) == _found(examined())
    # What any statement may do, and no crash: half of a transaction.
    server.start()
    with server.session() as session:
        session.execute("UPDATE account SET balance = 0 WHERE id = 2")
    server.stop()
    present, detected, silent = _found(examined())
    assert ({0: 3}, ()) == (present, detected)
    assert "1 accounts' balances" in silent[0]
    _again(place)
    tables = place / "data" / "bedplate"
    with (tables / "account.ibd").open("r+b") as file:
        # Within a leaf: rows of the page do not add up to its checksum.
        file.seek(40 * 4096 + 2048)
        file.write(b"\0" * 512)
    assert _found(examined())[1]


def _found(answer: OracleAnswer) -> tuple[Any, tuple[str, ...], tuple[str, ...]]:
    return answer.present, answer.detected, answer.silent


def _again(place: Path) -> None:
    """The data directory as it was, by the account that it belongs to."""
    shutil.rmtree(place / "data")
    account = server_account()
    shutil.copytree(place / "whole", place / "data", symlinks=True)
    for path in (place / "data", *(place / "data").rglob("*")):
        os.chown(path, account.uid, account.gid)
