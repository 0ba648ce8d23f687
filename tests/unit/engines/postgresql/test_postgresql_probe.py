"""The server's counters: asked by one statement, which the server parses once and not every second."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from bedplate.engines.postgresql.visit import PostgresqlProbe, statement_for
from bedplate.visit.server import SessionFailed

if TYPE_CHECKING:
    from bedplate.engines.postgresql.visit import Session


class Server:
    """A session that keeps what it is asked."""

    def __init__(self, *, fails: bool = False) -> None:
        self.said: list[str] = []
        self.prepared: dict[str, str] = {}
        self.fails = fails

    def execute(self, statement: str, *, timeout_s: float) -> None:
        assert timeout_s <= 60, "a run waits for its probe"
        self.said.append(statement)
        if self.fails:
            raise SessionFailed("the server closed the connection")
        word, name, as_, text = statement.split(maxsplit=3)
        assert ("PREPARE", "AS") == (word, as_)
        assert name not in self.prepared
        self.prepared[name] = text

    def rows(self, statement: str, *, timeout_s: float) -> list[list[str | None]]:
        assert timeout_s <= 60, "a run waits for its probe"
        self.said.append(statement)
        word, name = statement.split()
        assert "EXECUTE" == word
        assert name in self.prepared
        return [["blks_hit", str(len(self.said))], ["wal_bytes", "1e3"], ["read_bytes", None]]


def probe(server: Server, version: str = "18.6") -> PostgresqlProbe:
    return PostgresqlProbe(cast("Session", server), version)


def test_the_statement_is_prepared_once_and_run_every_time() -> None:
    server = Server()
    asked = probe(server)
    # What is null is absent, not zero.
    assert {"postgresql.blks_hit": 2.0, "postgresql.wal_bytes": 1000.0} == asked.read()
    assert 3.0 == asked.read()["postgresql.blks_hit"]
    assert 4.0 == asked.read()["postgresql.blks_hit"]
    assert [statement_for("18.6").strip()] == [text.strip() for text in server.prepared.values()]
    assert ["PREPARE", "EXECUTE", "EXECUTE", "EXECUTE"] == [text.split()[0] for text in server.said]


def test_a_statement_that_was_not_prepared_is_prepared_the_next_time() -> None:
    server = Server(fails=True)
    asked = probe(server)
    with pytest.raises(SessionFailed):
        asked.read()
    server.fails = False
    assert 3.0 == asked.read()["postgresql.blks_hit"]


@pytest.mark.parametrize("version", ["15.8", "16.2", "17.4", "18.6", "19beta1", "18rc1"])
def test_each_version_is_asked_what_it_has(version: str) -> None:
    statement = statement_for(version)
    major = int(version[:2])
    assert (major >= 17) == ("pg_stat_checkpointer" in statement)
    assert (major >= 16) == ("pg_stat_io" in statement)
    assert (major >= 18) == ("sum(read_bytes)" in statement)
    # Each counter comes from one place.
    names = [line.split("'")[1] for line in statement.splitlines() if "SELECT '" in line]
    assert len(set(names)) == len(names)
    everywhere = {"blks_hit", "wal_bytes", "temp_bytes", "buffers_checkpointer", "buffers_backend"}
    assert {*everywhere, "maxwritten_clean"} <= set(names)
