"""What `power-cut try` says where every recording failed: what failed and what to do, and not that cells lack figures."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from bedplate.analysis import overview as reading
from bedplate.analysis.overview import Trouble
from bedplate.cli import asking
from bedplate.cli.asking import say_tried
from bedplate.model.reason import because

WHY = "power-cut: the writer of toy ended with status 1: the disk says no"


def measurements(*troubles: Trouble | None) -> SimpleNamespace:
    return SimpleNamespace(
        measurements=[
            SimpleNamespace(
                cell=f"{kind}-own-engine",
                trouble=trouble,
                reasons=(because("died", WHY), because("unread", "points.jsonl cannot be read")),
            )
            for kind, trouble in zip(("ext4", "xfs"), troubles, strict=False)
        ]
    )


def test_what_failed_is_named_once_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reading, "overview", lambda _study: measurements(Trouble.FAILED, Trouble.FAILED))
    say_tried(Path("cuts/study"))
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.count(WHY) == 1
    assert f"Failed ext4, xfs: {WHY} Next mend what is named" in printed
    assert "run cuts/plan.toml --study cuts/study --retry-failed" in printed
    assert "no run has a figure" not in printed


@pytest.mark.parametrize("troubles", [(), (Trouble.FAILED, None), (Trouble.FAILED, Trouble.NOT_RUN)])
def test_with_any_verdict_the_answer_stands(
    monkeypatch: pytest.MonkeyPatch, troubles: tuple[Trouble | None, ...]
) -> None:
    answers: list[Path] = []
    monkeypatch.setattr(reading, "overview", lambda _study: measurements(*troubles))
    monkeypatch.setattr(asking, "say_answer", answers.append)
    say_tried(Path("cuts/study"))
    assert answers == [Path("cuts/study")]
