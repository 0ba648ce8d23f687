"""The lines that ask a server of PostgreSQL in a bundle, with programs that are planted."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bedplate.engines.postgresql.oracle import _started
from bedplate.host.command import Account
from bedplate.model.levels import Levels
from bedplate.visit.cuts import Subject

SUBJECT = Subject("postgresql", 10, Levels(), Levels())
READY = r"""printf '1\n2\n3\n4\n5\n6\n7\nready   \n' > "$2/postmaster.pid"; exec sleep 5"""
REFUSED = "echo 'FATAL:  database \"bedplate\" does not exist' >&2; exit 2"


def started(folder: Path, *, postgres: str, psql: str) -> str:
    """What the lines say until the server is asked."""
    for name, text in (("postgres", postgres), ("psql", psql)):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    head = f'data={folder}; own={folder}; bad() {{ echo "bad $*"; }}'
    text = "\n".join((head, *_started(SUBJECT, Account("somebody", 1, 1)), "echo asked"))
    environment = {"PATH": f"{folder}:/usr/bin:/bin"}
    done = subprocess.run(
        ["sh", "-uc", text], env=environment, capture_output=True, text=True, timeout=20, check=True
    )
    return done.stdout


def test_a_server_that_refuses_connections_is_bad(tmp_path: Path) -> None:
    said = started(tmp_path, postgres=READY, psql=REFUSED)
    assert 'bad the server refuses a connection: FATAL:  database "bedplate" does not exist\n' == said


def test_one_that_answers_is_asked_and_one_that_ends_is_bad(tmp_path: Path) -> None:
    assert "asked\n" == started(tmp_path, postgres=READY, psql="echo 1")
    ended = started(tmp_path, postgres="echo 'PANIC:  no checkpoint'; exit 1", psql=REFUSED)
    assert "bad the server does not start: PANIC:  no checkpoint\n" == ended
