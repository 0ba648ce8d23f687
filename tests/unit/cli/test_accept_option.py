"""`--accept` on the commands that judge: a planted truth in runs that are all in doubt is told once the doubt is accepted."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.studies.known_study import KNOWN, Place, known_study
from tests.support.studies.synthetic_search import write_search
from tests.support.studies.synthetic_study import cells_of
from tests.support.studies.xfs_claim import xfs_claim

from bedplate.analysis.overview import overview
from bedplate.cli.app import call
from bedplate.errors import StudyError

if TYPE_CHECKING:
    from pathlib import Path


def speed(place: Place) -> float:
    noise = random.Random(f"{place.cell.id} {place.repetition}").gauss(0, 0.01)
    return (2000.0 if place.cell.filesystem.type == "xfs" else 1000.0) * math.exp(noise)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every run is suspect for one reason."""
    doubted = tuple((at, n + 1) for at in range(len(cells_of(KNOWN))) for n in range(KNOWN.repetitions))
    return known_study(tmp_path_factory.mktemp("accepted") / "study", speed, replace(KNOWN, suspect=doubted))


@pytest.fixture(scope="module")
def code(study: Path) -> str:
    (reasons,) = {m.reasons for m in overview(study).measurements if m.reasons}
    return reasons[0].code


def asked(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    assert 0 == call([*map(str, words), "--json"])
    return json.loads(capsys.readouterr().out)


def test_effects_advice_and_claims_tell_what_was_planted(
    study: Path, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").write_text(xfs_claim("at_least = 1.5"))
    claim = ("claims", study, "--claims", tmp_path / "mine.toml")
    accept = ("--accept", code)

    assert "not measured" == asked(capsys, *claim)["files"][0]["claims"][0]["finding"]
    found = asked(capsys, *claim, *accept)
    assert "holds" == found["files"][0]["claims"][0]["finding"]
    assert any("runs in doubt count here" in mark for mark in found["studies"][0]["marks"])

    doubted, trusted = (asked(capsys, "effects", study, *words) for words in ((), accept))
    assert '"xfs"' not in json.dumps(doubted["effects"])
    assert '"xfs"' in json.dumps(trusted["effects"])
    assert any("runs in doubt count here" in mark for mark in trusted["marks"])

    doubted, trusted = (asked(capsys, "advise", study, *words) for words in ((), accept))
    assert [] == [name for name in leaders(doubted) if "xfs" in name]
    assert any("xfs" in name for name in leaders(trusted))


def leaders(document: Any) -> list[str]:
    return [
        cell["label"]
        for contest in document["contests"]
        for cell in contest["cells"]
        if cell["standing"] == "leading"
    ]


@pytest.mark.parametrize("command", ["effects", "advise"])
def test_a_search_has_accepted_what_it_was_asked_to(command: str, tmp_path: Path) -> None:
    study = write_search(tmp_path / "study")
    with pytest.raises(StudyError, match="counts the runs whose doubts were accepted when it ran"):
        call([command, str(study), "--accept", "other programs used"])
