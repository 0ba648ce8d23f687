"""A benchmark tool that does the I/O itself: started within the visit's group, followed, ended.

Nothing here sleeps: the end of the tool and every word of it are waited for as events.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from bedplate.errors import BedplateError
from bedplate.host.command import restricted_environment
from bedplate.host.interruption import held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from bedplate.host.shut_in.confinement import Confinement
    from bedplate.host.shut_in.restriction import Restriction
    from bedplate.visit.workload import VisitContext

_LINES_QUOTED, _CHARACTERS_QUOTED = 6, 2000
# How often a tool that may end early is held against what would end it.
_ENOUGH_EVERY_S = 0.05
# What a tool says on its standard error is kept so far, and its last words behind that: it might fill a disk.
_KEPT_BYTES, _LAST_BYTES = 1 << 20, 1 << 14


@dataclass(frozen=True)
class ToolEnded:
    """How the tool ended; `problem` is None when all is well, else a sentence with its own words, `said`.

    `cpu_s` is the CPU time of the tool and of every child that it waited for. `asked_to_end` says that it ended because
    it was told to.
    """

    status: int
    cpu_s: float
    problem: str | None
    said: str = ""
    asked_to_end: bool = False


class ToolFailed(BedplateError):
    """A tool ended with another status than 0, or by a signal."""

    code = "tool-failed"

    def __init__(self, problem: str, ended: ToolEnded) -> None:
        super().__init__(problem)
        self.said = ended.said
        self.status = ended.status


class ToolProcess:
    """Runs from `with` to its end: follow its words with `pieces`, then ask `ended`; leaving the block kills it.

    What it prints is kept in `<output>.out` and `<output>.err`. Begin it where no other thread runs: the child
    executes Python before it becomes the tool. By its `confinement` it drops its rights; one that has an `argv`, which is this, lets it see two
    folders. `name` is what a person calls it; `marks` is a file that its standard output goes to instead.
    """

    def __init__(
        self,
        argv: Sequence[str],
        context: VisitContext,
        *,
        output: Path,
        directory: Path,
        confinement: Confinement | Restriction,
        name: str | None = None,
        marks: Path | None = None,
    ) -> None:
        self.argv = tuple(argv)
        self._context = context
        self._output = output
        self._directory = directory
        self._name = name or self.argv[0]
        self._confinement = confinement
        self._marks = marks
        self._process: subprocess.Popen[bytes] | None = None
        self._ended: ToolEnded | None = None
        self._asked_to_end = False

    def __enter__(self) -> Self:
        try:
            with held():
                self._process = self._start()
            self._context.commands.record.append(self.argv)
            return self  # noqa: TRY300 -- behind the `try` nobody would end it
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        process = self._process
        if process is None:
            return
        if self._ended is None:
            # Its children too: a job of an I/O tool would go on writing.
            self.signal(signal.SIGKILL)
            process.wait()
        if process.stderr is not None:
            process.stderr.close()

    @property
    def output(self) -> Path:
        """The file of its standard output."""
        return self._output.with_suffix(".out")

    @property
    def errors(self) -> Path:
        """The file of its standard error."""
        return self._output.with_suffix(".err")

    def signal(self, number: int) -> None:
        """To the tool and the children that did not leave its group."""
        with suppress(ProcessLookupError):
            os.killpg(self._running.pid, number)

    @property
    def ended(self) -> ToolEnded:
        """How it ended, after `pieces` has."""
        if self._ended is None:
            raise RuntimeError(f"{self.argv[0]} has not ended yet")
        return self._ended

    def pieces(self, *, limit_s: float, enough: Callable[[], bool] | None = None) -> Iterator[bytes]:
        """What comes on its standard error, as it comes, until it has ended; BedplateError after the limit.

        Once `enough`, which is asked all the while, says so, the tool is sent SIGTERM, and has to end in order.
        """
        process = self._running
        assert process.stderr is not None  # noqa: S101 -- Popen was given a pipe
        words = process.stderr.fileno()
        exit_ = os.pidfd_open(process.pid)
        waiting_for = [words, exit_]
        deadline = time.monotonic() + limit_s
        try:
            with self._kept_errors() as keep:
                while waiting_for:
                    patience_s = max(0.0, deadline - time.monotonic())
                    if enough is not None and not self._asked_to_end:
                        if enough():
                            # Popen's own would look first whether it has ended, and take its CPU time away.
                            with suppress(ProcessLookupError):
                                signal.pidfd_send_signal(exit_, signal.SIGTERM)
                            self._asked_to_end = True
                        patience_s = min(patience_s, _ENOUGH_EVERY_S)
                    ready, _, _ = select.select(waiting_for, [], [], patience_s)
                    if not ready and time.monotonic() < deadline:
                        continue
                    if not ready:
                        raise BedplateError(
                            f"{self._name} did not end within {limit_s:.0f} s and was killed: {self._said()}"
                        )
                    if words in ready:
                        piece = os.read(words, 65536)
                        keep(piece)
                        if piece:
                            yield piece
                        else:
                            waiting_for.remove(words)
                    elif exit_ in ready:
                        self._reap(process)
                        waiting_for.remove(exit_)
        finally:
            os.close(exit_)
        if self._ended is None:
            self._reap(process)

    @contextmanager
    def _kept_errors(self) -> Iterator[Callable[[bytes], object]]:
        """Keeps what it says, and not without end."""
        room, last = _KEPT_BYTES, b""
        with self.errors.open("wb", buffering=0) as kept:

            def keep(piece: bytes) -> None:
                nonlocal room, last
                kept.write(piece[:room])
                last = (last + piece[room:])[-_LAST_BYTES:]
                room -= len(piece[:room])
                if last:
                    # In the place of those that were the last before.
                    kept.seek(_KEPT_BYTES)
                    kept.truncate()
                    kept.write(b"\n(not all of it was kept)\n" + last)

            yield keep

    def wait(self, *, limit_s: float, enough: Callable[[], bool] | None = None) -> ToolEnded:
        """Until it has ended, whatever it says meanwhile."""
        for _ in self.pieces(limit_s=limit_s, enough=enough):
            pass
        return self.ended

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError(f"{self.argv[0]} has not been started")
        return self._process

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            with (
                (self._marks or self.output).open("ab" if self._marks else "wb") as out,
                self._confinement.child() as become,
            ):

                def become_tool() -> None:
                    self._context.enter_group()
                    become()

                return subprocess.Popen(
                    self.argv,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.PIPE,
                    env=restricted_environment(),
                    cwd=self._directory,
                    start_new_session=True,
                    # subprocess runs preexec_fn after it has dropped privileges; the group can only be
                    # entered before, so both are done here, in that order.
                    preexec_fn=become_tool,  # noqa: PLW1509 -- begun where no other thread runs
                )
        except OSError as error:
            raise BedplateError(
                f"{self.argv[0]} cannot be started: {error.strerror}; is its package installed? "
                "`bedplate doctor` lists what is missing"
            ) from error

    def _reap(self, process: subprocess.Popen[bytes]) -> None:
        # wait4 gives the CPU time that Popen.wait throws away.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said = self._said() if process.returncode else ""
        self._ended = ToolEnded(
            process.returncode,
            usage.ru_utime + usage.ru_stime,
            self._problem(process.returncode, said),
            said=said,
            asked_to_end=self._asked_to_end,
        )

    def _problem(self, status: int, said: str) -> str | None:
        if status == 0:
            return None
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return f"{self._name} {how}: {said}"

    def _said(self) -> str:
        """Its last lines: on standard error if it said anything there, else what is no document."""
        for path in (self.errors, *(() if self._marks else (self.output,))):
            text = path.read_text(encoding="utf-8", errors="replace")
            before_json = text.partition("\n{")[0] if path == self.output else text
            lines = [line.strip() for line in before_json.splitlines() if line.strip() not in ("", "{")]
            if lines:
                return " | ".join(lines[-_LINES_QUOTED:])[-_CHARACTERS_QUOTED:]
        return "(it printed nothing)"
