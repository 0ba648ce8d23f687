"""Planted truths over whole studies: what the pooled line of `compare` says, and that effects say the same."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.support.studies.known_study import Place, known_study
from tests.support.studies.synthetic_study import Recipe
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.advice import advised
from bedplate.analysis.comparison import ComparisonAnswer, ComparisonQuestion, answer
from bedplate.analysis.effects import study_effects
from bedplate.analysis.overview import Overview, overview
from bedplate.analysis.pooled import (
    PooledPairs,
    crossing_pairs,
    disagreement_sentences,
    pooled_in_short,
    pooled_line,
    pooled_pairs,
)
from bedplate.statistics.comparison import Verdict
from bedplate.terminal.compare_tables import compare_document, compare_tables

if TYPE_CHECKING:
    from pathlib import Path

XFS_BESIDE_EXT4 = 1.08
ON_SMALL_BLOCKS = 1.3
RECIPE = Recipe(runs=("read-write",), repetitions=3, course_s=2, canaries=0)


def tps(place: Place, *, interaction: float = 1.0) -> float:
    """XFS is 8 % faster than ext4 with barriers; a repetition moves all cells by a third, a run scatters by 3 %."""
    filesystem = place.cell.filesystem
    speed = 1000 * (XFS_BESIDE_EXT4 if filesystem.type == "xfs" else 1.0)
    speed *= 2.0 if filesystem.barrier is False else 1.0
    if filesystem.type == "xfs" and filesystem.block_size_bytes == 1024:
        speed *= interaction
    repetition = random.Random(f"repetition {place.repetition}").gauss(0, 0.3)
    return speed * math.exp(repetition + random.Random(f"{place.cell.id} {place.repetition}").gauss(0, 0.03))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Overview:
    return overview(known_study(tmp_path_factory.mktemp("pooled") / "study", tps, RECIPE))


@pytest.fixture(scope="module")
def interacting(tmp_path_factory: pytest.TempPathFactory) -> Overview:
    directory = tmp_path_factory.mktemp("interacting") / "study"
    return overview(known_study(directory, lambda place: tps(place, interaction=ON_SMALL_BLOCKS), RECIPE))


def ask(found: Overview, baseline: str, contender: str, *, across: bool = False) -> ComparisonAnswer:
    return answer([found], ComparisonQuestion(baseline, contender, across_durability=across))


def only(found: ComparisonAnswer) -> PooledPairs:
    (line,) = pooled_pairs(found)
    return line


def printed(found: ComparisonAnswer) -> str:
    return as_printed(compare_tables(found), 200)


def test_eighteen_pairs_tell_what_most_single_ones_cannot(plain: Overview) -> None:
    found = ask(plain, "type=ext4 barrier=yes", "type=xfs")
    line = only(found)
    comparison = line.comparison
    assert (18, (("durable",), 18)) == (len(line.pairs), line.classes[0])
    assert comparison.low is not None
    assert comparison.high is not None
    assert comparison.low < XFS_BESIDE_EXT4 < comparison.high
    assert comparison.high / comparison.low < 1.08
    assert Verdict.FASTER is comparison.verdict
    waiting = [each for each in found.compared if each.comparison.verdict is Verdict.CANNOT_TELL]
    assert 9 < len(waiting)
    assert not line.disagree
    assert not any(each.real for each in line.dependences)


def test_the_pooled_line_comes_first_and_says_its_class(plain: Overview) -> None:
    found = ask(plain, "type=ext4", "type=xfs")
    text = printed(found)
    first = next(line for line in text.splitlines() if "matched pairs" in line)
    assert "xfs / ext4 over 18 matched pairs, durable: ×1.08 (1.05 to 1.10): faster" == first
    assert text.index(first) < text.index("read-write: tps")
    assert "that they disagree is not shown" in text
    # ext4 without barriers is in another class, and in no mean with the others.
    assert 18 == len(crossing_pairs(found))
    assert "18 pairs cross durability classes (durable beside unsafe / durable: 18)" in text


def test_effects_and_advice_say_the_same(tmp_path: Path) -> None:
    found = overview(known_study(tmp_path / "study", tps, replace(RECIPE, repetitions=5)))
    line = only(ask(found, "type=ext4 barrier=yes", "type=xfs"))
    (every,) = study_effects(found, metrics=("tps",)).found
    part = next(each for each in every.parts if each.durability == "durable")
    (effect,) = [one for one in part.effects if (one.level, one.baseline) == ("xfs", "ext4")]
    assert line.comparison.estimate == pytest.approx(effect.ratio)
    assert effect.judged.is_told_apart
    assert Verdict.FASTER is line.comparison.verdict
    contest = next(each for each in advised(found).contests if each.durability == "durable")
    kinds = [found.study.schedule.cells[cell].filesystem.type for cell in contest.cells]
    better = Counter((kinds[i], kinds[j]) for i, j in np.argwhere(contest.better[0]))
    # Of the verdicts on one figure one in twenty may be wrong.
    assert better["xfs", "ext4"] > 20 * better["ext4", "xfs"] > -1


def test_an_interaction_is_said_with_the_ratios_of_its_levels(interacting: Overview) -> None:
    line = only(ask(interacting, "type=ext4 barrier=yes", "type=xfs"))
    assert line.disagree
    assert line.p_disagreement is not None
    assert 0.05 > line.p_disagreement
    assert pooled_line(line).endswith("so this is a mean over these pairs and not the ratio of each")
    assert (
        "xfs / ext4 barrier yes, durable: faster in all 18 pairs, from ×1.01 (fs block 2 KiB, db block 2 KiB) to ×1.42 (fs block 1 KiB, db block 32 KiB)"
        == pooled_in_short(line)
    )
    first, *others = line.dependences
    assert "filesystem.block_size_bytes" == first.factor
    assert not any(each.real for each in others)
    ratios = {level: ratio for level, ratio, _ in first.levels}
    assert ratios[1024] == pytest.approx(XFS_BESIDE_EXT4 * ON_SMALL_BLOCKS, rel=0.03)
    assert ratios[4096] == pytest.approx(XFS_BESIDE_EXT4, rel=0.03)
    (sentence,) = disagreement_sentences(line)
    assert sentence.startswith(
        "It depends on fs block: ×1.38 at 1 KiB, ×1.08 at 2 KiB, ×1.09 at 4 KiB; 2 KiB beside 1 KiB"
    )


def test_classes_are_mixed_only_where_that_is_asked_for_and_said_in_the_line(plain: Overview) -> None:
    assert () == pooled_pairs(ask(plain, "barrier=yes", "barrier=no"))
    line = only(ask(plain, "barrier=yes", "barrier=no", across=True))
    assert line.crosses
    assert pooled_line(line).startswith(
        "barrier no / yes over 18 matched pairs, of several durability classes (unsafe / durable beside durable: 18), "
        "which weighs speed against what a power cut leaves: ×2.0"
    )
    # Blocks are compared within each class, the safest first.
    lines = pooled_pairs(ask(plain, "build.block_size=8k", "build.block_size=4k,16k"))
    assert ["durable"] * 2 + ["unsafe / durable"] * 2 == [each.classes[0][0][0] for each in lines]
    together = pooled_pairs(ask(plain, "build.block_size=8k", "build.block_size=4k,16k", across=True))
    assert [10, 10] == [len(each.pairs) for each in together]
    assert "of several durability classes (durable: 7, unsafe / durable: 3)" in pooled_line(together[0])


def test_levels_that_differ_are_never_pooled(plain: Overview) -> None:
    lines = pooled_pairs(ask(plain, "type=ext4 barrier=yes", "type=xfs,btrfs"))
    assert {(("filesystem.type", "xfs"),), (("filesystem.type", "btrfs"),)} == {
        each.contender for each in lines
    }
    # One cell by its label has one partner: there is nothing to pool.
    label = next(iter(plain.cells.values())).label.full
    assert () == pooled_pairs(ask(plain, label, "type=xfs"))


def test_missing_visits_leave_their_pairs_their_weight(tmp_path: Path) -> None:
    recipe = Recipe(
        runs=("read-write",), repetitions=3, course_s=2, canaries=0, missing=((0, 1), (5, 2), (5, 3))
    )
    found = overview(known_study(tmp_path / "study", tps, recipe))
    line = only(ask(found, "type=ext4 barrier=yes", "type=xfs"))
    assert (17, 1) == (len(line.pairs), len(line.left_out))
    assert line.comparison.estimate == pytest.approx(XFS_BESIDE_EXT4, rel=0.03)
    assert Verdict.FASTER is line.comparison.verdict
    left_out = (
        "1 more pair of this kind has no ratio to pool (a verdict needs 3 repetitions in common, found 1)."
    )
    assert left_out in disagreement_sentences(line)


def test_the_document_has_every_line(interacting: Overview) -> None:
    document = json.loads(json.dumps(compare_document(ask(interacting, "type=ext4", "type=xfs"))))
    (line,) = document["pooled"]
    assert {"filesystem.type": "xfs"} == line["contender"]
    assert [{"classes": ["durable"], "pairs": 18}] == line["classes"]
    assert 18 == len(line["pairs"])
    assert line["pairs_disagree"]
    assert "filesystem.block_size_bytes" == line["depends_on"][0]["factor"]
    assert line["depends_on"][0]["strongest"]["high"] < 1
