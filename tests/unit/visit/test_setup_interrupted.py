"""A signal between any two lines of a visit's first taking, or of its giving back, leaves nothing outside its ledger."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.support.guests.guest_lab import GuestLab
from tests.support.tools.interrupted import in_functions, interrupted_at_each_line

from bedplate.errors import BedplateError, VisitFailed
from bedplate.host.command import Commands
from bedplate.host.ledger import Ledger
from bedplate.host.scratch_device import MEMORY_DIRECTORY
from bedplate.visit.life import Findings, Steps, VisitSetup

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import CodeType


@pytest.mark.parametrize(
    ("of", "lines_min"),
    [
        (in_functions("visit/life.py", "_make_places"), 6),
        (in_functions("visit/life.py", "leave", "_leave_log_directory"), 4),
        (in_functions("shutil.py", "_rmtree_safe_fd"), 3),
    ],
    ids=["taking", "giving back", "removing"],
)
def test_a_signal_between_two_lines_leaves_no_log_directory(
    of: Callable[[CodeType], bool], lines_min: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def over(_setup: VisitSetup) -> None:
        raise BedplateError("this is as far as it comes")

    monkeypatch.setattr(VisitSetup, "_take_device", over)
    lab = GuestLab(tmp_path)
    ledgers: list[Ledger] = []

    def live() -> None:
        ledgers.append(Ledger.open(lab.state, f"owner-{len(ledgers)}"))
        setup = VisitSetup(
            lab.deed("nothing"),
            tmp_path,
            commands=Commands(),
            ledger=ledgers[-1],
            steps=Steps(lambda _: None),
            findings=Findings(),
            emit=lambda _: None,
        )
        try:
            with pytest.raises(VisitFailed):
                setup.measure()
        finally:
            setup.leave()

    places = []
    for place in interrupted_at_each_line(live, of=of):
        places.append(place)
        # What is still there stands in the ledger, which has the last word.
        assert () == ledgers[-1].release(Commands()), place
        ledgers[-1].close()
        assert not set(MEMORY_DIRECTORY.glob(f"bedplate-{os.getpid()}-*")), place
    assert lines_min <= len(places)
    assert () == ledgers[-1].holdings()
    ledgers[-1].close()
