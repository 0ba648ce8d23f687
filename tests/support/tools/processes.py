"""The processes of the machine, as the tests that kill some and look for what is left see them."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """A process as /proc shows it; one that has ended and waits for its parent has no arguments."""

    pid: int
    parent: int
    arguments: tuple[str, ...]

    @property
    def line(self) -> str:
        return " ".join(self.arguments)

    @property
    def folder(self) -> Path:
        return Path("/proc", str(self.pid))


def every_process() -> list[Process]:
    """All that can be seen, by pid, but for those that end while they are looked at."""
    processes = []
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda folder: int(folder.name)):
        with contextlib.suppress(OSError):
            stat = (folder / "stat").read_text()
            words = (folder / "cmdline").read_bytes().decode(errors="replace").rstrip("\0")
            # The name in brackets may hold blanks.
            parent = int(stat.rpartition(")")[2].split()[1])
            processes.append(Process(int(folder.name), parent, tuple(words.split("\0")) if words else ()))
    return processes


def processes_naming(text: str) -> list[Process]:
    """All but this one whose command line holds a text."""
    return [process for process in every_process() if text in process.line and process.pid != os.getpid()]
