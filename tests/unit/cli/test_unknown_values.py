"""A word that no table of bedplate's has is a sentence in every reader, or is shown as it is: a newer bedplate writes such words."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.support.studies.study_readers import READERS, require_harmless, said_by_reader, sealed_study
from tests.support.studies.study_values import UNKNOWN, put, reseal, texts_of

# One place in so many; the torture has all of them.
_OF_PLACES = 7


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sealed_study(tmp_path_factory.mktemp("whole") / "study")


def test_figures_of_unknown_metrics_are_left_out_by_name(whole: Path, tmp_path: Path) -> None:
    study = tmp_path / "study"
    shutil.copytree(whole, study)
    for workload in ("pgbench", "power-cut"):
        path = min(study.glob(f"visits/*/{workload}*/*/runs/*/run.json"))
        document = json.loads(path.read_text())
        for number, figure in enumerate(document["figures"]):
            figure["metric"] = f"{UNKNOWN}-{number}"
        path.write_text(json.dumps(document))
    reseal(study)
    for words in READERS:
        status, said = said_by_reader(words, study)
        assert 0 == status, said
    _, said = said_by_reader(("show", "{study}"), study)
    assert "igures of metrics that this bedplate does not know are left out" in " ".join(said.split())
    assert f"{UNKNOWN}-0" in said


def test_a_metric_that_is_no_text_is_a_sentence(whole: Path, tmp_path: Path) -> None:
    study = tmp_path / "study"
    shutil.copytree(whole, study)
    for path in study.glob("visits/*/*/*/runs/*/run.json"):
        document = json.loads(path.read_text())
        document["figures"][0]["metric"] = ["a", {}]
        path.write_text(json.dumps(document))
    reseal(study)
    for words in (("status", "{study}"), ("status", "{study}", "--verify", "--json"), ("show", "{study}")):
        require_harmless(words, study)


def test_another_word_in_any_record_is_a_sentence_or_is_shown(whole: Path, tmp_path: Path) -> None:
    places = [place for place in texts_of(whole) if not place[2]][::_OF_PLACES]
    for number, place in enumerate(places):
        # A name of its own: what was looked at under a name is held to be that directory (model/limits.py).
        study = tmp_path / f"study-{number}"
        shutil.copytree(whole, study)
        put(study, place)
        try:
            # Each place is shown to two readers in turn.
            for words in (READERS[number % len(READERS)], READERS[(number + 5) % len(READERS)]):
                require_harmless(words, study)
        except AssertionError as error:
            raise AssertionError(f"{place}: {error}") from error
        shutil.rmtree(study)
