"""An interruption waits for the end of a held block, and comes at once outside of one."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from bedplate.host import interruption
from bedplate.host.command import Commands


class Stop(BaseException):
    pass


def test_outside_of_a_block_it_is_raised_at_once() -> None:
    with pytest.raises(Stop):
        interruption.arrive(Stop())


def test_inside_it_waits_for_the_end_of_the_outermost_block() -> None:
    reached: list[str] = []

    def nested() -> None:
        with interruption.held():
            with interruption.held():
                interruption.arrive(Stop())
                reached.append("inner")
            reached.append("outer")

    with pytest.raises(Stop):
        nested()
    assert ["inner", "outer"] == reached


def test_it_is_raised_once() -> None:
    with pytest.raises(Stop), interruption.held():
        interruption.arrive(Stop())
    with interruption.held():
        pass


def test_it_comes_at_the_end_of_a_block_that_failed_too() -> None:
    def fails() -> None:
        with interruption.held():
            interruption.arrive(Stop())
            raise FileNotFoundError

    with pytest.raises(Stop) as caught:
        fails()
    assert isinstance(caught.value.__context__, FileNotFoundError)
    with interruption.held():
        pass


def test_a_command_that_a_signal_meets_while_it_starts_is_not_left_running(tmp_path: Path) -> None:
    # The child interrupts its parent before anything else, which is inside or just after Popen.
    mark = tmp_path / "still running"
    script = (
        f"import os, signal, time; os.kill({os.getpid()}, signal.SIGUSR1); time.sleep(0.5); "
        f"open({str(mark)!r}, 'w').close()"
    )

    def arrive(_number: int, _frame: object) -> None:
        interruption.arrive(Stop())

    before = signal.signal(signal.SIGUSR1, arrive)
    try:
        with pytest.raises(Stop):
            Commands().run([sys.executable, "-S", "-c", script])
    finally:
        signal.signal(signal.SIGUSR1, before)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert not mark.exists()
