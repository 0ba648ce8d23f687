"""The local executor's own hold on the visit that it began."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import IO, TYPE_CHECKING

import pytest

from bedplate.errors import EXIT_INTERRUPTED
from bedplate.executors import local
from bedplate.host.interruption import arrive
from bedplate.host.ledger import Holding, Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from bedplate.model.visit import VisitRequest


class _Request:
    def __init__(self, state: Path) -> None:
        self.state_directory = str(state)


@pytest.fixture(autouse=True)
def _handlers_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def interrupt(_number: int, _frame: object) -> None:
        arrive(KeyboardInterrupt())

    monkeypatch.setattr("bedplate.model.codec.write", lambda *_: None)
    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def visit_of(
    *words: str, begun: list[subprocess.Popen[bytes]], then: Callable[[], None] = lambda: None
) -> Callable[..., subprocess.Popen[bytes]]:
    """In the place of a visit's process; `then` falls between its start and its being known."""

    def started(_words: Sequence[str], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
        begun.append(
            subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
        )
        then()
        return begun[0]

    return started


def run(place: Path, on_event: Callable[[object], None] = lambda _: None, *, by: type[BaseException]) -> None:
    request: VisitRequest = _Request(place / "state")  # type: ignore[assignment]
    with pytest.raises(by):
        local.LocalRunner().run_visit(request, place, on_event)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_visit_whose_start_is_interrupted_is_ended(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[subprocess.Popen[bytes]] = []
    visit = visit_of("sleep", "600", begun=begun, then=lambda: signal.raise_signal(number))
    monkeypatch.setattr(local, "started_apart", visit)
    run(tmp_path, by=KeyboardInterrupt)
    assert -signal.SIGTERM == begun[0].poll()


def test_a_second_signal_does_not_leave_the_visit_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[subprocess.Popen[bytes]] = []
    monkeypatch.setattr(
        local, "started_apart", visit_of("sh", "-c", "echo '{}'; exec sleep 600", begun=begun)
    )
    # The first comes with the visit's first event, the second while the display is told that it leaves.
    run(tmp_path, lambda _: signal.raise_signal(signal.SIGINT), by=KeyboardInterrupt)
    assert -signal.SIGTERM == begun[0].poll()


def test_a_display_that_fails_does_not_leave_the_visit_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[subprocess.Popen[bytes]] = []
    monkeypatch.setattr(
        local, "started_apart", visit_of("sh", "-c", "echo '{}'; exec sleep 600", begun=begun)
    )

    def fails(_event: object) -> None:
        raise OSError("no such terminal")

    run(tmp_path, fails, by=OSError)
    assert -signal.SIGTERM == begun[0].poll()


def test_what_an_interrupted_visit_could_not_give_back_is_given_back_by_its_executor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tmp_path / "left.img"
    begun: list[subprocess.Popen[bytes]] = []

    def leave() -> None:
        # A child that ends without its own clean-up, its ledger with it.
        taker = os.fork()
        if taker == 0:
            ledger = Ledger.open(tmp_path / "state", "visit")
            ledger.note(Holding("image", str(left)))
            left.touch()
            os._exit(EXIT_INTERRUPTED)
        os.waitpid(taker, 0)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(local, "started_apart", visit_of("sleep", "600", begun=begun, then=leave))
    run(tmp_path, by=KeyboardInterrupt)
    assert not left.exists()
    assert [] == [path for path in (tmp_path / "state").iterdir() if not path.name.startswith(".")]
