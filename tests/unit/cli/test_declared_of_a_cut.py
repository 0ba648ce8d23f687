"""What was declared for the cell of a bad cut: a journal in memory counts where the cut took it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from bedplate.model.durability import UNSAFE
from bedplate.model.reason import because
from bedplate.model.visit import Durability
from bedplate.workloads.power_cut import cut_questions

CODES = ("journal-in-memory", "data-flushes-missing")
DECLARED = Durability(UNSAFE, UNSAFE, "declared", tuple(because(code, code) for code in CODES))


@pytest.mark.parametrize(
    ("recording", "codes"),
    [
        (SimpleNamespace(loses_journal=True), CODES),
        (SimpleNamespace(loses_journal=False), CODES[1:]),
        # A recording whose facts cannot be read takes nothing away.
        (None, CODES),
    ],
)
def test_a_journal_that_the_plan_had_kept_is_no_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recording: object, codes: tuple[str, ...]
) -> None:
    monkeypatch.setattr("bedplate.model.codec.read", lambda *_: SimpleNamespace(durability=DECLARED))
    monkeypatch.setattr(cut_questions, "read_cuts", lambda _: SimpleNamespace(recording=recording))
    found = cut_questions.declared_of(tmp_path / "runs" / "1")
    assert found is not None
    assert codes == tuple(reason.code for reason in found.reasons)
