"""The clients of a server that is recorded: each transaction, its mark, the next one.

A transaction notes a client's number and raises the balance of one account by one, so that whatever is there after a cut must
add up (`cut_accounts.py`).
"""

from __future__ import annotations

import os
import random
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, KilledFromOutside
from bedplate.visit.cut_engine import BEGIN, END, Driven

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from bedplate.model.levels import Scalar
    from bedplate.visit.cut_engine import Checkpoints, Recorded
    from bedplate.visit.piped_session import PipedSession

_ENOUGH_EVERY_S = 0.05
_ABANDON_LIMIT_S = 300.0


@dataclass(frozen=True)
class CutClients:
    """What the clients of one server do: `transaction` is its SQL, of a client, its sequence and an account from 1 to `accounts`.

    Each of its parts is sent once the one before was taken: a client that goes on after an error would commit what is left of it.

    `checkpoint` is the statement that writes every dirty page at once.
    """

    session: Callable[[], PipedSession]
    transaction: Callable[[int, int, int], tuple[str, ...]]
    accounts: int
    checkpoint: str
    version: str


def drive(
    server: CutClients,
    mark_file: Path,
    *,
    clients: int,
    duration_s: float,
    seed: int,
    pause_s: Callable[[], float] = lambda: 0.0,
    enough: Callable[[], bool] = lambda: False,
) -> Driven:
    """The clients, each in a thread and a session of its own; BedplateError with the clients' troubles.

    Before each transaction a client waits as long as `pause_s` says. Once `enough`, which is asked all the while, says so, each ends after the transaction that it is at.
    """
    ended_early = False
    crew = [
        _Client(server, mark_file, number, duration_s, seed, pause_s=pause_s) for number in range(clients)
    ]
    started = time.monotonic()
    try:
        for client in crew:
            client.start()
        while working := [client for client in crew if client.is_alive()]:
            working[0].join(_ENOUGH_EVERY_S)
            if not ended_early and enough():
                ended_early = True
                for client in crew:
                    client.end()
    except BaseException:
        # Whoever is interrupted takes the recorder down next, and a client holds its `mark` open.
        for client in crew:
            client.abandon()
        raise
    seconds = time.monotonic() - started
    if any(client.was_killed for client in crew):
        raise KilledFromOutside("a client of the server")
    troubles = [client.trouble for client in crew if client.trouble is not None]
    if troubles:
        raise BedplateError(*troubles)
    return Driven(
        sum(client.sequence for client in crew),
        seconds,
        server.version,
        ended_early=ended_early,
    )


class ServerWriter:
    """A started server and its clients, between the marks of a recording: the `CutWriter` of every server of SQL.

    `facts` are its settings as it shows them, `bound_ms` what they bound a loss by. What `counters` count while clients write
    joins the facts. `was_killed` says whether SIGKILL ended a process of the server.
    """

    bound_transactions: int | None = None

    def __init__(
        self,
        server: CutClients,
        setup: Recorded,
        *,
        clients: int,
        facts: Mapping[str, Scalar],
        bound_ms: float | None,
        was_killed: Callable[[], bool],
        counters: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        self._counters = counters
        self._was_killed = was_killed
        self.facts = facts
        self.bound_ms = bound_ms
        self._server = server
        self._setup = setup
        self._clients = clients
        setup.settle()

    @property
    def was_killed(self) -> bool:
        """By its own word."""
        return self._was_killed()

    def checkpoints(self) -> AbstractContextManager[Checkpoints] | None:
        """In a session of their own."""
        return _checkpoints(self._server)

    def drive(
        self,
        output: Path,  # noqa: ARG002 -- its clients are threads
        *,
        duration_s: float,
        seed: int,
        beside: AbstractContextManager[object],
    ) -> Driven:
        """At the recording's pace."""
        before = self._counters()
        self._setup.mark(BEGIN)
        pause_s = self._setup.pace(duration_s)
        with beside:
            driven = drive(
                self._server,
                self._setup.mark_file,
                clients=self._clients,
                duration_s=duration_s,
                seed=seed,
                pause_s=pause_s,
                enough=self._setup.is_log_nearly_full,
            )
        self._setup.mark(END)
        counted = {name: count - before[name] for name, count in self._counters().items()}
        self.facts = {**self.facts, **counted}
        return driven


class _Checkpoints:
    def __init__(self, session: PipedSession, statement: str) -> None:
        self._session = session
        self._statement = statement
        self.abandon = session.abandon

    def checkpoint(self) -> None:
        self._session.execute(self._statement)


@contextmanager
def _checkpoints(server: CutClients) -> Iterator[_Checkpoints]:
    with server.session() as session:
        yield _Checkpoints(session, server.checkpoint)


class _Client(threading.Thread):
    """One client: a transaction, its mark, the next one."""

    def __init__(
        self,
        server: CutClients,
        mark_file: Path,
        number: int,
        duration_s: float,
        seed: int,
        *,
        pause_s: Callable[[], float],
    ) -> None:
        super().__init__(name=f"client {number}", daemon=True)
        self.sequence = 0
        self.trouble: str | None = None
        self.was_killed = False
        self._number = number
        self._mark_file = mark_file
        self._duration_s = duration_s
        self._pause_s = pause_s
        self._draw = random.Random(f"client {number} of {seed}")  # noqa: S311 -- chance, not secrecy
        self._is_over = threading.Event()
        self._server = server
        self._session = server.session()

    def end(self) -> None:
        """After the transaction that it is at."""
        self._is_over.set()

    def abandon(self) -> None:
        """End it at once, and wait until it has."""
        self._is_over.set()
        self._session.abandon()
        if self.ident is not None:
            self.join(_ABANDON_LIMIT_S)

    def run(self) -> None:
        try:
            with self._session as session:
                # Connected before the clock runs.
                session.execute("SELECT 1")
                self._work(session)
        except (BedplateError, OSError) as error:
            self.was_killed = self._session.was_killed
            self.trouble = f"client {self._number}, transaction {self.sequence + 1}: {error}"

    def _work(self, session: PipedSession) -> None:
        until = time.monotonic() + self._duration_s
        mark = os.open(self._mark_file, os.O_WRONLY | os.O_CLOEXEC)
        try:
            while (left_s := until - time.monotonic()) > 0 and not self._is_over.is_set():
                if (pause_s := self._pause_s()) > 0:
                    self._is_over.wait(min(pause_s, left_s))
                    continue
                sequence = self.sequence + 1
                account = self._draw.randint(1, self._server.accounts)
                for statement in self._server.transaction(self._number, sequence, account):
                    session.execute(statement)
                os.write(mark, b"A %d %d %d\n" % (self._number, sequence, time.monotonic_ns() // 1000))
                self.sequence = sequence
        finally:
            os.close(mark)
