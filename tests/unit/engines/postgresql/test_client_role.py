"""What is asked of a server for the workload's client: every supported version has it, and nothing of it is power."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import pytest

from bedplate.engines.postgresql import visit as cluster_module
from bedplate.engines.postgresql.versions import SUPPORTED_MAJORS
from bedplate.engines.postgresql.visit import CLIENT, DATABASE, Cluster
from bedplate.host.command import Account, Commands
from bedplate.host.ledger import Holding
from bedplate.model.visit import EngineBuild
from bedplate.plan.values import VERSIONS
from bedplate.visit.server import ServerSite

# By the release notes: what is used here, and since when a server knows it.
SINCE = {"pg_monitor": 10, "pg_checkpoint": 15, "GRANT SET ON PARAMETER": 15, "public": 15}
# Context `superuser` in every version from 15 to 18 (guc_tables.c), and none of them names a file or a program.
HARMLESS = {
    "commit_delay",
    "deadlock_timeout",
    "track_io_timing",
    "wal_compression",
    "wal_init_zero",
    "wal_recycle",
}


class Noting:
    """A ledger and a session for what is said to them."""

    said: list[str]

    def __init__(self, *_connection: object) -> None:
        """Nothing is started."""

    def note(self, holding: Holding) -> None:
        """Nothing."""

    def settled(self, holding: Holding) -> None:
        """Nothing."""

    def execute(self, statement: str) -> None:
        self.said.append(statement)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was opened."""


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    monkeypatch.setattr(Noting, "said", [], raising=False)
    monkeypatch.setattr(cluster_module, "Session", Noting)
    Cluster(
        ServerSite(
            build=EngineBuild("/p", "15.18", 8192, 8192, "", "", "", (), "d"),
            data_directory=tmp_path,
            socket_directory=tmp_path,
            log=tmp_path / "log",
            account=Account("nobody", 65534, 65534),
            commands=Commands(),
            ledger=Noting(),
        )
    ).create_database()
    return Noting.said


def test_every_version_that_a_plan_may_ask_for_knows_what_the_client_is_given(said: list[str]) -> None:
    assert tuple(str(major) for major in SUPPORTED_MAJORS) == VERSIONS
    used = [name for name in SINCE if any(name in statement for statement in said)]
    assert {"pg_monitor", "pg_checkpoint", "GRANT SET ON PARAMETER"} == set(used)
    assert all(SINCE[name] <= min(SUPPORTED_MAJORS) for name in SINCE)


def test_the_client_owns_its_database_and_so_its_public_schema(said: list[str]) -> None:
    # From 15 on not everybody may create there: the schema is the owner's of the database (pg_database_owner).
    assert f"CREATE DATABASE {DATABASE} OWNER {CLIENT}" == said[-1]
    assert said[0].startswith(f"CREATE ROLE {CLIENT} LOGIN ")


def test_the_client_is_given_no_power_over_server_or_files(said: list[str]) -> None:
    role, grant, _ = said
    for word in (
        "SUPERUSER",
        "CREATEROLE",
        "CREATEDB",
        "REPLICATION",
        "pg_execute",
        "pg_read_server",
        "pg_write",
    ):
        assert word not in role
    assert HARMLESS == set(grant.removeprefix("GRANT SET ON PARAMETER ").partition(" TO ")[0].split(", "))
