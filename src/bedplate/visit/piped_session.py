"""One lasting connection to a server, through the engine's own client program.

`run-visit` has no database driver, and the client is there with every server. The session is asked once a second beside
a measured run, so it must cost little: one process, one connection, no reconnects.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from typing import TYPE_CHECKING, ClassVar, Self

from bedplate.errors import BedplateError
from bedplate.host.command import restricted_environment
from bedplate.host.interruption import held
from bedplate.model.reason import because

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.host.shut_in.restriction import Restriction
    from bedplate.model.reason import Reason

_STATEMENT_SHOWN = 120
CONNECTION_LOST = "connection-lost"
NO_ANSWER_IN_TIME = "no-answer-in-time"


class SessionFailed(BedplateError):
    """The server refused a statement, or went away; `said` is what server and client said."""

    code = "session-failed"

    def __init__(self, *reasons: str | Reason, said: str = "") -> None:
        super().__init__(*reasons)
        self.said = said


class PipedSession:
    """Statements in, rows of text out; NULL comes as None. Not for use by two threads at once.

    What the client prints: `field` is between two cells of a row, `null` stands for NULL, `end` is the line behind an answer, for
    which `ask_for_end` asks. A line that begins with one of `errors` is the server's complaint, or the client's; where the last line
    before the end is `failed`, the statement was not answered, whatever stands before it.
    """

    field: ClassVar[str]
    null: ClassVar[str]
    end: ClassVar[str]
    ask_for_end: ClassVar[str]
    errors: ClassVar[tuple[str, ...]]
    failed: ClassVar[str | None] = None

    def __init__(
        self,
        argv: Sequence[str],
        restriction: Restriction,
        more_environment: Mapping[str, str] | None = None,
    ) -> None:
        self._rest = b""
        self._has_killed = False
        # Why this session was ended from here, for whoever asks it again.
        self._ended: Reason | None = None
        self.has_lost_connection = False
        process: subprocess.Popen[bytes] | None = None
        try:
            with held():
                process = self._process = _started(argv, restriction, more_environment)
        except BaseException:
            # Whoever asked gets no session that could be closed.
            if process is not None:
                process.kill()
                process.wait()
            raise

    @property
    def pid(self) -> int:
        """The process id of the client, whose CPU belongs to the cost of watching."""
        return self._process.pid

    @property
    def was_killed(self) -> bool:
        """Whether SIGKILL ended the client, and not this session."""
        return not self._has_killed and self._process.poll() == -signal.SIGKILL

    def rows(self, statement: str, *, timeout_s: float = 60.0) -> list[list[str | None]]:
        """Run one statement and return its rows; SessionFailed quotes the server's error."""
        lines = self._ask(statement, timeout_s)
        has_failed = self.failed is not None and lines[-1:] == [self.failed]
        if has_failed:
            lines.pop()
        errors = [line for line in lines if line.startswith(self.errors)]
        if errors or has_failed:
            said = "; ".join(errors or lines)
            self.has_lost_connection |= "connection" in said
            raise SessionFailed(f"{_shown(statement)}: {said}", said=said)
        return [[None if cell == self.null else cell for cell in line.split(self.field)] for line in lines]

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
        """End the client at once, also while it waits for an answer; whoever waits gets SessionFailed."""
        self._has_killed = True
        self._process.kill()

    def close(self) -> None:
        """End the connection; a client that does not end is killed."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            # The client may have gone first, which is what was wanted.
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

    def __exit__(self, *_: object) -> None:
        self.close()

    @staticmethod
    def has_gone(said: bytes) -> bool:  # noqa: ARG004 -- of clients that end by themselves
        """Whether a client that goes on after errors has said that its connection is gone."""
        return False

    def _ask(self, statement: str, timeout_s: float) -> list[str]:
        assert self._process.stdin is not None  # noqa: S101 -- Popen was given pipes
        if self._ended:
            raise SessionFailed(self._ended)
        text = f"{statement.rstrip().rstrip(';')};\n{self.ask_for_end}\n"
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
        end = self.end.encode() + b"\n"
        while end not in self._rest:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self.abandon()
                words = f"{_shown(statement)}: the server gave no answer in time; the session was ended"
                self._ended = because(NO_ANSWER_IN_TIME, words)
                raise SessionFailed(self._ended)
            chunk = os.read(self._process.stdout.fileno(), 65536)
            if not chunk or self.has_gone(self._rest + chunk):
                said = (self._rest + chunk).decode(errors="replace").strip()
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


def _started(
    argv: Sequence[str], restriction: Restriction, more_environment: Mapping[str, str] | None
) -> subprocess.Popen[bytes]:
    with restriction.child() as become:
        return subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=restricted_environment(more_environment),
            cwd="/",
            start_new_session=True,
            preexec_fn=become,  # noqa: PLW1509 -- it takes no lock
        )


def _shown(statement: str) -> str:
    """The beginning of a statement, for an error."""
    text = statement.strip()
    return text if len(text) <= _STATEMENT_SHOWN else f"{text[:_STATEMENT_SHOWN]}…"
