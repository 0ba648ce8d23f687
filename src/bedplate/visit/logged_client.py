"""One process of a client that logs its transactions, and the reader of that log beside it.

Nothing here sleeps: the end of the client and every line of the reader are waited for as events.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.host.command import environment, restricted_environment
from bedplate.host.interruption import held

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from bedplate.host.shut_in.restriction import Restriction
    from bedplate.model.levels import Scalar

# The reader has at most the log's tail left when the client ends.
_READER_LIMIT_S = 120.0


@dataclass(frozen=True)
class SecondSeen:
    """What the reader knows of one second of the log, for display and for the steady warm-up."""

    second: int
    transactions: int
    latency_us_sum: int
    latency_us_max: int

    @classmethod
    def read(cls, line: bytes) -> SecondSeen:
        """From a line of the reader."""
        second, transactions, latency_us_sum, latency_us_max = (int(word) for word in line.split()[:4])
        return cls(second, transactions, latency_us_sum, latency_us_max)

    def event(self, run: str, phase: str, phase_s: float) -> Mapping[str, Scalar]:
        """What a display is told of it: the second of a phase that takes `phase_s`."""
        told: dict[str, Scalar] = {
            "event": "second",
            "run": run,
            "phase": phase,
            "phase_s": phase_s,
            "transactions": self.transactions,
        }
        if self.transactions:
            told["latency_ms_mean"] = self.latency_us_sum / self.transactions / 1000
        return told


@dataclass(frozen=True)
class ClientEnded:
    """How a client ended; `problem` is None when all is well.

    `said` is the end of what it printed on standard error, where it ended badly. `sleeps` counts how often its threads had nothing to do and waited (voluntary context switches, getrusage(2)).
    """

    status: int
    client_cpu_s: float
    problem: str | None
    sleeps: int = 0
    said: str = ""


class LoggedClient:
    """Start, follow the seconds, finish; `abandon` cleans up whatever is left at any moment."""

    def __init__(
        self,
        *,
        argv: Sequence[str],
        restriction: Restriction,
        log_reader: Sequence[str],
        log_prefix: Path,
        condensed: Path,
        output: Path,
        more_environment: Mapping[str, str] | None = None,
        kept_of_errors: Callable[[str], str] = str,
    ) -> None:
        """The client is left what its `restriction` says, and `kept_of_errors` makes of what the client prints on standard error what may be kept of it."""
        self.argv = list(argv)
        self._name = Path(argv[0]).name
        self._more_environment = more_environment
        self._restriction = restriction
        self._log_reader = tuple(log_reader)
        self._log_prefix = log_prefix
        self._condensed = condensed
        self._output = output
        self._kept_of_errors = kept_of_errors
        self._client: subprocess.Popen[bytes] | None = None
        self._reader: subprocess.Popen[bytes] | None = None
        self._client_cpu_s = 0.0
        self._sleeps = 0

    @property
    def pid(self) -> int:
        """The process id of the client."""
        return _started(self._client).pid

    @property
    def log_reader_pid(self) -> int:
        """The process id of the log's reader."""
        return _started(self._reader).pid

    def start(self) -> None:
        """Start the reader, then the client."""
        with held():
            self._start()

    def _start(self) -> None:
        self._reader = subprocess.Popen(
            [
                *self._log_reader,
                "--prefix",
                str(self._log_prefix),
                "--output",
                str(self._condensed),
                "--punch",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._condensed.with_suffix(".err").open("wb"),
            env=environment(),
            cwd="/",
            start_new_session=True,
        )
        try:
            with (
                self._output.with_suffix(".out").open("wb") as out,
                self._output.with_suffix(".err").open("wb") as err,
                self._restriction.child() as become,
            ):
                self._client = subprocess.Popen(
                    self.argv,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    env=restricted_environment(self._more_environment),
                    cwd=self._log_prefix.parent,
                    start_new_session=True,
                    preexec_fn=become,  # noqa: PLW1509 -- it takes no lock
                )
        except OSError as error:
            raise BedplateError(f"{self.argv[0]} cannot be started: {error.strerror}") from error

    def seconds(self) -> Iterator[SecondSeen]:
        """What the reader reports, second by second, until the client and then the reader have ended."""
        client, reader = _started(self._client), _started(self._reader)
        assert reader.stdout is not None  # noqa: S101 -- Popen was given pipes
        ended = os.pidfd_open(client.pid)
        lines = reader.stdout.fileno()
        waiting_for = [ended, lines]
        rest = b""
        try:
            while True:
                ready, _, _ = select.select(
                    waiting_for, [], [], None if ended in waiting_for else _READER_LIMIT_S
                )
                if not ready:
                    raise BedplateError(f"{self._log_reader[0]} did not end after {self._name} had")
                if ended in ready:
                    self._reap(client)
                    waiting_for.remove(ended)
                    self._tell_reader_to_end(reader)
                if lines in ready:
                    chunk = os.read(lines, 65536)
                    if not chunk:
                        break
                    *whole, rest = (rest + chunk).split(b"\n")
                    yield from (SecondSeen.read(line) for line in whole if line.strip())
            if ended in waiting_for:
                raise BedplateError(f"{self._log_reader[0]} ended before {self._name}: {self._reader_said()}")
        finally:
            os.close(ended)

    def stop_early(self, by: signal.Signals) -> None:
        """End a warm-up that has done its work, by a signal that lets each session finish its transaction and leave.

        A kill would leave the server complaining of lost connections.
        """
        client = _started(self._client)
        if client.returncode is None:
            client.send_signal(by)

    def finish(self) -> ClientEnded:
        """Wait for both, and say how the client ended."""
        client, reader = _started(self._client), _started(self._reader)
        try:
            reader_status = reader.wait(_READER_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise BedplateError(f"{self._log_reader[0]} did not end") from None
        if reader_status != 0:
            raise BedplateError(f"the transaction log could not be read: {self._reader_said()}")
        status = client.returncode
        errors = self._output.with_suffix(".err")
        errors.write_text(
            self._kept_of_errors(errors.read_text(encoding="utf-8", errors="replace")), encoding="utf-8"
        )
        if status == 0:
            return ClientEnded(status, self._client_cpu_s, None, self._sleeps)
        said = self._client_said()
        problem = f"{self._name} ended with status {status}: {said}"
        return ClientEnded(status, self._client_cpu_s, problem, self._sleeps, said)

    def abandon(self) -> None:
        """Kill and reap whatever still runs; harmless after `finish`."""
        for process in (self._client, self._reader):
            if process is not None and process.returncode is None and process.poll() is None:
                process.kill()
                process.wait()
        if self._reader is not None:
            for stream in (self._reader.stdin, self._reader.stdout):
                if stream is not None and not stream.closed:
                    _close(stream)

    def _reap(self, client: subprocess.Popen[bytes]) -> None:
        # wait4 gives the CPU time that Popen.wait throws away.
        _, status, usage = os.wait4(client.pid, 0)
        client.returncode = os.waitstatus_to_exitcode(status)
        self._client_cpu_s = usage.ru_utime + usage.ru_stime
        self._sleeps = usage.ru_nvcsw

    @staticmethod
    def _tell_reader_to_end(reader: subprocess.Popen[bytes]) -> None:
        if reader.stdin is not None:
            _close(reader.stdin)

    def _client_said(self) -> str:
        text = self._output.with_suffix(".err").read_text(encoding="utf-8", errors="replace")
        lines = [line for line in text.splitlines() if line.strip()]
        return " | ".join(lines[-5:]) or "(it printed nothing)"

    def _reader_said(self) -> str:
        text = self._condensed.with_suffix(".err").read_text(encoding="utf-8", errors="replace")
        return text.strip() or "(it printed nothing)"


def _close(stream: IO[bytes]) -> None:
    # The other side may have gone first.
    with contextlib.suppress(BrokenPipeError):
        stream.close()


def _started(process: subprocess.Popen[bytes] | None) -> subprocess.Popen[bytes]:
    if process is None:
        raise RuntimeError("the process has not been started")
    return process
