"""The processes of a study that runs: whom to kill, and by which mark they are known."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Seen:
    """A process as /proc shows it."""

    pid: int
    parent: int
    words: str


def every_process() -> list[Seen]:
    """All processes of the machine, but for those that end while they are looked at."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            stat = (folder / "stat").read_text()
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            # The name in brackets may hold blanks.
            parent = int(stat.rpartition(")")[2].split()[1])
            found.append(Seen(int(folder.name), parent, words))
    return found


def descendants(root: int) -> list[Seen]:
    """Children, their children and so on, nearest first. What was adopted by another is not among them."""
    everyone = every_process()
    found: list[Seen] = []
    parents = {root}
    while parents:
        children = [seen for seen in everyone if seen.parent in parents]
        found += children
        parents = {seen.pid for seen in children}
    return found


def kill(pids: list[int], number: int = signal.SIGKILL) -> bool:
    """Whether at least one of them was there."""
    hit = False
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            hit = True
    return hit
