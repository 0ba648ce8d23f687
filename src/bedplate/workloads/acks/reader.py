"""The reader at the other end of a writer's pipe, `drivers/pgbench_log.c --acks`: it takes the time of each line as it comes."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from bedplate.errors import BedplateError, OutputNotUnderstood
from bedplate.host.command import environment
from bedplate.host.interruption import held

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import IO

    from bedplate.visit.tool_process import ToolProcess

# As the driver exits where the writer printed something else than it may; the line is on its standard error.
_REFUSED = 3
# What is left in the pipe when the writer has ended is read at once.
_LIMIT_S = 30.0
_EXPECTED = "`begin`, then `ack CLIENT NUMBER` with the clients from 0 and the numbers 1, 2, 3, … of each, a line for each commit"


class PipeReader:
    """Runs from `with` to its end, or is killed there. `marks` is where the writer's standard output goes.

    `errors` is where it puts its own words. BedplateError from any method says what the writer printed that it may not.
    """

    def __init__(self, argv: Sequence[str], *, errors: Path) -> None:
        self._argv = tuple(argv)
        self._errors = errors
        self._process: subprocess.Popen[bytes] | None = None
        self._write_end: int | None = None
        self._rest = b""
        self.cpu_s = 0.0

    def __enter__(self) -> Self:
        try:
            with held(), self._errors.open("wb") as errors:
                read_end, self._write_end = os.pipe()
                try:
                    self._process = self._started(read_end, errors)
                finally:
                    os.close(read_end)
            return self  # noqa: TRY300 -- behind the `try` nobody would end it
        except OSError as error:
            self._close_pipe()
            raise BedplateError(f"{self._argv[0]} cannot be started: {error.strerror}") from error
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        self._close_pipe()
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                # The other side may have gone first.
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _started(self, read_end: int, errors: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self._argv, "--acks", str(read_end)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment(),
            cwd="/",
            start_new_session=True,
            pass_fds=(read_end,),
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._running.pid

    @contextlib.contextmanager
    def feeding(self, tool: ToolProcess) -> Iterator[ToolProcess]:
        """The writer while it runs; from its start on the pipe is its own, so that its end is the pipe's."""
        with tool:
            self._close_pipe()
            yield tool

    @property
    def marks(self) -> Path:
        """The end of the pipe that a writer opens, until it has been started."""
        return Path(f"/proc/self/fd/{self._write_end}")

    def lines(self, *, wait_s: float = 0.0) -> list[bytes]:
        """What it said since it was asked last, or says within `wait_s`; nothing any more once it has ended."""
        stdout = self._running.stdout
        assert stdout is not None  # noqa: S101 -- Popen was given a pipe
        if self.has_ended or not select.select([stdout], [], [], wait_s)[0]:
            return []
        piece = os.read(stdout.fileno(), 65536)
        if not piece:
            self._reap()
        *whole, self._rest = (self._rest + piece).split(b"\n")
        return whole

    @property
    def has_ended(self) -> bool:
        """Whether it has, which it does behind its last words when the pipe has no writer any more."""
        return self._running.returncode is not None

    def measure(self) -> None:
        """Count from here on as measured."""
        stdin = self._running.stdin
        assert stdin is not None  # noqa: S101 -- Popen was given a pipe
        with contextlib.suppress(BrokenPipeError):
            os.write(stdin.fileno(), b"m")

    def end(self) -> None:
        """Count no more; what the writer still prints is read and forgotten."""
        stdin = self._running.stdin
        assert stdin is not None  # noqa: S101 -- Popen was given a pipe
        stdin.close()

    def finish(self) -> list[bytes]:
        """The rest of what it says, once the writer has ended."""
        said: list[bytes] = []
        until_s = time.monotonic() + _LIMIT_S
        while not self.has_ended:
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                raise BedplateError(f"{self._argv[0]} did not end after the writer had")
            said += self.lines(wait_s=left_s)
        return said

    def _reap(self) -> None:
        process = self._running
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_s = usage.ru_utime + usage.ru_stime
        if process.returncode == 0:
            return
        said = self._errors.read_text(encoding="utf-8", errors="replace").removesuffix("\n")
        if process.returncode == _REFUSED:
            raise OutputNotUnderstood("the writer", expected=_EXPECTED, found=said)
        raise BedplateError(f"{self._argv[0]} ended with status {process.returncode}: {said}")

    def _close_pipe(self) -> None:
        if self._write_end is not None:
            os.close(self._write_end)
            self._write_end = None

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the reader has not been started")
        return self._process
