"""The torture's own eyes: a planted wrong is found, and a trial can be had again."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.torture import run
from tests.torture.kills import unchanged
from tests.torture.trial import Tally


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    visit = tmp_path / "visits/cell/pgbench/1.1"
    visit.mkdir(parents=True)
    (visit / "visit.json").write_text("{}")
    (tmp_path / "visits/cell/pgbench/2.1.unfinished").mkdir()
    return tmp_path


@pytest.mark.parametrize("planted", ["changed", "gone"])
def test_a_finished_visit_that_changed_is_wrong(finished: Path, planted: str) -> None:
    tally = Tally()
    before = unchanged(finished, {}, "first", tally)
    assert ["visits/cell/pgbench/1.1/visit.json"] == list(before)
    unchanged(finished, before, "second", tally)
    assert [] == tally.wrong
    record = finished / "visits/cell/pgbench/1.1/visit.json"
    record.write_text("{ }") if planted == "changed" else record.unlink()
    unchanged(finished, before, "after the planting", tally)
    assert [
        "visits/cell/pgbench/1.1/visit.json of a finished visit changed after the planting"
    ] == tally.wrong


def test_what_a_trial_finds_ends_with_1_and_says_how_to_see_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn_before: list[float] = []

    def planted(drawn: random.Random, _: Path, tally: Tally) -> None:
        drawn_before.append(drawn.random())
        tally.tried["planted"] += 1
        tally.wrong.append("it broke")

    monkeypatch.setattr(run, "TRIALS", {"planted": planted})
    monkeypatch.setattr("os.geteuid", lambda: 0)
    found = run.trial_of(7, 3, ("planted",))
    assert ["[planted, --seed 7 --trial 3] it broke"] == found.wrong
    assert 1 == run.main(["--seed", "7", "--trial", "3"])
    assert drawn_before[0] == drawn_before[1]
    assert "       1  planted\n       1  wrong\n" in capsys.readouterr().out
