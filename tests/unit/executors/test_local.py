"""The local executor's own hold on the visit that it began."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

from bedplate.executors import local

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.model.visit import VisitRequest


class _Request:
    def __init__(self, state: Path) -> None:
        self.state_directory = str(state)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_visit_whose_start_is_interrupted_is_ended(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[subprocess.Popen[bytes]] = []

    def interrupted(_words: Sequence[str], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
        begun.append(
            subprocess.Popen(["sleep", "600"], stdout=subprocess.PIPE, stderr=stderr, start_new_session=True)
        )
        signal.raise_signal(number)
        return begun[0]

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    request: VisitRequest = _Request(tmp_path)  # type: ignore[assignment]
    monkeypatch.setattr(local, "_started", interrupted)
    monkeypatch.setattr("bedplate.model.codec.write", lambda *_: None)
    before = signal.signal(number, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            local.LocalRunner().run_visit(request, tmp_path, lambda _: None)
    finally:
        signal.signal(number, before)
    assert -signal.SIGTERM == begun[0].poll()
