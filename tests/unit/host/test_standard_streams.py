"""What is said never fails: descriptors that are closed, full, without a reader, or that do not wait."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.support.tools.command_line import SOURCES

from bedplate.host.interruption import SpokenDescriptor

# Becomes bedplate without the descriptors that it is called with.
_START = """
import os, sys
for number in sys.argv[1:]:
    os.close(int(number))
os.execv(sys.executable, [sys.executable, "-m", "bedplate", "--version"])
"""


def test_what_a_full_disk_does_not_take_is_lost_and_known() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    said = SpokenDescriptor(full, may_break=True)
    assert (5, 3) == (said.write(b"first"), said.write(b"two"))
    assert said.lost is not None
    assert errno.ENOSPC == said.lost.errno
    os.close(full)


@pytest.mark.parametrize("may_break", [True, False])
def test_a_reader_that_went_away_is_an_error_of_standard_output_alone(*, may_break: bool) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    said = SpokenDescriptor(writer, may_break=may_break)
    if may_break:
        with pytest.raises(BrokenPipeError):
            said.write(b"words")
    else:
        assert 5 == said.write(b"words")
    os.close(writer)


def test_a_slow_reader_of_a_descriptor_that_does_not_wait_gets_everything() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    said, left = SpokenDescriptor(writer, may_break=True), b"x" * 300_000
    heard: list[bytes] = []

    def hear() -> None:
        while data := os.read(reader, 65536):
            heard.append(data)

    thread = threading.Thread(target=hear)
    thread.start()
    while left:
        left = left[said.write(left) :]
    os.close(writer)
    thread.join()
    os.close(reader)
    assert 300_000 == sum(map(len, heard))
    assert said.lost is None


@pytest.mark.parametrize(
    ("closed", "output", "status", "expected"),
    [
        ((1,), None, 0, ""),
        ((0, 1), None, 0, ""),
        ((2,), None, 0, ""),
        ((), "/dev/full", 3, "error: standard output cannot be written: No space left on device"),
    ],
)
def test_a_start_says_what_it_can(
    closed: tuple[int, ...], output: str | None, status: int, expected: str
) -> None:
    with Path(output or os.devnull).open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-c", _START, *map(str, closed)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
        )
    assert status == done.returncode, done.stderr
    assert done.stderr.startswith(expected)
    assert bool(expected) == bool(done.stderr)
