"""A planted truth, asked in every place that answers: one outlier, cells that scatter unequally, and the same to the digit everywhere."""

from __future__ import annotations

import json
import math
import random
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.studies.known_study import Place, known_study
from tests.support.studies.study_readers import said_by_reader
from tests.support.studies.synthetic_study import Recipe

from bedplate.analysis.answer import RunAnswer, fitted, headline, headline_lines
from bedplate.analysis.mail import mail_text
from bedplate.analysis.overview import Overview, overview
from bedplate.analysis.pooled import figure_words
from bedplate.analysis.wording import figure
from bedplate.export.workbook import choices_of, results_of
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, DeviceLevels, FilesystemLevels, KernelLevels
from bedplate.page.document import page_document
from bedplate.statistics.summary import SummaryKey, summarise

if TYPE_CHECKING:
    from pathlib import Path

RUN = "read-write"
EXT4, XFS, BTRFS = (
    Cell(
        DeviceLevels(),
        KernelLevels(),
        FilesystemLevels(kind, barrier=True if kind == "ext4" else None),
        BuildLevels(),
        ClusterLevels(),
    )
    for kind in ("ext4", "xfs", "btrfs")
)
# Level, and how far runs scatter: by one, by three and by nine per cent.
TRUTH = {EXT4: (1000.0, 0.03), XFS: (1400.0, 0.01), BTRFS: (500.0, 0.09)}


def tps(place: Place) -> float:
    level, scatter = TRUTH[place.cell]
    noise = random.Random(f"{place.cell.id} {place.repetition}").gauss(0, scatter)
    # A run at 0.7 of its speed, which nothing calls suspect. No median of five shows it.
    return level * math.exp(noise) * (0.7 if (place.cell, place.repetition) == (XFS, 2) else 1.0)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recipe = Recipe(cells=tuple(TRUTH), runs=(RUN,), repetitions=5, course_s=2, canaries=0)
    return known_study(tmp_path_factory.mktemp("truth") / "study", tps, recipe)


@pytest.fixture(scope="module")
def found(study: Path) -> Overview:
    return overview(study)


@pytest.fixture(scope="module")
def means(found: Overview) -> dict[str, float]:
    """Worked out here from the runs alone."""
    values: dict[str, list[float]] = {}
    for m in found.measurements:
        if (value := m.value("tps")) is not None:
            values.setdefault(m.cell, []).append(value)
    assert {5} == set(map(len, values.values()))
    return {cell: math.exp(fmean(map(math.log, own))) for cell, own in values.items()}


def said(study: Path, *words: str) -> Any:
    code, text = said_by_reader((*words, "--json"), study)
    assert 0 == code
    return json.loads(text)


def test_every_place_has_the_same_figure_of_a_cell(
    study: Path, found: Overview, means: dict[str, float]
) -> None:
    show = {
        one["cell"]: one["runs"][0]["tps"]["centre"]
        for one in said(study, "show", "{study}")["studies"][0]["cells"]
    }
    (contest,) = said(study, "show", "{study}", "--advice")["contests"]
    advise = {one["cell"]: one["figures"]["tps"]["mean"] for one in contest["cells"]}
    (own,) = headline(found).answers
    answered = {one.cell: one.summary.centre for one in own.seen}
    summaries = page_document([found])["summaries"]
    at = next(place for place, name in enumerate(page_metrics(found)) if name == "tps")
    page = {
        tuple(found.cells)[cell]: mean
        for cell, metric, mean in zip(summaries["cell"], summaries["metric"], summaries["mean"], strict=True)
        if metric == at
    }
    choice = next(one for one in choices_of(found) if one.metric.name == "tps")
    sheet = {one.cell.id: one.summary.centre for one in results_of(found, [choice])}
    for place in (show, advise, answered, sheet):
        assert means == pytest.approx(place, rel=1e-9)
    # The page's document has five digits.
    assert page == {cell: float(f"{mean:.5g}") for cell, mean in means.items()}


def page_metrics(found: Overview) -> list[str]:
    return [one["name"] for one in page_document([found])["metrics"]]


def test_every_place_has_the_ratio_of_the_two_figures_beside_it(
    study: Path, found: Overview, means: dict[str, float]
) -> None:
    expected = means[XFS.id] / means[EXT4.id]
    (pair,) = said(study, "compare", "{study}", "--baseline", "type=ext4", "--contender", "type=xfs")[
        "comparisons"
    ]
    assert (pair["baseline_mean"], pair["contender_mean"]) == pytest.approx((means[EXT4.id], means[XFS.id]))
    assert expected == pytest.approx(pair["estimate"], rel=1e-9)
    effects = said(study, "show", "{study}", "--effects")
    ratio = next(
        one["judged"]["ratio"]
        for each in effects["effects"]
        if each["metric"] == "tps"
        for one in each["parts"][0]["effects"]
        if (one["level"], one["baseline"]) == ("xfs", "ext4")
    )
    assert expected == pytest.approx(ratio, rel=1e-9)
    told = beside_ext4(headline(found).answers[0])
    assert expected == pytest.approx(told, rel=1e-9)


def beside_ext4(own: RunAnswer) -> float | None:
    assert own.taken is not None
    assert XFS.id == own.taken.cell
    beside = next(
        each for each in (*own.tied, own.following, own.default) if each and each.other.cell == EXT4.id
    )
    assert figure_words(beside.comparison)
    return None if beside.comparison.estimate is None else 1 / beside.comparison.estimate


def test_every_place_writes_a_figure_with_the_same_digits(study: Path, found: Overview) -> None:
    texts = {
        "show": said_by_reader(("show", "{study}"), study)[1],
        "advise": said_by_reader(("show", "{study}", "--advice"), study)[1],
        "compare": said_by_reader(
            ("compare", "{study}", "--baseline", "type=ext4", "--contender", "type=xfs"), study
        )[1],
        "headline": "\n".join(fitted(headline_lines(headline(found)), most=None)),
        "summary": mail_text(headline(found)),
    }
    for cell in (EXT4, XFS):
        words = figure(found.summary(cell.id, found.runs[0], "tps")).mean
        # How runs scatter leaves three digits.
        assert words.endswith("0")
        for place, text in texts.items():
            # The answer has the figure of the cell that is taken alone.
            assert words in text or (place, cell) == ("headline", EXT4), (place, cell.id, words)


def test_a_median_would_not_be_the_ratio(found: Overview, means: dict[str, float]) -> None:
    """What is planted tells the two apart: else this file would show nothing."""
    key = SummaryKey(XFS.id, *found.runs[0], "tps")
    runs = found.of(XFS.id, found.runs[0])
    middle = sorted(value for m in runs if (value := m.value("tps")) is not None)[2]
    assert abs(middle / means[XFS.id] - 1) > 0.03
    assert found.summaries[key] == summarise(
        (m.observation("tps") for m in runs), headline(found).answers[0].metric.scale
    )
