"""An interruption waits for the end of a held block, and comes at once outside of one."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
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
        with interruption.defer_interruptions():
            with interruption.defer_interruptions():
                interruption.arrive(Stop())
                reached.append("inner")
            reached.append("outer")

    with pytest.raises(Stop):
        nested()
    assert ["inner", "outer"] == reached


def test_it_is_raised_once() -> None:
    with pytest.raises(Stop), interruption.defer_interruptions():
        interruption.arrive(Stop())
    with interruption.defer_interruptions():
        pass


def test_it_comes_at_the_end_of_a_block_that_failed_too() -> None:
    def fails() -> None:
        with interruption.defer_interruptions():
            interruption.arrive(Stop())
            raise FileNotFoundError

    with pytest.raises(Stop) as caught:
        fails()
    assert isinstance(caught.value.__context__, FileNotFoundError)
    with interruption.defer_interruptions():
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


@pytest.fixture
def pythons_own_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("pythons_own_handler")
def test_a_program_that_calls_bedplate_and_has_no_handler_is_held_too() -> None:
    reached: list[str] = []

    def work() -> None:
        with interruption.defer_interruptions(), interruption.defer_interruptions():
            signal.raise_signal(signal.SIGINT)
            reached.append("the end")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert ["the end"] == reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("pythons_own_handler")
def test_a_handler_of_the_program_and_an_ignored_interrupt_stay_as_they_are() -> None:
    for own in (signal.SIG_IGN, lambda *_: None):
        signal.signal(signal.SIGINT, own)
        with interruption.defer_interruptions():
            assert own == signal.getsignal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        assert own == signal.getsignal(signal.SIGINT)


def test_another_thread_neither_holds_nor_raises_what_is_for_the_main_one() -> None:
    inside, over, raised = threading.Event(), threading.Event(), []

    def work() -> None:
        try:
            with interruption.defer_interruptions():
                inside.set()
                over.wait(60)
        except BaseException as error:  # noqa: BLE001 -- whatever it is, this thread must not have it
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert inside.wait(60)
        with pytest.raises(Stop):
            interruption.arrive(Stop())
    finally:
        over.set()
        thread.join()
    assert [] == raised
    with interruption.defer_interruptions():
        pass


def test_what_is_raised_at_once_is_not_raised_again_later() -> None:
    """Two signals, of which the second comes when a block has just ended and the first has not been raised yet."""
    interruption._state.pending = Stop()
    with pytest.raises(Stop):
        interruption.arrive(Stop())
    with interruption.defer_interruptions():
        pass
