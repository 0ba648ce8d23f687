"""The processes of a study that runs: whom to kill."""

from __future__ import annotations

import contextlib
import os
import signal

from tests.support.tools.processes import Process, every_process


def descendants(root: int) -> list[Process]:
    """Children, their children and so on, nearest first. What was adopted by another is not among them."""
    everyone = every_process()
    below: list[Process] = []
    parents = {root}
    while parents:
        children = [process for process in everyone if process.parent in parents]
        below += children
        parents = {process.pid for process in children}
    return below


def kill(pids: list[int], number: int = signal.SIGKILL) -> bool:
    """Whether at least one of them was there."""
    hit = False
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            hit = True
    return hit
