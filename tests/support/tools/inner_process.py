"""A process by the number that it has in a namespace of processes, as a server in one says of itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path


def descendants(ancestor: int) -> Iterator[dict[str, str]]:
    """The status of each process that `ancestor`, or a descendant of it, began, as proc_pid_status(5) has it."""
    pids = (int(folder.name) for folder in Path("/proc").glob("[0-9]*"))
    yield from (
        status for pid in pids if pid != ancestor and _is_of(pid, ancestor) and (status := _status(pid))
    )


def outer_pid(inner: int, ancestor: int, name: str = "postgres") -> int:
    """The number here of the only such process of that name that `ancestor`, or a descendant of it, began."""
    found = [
        int(status["Pid"])
        for status in descendants(ancestor)
        if status["Name"] == name and int(status["NSpid"].split()[-1]) == inner
    ]
    (pid,) = found
    return pid


def _is_of(pid: int, ancestor: int) -> bool:
    while pid > 1 and pid != ancestor:
        pid = int(_status(pid).get("PPid", "0"))
    return pid == ancestor


def _status(pid: int) -> dict[str, str]:
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return {}
