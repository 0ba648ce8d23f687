"""One lasting connection to the server, through the build's own psql.

`run-visit` has no database driver, and psql is there with every build. The session is asked once a
second beside a measured run, so it must cost little: one process, one connection, no reconnects.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Self

from bedplate.errors import BedplateError
from bedplate.host.command import environment
from bedplate.model.reason import because

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from bedplate.engines.postgresql.cluster import Connection
    from bedplate.model.reason import Reason

_FIELD = "\x1f"
_END = "\x1e bedplate end of answer \x1e"
_STATEMENT_SHOWN = 120
CONNECTION_LOST = "connection-lost"
NO_ANSWER_IN_TIME = "no-answer-in-time"


class SessionFailed(BedplateError):
    """The server refused a statement, or went away; `said` is what server and psql said."""

    code = "session-failed"

    def __init__(self, *reasons: str | Reason, said: str = "") -> None:
        super().__init__(*reasons)
        self.said = said


class Session:
    """Statements in, rows of text out; NULL comes as None. Not for use by two threads at once."""

    def __init__(self, connection: Connection) -> None:
        self._process = subprocess.Popen(
            [
                str(connection.program("psql")),
                "--no-psqlrc",
                "--quiet",
                "--no-align",
                "--tuples-only",
                f"--field-separator={_FIELD}",
                "--pset=null=\x1a",
                *connection.options(),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment(),
            cwd="/",
            start_new_session=True,
            user=connection.account.uid,
            group=connection.account.gid,
            extra_groups=[],
        )
        self._rest = b""
        self._has_killed = False
        # Why this session was ended from here, for whoever asks it again.
        self._ended: Reason | None = None
        self.has_lost_connection = False

    @property
    def pid(self) -> int:
        """The process id of psql, whose CPU belongs to the cost of watching."""
        return self._process.pid

    @property
    def was_killed(self) -> bool:
        """Whether SIGKILL ended psql, and not this session."""
        return not self._has_killed and self._process.poll() == -signal.SIGKILL

    def rows(self, statement: str, *, timeout_s: float = 60.0) -> list[list[str | None]]:
        """Run one statement and return its rows; SessionFailed quotes the server's error."""
        lines = self._ask(statement, timeout_s)
        errors = [line for line in lines if line.startswith(("ERROR:", "FATAL:", "PANIC:", "psql:"))]
        if errors:
            said = "; ".join(errors)
            self.has_lost_connection |= "connection" in said
            raise SessionFailed(f"{_shown(statement)}: {said}", said=said)
        return [[None if cell == "\x1a" else cell for cell in line.split(_FIELD)] for line in lines]

    def value(self, statement: str, *, timeout_s: float = 60.0) -> str:
        """The single value of a statement's single row."""
        rows = self.rows(statement, timeout_s=timeout_s)
        if len(rows) != 1 or len(rows[0]) != 1 or rows[0][0] is None:
            raise SessionFailed(f"{_shown(statement)}: expected one value, found {rows!r:.200}")
        return rows[0][0]

    def execute(self, statement: str, *, timeout_s: float = 3600.0) -> None:
        """Run a statement for its effect."""
        self.rows(statement, timeout_s=timeout_s)

    def abandon(self) -> None:
        """End psql at once, also while it waits for an answer; whoever waits gets SessionFailed."""
        self._has_killed = True
        self._process.kill()

    def close(self) -> None:
        """End the connection; a psql that does not end is killed."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            # psql may have gone first, which is what was wanted.
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.abandon()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _ask(self, statement: str, timeout_s: float) -> list[str]:
        assert self._process.stdin is not None  # noqa: S101 -- Popen was given pipes
        if self._ended:
            raise SessionFailed(self._ended)
        text = f"{statement.rstrip().rstrip(';')};\n\\echo '{_END}'\n"
        try:
            self._process.stdin.write(text.encode())
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            said = "; ".join(self._remaining())
            self.has_lost_connection = True
            gone = because(CONNECTION_LOST, f"the connection to the server is gone: {said or error}")
            raise SessionFailed(gone, said=said) from error
        return self._read_answer(statement, time.monotonic() + timeout_s)

    def _read_answer(self, statement: str, deadline: float) -> list[str]:
        assert self._process.stdout is not None  # noqa: S101 -- Popen was given pipes
        end = _END.encode() + b"\n"
        while end not in self._rest:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self.abandon()
                words = f"{_shown(statement)}: the server gave no answer in time; the session was ended"
                self._ended = because(NO_ANSWER_IN_TIME, words)
                raise SessionFailed(self._ended)
            chunk = os.read(self._process.stdout.fileno(), 65536)
            if not chunk:
                said = self._rest.decode(errors="replace").strip()
                self._rest = b""
                words = f"the server closed the connection: {said or 'no message'}"
                self.has_lost_connection = True
                raise SessionFailed(because(CONNECTION_LOST, words), said=said)
            self._rest += chunk
        answer, self._rest = self._rest.split(end, 1)
        return answer.decode(errors="replace").splitlines()

    def _remaining(self) -> Sequence[str]:
        if self._process.stdout is None or self._process.poll() is None:
            return ()
        return self._process.stdout.read().decode(errors="replace").split("\n")


def _shown(statement: str) -> str:
    """The beginning of a statement, for an error."""
    text = statement.strip()
    return text if len(text) <= _STATEMENT_SHOWN else f"{text[:_STATEMENT_SHOWN]}…"
