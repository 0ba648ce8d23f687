"""Other processes: whether one is still the same, which belong to a ledger, and how one is ended.

A pid alone names nobody, since it is used again; a pid with its start time does, within one boot.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from bedplate.host.files import plain_bytes


def wait_until(
    is_done: Callable[[], bool],
    *,
    deadline_s: float,
    pause_s: float = 0.01,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Ask again until it is done: True; False if it is not at the deadline. Asks at least once."""
    give_up = clock() + deadline_s
    while not is_done():
        if clock() >= give_up:
            return False
        sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.2)
    return True


PROC = Path("/proc")

# A program begins within microseconds, and on a busy machine when it gets a processor.
_EXECVE_S = 5.0

_FIRST_LINE_BYTES = 100

# PF_KTHREAD (include/linux/sched.h) among the flags of proc_pid_stat(5).
_KERNEL_THREAD = 0x00200000

_PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h


class ProcessTitle(NamedTuple):
    """What a process is called: `pid` is the whole of it, where one thread of it was asked about."""

    pid: int
    name: str
    is_kernel: bool


def boot_id(proc: Path = PROC) -> str:
    """The kernel's name for this boot (proc_sys_kernel(5))."""
    return (proc / "sys/kernel/random/boot_id").read_text().strip()


def start_time(pid: int, proc: Path = PROC) -> str | None:
    """When the process began, in clock ticks since boot; None if it is gone or only a zombie."""
    try:
        text = (proc / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The name in parentheses may hold anything, parentheses and blanks too (proc_pid_stat(5)).
    fields = text.rpartition(")")[2].split()
    if len(fields) < 20 or fields[0] in {"Z", "X"}:
        return None
    return fields[19]


def title_of(thread: int, proc: Path = PROC) -> ProcessTitle | None:
    """Of a process, by one of its threads; None if it is gone.

    A program that tells what each of its processes is for does so in its command line, behind its name: `postgres: checkpointer`.
    """
    place = proc / str(thread)
    try:
        first, _, rest = (place / "stat").read_text(errors="replace").rpartition(")")
        status = (place / "status").read_text(errors="replace")
        words = os.fsdecode((place / "cmdline").read_bytes()).split("\0")
    except OSError:
        return None
    name = first.partition("(")[2]
    group = next((line.split()[1] for line in status.splitlines() if line.startswith("Tgid:")), str(thread))
    title = words[0].strip() if words[0].startswith(f"{name}:") else name
    return ProcessTitle(int(group), title, bool(int(rest.split()[6]) & _KERNEL_THREAD))


def is_running(pid: int, started: str, proc: Path = PROC) -> bool:
    """True while the very process that began then is alive."""
    return started != "" and start_time(pid, proc) == started


def end_with(parent: int, number: signal.Signals) -> bool:
    """Have the kernel send this process the signal when its parent ends; False if that had ended before it could be asked."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    return os.getppid() == parent


def end_process(pid: int, *, gently: signal.Signals | None = None, grace_s: float = 5.0) -> bool:
    """End a process: `gently` first if given, SIGKILL after the grace. True once it is gone.

    A pidfd holds on to the process, so that no stranger with the same pid is hit.
    """
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return True
    try:
        for number in (gently, signal.SIGKILL):
            if number is None:
                continue
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, number)
            poller = select.poll()
            poller.register(handle, select.POLLIN)
            if poller.poll(grace_s * 1000):
                return True
    finally:
        os.close(handle)
    return False


def marked_with(variable: str, value: str, proc: Path = PROC) -> tuple[int, ...]:
    """The processes that were started with `variable=value` in their environment, never our own line."""
    wanted = os.fsencode(f"{variable}={value}")
    spared = set(_own_line(proc))
    waiting = [pid for pid in _pids(proc) if pid not in spared]
    found: list[int] = []

    def look() -> bool:
        """False while a process has no environment yet: within execve(2)."""
        unsettled = []
        for pid in waiting:
            words = _environment(pid, proc)
            if words is None:
                unsettled.append(pid)
            elif wanted in words:
                found.append(pid)
        waiting[:] = unsettled
        return not unsettled

    wait_until(look, deadline_s=_EXECVE_S, pause_s=0.002)
    return tuple(found)


def pids_running(program: str, argument: str, proc: Path = PROC) -> tuple[int, ...]:
    """The processes whose command line begins with that program and holds that argument as one word.

    `program` is the last part of its path. A zombie is none: it has no command line any more.
    """
    found = []
    for pid in _pids(proc):
        with contextlib.suppress(OSError):
            words = os.fsdecode((proc / str(pid) / "cmdline").read_bytes()).split("\0")
            if Path(words[0]).name == program and argument in words[1:]:
                found.append(pid)
    return tuple(found)


def servers_of(data_directory: Path, prefix: Path, proc: Path = PROC) -> tuple[int, ...]:
    """The postmaster first, then every other process of the server on `data_directory`.

    A process counts only if its program lies in `prefix`. PostgreSQL overwrites its own environment
    with its title, but each of its processes works in the data directory.
    """
    here = os.path.realpath(data_directory)
    found = [
        pid for pid in _pids(proc) if _link(proc / str(pid) / "cwd") == here and _runs_from(pid, prefix, proc)
    ]
    # From within a namespace of its own the file has no name here, but its processes stand beside it.
    places = (data_directory, *(proc / str(pid) / "cwd" for pid in found))
    told = {pid for place in places if (pid := _postmaster(place)) is not None}
    postmaster = next((pid for pid in found if inner_pid(pid, proc) in told), None)
    if postmaster is not None:
        found = [postmaster, *(pid for pid in found if pid != postmaster)]
    return tuple(pid for pid in found if start_time(pid, proc) is not None)


def inner_pid(pid: int, proc: Path = PROC) -> int:
    """The number that a process has in its own namespace of processes, as it knows itself; the same where it is of none, or gone."""
    with contextlib.suppress(OSError):
        for line in (proc / str(pid) / "status").read_text(errors="replace").splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return pid


def writers_below(directory: Path, proc: Path = PROC) -> tuple[str, ...]:
    """A sentence for each process that has a file below `directory` open for writing; this one is left out."""
    top = os.path.realpath(directory)
    found = []
    for pid in _pids(proc):
        if pid == os.getpid():
            continue
        for link in _descriptors(pid, proc):
            held = _link(link)
            if held is None or not held.startswith(f"{top}/") or held.endswith(" (deleted)"):
                continue
            if is_for_writing(link):
                name = _name(pid, proc)
                found.append(f"process {pid} ({name}) still writes {held}")
                break
    return tuple(found)


def is_for_writing(link: Path) -> bool:
    """By the flags of an open file, which are octal (proc_pid_fdinfo(5))."""
    try:
        text = (link.parent.parent / "fdinfo" / link.name).read_text()
    except OSError:
        return False
    flags = next((line.split()[1] for line in text.splitlines() if line.startswith("flags:")), "0")
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY


def wait_until_gone(pids: tuple[int, ...], *, deadline_s: float) -> bool:
    """True once none of them runs any more; the kernel tells through pidfds."""
    give_up = time.monotonic() + deadline_s
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except OSError:
            continue
        try:
            poller = select.poll()
            poller.register(handle, select.POLLIN)
            if not poller.poll(max(0.0, give_up - time.monotonic()) * 1000):
                return False
        finally:
            os.close(handle)
    return True


def _pids(proc: Path) -> Iterator[int]:
    return (int(entry.name) for entry in proc.iterdir() if entry.name.isdecimal())


def _own_line(proc: Path) -> Iterator[int]:
    """This process and its ancestors."""
    pid = os.getpid()
    while pid > 0:
        yield pid
        try:
            text = (proc / str(pid) / "stat").read_text(errors="replace")
        except OSError:
            return
        pid = int(text.rpartition(")")[2].split()[1])


def _descriptors(pid: int, proc: Path) -> list[Path]:
    """The links of a process's open files; none where it is gone or somebody else's."""
    try:
        return list((proc / str(pid) / "fd").iterdir())
    except OSError:
        return []


def _name(pid: int, proc: Path) -> str:
    try:
        return (proc / str(pid) / "comm").read_text(errors="replace").strip() or "?"
    except OSError:
        return "?"


def _runs_from(pid: int, prefix: Path, proc: Path) -> bool:
    program = _link(proc / str(pid) / "exe")
    return program is not None and program.startswith(f"{os.path.realpath(prefix)}/")


def _environment(pid: int, proc: Path) -> list[bytes] | None:
    """The words of a program's environment, none for the kernel's own threads; None where it has no place in memory yet."""
    place = proc / str(pid)
    try:
        words = (place / "environ").read_bytes()
        if words or _link(place / "exe") is None:
            return words.split(b"\0")
        # `env_end` of proc_pid_stat(5): of a program with an empty environment it is an address too.
        ends_at = (place / "stat").read_text(errors="replace").rpartition(")")[2].split()[48]
    except (OSError, IndexError):
        return []
    return None if ends_at == "0" else []


def _postmaster(data_directory: Path) -> int | None:
    try:
        # A server that runs what others wrote may put anything there.
        return int(plain_bytes(data_directory / "postmaster.pid", _FIRST_LINE_BYTES).split(b"\n", 1)[0])
    except (OSError, ValueError):
        return None


def _link(path: Path) -> str | None:
    try:
        return str(path.readlink())
    except OSError:
        return None
