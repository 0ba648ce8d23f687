"""A QEMU process of ours: started so that it dies with bedplate, and ended by its own pid."""

from __future__ import annotations

import contextlib
import subprocess
from typing import TYPE_CHECKING

from bedplate.errors import CommandFailed
from bedplate.host import process
from bedplate.host.command import environment
from bedplate.host.interruption import held
from bedplate.host.ledger import Holding

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence
    from pathlib import Path

    from bedplate.host.ledger import Ledger

_LEAVING_S = 10.0


class QemuProcess:
    """Start `argv`; `sockets` are handed over under their own numbers, and closed here.

    CommandFailed if it cannot be started. Must be called by a thread that lives as long as the guest
    should: the kernel ends the guest with the thread that started it.
    """

    def __init__(
        self, argv: Sequence[str], *, sockets: Sequence[socket.socket], errors: Path, ledger: Ledger
    ) -> None:
        self._ledger = ledger
        self._errors = errors
        try:
            # An interruption waits until the process is known and written down.
            with errors.open("wb") as said, held():
                self._process = subprocess.Popen(
                    # setpriv(1) becomes QEMU, under the same pid; PR_SET_PDEATHSIG outlives the exec.
                    ["setpriv", "--pdeathsig", "KILL", *argv],
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    # A core of QEMU's, where the machine keeps them, goes with this folder.
                    cwd=errors.parent,
                    env=environment(),
                    pass_fds=[end.fileno() for end in sockets],
                    start_new_session=True,
                )
                self._holding = Holding("process", str(self.pid), process.start_time(self.pid) or "")
                ledger.note(self._holding)
        except (FileNotFoundError, PermissionError) as error:
            raise CommandFailed(
                f"setpriv cannot be started: {error.strerror}; it is part of util-linux",
                argv=argv,
                status=None,
                output="",
            ) from error
        finally:
            # Only QEMU holds them now, so that its end is the end of the line.
            for end in sockets:
                end.close()

    @property
    def pid(self) -> int:
        """The process id of QEMU."""
        return self._process.pid

    @property
    def said(self) -> str:
        """What QEMU itself printed."""
        with contextlib.suppress(OSError):
            return self._errors.read_text(encoding="utf-8", errors="replace").strip()
        return ""

    def is_running(self) -> bool:
        """Whether it lives."""
        return self._process.poll() is None

    def end(self, *, gently: bool) -> int:
        """End it, `gently` with SIGTERM first, and give its exit status; safe to repeat."""
        if gently and self.is_running():
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_LEAVING_S)
        if self.is_running():
            self._process.kill()
        status = self._process.wait()
        self._ledger.settled(self._holding)
        return status

    def wait(self) -> int:
        """Its exit status, for one that is ending by itself; it is killed if that takes too long."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_LEAVING_S)
        return self.end(gently=False)
