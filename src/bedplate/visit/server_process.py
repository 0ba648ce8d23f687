"""The process of an engine's server: a direct child of the visit, so that its death is noticed at once.

It runs as the account without rights, in the control group of the visit, and stands in the ledger while it is there. It is the first process
of a namespace, has no network, and writes to its own folders alone (`host/shut_in/restriction.py`): what others wrote may be in its settings, its
data and whatever it is asked.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.host import undo
from bedplate.host.command import restricted_environment
from bedplate.host.interruption import held
from bedplate.host.ledger import Holding
from bedplate.host.process import inner_pid
from bedplate.host.shut_in.restriction import Restriction
from bedplate.visit.engine_server import ServerFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bedplate.visit.engine_server import ServerSite

_LINES_QUOTED, _LINE_CHARACTERS, _BYTES_QUOTED = 6, 400, 1 << 16
_GENTLE_END_S = 10.0


class ServerProcess:
    """Started, ended, watched; what it says goes to the site's log.

    Its program lies below `prefix`. `ended` is called once it is gone, with whether it left by itself and in order.
    """

    def __init__(self, site: ServerSite, prefix: str, ended: Callable[[bool], None] = lambda _: None) -> None:
        self._site = site
        self._ended = ended
        self._programs = Path(prefix)
        self._holding = Holding("server", str(site.data_directory), prefix)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id; ServerFailed where there is none."""
        if self._process is None:
            raise ServerFailed("the server was not started")
        return self._process.pid

    @property
    def own_pid(self) -> int:
        """The process id as the server itself knows it; ServerFailed where there is none."""
        return inner_pid(self.pid)

    @property
    def status(self) -> int | None:
        """Its exit status, None while it runs or where there is none."""
        return None if self._process is None else self._process.poll()

    def start(
        self,
        argv: Sequence[str],
        more_environment: Mapping[str, str] | None = None,
        *,
        writable: Sequence[Path] = (),
        readable: Sequence[Path] = (),
        io_uring: bool = False,
        commands: str = "",
    ) -> None:
        """Start it; whether it then takes connections is the engine's to find out.

        All but `writable` and what the site says is read-only to it, and it has no `io_uring` but where its settings ask for that. `commands`
        are for one that reads them, and ends behind the last.
        """
        site = self._site
        restriction = Restriction(
            site.account,
            (*writable, *site.writable),
            (self._programs, *readable, *site.readable),
            io_uring=io_uring,
        )
        site.ledger.note(self._holding)
        with site.log.open("ab") as log, held(), restriction.child() as become:

            def become_server() -> None:
                if site.enter_group is not None:
                    site.enter_group()
                become()

            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE if commands else subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=restricted_environment({**site.environment, **(more_environment or {})}),
                start_new_session=True,
                # subprocess runs preexec_fn after it has dropped privileges; the group can only be
                # entered before, so both are done here, in that order.
                preexec_fn=become_server,  # noqa: PLW1509 -- no threads exist yet in a visit
            )
        site.commands.record.append(tuple(argv))
        if self._process.stdin is not None:
            # They fit a pipe; one that died at once says why in its log.
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(commands.encode())
                self._process.stdin.flush()
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()

    def demand_end(self, timeout_s: float) -> None:
        """Wait for the end of one that ends by itself; ServerFailed if it does not in time, or ends otherwise than in order."""
        assert self._process is not None  # noqa: S101 -- called after start only
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerFailed(
                f"the server did not end within {timeout_s:g} s: {self.last_words()}"
            ) from None
        self._settle(in_order=status == 0)
        if status != 0:
            raise ServerFailed(f"the server ended with status {status}: {self.last_words()}")

    def demand_start(self, wait_s: float) -> None:
        """Wait so long for its end; ServerFailed with its last words if that comes."""
        assert self._process is not None  # noqa: S101 -- called after start only
        try:
            status = self._process.wait(wait_s)
        except subprocess.TimeoutExpired:
            return
        raise ServerFailed(f"the server did not start (status {status}): {self.last_words()}")

    def stop(self, gently: signal.Signals, *, timeout_s: float) -> int | None:
        """End it by a signal that lets it close, and its status; None without a server.

        One that does not end is killed, and ServerFailed.
        """
        process = self._process
        if process is None:
            return None
        if process.poll() is None:
            process.send_signal(gently)
            try:
                process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                self._settle(in_order=False)
                raise ServerFailed(f"the server did not stop within {timeout_s:g} s and was killed") from None
        self._settle(in_order=process.returncode == 0)
        return process.returncode

    def kill(self, first: signal.Signals = signal.SIGKILL) -> None:
        """End it at once; `first` is a signal that ends its children with it, where it has some."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(first)
            try:
                process.wait(_GENTLE_END_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self._settle(in_order=False)

    def check_alive(self) -> None:
        """ServerFailed with the log's last lines if it is gone."""
        if self._process is None or self._process.poll() is not None:
            raise ServerFailed(f"the server died (status {self.status}): {self.last_words()}")

    def last_words(self, lines: int = _LINES_QUOTED) -> str:
        """The last lines of its log."""
        try:
            with self._site.log.open("rb") as log:
                # What others wrote may have filled it.
                log.seek(max(0, log.seek(0, os.SEEK_END) - _BYTES_QUOTED))
                text = log.read(_BYTES_QUOTED).decode(errors="replace")
        except OSError:
            return "(its log cannot be read)"
        said = [line for line in text.splitlines() if line.strip()]
        return " | ".join(said[-lines:])[-lines * _LINE_CHARACTERS :] or "(its log is empty)"

    def has_logged(self, text: str) -> bool:
        """Whether its log has a text."""
        try:
            with self._site.log.open(encoding="utf-8", errors="replace") as log:
                return any(text in line for line in iter(lambda: log.readline(_BYTES_QUOTED), ""))
        except OSError:
            return False

    @property
    def lacks_room(self) -> bool:
        """Whether its log ends with a full disk."""
        return "No space left on device" in self.last_words(lines=40)

    def _settle(self, *, in_order: bool) -> None:
        self._process = None
        if not in_order:
            # Its other processes have sessions of their own, and hold on to what they map and have open.
            undo.end_server(self._holding)
        self._site.ledger.settled(self._holding)
        self._ended(in_order)
