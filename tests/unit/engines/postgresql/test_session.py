"""What a session says when the server refuses a statement; psql is a script here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from bedplate.engines.postgresql.visit import Connection, Session
from bedplate.host.command import Account
from bedplate.model.visit import EngineBuild
from bedplate.visit.server import SessionFailed

if TYPE_CHECKING:
    from pathlib import Path

# It refuses everything, and says what it is told to echo. Of one statement it knows no answer, and waits. Behind another it says
# what psql 18 said of a server that had ended while nobody asked: no word of it is an error, and psql goes on.
_PSQL = r"""#!/bin/sh
while read -r line; do
    case $line in
        *stopped*) exec sleep 600 ;;
        *gone*) printf 'server closed the connection unexpectedly\n\tbefore or while processing the request.\n' ;;
        *if*) ;;
        *echo*) eval "echo ${line#*echo}" ;;
        *) echo "ERROR:  refused" ;;
    esac
done
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a session drops its groups, which root alone may")


@pytest.fixture
def connection(tmp_path: Path) -> Connection:
    psql = tmp_path / "bin" / "psql"
    psql.parent.mkdir()
    psql.write_text(_PSQL, encoding="utf-8")
    psql.chmod(0o755)
    build = EngineBuild(str(tmp_path), "18.1", 8192, 8192, "", "", "", (), "d")
    return Connection(build, tmp_path, Account("root", 0, 0))


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        ("SELECT 1", "SELECT 1"),
        (f"SELECT '{'x' * 112}'", f"SELECT '{'x' * 112}…"),
        (f"  SELECT '{'x' * 111}'\n", f"SELECT '{'x' * 111}'"),
    ],
)
def test_a_refused_statement_is_quoted_and_a_cut_is_seen(
    connection: Connection, statement: str, shown: str
) -> None:
    with Session(connection) as session, pytest.raises(SessionFailed) as failed:
        session.execute(statement, timeout_s=30)
    assert (f"{shown}: ERROR:  refused",) == failed.value.reasons


def test_a_server_that_ended_between_two_statements_has_not_answered_the_second(
    connection: Connection,
) -> None:
    with Session(connection) as session:
        with pytest.raises(SessionFailed, match="closed the connection") as failed:
            session.execute("COMMIT 'gone'", timeout_s=30)
        assert session.has_lost_connection
    assert "the statement failed" not in str(failed.value)


def test_a_session_that_was_ended_without_an_answer_says_so_ever_after(connection: Connection) -> None:
    """A server that was stopped for a while is there again, and no pipe of it is broken."""
    said = "SELECT 'stopped': the server gave no answer in time; the session was ended"
    with Session(connection) as session:
        with pytest.raises(SessionFailed, match="no answer in time"):
            session.rows("SELECT 'stopped'", timeout_s=0.05)
        # What is asked next fails for the same reason, when psql is gone.
        for _ in range(3):
            with pytest.raises(SessionFailed) as failed:
                session.value("SELECT 1", timeout_s=30)
        assert (said,) == failed.value.reasons
        assert not session.was_killed
