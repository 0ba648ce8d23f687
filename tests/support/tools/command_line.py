"""The command line called in this process: all of it but what only a process has, its imports, signals and descriptors."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from tests.support.tools.patience import AT_MOST_S

from bedplate.campaign.terminal_edge import guard_streams
from bedplate.cli import _run_command

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = Path(__file__).parents[3] / "src"


@dataclass(frozen=True)
class Done:
    """What a command said and how it ended; the names are those of `subprocess.CompletedProcess`."""

    returncode: int
    stdout: str
    stderr: str


def call_here(*words: str | Path, cwd: Path | None = None, **environment: str) -> Done:
    """Run one command with no input and its output in pipes; what it raises is raised."""
    streams = sys.stdin, sys.stdout, sys.stderr
    # Held by a name: a wrapper that is forgotten closes what it wraps.
    pipes = [io.TextIOWrapper(io.BytesIO(), "utf-8", "replace", write_through=True) for _ in range(3)]
    with patch.dict(os.environ, environment), contextlib.chdir(cwd or Path.cwd()):
        sys.stdin, sys.stdout, sys.stderr = pipes
        guard_streams()
        try:
            status = _run_command(list(map(str, words)))
        finally:
            sys.stdin, sys.stdout, sys.stderr = streams
    said, complained = (pipe.buffer.getvalue().decode() for pipe in pipes[1:])
    return Done(status, said, complained)


@contextlib.contextmanager
def begin_apart(*words: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """One command in a process of its own while it runs; it has ended when the block is left, or is killed then."""
    with subprocess.Popen(
        [sys.executable, "-m", "bedplate", *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    ) as running:
        try:
            yield running
            running.wait(AT_MOST_S)
        finally:
            running.kill()


def call_apart(*words: str | Path, cwd: Path | None = None, **environment: str) -> Done:
    """Run one command in a process of its own; for what must not happen in this one should the command do it."""
    done = subprocess.run(
        [sys.executable, "-m", "bedplate", *map(str, words)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=AT_MOST_S,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(SOURCES), **environment},
    )
    return Done(done.returncode, done.stdout, done.stderr)
