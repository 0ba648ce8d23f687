"""When a recording has to end because its log has no more room, and what is said of one that did."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bedplate.errors import BedplateError
from bedplate.units import GIB
from bedplate.visit.cuts import Driven
from bedplate.workloads.power_cut.bench import RecordedSetup
from bedplate.workloads.power_cut.visit import _Cuts, _said_of


@pytest.mark.parametrize(
    ("share", "is_nearly_full"), [(0.0, False), (0.79, False), (0.81, True), (1.0, True)]
)
def test_clients_leave_a_fifth_of_the_log_to_what_is_still_on_its_way(
    tmp_path: Path, share: float, *, is_nearly_full: bool
) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.truncate(int(share * 2 * GIB))
    setup = cast("Any", SimpleNamespace(log=log, log_limit_bytes=2 * GIB))
    assert RecordedSetup.is_log_nearly_full(setup) is is_nearly_full


def told(driven: Driven) -> list[str]:
    words: list[str] = []
    recording = SimpleNamespace(tell=lambda _, text, **__: words.append(text))
    _Cuts._require_something(cast("Any", SimpleNamespace(_duration_s=4.0, _recording=recording)), driven)
    return words


def test_a_shorter_recording_is_made_and_said() -> None:
    short = Driven(9000, 1.25, "LMDB 0.9.24", ended_early=True)
    assert told(short) == ["ended after 1.2 s of 4 s, as the log was nearly full"]
    assert _said_of(short) == {"engine_version": "LMDB 0.9.24", "ended_early": "the log was nearly full"}
    assert told(Driven(9000, 4.0, "x")) == []
    assert _said_of(Driven(9000, 4.0, "x")) == {"engine_version": "x"}


def test_one_without_a_transaction_is_none() -> None:
    with pytest.raises(BedplateError, match="nearly full before the first transaction"):
        told(Driven(0, 0.0, "x", ended_early=True))
