"""A process by the number that it has in a namespace of processes, as a server in one says of itself."""

from __future__ import annotations

import contextlib
from pathlib import Path


def outer_pid(inner: int, ancestor: int, name: str = "postgres") -> int:
    """The number here of the only such process of that name that `ancestor`, or a descendant of it, began."""
    found = [
        int(folder.name)
        for folder in Path("/proc").glob("[0-9]*")
        if (status := _status(int(folder.name))).get("Name") == name
        and int(status["NSpid"].split()[-1]) == inner
        and _is_of(int(folder.name), ancestor)
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
