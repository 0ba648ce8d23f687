"""Effects over whole studies of which the truth is known."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.known_study import Place, change_records, known_study, with_provenance
from tests.support.studies.synthetic_study import Recipe
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.effects import FactorEffects, StudyEffects, interaction_sentences, study_effects
from bedplate.analysis.overview import overview
from bedplate.errors import PlanError
from bedplate.model.metrics import METRICS
from bedplate.statistics.comparison import Verdict
from bedplate.terminal.compare_tables import effects_document, effects_tables

if TYPE_CHECKING:
    from pathlib import Path

DESIGN = Recipe(
    filesystem_blocks=(1024, 4096),
    database_blocks=(2048, 8192),
    runs=("read-write",),
    repetitions=5,
    course_s=2,
)


def tps(place: Place) -> float:
    """Small database blocks help by a half without barriers and not at all with them; XFS is twice as fast."""
    noise = random.Random(f"{place.cell.id} {place.repetition} {place.canary}").gauss(0, 0.01)
    filesystem = place.cell.filesystem
    small = place.cell.build.block_size_bytes == 2048
    base = 1000.0 * {"ext4": 1.0, "xfs": 2.0, "btrfs": 1.0}[filesystem.type]
    base *= 1.5 if small and filesystem.barrier is False else 1.0
    return base * math.exp(noise)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return known_study(tmp_path_factory.mktemp("effects") / "study", tps, DESIGN)


@pytest.fixture(scope="module")
def found(study: Path) -> StudyEffects:
    return study_effects(overview(study))


def printed(found: StudyEffects) -> str:
    return as_printed(effects_tables(found))


def across(found: StudyEffects) -> FactorEffects:
    (one,) = study_effects(found.overview, across_durability=True).found
    return one


def test_effects_are_those_of_the_truth(found: StudyEffects) -> None:
    (one,) = found.found
    whole = one.parts[0]
    assert ("durable", None) == (whole.durability, whole.within)
    ratios = {(e.factor, e.level, e.baseline): e.judged for e in whole.effects}
    filesystem = ratios["filesystem.type", "xfs", "ext4"]
    assert filesystem.low is not None
    assert filesystem.high is not None
    # Without barriers ext4 gains by small blocks; cells without them are of another class, and in no mean.
    assert filesystem.low < 2 < filesystem.high
    assert not ratios["build.block_size_bytes", 8192, 2048].is_told_apart
    assert not ratios["filesystem.block_size_bytes", 4096, 1024].is_told_apart
    unsafe = next(part for part in one.parts if part.durability == "unsafe / durable")
    ratios = {(e.factor, e.level, e.baseline): e.judged for e in unsafe.effects}
    assert ratios["build.block_size_bytes", 8192, 2048].estimate == pytest.approx(1 / 1.5, rel=0.02)


def test_an_interaction_that_is_real_is_a_sentence(found: StudyEffects) -> None:
    (within,) = [part for part in across(found).parts if part.within == ("filesystem.type", "ext4")]
    (sentence,) = interaction_sentences(within.interactions, METRICS["tps"])
    assert "db block 8 KiB beside 2 KiB" in sentence or "barrier" in sentence
    assert "matters little" in sentence
    assert "hurts" in sentence
    assert "(0.67)" in sentence
    assert "the first ratio is" in sentence


@pytest.mark.parametrize(
    ("at", "against", "words"),
    [
        (
            0.78,
            0.69,
            "hurts less where barrier is no (0.78) than where it is yes (0.69): the first ratio is 1.13",
        ),
        (0.5, 0.9, "hurts more where barrier is no (0.50) than where it is yes (0.90)"),
        (1.5, 1.2, "helps more where barrier is no (1.50) than where it is yes (1.20)"),
        (1.03, 0.99, "matters little where barrier is no (1.03) and where it is yes (0.99)"),
        (1.5, 0.7, "helps where barrier is no (1.50), hurts where it is yes (0.70)"),
    ],
)
def test_where_a_factor_does_more_is_said_by_what_it_does(
    found: StudyEffects, at: float, against: float, words: str
) -> None:
    (one,) = found.found
    part = one.parts[0]
    known = part.interactions[0]
    made = replace(
        known,
        factor="build.block_size_bytes",
        level=8192,
        baseline=2048,
        by="filesystem.barrier",
        at=False,
        against=True,
        ratio_at=at,
        ratio_against=against,
        ratio=at / against,
        judged=replace(
            known.judged, low=at / against - 0.01, high=at / against + 0.01, verdict=Verdict.HIGHER
        ),
    )
    (sentence,) = interaction_sentences([made], METRICS["tps"])
    assert words in sentence


def test_the_tables_fit_into_80_columns_and_name_everything(found: StudyEffects) -> None:
    text = printed(found)
    assert max(map(len, text.splitlines())) <= 80
    text = " ".join(text.split())
    for word in (
        "share of the",
        "file system",
        "db block",
        "Over all cells that are durable: 10 cells",
        "Over all cells that are unsafe / durable: 4 cells",
        "barrier within ext4 crosses durability classes",
        "--across-durability",
        "xfs / ext4",
        "5 repetitions",
    ):
        assert word in text


def test_the_document_is_json_and_has_every_pair(found: StudyEffects) -> None:
    document = json.loads(json.dumps(effects_document(found), allow_nan=False))
    (one,) = document["effects"]
    whole = one["parts"][0]
    assert 3 == sum(each["factor"] == "filesystem.type" for each in whole["effects"])
    assert 0 <= whole["variation"]["shares"][0]["share"] <= 1
    assert not one["across_durability"]
    assert {"durable": 10, "unsafe / durable": 4} == one["classes"]
    assert ["filesystem.barrier"] == [each["factor"] for each in one["crossing"]]


def test_across_classes_everything_is_judged_and_nothing_ranked(found: StudyEffects) -> None:
    judged = study_effects(found.overview, across_durability=True)
    document = json.loads(json.dumps(effects_document(judged), allow_nan=False))
    (one,) = document["effects"]
    assert one["across_durability"]
    assert any(part["sentences"] for part in one["parts"])
    assert one["sentences"][0] == (
        "Ratios of barrier weigh speed against what a power cut leaves; they rank nothing."
    )
    text = " ".join(printed(judged).split())
    assert "Within file system ext4, cells of all durability classes" in text
    assert "Interactions" in text


def test_suspect_runs_are_no_part_of_effects(tmp_path: Path) -> None:
    recipe = replace(DESIGN, suspect=((0, 1), (1, 1)))
    lying = known_study(
        tmp_path / "study",
        lambda place: tps(place) * (0.01 if place.repetition == 1 and not place.canary else 1),
        recipe,
    )
    (one,) = study_effects(overview(lying)).found
    assert 2 == one.suspect
    assert "Left out: 2 suspect runs" in printed(study_effects(overview(lying)))


def test_where_every_run_is_suspect_that_is_said(tmp_path: Path) -> None:
    places = tuple((cell, repetition) for cell in range(40) for repetition in range(6))
    study = known_study(tmp_path / "study", tps, replace(DESIGN, suspect=places))
    found = study_effects(overview(study))
    assert () == found.found[0].parts
    assert "Left out: 70 suspect runs." in printed(found)


def test_two_repetitions_describe_and_do_not_judge(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", tps, replace(DESIGN, repetitions=2))
    found = study_effects(overview(study))
    assert not any(effect.judged.is_told_apart for part in found.found[0].parts for effect in part.effects)
    assert "Descriptions only" in printed(found)
    assert "Interactions" not in printed(found)


def test_cells_that_are_not_comparable_have_no_effects(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", tps, DESIGN)
    change_records(
        study, lambda record: with_provenance(record, {"accelerator": record.cell.filesystem.type})
    )
    found = study_effects(overview(study))
    assert () == found.found[0].parts
    assert "accelerator: btrfs, ext4, xfs" in " ".join(printed(found).split())


def test_what_has_no_logarithm_is_refused(study: Path) -> None:
    with pytest.raises(PlanError, match="fast_transaction_share is a proportion"):
        study_effects(overview(study), metrics=("fast_transaction_share",))
    with pytest.raises(PlanError, match="there are read-write"):
        study_effects(overview(study), workload="tpch")


def test_a_study_without_a_figure_says_so(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", lambda place: None, DESIGN)
    with pytest.raises(PlanError, match="no run has a value"):
        study_effects(overview(study))
