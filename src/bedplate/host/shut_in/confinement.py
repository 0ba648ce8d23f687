"""Programs of others: without rights or network, seeing no files and sockets of others that they could write to, and ended with all their children.

They do not see the caller's environment either: a runtime changes its ways by it (PYTHONUNBUFFERED makes two writes of a line), and
a CI job has its secrets there.

A namespace of processes ends with its first process, which waits for the program here: whatever the program left running, in
whatever session, is killed by the kernel then. What it writes to /tmp, /var/tmp, /dev/shm and /run goes with its mounts. All else is
read-only to it, but for its data (`restriction.py`).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import resource
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from bedplate.errors import MachineUnfit
from bedplate.host.command import bare_environment
from bedplate.host.shut_in.restriction import FILES_MOST, own_processes, take_places
from bedplate.host.shut_in.system_call_filter import refuse_calls
from bedplate.units import GIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from bedplate.host.command import Account

# Where the program finds its two folders, whatever they are called outside.
DATA, PROGRAMS = "/tmp/data", "/tmp/engine"  # noqa: S108 -- of a mount namespace of its own
# Exit statuses of a shell above this are a signal's (POSIX, "Exit Status for Commands").
SIGNALS_FROM = 128
# As env(1) ends: it is not begun, it may not be executed, it or its interpreter is not there.
_NOT_BEGUN, _NO_PROGRAM, _NOT_THERE = 125, 126, 127
_PR_SET_PDEATHSIG = 1
# A program that forks without end takes the account's processes, and not the machine's.
_PROCESSES_MOST = 4096
# A compiler takes a line for as many bytes as the line says; an object of a kernel with all its symbols has less.
_FILE_BYTES_MOST = 4 * GIB


@dataclass(frozen=True)
class Confinement:
    """A program of `programs` that works in `data`: `argv` names both as it sees them, and is looked for in the search path. For root.

    `readable` are more folders that it sees under their own names. With `sees_system_alone` everything of the machine that is no program,
    library, header, device or configuration of the system is hidden from it, and no file becomes larger than 4 GiB. It begins in `directory`. Its exit status is the program's;
    a signal that ended it is `SIGNALS_FROM` and its number.
    """

    argv: tuple[str, ...]
    data: Path
    programs: Path
    account: Account
    readable: tuple[Path, ...] = ()
    sees_system_alone: bool = False
    directory: str = DATA

    @property
    def environment(self) -> Mapping[str, str]:
        """All that is set."""
        return {"HOME": "/tmp", **bare_environment()}  # noqa: S108 -- of a mount namespace of its own

    @contextlib.contextmanager
    def child(self) -> Iterator[Callable[[], NoReturn]]:
        """Within it the child is begun, with what it gives as its `preexec_fn`."""
        with own_processes():
            yield self._become

    def _become(self) -> NoReturn:
        """As the first process of its namespace it waits for the program, which is a child of its own."""
        try:
            self._shut_in()
            program = os.fork()
            if program:
                _await(program)
            self._give_up_rights()
        except (MachineUnfit, OSError) as error:
            os.write(2, f"{self.argv[0]} is not begun: {error}\n".encode())
            os._exit(_NOT_BEGUN)
        # Of the starter's, which hears by it that the program has begun.
        os.closerange(3, FILES_MOST)
        try:
            os.execvpe(self.argv[0], self.argv, self.environment)  # noqa: S606 -- no shell
        except OSError as error:
            os.write(2, f"{self.argv[0]}: {error.strerror}\n".encode())
            os._exit(_NOT_THERE if error.errno == errno.ENOENT else _NO_PROGRAM)

    def _give_up_rights(self) -> None:
        # An engine may do its I/O by io_uring.
        refuse_calls(io_uring=True)
        os.setgroups([])
        os.setgid(self.account.gid)
        os.setuid(self.account.uid)
        os.chdir(self.directory)

    def _shut_in(self) -> None:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        take_places(
            (self.data,),
            (self.programs, *self.readable),
            also={DATA: self.data, PROGRAMS: self.programs},
            system_alone=self.sees_system_alone,
        )
        most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        if most == resource.RLIM_INFINITY or most > _PROCESSES_MOST:
            resource.setrlimit(resource.RLIMIT_NPROC, (_PROCESSES_MOST, _PROCESSES_MOST))
        if self.sees_system_alone:
            resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES_MOST, _FILE_BYTES_MOST))


def _await(program: int) -> NoReturn:
    """As the first process: wait for the end of the program, bury all others meanwhile, and end like it."""
    # Handlers are the starter's, and without one this process ignores what is for the program.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    # Whoever reads a pipe of the program's hears of its end; Popen hears that it has begun.
    os.closerange(0, FILES_MOST)
    while True:
        ended, status = os.wait()
        if ended == program:
            code = os.waitstatus_to_exitcode(status)
            os._exit(SIGNALS_FROM - code if code < 0 else code)
