"""Runs other programs: argument lists only, always with a time limit, always recorded.

`Commands` is handed to everything that changes the machine, so that a visit can say exactly
what it did, and so that tests can put a double in its place.
"""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from bedplate.errors import CommandFailed, CommandNotStarted, PrintedTooMuch
from bedplate.host.interruption import defer_interruptions
from bedplate.installation import sources

if TYPE_CHECKING:
    from bedplate.host.shut_in import Confinement, Restriction

# Children inherit it, so that the tools of a killed owner of a ledger are found, whatever they were.
MARK = "BEDPLATE_LEDGER"
# A fixed locale: messages are parsed, and a figure must not depend on the user's language.
_FIXED_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "LANGUAGE": "C", "TZ": "UTC"}
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Completed:
    """A command that ran: what was asked, what came back, how long it took."""

    argv: tuple[str, ...]
    status: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def output(self) -> str:
        """Both streams, for a person."""
        return "\n".join(part for part in (self.stdout.strip(), self.stderr.strip()) if part)

    def require_success(self) -> None:
        """CommandFailed on a status other than 0, with the last lines of the output."""
        if self.status != 0:
            raise CommandFailed(
                f"{' '.join(self.argv)} ended with status {self.status}: {_tail(self.stdout, self.stderr)}",
                argv=self.argv,
                status=self.status,
                output=self.output,
            )


@dataclass(frozen=True)
class Account:
    """The unprivileged account that a database runs as."""

    name: str
    uid: int
    gid: int


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of every command: the caller's, with a fixed locale and the system's tools.

    libpq's variables are left out: a PGOPTIONS of the user's shell would become part of a figure.
    """
    path = os.environ.get("PATH", "")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("PG")},
        **_FIXED_ENVIRONMENT,
        "PATH": f"{path}:{_SYSTEM_PATH}" if path else _SYSTEM_PATH,
        **(extra or {}),
    }


def bare_environment() -> dict[str, str]:
    """What programs of others see of it: where programs are, and what is the same everywhere. A CI job has its secrets there."""
    inherited = environment()
    return {name: inherited[name] for name in ("PATH", "LC_ALL", "TZ")}


def restricted_environment(additions: Mapping[str, str] | None = None) -> dict[str, str]:
    """What servers and their clients see of it: the same, the mark of what is left behind, and what their engine gives them."""
    return {
        **bare_environment(),
        **{name: os.environ[name] for name in (MARK,) if name in os.environ},
        **(additions or {}),
    }


@dataclass
class Commands:
    """Runs commands and remembers them in order; `record` is what the report prints."""

    record: list[tuple[str, ...]] = field(default_factory=list)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = 60.0,
        check: bool = True,
        account: Account | None = None,
        extra_environment: Mapping[str, str] | None = None,
        stdin: str | None = None,
        directory: Path | None = None,
        most_bytes: int | None = None,
        confinement: Confinement | Restriction | None = None,
    ) -> Completed:
        """Run `argv` to its end.

        `check=True` raises `CommandFailed` on a status other than 0, with the last lines of the
        output. A time limit kills the whole process group. `account` drops all privileges. `most_bytes` is for a program of
        others, which might print until memory is full: one that prints more is killed, and PrintedTooMuch raised. With a
        `confinement` it drops its rights by itself: one that has an `argv`, which is this, lets it see two folders.
        """
        if not argv or any("\0" in word for word in argv):
            raise ValueError(f"not an argument list: {argv!r}")
        self.record.append(tuple(argv))
        started = time.monotonic()
        process: subprocess.Popen[str] | None = None
        try:
            # An interruption waits until the process is known, so that it can be ended.
            with defer_interruptions():
                process = _start(
                    argv,
                    account,
                    extra_environment,
                    directory,
                    stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                    confinement=confinement,
                )
            if most_bytes is None:
                stdout, stderr = process.communicate(stdin, timeout=timeout_s)
            else:
                stdout, stderr = _bounded(process, argv, started + timeout_s, most_bytes)
        except subprocess.TimeoutExpired:
            stdout, stderr = _end(process)
            raise CommandFailed(
                f"{argv[0]} did not end within {timeout_s:g} s and was killed: {' '.join(argv)}",
                argv=argv,
                status=None,
                output=_tail(stdout, stderr),
            ) from None
        except BaseException:
            _end(process)
            raise
        done = Completed(tuple(argv), process.returncode, stdout, stderr, time.monotonic() - started)
        if check:
            done.require_success()
        return done

    def stream(
        self,
        argv: Sequence[str],
        input_stream: IO[bytes],
        *,
        timeout_s: float,
        extra_environment: Mapping[str, str] | None = None,
        confinement: Restriction | None = None,
    ) -> Iterator[bytes]:
        """What `argv` makes of what `input_stream` holds, piece by piece; it is killed where the caller takes no more. CommandFailed as of `run`."""
        self.record.append(tuple(argv))
        started = time.monotonic()
        process: subprocess.Popen[str] | None = None
        try:
            with defer_interruptions():
                process = _start(
                    argv, None, extra_environment, None, stdin=input_stream, confinement=confinement
                )
            assert process.stdout is not None  # noqa: S101 -- Popen was given pipes
            pipe = process.stdout.fileno()
            while select.select([pipe], [], [], max(0.0, started + timeout_s - time.monotonic()))[0]:
                piece = os.read(pipe, 1 << 20)
                if not piece:
                    break
                yield piece
            _, stderr = process.communicate(timeout=max(0.0, started + timeout_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise CommandFailed(
                f"{argv[0]} did not end within {timeout_s:g} s and was killed: {' '.join(argv)}",
                argv=argv,
                status=None,
                output="",
            ) from None
        finally:
            _end(process)
        Completed(tuple(argv), process.returncode, "", stderr, time.monotonic() - started).require_success()


def started_apart(argv: Sequence[str], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    """A program of bedplate's own, in a session of its own: a signal of the terminal's reaches it by its starter alone.

    Its standard output is a pipe. To be called in a `held` block, within whatever ends the process.
    """
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        cwd="/",
        env=environment({"PYTHONPATH": str(sources())}),
        start_new_session=True,
    )


def _start(
    argv: Sequence[str],
    account: Account | None,
    extra_environment: Mapping[str, str] | None,
    directory: Path | None,
    *,
    stdin: int | IO[bytes],
    confinement: Confinement | Restriction | None,
) -> subprocess.Popen[str]:
    try:
        with contextlib.nullcontext() if confinement is None else confinement.child() as become:
            return subprocess.Popen(
                list(argv),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                cwd=directory or "/",
                env=(environment if confinement is None else restricted_environment)(extra_environment),
                start_new_session=True,
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=[] if account else None,
                preexec_fn=become,  # noqa: PLW1509 -- it takes no lock
            )
    except (FileNotFoundError, PermissionError) as error:
        raise CommandNotStarted(
            f"{argv[0]} cannot be started: {error.strerror}; is its package installed? "
            f"`bedplate doctor` lists what is missing",
            argv=argv,
            status=None,
            output="",
        ) from error


def _bounded(
    process: subprocess.Popen[str], argv: Sequence[str], deadline_s: float, most_bytes: int
) -> tuple[str, str]:
    """As `communicate` without input, until the deadline of the monotonic clock: what both streams brought, if that is not too much."""
    assert process.stdout is not None  # noqa: S101 -- Popen was given pipes
    assert process.stderr is not None  # noqa: S101
    brought = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    with selectors.DefaultSelector() as open_:
        for stream in brought:
            open_.register(stream, selectors.EVENT_READ)
        while open_.get_map():
            left_s = deadline_s - time.monotonic()
            ready = open_.select(max(0.0, left_s))
            if not ready and left_s <= 0:
                raise subprocess.TimeoutExpired(argv, left_s)
            for key, _ in ready:
                piece = os.read(key.fd, 65536)
                brought[key.fd] += piece
                if not piece:
                    open_.unregister(key.fd)
            if sum(map(len, brought.values())) > most_bytes:
                raise PrintedTooMuch(argv[0], most_bytes, argv=argv)
    process.wait(max(0.0, deadline_s - time.monotonic()))
    stdout, stderr = (bytes(text).decode(errors="replace") for text in brought.values())
    return stdout, stderr


def _end(process: subprocess.Popen[str] | None) -> tuple[str, str]:
    """Kill a command's whole process group, and wait for it: a mount under way has ended then."""
    if process is None:
        return "", ""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()


def _tail(stdout: str, stderr: str, line_count: int = 12) -> str:
    """The last lines of what a failed command said, standard error first as it says why."""
    said = (stderr.strip() or stdout.strip() or "(it printed nothing)").splitlines()
    return "\n".join(said[-line_count:])
