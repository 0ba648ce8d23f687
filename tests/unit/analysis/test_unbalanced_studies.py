"""One truth, asked everywhere: effects, compare, advise and the page agree on studies whose design is not complete."""

from __future__ import annotations

import math
import random
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.known_study import Place, known_study
from tests.support.studies.synthetic_study import Recipe, cells_of
from tests.support.studies.unbalanced_designs import MOUNT, TYPE, XFS_BESIDE_EXT4, Planted, planted, truth

from bedplate.analysis.advice import advised
from bedplate.analysis.claims import Finding, judge_claims, parse_claims
from bedplate.analysis.comparison import ComparisonQuestion, answer
from bedplate.analysis.effects import StudyEffects, study_effects
from bedplate.analysis.labels import level_text, usual_factors
from bedplate.analysis.overview import Overview, overview
from bedplate.analysis.pooled import pooled_pairs
from bedplate.analysis.wording import durability_words
from bedplate.model.levels import Levels
from bedplate.page.answer import study_answer
from bedplate.page.views import effects_view, page_effects
from bedplate.statistics.estimation import REPETITIONS_MIN
from bedplate.terminal.compare_tables import effects_document

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.analysis.comparison import Compared
    from bedplate.analysis.pooled import PooledPairs
    from bedplate.model.levels import Scalar
    from bedplate.statistics.effects import Effect

RUN = "read-write"


def tps(place: Place) -> float:
    """The truth, what the repetition does to all cells, and a run's scatter of 1 %."""
    repetition = random.Random(f"repetition {place.repetition}").gauss(0, 0.3)
    scatter = random.Random(f"{place.cell.id} {place.repetition} {place.canary}").gauss(0, 0.01)
    return 1000 * truth(place.cell) * math.exp(repetition + scatter)


@pytest.fixture(scope="module", params=planted(), ids=lambda found: found.name)
def design(request: pytest.FixtureRequest) -> Planted:
    found: Planted = request.param
    return found


@pytest.fixture(scope="module")
def found(design: Planted, tmp_path_factory: pytest.TempPathFactory) -> Overview:
    recipe = Recipe(
        cells=design.cells, runs=(RUN,), repetitions=5, course_s=2, canaries=0, missing=design.lost
    )
    return overview(known_study(tmp_path_factory.mktemp("unbalanced") / "study", tps, recipe))


def ratios_of(found: StudyEffects) -> dict[tuple[str, Scalar, Scalar], Effect]:
    """The ratios of tps in the first part that has each."""
    (one,) = (each for each in found.found if each.asked.metric == "tps")
    every: dict[tuple[str, Scalar, Scalar], Effect] = {}
    for part in one.parts:
        for each in part.effects:
            every.setdefault((each.factor, each.level, each.baseline), each)
    return every


def pairs_of(found: Overview, factor: str, level: Scalar, baseline: Scalar) -> list[Compared]:
    """What `compare` says of two levels, of the pairs that are alike in what a power cut leaves and in what is usual."""
    asked = [f"{factor}={shlex.quote(level_text(factor, each))}" for each in (baseline, level)]
    told = answer([found], ComparisonQuestion(asked[0], asked[1], workload=RUN, metrics=("tps",)))
    return [
        each
        for each in told.compared
        for sides in [(each.pair.baseline, each.pair.contender)]
        for classes in [{found.cells[side.cell].durability for side in sides}]
        for own in [set(sides[0].levels) ^ set(sides[1].levels)]
        if len(classes) == 1 and all(own & set(side.levels) <= usual_factors(side.levels) for side in sides)
    ]


def mean_of(found: list[Compared]) -> float:
    estimates = [each.comparison.estimate for each in found if each.comparison.estimate is not None]
    return math.exp(sum(map(math.log, estimates)) / len(estimates))


def test_effects_of_a_written_study_are_the_planted_ones(design: Planted, found: Overview) -> None:
    ratios = ratios_of(study_effects(found, metrics=("tps",)))
    for key, (ratio, _) in design.ratios.items():
        judged = ratios[key].judged
        measured = ratios[key].ratio
        assert judged.low is not None
        assert judged.high is not None
        assert judged.low <= ratio * 1.02
        assert judged.high >= ratio / 1.02
        assert ratio == pytest.approx(measured, rel=0.03)
        assert judged.is_told_apart


def test_compare_has_the_same_estimates_on_the_same_pairs(design: Planted, found: Overview) -> None:
    (one,) = study_effects(found, metrics=("tps",)).found
    across = ratios_of(study_effects(found, metrics=("tps",), across_durability=True))
    for part in one.parts:
        for each in part.effects:
            if each.factor == MOUNT:
                continue
            every = pairs_of(found, each.factor, each.level, each.baseline)
            own = [
                pair
                for pair in every
                for side in [pair.pair.baseline]
                if durability_words(found.cells[side.cell].durability) == part.durability
                and (part.within is None or side.levels[part.within[0]] == part.within[1])
            ]
            assert mean_of(own) == pytest.approx(each.ratio, rel=1e-9)
            both = across[each.factor, each.level, each.baseline].ratio
            if part.within is None:
                assert mean_of(every) == pytest.approx(both, rel=1e-9)


def test_across_classes_the_estimate_is_that_of_compare_too(design: Planted, found: Overview) -> None:
    ratios = ratios_of(study_effects(found, metrics=("tps",)))
    across = ratios_of(study_effects(found, metrics=("tps",), across_durability=True))
    for (factor, level, baseline), ratio in design.crossing.items():
        assert (factor, level, baseline) not in ratios
        asked = [f"{factor}={shlex.quote(level_text(factor, each))}" for each in (baseline, level)]
        told = answer([found], ComparisonQuestion(asked[0], asked[1], workload=RUN, metrics=("tps",)))
        mean = mean_of(list(told.compared))
        assert mean == pytest.approx(across[factor, level, baseline].ratio, rel=1e-9)
        assert mean == pytest.approx(ratio, rel=0.03)
        assert all(any("power cut" in note for note in each.notes) for each in told.compared)


def test_advice_has_the_estimates_of_compare(design: Planted, found: Overview) -> None:
    advice = advised(found)
    contests = [contest for contest in advice.contests if contest.can_judge]
    checked = 0
    for contest in contests:
        for first in contest.cells:
            for second in contest.cells:
                if first >= second:
                    continue
                told = advice.comparison(contest, contest.objectives[0], first, second)
                truths = [truth(found.study.schedule.cells[cell]) for cell in (first, second)]
                assert told.estimate == pytest.approx(truths[1] / truths[0], rel=0.05)
                checked += 1
    assert checked


def test_claims_rest_on_the_ratios_of_the_command(design: Planted, found: Overview) -> None:
    """Where no filter names what one file system alone has, a claim is of the same cells as the ratio."""
    ratios = ratios_of(study_effects(found, metrics=("tps",)))
    across = ratios_of(study_effects(found, metrics=("tps",), across_durability=True))
    told = 0
    for (factor, level, baseline), each in ratios.items():
        if factor != TYPE:
            continue
        sides = f'baseline = "type={baseline}"\ncontender = "type={level}"\n'
        check = f'[[claim.check]]\nrun = "{RUN}"\nmetric = "tps"\nkind = "ratio"\n{sides}at_least = 0.001\n'
        file = parse_claims(f'title = "T"\n[[claim]]\nid = "one"\nsentence = "It is so."\n{check}')
        ((claim,),) = judge_claims([found], [file]).judged
        same = across.get((factor, level, baseline), each)
        assert claim.estimate == pytest.approx(same.ratio, rel=1e-9)
        assert claim.estimate == pytest.approx(each.ratio, rel=0.03)
        told += 1
    assert told


def xfs_is_half_as_fast_at_32k(place: Place) -> float:
    """15 % faster at the other sizes: on average XFS is slower."""
    repetition = random.Random(f"repetition {place.repetition}").gauss(0, 0.1)
    scatter = random.Random(f"{place.cell.id} {place.repetition}").gauss(0, 0.005)
    beside = {32768: 0.5}.get(place.cell.build.block_size_bytes, 1.15)
    return 1000 * (beside if place.cell.filesystem.type == "xfs" else 1.0) * math.exp(repetition + scatter)


@pytest.mark.parametrize(("repetitions", "there"), [(8, 8), (8, 4), (8, 2), (5, 3), (3, 2)])
def test_the_pair_that_turns_the_mean_counts_in_every_place_however_few_of_its_runs_are_left(
    tmp_path: Path, repetitions: int, there: int
) -> None:
    every = cells_of(Recipe(filesystem_blocks=(4096,), database_blocks=(2048, 8192, 32768)))
    cells = tuple(
        cell
        for cell in every
        if cell.filesystem.type == "xfs" or (cell.filesystem.type == "ext4" and cell.filesystem.barrier)
    )
    (at,) = (
        number
        for number, cell in enumerate(cells)
        if (cell.filesystem.type, cell.build.block_size_bytes) == ("xfs", 32768)
    )
    lost = tuple((at, repetition) for repetition in range(there + 1, repetitions + 1))
    recipe = Recipe(cells=cells, runs=(RUN,), repetitions=repetitions, course_s=2, canaries=0, missing=lost)
    found = overview(known_study(tmp_path / "study", xfs_is_half_as_fast_at_32k, recipe))
    truth_of_all = (1.15 * 1.15 * 0.5) ** (1 / 3)

    kind = ratios_of(study_effects(found, metrics=("tps",)))[TYPE, "xfs", "ext4"]
    assert kind.ratio == pytest.approx(truth_of_all, rel=0.02)
    assert (3, {}) == (kind.strata, kind.left_out)
    question = ComparisonQuestion("type=ext4", "type=xfs", workload=RUN, metrics=("tps",))
    (line,) = pooled_pairs(answer([found], question))
    assert line.comparison.estimate == pytest.approx(kind.ratio, rel=1e-9)

    sides = 'baseline = "type=ext4"\ncontender = "type=xfs"\n'
    head = f'[[claim.check]]\nrun = "{RUN}"\nmetric = "tps"\nkind = "ratio"\n{sides}'
    file = parse_claims(
        'title = "T"\n'
        f'[[claim]]\nid = "mean"\nsentence = "XFS is faster on average."\n{head}at_least = 1.0\n'
        f'[[claim]]\nid = "each"\nsentence = "XFS is nowhere more than 5 % slower."\n{head}each = "pair"\nat_least = 0.95\n'
    )
    ((mean, each),) = judge_claims([found], [file]).judged
    assert mean.estimate == pytest.approx(kind.ratio, rel=1e-9)
    assert Finding.HOLDS not in {mean.finding, each.finding}
    if there >= REPETITIONS_MIN:
        assert (Finding.FAILS, Finding.FAILS) == (mean.finding, each.finding)


def test_the_page_shows_the_ratios_of_the_command(design: Planted, found: Overview) -> None:
    command = study_effects(found, metrics=("tps",))
    shown = next(each for each in effects_view([page_effects(found)], found.runs) if each["metric"] == "tps")
    within = [each for each in shown["designs"] if not each["across"]]
    assert len(command.found[0].parts) == len(within)
    ratios = ratios_of(command)
    for row in within[0]["ratios"]:
        name, level, baseline, ratio, *_ = row
        assert any(
            (level, baseline) == (level_text(factor, a), level_text(factor, b))
            and ratio == pytest.approx(each.ratio, rel=1e-4)
            for (factor, a, b), each in ratios.items()
        ), name
    assert bool(design.crossing) == any(each["across"] for each in shown["designs"])


def test_the_first_screen_weighs_no_factor_that_crosses_classes(design: Planted, found: Overview) -> None:
    effects = page_effects(found)
    said = study_answer(found, effects, judge_claims([found], ()), 0).said
    (matters,) = (each.text for each in said if each.section == "effects" and each.about.startswith("What"))
    document = next(each for each in effects_document(effects)["effects"] if each["metric"] == "tps")
    assert document["strongest"] == matters
    for factor, *_ in design.crossing:
        assert f"{factor.rpartition('.')[2]} changes what a power cut leaves" in matters


def test_a_study_like_the_quick_plan_says_what_was_planted(tmp_path_factory: pytest.TempPathFactory) -> None:
    (nested, *_) = planted()
    recipe = Recipe(cells=nested.cells[4:], runs=(RUN,), repetitions=5, course_s=2, canaries=0)
    found = overview(known_study(tmp_path_factory.mktemp("quick") / "study", tps, recipe))
    effects = study_effects(found)
    kind = ratios_of(effects)[TYPE, "xfs", "ext4"]
    (compared,) = pairs_of(found, TYPE, "xfs", "ext4")
    assert kind.ratio == pytest.approx(compared.comparison.estimate, rel=1e-9)
    assert kind.ratio == pytest.approx(XFS_BESIDE_EXT4, rel=0.02)
    (one,) = effects_document(effects)["effects"]
    assert one["strongest"].startswith("Only file system varies between 3 cells that are durable.")
    assert "barrier changes what a power cut leaves" in one["strongest"]
    # A share of the only factor would be the whole, whatever it does.
    (part,) = one["parts"]
    assert (TYPE, []) == (part["variation"]["only"], part["variation"]["shares"])
    assert [[]] == [
        each["shares"] for each in effects_view([effects], found.runs)[0]["designs"] if not each["across"]
    ]
    assert ["barrier within ext4 crosses durability classes"] == [
        words.split(" (")[0] for words in one["sentences"]
    ]


def test_a_third_file_system_takes_no_pair_of_the_other_two_away(tmp_path: Path) -> None:
    """XFS and Btrfs were asked for `discard` too, which ext4 was not: XFS beside ext4 is what it is without Btrfs."""
    every = cells_of(Recipe(filesystem_blocks=(4096,), database_blocks=(2048, 8192)))
    plain = [
        replace(cell, filesystem=replace(cell.filesystem, features=Levels()))
        for cell in every
        if cell.filesystem.barrier is not False
    ]
    discard = [
        replace(cell, filesystem=replace(cell.filesystem, mount_options=("discard",)))
        for cell in plain
        if cell.filesystem.type in {"xfs", "btrfs"}
    ]
    recipe = Recipe(cells=(*plain, *discard), runs=(RUN,), repetitions=3, course_s=2, canaries=0)
    found = overview(known_study(tmp_path / "study", tps, recipe))

    def lines_of(baseline: str, contender: str) -> dict[str, PooledPairs]:
        question = ComparisonQuestion(baseline, contender, workload=RUN, metrics=("tps",))
        return {
            str(dict(line.baseline)[TYPE]): line
            for line in pooled_pairs(answer([found], question))
            if not line.beside and dict(line.contender)[TYPE] == "xfs"
        }

    alone = lines_of("type=ext4", "type=xfs")["ext4"]
    both = lines_of("type=ext4,btrfs", "type=xfs")
    assert {"ext4", "btrfs"} == set(both)
    assert both["ext4"].comparison.estimate == alone.comparison.estimate
    assert len(both["ext4"].pairs) == len(alone.pairs)
