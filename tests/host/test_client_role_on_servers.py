"""The workload's client in the distribution's own servers, whichever are installed: enough rights, and no more."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bedplate.engines.postgresql.versions import SUPPORTED_MAJORS
from bedplate.engines.postgresql.visit import Cluster, Session
from bedplate.host.account import server_account
from bedplate.host.command import Commands, environment
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
)
from bedplate.model.visit import EngineBuild
from bedplate.visit.server import ServerSite, SessionFailed

pytestmark = pytest.mark.host

SERVERS = Path("/usr/lib/postgresql")
CELL = Cell(DeviceLevels(), KernelLevels(), FilesystemLevels("ext4"), BuildLevels(), ClusterLevels())
INSTALLED = [major for major in SUPPORTED_MAJORS if (SERVERS / str(major) / "bin/postgres").exists()]
REFUSED = (
    "COPY (SELECT 1) TO PROGRAM 'cat'",
    "COPY (SELECT 1) TO '/tmp/bedplate-client-role'",
    "CREATE TEMPORARY TABLE read (t text)\\; COPY read FROM '/etc/hostname'",
    "ALTER SYSTEM SET work_mem = '8MB'",
    "SET SESSION AUTHORIZATION nobody",
    "CREATE ROLE other SUPERUSER",
    "LOAD 'auto_explain'",
    "SET shared_preload_libraries = 'x'",
    "CREATE FUNCTION f() RETURNS int LANGUAGE c AS 'libc', 'getpid'",
    "CREATE EXTENSION pg_buffercache",
    "SELECT pg_read_file('/etc/hostname')",
    "SELECT pg_reload_conf()",
    "SELECT lo_export(1, '/tmp/bedplate-client-role')",
)


class _NoLedger:
    """A test's server is ended by the test."""

    def note(self, holding: Any) -> None:
        """Nothing."""

    def settled(self, holding: Any) -> None:
        """Nothing."""


@pytest.fixture(
    scope="module",
    params=[*map(pytest.param, INSTALLED)]
    or [pytest.param(None, marks=pytest.mark.skip(reason=f"no server of a known version in {SERVERS}"))],
)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    major: int = request.param
    base = Path(tempfile.mkdtemp(prefix="bedplate-test-client-"))
    base.chmod(0o755)
    account = server_account()
    for name in ("data", "socket"):
        (base / name).mkdir(mode=0o700)
        shutil.chown(base / name, account.uid, account.gid)
    prefix = str(SERVERS / str(major))
    found = Cluster(
        ServerSite(
            build=EngineBuild(prefix, f"{major}.0", 8192, 8192, "", "", "", (), "d"),
            data_directory=base / "data",
            socket_directory=base / "socket",
            log=base / "server.log",
            account=account,
            commands=Commands(),
            ledger=_NoLedger(),
        )
    )
    try:
        found.initialise(CELL)
        found.start(options=("-c", "dynamic_shared_memory_type=mmap"))
        found.create_database()
        yield found
    finally:
        found.kill()
        shutil.rmtree(base)


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Session]:
    with cluster.client_session() as session:
        yield session


def test_the_client_does_what_a_workload_does(cluster: Cluster, client: Session) -> None:
    for statement in (
        "CHECKPOINT",
        # Not everybody's from 15 on: it is the database's owner.
        "CREATE TABLE public.own (id int)",
        "CREATE SCHEMA own",
        "CREATE UNLOGGED TABLE own.unlogged (id int)",
        "CREATE TEMPORARY TABLE mine (id int)",
        "VACUUM ANALYZE public.own",
        "SET synchronous_commit = off",
        "SET commit_delay = 10",
        "SET deadlock_timeout = '2s'",
        "SET track_io_timing = on",
        "SET wal_compression = on",
        "SET wal_init_zero = off",
        "SET wal_recycle = off",
    ):
        client.execute(statement)
    assert 0 < int(client.value("SELECT sum(size)::bigint FROM pg_ls_waldir()"))
    assert 0 < int(client.value("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'checkpointer'"))
    # Every setting can be read, as bedplate reads those of its sessions.
    assert "0" == client.value("SELECT count(*) FROM pg_settings WHERE setting IS NULL")
    with cluster.session() as session:
        asked = "SELECT count(*) FROM pg_settings"
        assert session.value(asked) == client.value(asked)


def test_pgbench_loads_and_runs_as_the_client(cluster: Cluster) -> None:
    connection = cluster.connection.of_client
    for words in (
        ("--initialize", "--quiet"),
        ("--transactions=5", "--client=2"),
        ("--builtin=select-only",),
    ):
        done = subprocess.run(
            [str(connection.program("pgbench")), *words, *connection.options()],
            user=cluster.account.uid,
            group=cluster.account.gid,
            extra_groups=[],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            env=environment(),
        )
        assert 0 == done.returncode, done.stderr


@pytest.mark.parametrize("statement", REFUSED)
def test_the_client_starts_no_program_reads_no_file_and_changes_no_server(
    client: Session, statement: str
) -> None:
    with pytest.raises(
        SessionFailed, match=r"permission denied|must be superuser|cannot be changed|must have|is not allowed"
    ):
        client.execute(statement)
    assert not Path("/tmp/bedplate-client-role").exists()
