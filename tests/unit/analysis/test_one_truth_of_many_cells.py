"""One planted truth among 360 cells: every place that answers names the same cell, and the same ratio to the digit."""

from __future__ import annotations

import math
import random
from statistics import fmean
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.known_study import Place, known_study
from tests.support.studies.synthetic_study import Recipe, cells_of

from bedplate.analysis.advice import advised
from bedplate.analysis.answer import headline
from bedplate.analysis.comparison import ComparisonQuestion, answer
from bedplate.analysis.overview import Overview, overview
from bedplate.analysis.pooled import pooled_pairs
from bedplate.page.document import page_document
from bedplate.page.views import page_effects

if TYPE_CHECKING:
    from bedplate.model.cell import Cell

RUN = "read-write"
RECIPE = Recipe(
    runs=(RUN,),
    mount_options=tuple((f"commit={5 * number}",) for number in range(1, 7)),
    repetitions=3,
    course_s=2,
    canaries=0,
)
# XFS is so much faster than ext4 with barriers, and one cell of XFS is half as fast again.
OF_XFS, OF_THE_BEST = 1.3, 1.5


def is_best(cell: Cell) -> bool:
    filesystem = cell.filesystem
    return (filesystem.type, filesystem.block_size_bytes, cell.database_block_bytes) == (
        "xfs",
        2048,
        16384,
    ) and "commit=15" in filesystem.mount_options


def tps(place: Place) -> float:
    level = 1000.0 * {"ext4": 1.0, "xfs": OF_XFS, "btrfs": 0.5}[place.cell.filesystem.type]
    noise = math.exp(random.Random(f"{place.cell.id} {place.repetition}").gauss(0, 0.01))
    return level * noise * (OF_THE_BEST if is_best(place.cell) else 1.0)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Overview:
    assert 360 == len(cells_of(RECIPE))
    return overview(known_study(tmp_path_factory.mktemp("many") / "study", tps, RECIPE))


@pytest.fixture(scope="module")
def best(found: Overview) -> str:
    (cell,) = [cell_id for cell_id, cell in found.study.schedule.cells.items() if is_best(cell)]
    return cell


def test_every_place_names_the_planted_cell(found: Overview, best: str) -> None:
    advice = advised(found)
    told = headline(found, advice)
    assert told.answers[0].taken is not None
    assert best == told.answers[0].taken.cell
    (contest,) = [each for each in advice.contests if best in each.cells]
    figures = {
        cell: advice.summary(contest, contest.objectives[0], cell).centre or 0 for cell in contest.cells
    }
    assert best == max(figures, key=lambda cell: figures[cell])
    document = page_document([found])
    assert best == document["cells"][document["ranking"][0][0]]["id"]
    assert (found.summary(best, found.runs[0], "tps").centre or 0) == pytest.approx(figures[best], rel=1e-12)


def test_every_place_has_the_ratio_of_the_planted_types(found: Overview) -> None:
    values = {cell: found.summary(cell, found.runs[0], "tps").centre or 0 for cell in found.cells}
    cells = found.study.schedule.cells
    logarithms = []
    for cell_id, cell in cells.items():
        if cell.filesystem.type == "xfs":
            (partner,) = [
                other_id
                for other_id, other in cells.items()
                if other.filesystem.type == "ext4"
                and other.filesystem.barrier
                and other.filesystem.mount_options == cell.filesystem.mount_options
                and other.filesystem.block_size_bytes == cell.filesystem.block_size_bytes
                and other.database_block_bytes == cell.database_block_bytes
            ]
            logarithms.append(math.log(values[cell_id] / values[partner]))
    assert 108 == len(logarithms)
    expected = math.exp(fmean(logarithms))
    assert expected == pytest.approx(OF_XFS * OF_THE_BEST ** (1 / 108), rel=0.005)
    (line,) = pooled_pairs(answer([found], ComparisonQuestion("type=ext4 barrier=yes", "type=xfs")))
    assert line.comparison.estimate == pytest.approx(expected, rel=1e-9)
    assert line.comparison.low is not None
    assert line.comparison.high is not None
    assert line.comparison.low < OF_XFS * OF_THE_BEST ** (1 / 108) < line.comparison.high
    of_types = next(one for one in headline(found).answers[0].types if 108 == len(one.pairs))
    assert of_types.comparison.estimate == pytest.approx(1 / expected, rel=1e-9)
    ratios = [
        one.ratio
        for each in page_effects(found).found
        if each.asked.metric == "tps"
        for part in each.parts
        for one in part.effects
        if (one.level, one.baseline) == ("xfs", "ext4")
    ]
    assert expected == pytest.approx(ratios[0], rel=1e-9)
