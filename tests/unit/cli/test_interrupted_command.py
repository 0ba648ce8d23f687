"""Ctrl-C, SIGTERM and a closed terminal wait, in the command line, for what is being taken or given back."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from bedplate import cli
from bedplate.host.interruption import defer_interruptions

if TYPE_CHECKING:
    from collections.abc import Iterator

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _handlers_of_a_new_process() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in _ENDS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in _ENDS[1:]:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", _ENDS)
def test_it_waits_in_a_held_block_and_comes_at_once_outside(number: signal.Signals) -> None:
    cli._take_ends_as_interrupts()
    reached: list[str] = []

    def take() -> None:
        with defer_interruptions():
            # Twice, as an impatient person does it.
            signal.raise_signal(number)
            signal.raise_signal(number)
            reached.append("the end")

    with pytest.raises(KeyboardInterrupt):
        take()
    assert ["the end"] == reached
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)


def test_a_hangup_that_nohup_ignores_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    cli._take_ends_as_interrupts()
    signal.raise_signal(signal.SIGHUP)
