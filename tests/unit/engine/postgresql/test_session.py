"""What a session says when the server refuses a statement; psql is a script here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from bedplate.engine.postgresql.cluster import Connection
from bedplate.engine.postgresql.session import Session, SessionFailed
from bedplate.host.command import Account
from bedplate.model.visit import EngineBuild

if TYPE_CHECKING:
    from pathlib import Path

# It refuses everything, and says what it is told to echo.
_PSQL = r"""#!/bin/sh
while read -r line; do
    case $line in
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
