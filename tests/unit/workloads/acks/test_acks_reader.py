"""The reader of a writer's pipe: what it counts, when, and which lines it refuses."""

from __future__ import annotations

import os
import subprocess
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from bedplate.errors import OutputNotUnderstood
from bedplate.figures.courses import read_latency_log, summary
from bedplate.workloads.acks.visit import PipeReader

if TYPE_CHECKING:
    from bedplate.visit.recording import ToolProcess

# Far beyond what any line takes, so that a test fails and does not hang.
PATIENCE_S = 60.0


class Pipe:
    """A reader, and a test in the place of its writer."""

    def __init__(self, log_reader: Path, directory: Path, *more: str) -> None:
        self.directory = directory
        words = ("--clients", "2", "--output", str(directory / "measure.bin"), *more)
        self.reader = PipeReader((str(log_reader), *words), errors=directory / "reader.err")
        self.said: list[str] = []
        self.writer = -1

    def open(self) -> None:
        self.writer = os.open(self.reader.marks, os.O_WRONLY | os.O_CLOEXEC)
        with self.reader.feeding(cast("ToolProcess", nullcontext())):
            pass

    def print(self, text: str) -> None:
        assert os.write(self.writer, text.encode()) == len(text)

    def hears(self, word: str) -> list[str]:
        while not any(line.startswith(word) for line in self.said):
            heard = self.reader.lines(wait_s=PATIENCE_S)
            assert heard or not self.reader.has_ended, self.said
            self.said += [line.decode() for line in heard]
        return next(line for line in self.said if line.startswith(word)).split()


def test_what_is_counted_begins_and_ends_as_it_is_told(log_reader: Path, tmp_path: Path) -> None:
    pipe = Pipe(log_reader, tmp_path, "--warmup", str(tmp_path / "warmup.bin"))
    with pipe.reader:
        pipe.open()
        pipe.print("begin\nack 0 1\nack 1 1\n")
        pipe.hears("begin")
        pipe.reader.measure()
        pipe.hears("measure")
        # A line may come in pieces, and two of one client at once have no times of their own.
        for piece in ("ack 0 2\nack 0 3\nack 1", " 2\n"):
            pipe.print(piece)
        pipe.print("ack 0 4\n")
        pipe.reader.end()
        _, count, seconds, together, quiet = pipe.hears("end")
        # What comes later is nobody's, and no reason to fail.
        pipe.print("ack 0 5\nrubbish\n")
        os.close(pipe.writer)
        pipe.reader.finish()
    measured, before = (read_latency_log(tmp_path / f"{name}.bin") for name in ("measure", "warmup"))
    of_measured, of_before = summary(measured), summary(before)
    assert of_measured is not None
    assert of_before is not None
    assert (4, 4, 2) == (int(count), of_measured.transactions, of_before.transactions)
    assert measured.complete
    assert before.complete
    assert 0 < float(quiet) <= float(seconds)
    assert 1 <= int(together) <= 2


@pytest.mark.parametrize(
    ("printed", "quoted"),
    [
        ("begin\nhello\n", "hello"),
        ("begin\nack 0\n", "ack 0"),
        ("begin\nack 2 1\n", "ack 2 1"),
        ("begin\nack 0 1 \n", "ack 0 1 "),
        ("begin\nack 0 -1\n", "ack 0 -1"),
        ("begin\nack 0 1\nack 0 1\n", "ack 0 1, behind 1 of client 0"),
        ("begin\nack 0 1\nack 0 3\n", "ack 0 3, behind 1 of client 0"),
        ("begin\nbegin\n", "begin"),
        ("ack 0 1\nack 0 \x1b[2J\n", "ack 0 ?[2J"),
        ("begin\n" + "x" * 200, "x" * 64 + "…"),
        ("begin\nack 0 1", "ack 0 1, and no end of the line"),
    ],
)
def test_a_line_that_is_none_of_a_writers_is_quoted(
    log_reader: Path, tmp_path: Path, printed: str, quoted: str
) -> None:
    pipe = Pipe(log_reader, tmp_path)
    with pipe.reader:
        pipe.open()
        pipe.print(printed)
        os.close(pipe.writer)
        with pytest.raises(OutputNotUnderstood, match="the writer: expected `begin`") as caught:
            pipe.reader.finish()
    assert str(caught.value).endswith(repr(quoted))


def test_what_may_not_be_asked_of_it_is_a_wrong_call(log_reader: Path) -> None:
    for words in (("--acks", "3"), ("--acks", "3", "--clients", "1", "log")):
        done = subprocess.run(
            [str(log_reader), *words, "--output", "/dev/null"], capture_output=True, check=False, timeout=60
        )
        assert (2, b"--acks takes --clients") == (done.returncode, done.stderr[22:44])
