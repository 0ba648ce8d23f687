"""Scores that the page makes of a choice of cells, beside those of `statistics.tpch_scores`."""

from __future__ import annotations

import base64
import json
import random
import zlib
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from tests.browser.opened_page import opened
from tests.support.studies.synthetic_tpch import TpchRecipe, synthetic_tpch_study

from bedplate.analysis.comparison import selected_overviews
from bedplate.analysis.overview import SCORES, ScoreView, overview
from bedplate.model.visit import Validity
from bedplate.page.build import build_report
from bedplate.statistics.tpch_scores import QueryRun, Scores, scores
from bedplate.workloads.tpch.page import packed_query_times

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six cells with a timeout, plans that differ and waver, a failed run, and a cell of suspect runs alone."""
    recipe = TpchRecipe(suspect=tuple((5, number, "cold") for number in (1, 2, 3)))
    return synthetic_tpch_study(tmp_path_factory.mktemp("tpch") / "study", recipe)


@pytest.fixture(scope="module")
def report(study: Path) -> Path:
    build_report([study], study.parent / "report.html")
    return study.parent / "report.html"


def on_the_page(page: Page, view: ScoreView, names: Sequence[str], selected: Sequence[str]) -> Any:
    """What the script makes of the runs of a view, given the numbers of cells."""
    packed = packed_query_times([(view, {name: place for place, name in enumerate(names)})])
    times = json.loads(zlib.decompress(base64.b64decode(packed)))
    return page.evaluate(
        "([view, selected, factors]) => bedplate.tpchScores.scores(view, selected, factors)",
        [times["views"][0], [names.index(name) for name in selected], times["factors"]],
    )


def hold_together(found: Any, expected: Scores, names: Sequence[str]) -> None:
    assert list(expected.queries) == found["queries"]
    assert list(expected.kept) == found["kept"]
    causes = {query: list(dict.fromkeys(reason[0] for reason in why)) for query, why in found["dropped"]}
    assert {query: list(why) for query, why in expected.causes.items()} == causes
    assert list(expected.only_suspect) == [names[cell] for cell in found["only_suspect"]]
    assert expected.left_out == {names[cell]: reason for cell, reason in found["left_out"]}
    assert [cell.cell for cell in expected.cells] == [names[cell["cell"]] for cell in found["cells"]]
    for cell, shown in zip(expected.cells, found["cells"], strict=True):
        assert (cell.basis, list(cell.timeouts)) == (shown["basis"], shown["timeouts"])
        for name in SCORES:
            score, parts = getattr(cell, name), shown[name]
            assert list(score.reasons) == parts[4], (cell.cell, name)
            for part, value in zip(("value", "ideal_share", "low", "high"), parts, strict=False):
                wanted = getattr(score, part)
                assert (wanted is None) == (value is None), (cell.cell, name, part)
                if wanted is not None:
                    assert value == pytest.approx(wanted, rel=1e-6), (cell.cell, name, part)


def drawn_runs(seed: int) -> list[QueryRun]:
    """A table of runs in which anything may happen: timeouts, lost times, plans, runs in doubt, lost repetitions."""
    chance = random.Random(seed)
    cells, repetitions = chance.randint(1, 5), chance.randint(1, 6)
    runs = []
    for cell in range(cells):
        doubtful = chance.random() < 0.3
        for repetition in range(1, repetitions + 1):
            if chance.random() < 0.1:
                continue
            doubt = chance.choice((Validity.SUSPECT, Validity.UNKNOWN))
            validity = doubt if doubtful or chance.random() < 0.1 else Validity.VALID
            for query in range(1, chance.choice((3, 6, 12))):
                fate = chance.random()
                runs.append(
                    QueryRun(
                        f"cell {cell}",
                        repetition,
                        str(query) if query < 11 else "rf",
                        time_s=chance.lognormvariate(0, 1) if fate > 0.08 else None,
                        limit_s=chance.choice((30.0, 60.0)) if fate < 0.06 else None,
                        plan=chance.choices(("p", "q", None), (0.96, 0.03, 0.01))[0],
                        validity=validity,
                    )
                )
    return runs


def test_the_script_makes_the_scores_that_python_makes(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        for seed in range(300):
            runs = drawn_runs(seed)
            names = [f"cell {number}" for number in range(6)]
            selected = random.Random(seed).sample(names, random.Random(seed).randint(1, 6))
            view = ScoreView("d", "cold", scores(runs, names), {}, {}, tuple(runs))
            hold_together(on_the_page(found.page, view, names, selected), scores(runs, selected), names)
        assert [] == found.complaints


@pytest.mark.parametrize(
    ("one", "other", "score"),
    [
        ((10, 15, 100), (20, 20, 75), [2.75, 2.25]),
        ((10, None, 3), (20, 4, 5), [2.0, 0.5 + 1.0 + 0.6]),
        ((1, 1, 1), (1, 1, 1), [3.0, 3.0]),
    ],
)
def test_the_worked_example_and_its_like(
    browser: Browser,
    report: Path,
    one: Sequence[float | None],
    other: Sequence[float | None],
    score: list[float],
) -> None:
    runs = [
        QueryRun(cell, 1, str(query), time, None if time else 300.0, plan="p")
        for cell, times in (("a", one), ("b", other))
        for query, time in enumerate(times, 1)
    ]
    expected = scores(runs, ["a", "b"])
    with opened(browser, report) as found:
        view = ScoreView("d", "cold", expected, {}, {}, tuple(runs))
        made = on_the_page(found.page, view, ["a", "b"], ["a", "b"])
    hold_together(made, expected, ["a", "b"])
    assert score == pytest.approx([cell["score"][0] for cell in made["cells"]])


def test_the_whole_study_comes_out_as_its_document_says(browser: Browser, study: Path, report: Path) -> None:
    whole = overview(study)
    names = list(whole.cells)
    with opened(browser, report) as found:
        for view in whole.scores:
            hold_together(on_the_page(found.page, view, names, names), view.scores, names)


def test_a_reader_chooses_the_cells_that_scores_are_over(browser: Browser, study: Path, report: Path) -> None:
    (some,) = selected_overviews([study], ["type=ext4"])
    expected = some.scores[0].scores
    with opened(browser, report) as found:
        page = found.page
        expect(page.locator("#scores-note")).to_contain_text(
            "Over all 6 cells. No trusted run, so that they set no best time and drop no query: "
        )
        page.locator("#filters > summary").click()
        page.check('#filters input[data-factor="filesystem.type"][value="ext4"]')
        page.keyboard.press("Escape")
        expect(page.locator("#scores-table tbody tr")).to_have_count(2)
        expect(page.locator("#scores-note")).to_contain_text("Over 2 of 6 cells.")
        kept = f"{len(expected.kept)} of 22 queries are left in the m-figures; left out: 9."
        expect(page.locator("#scores-kept")).to_have_text(kept)
        row = page.locator("#scores-table tbody tr", has_text="db 8 KiB").inner_text()
        value = expected.cells[0].m_score.value
        assert value is not None
        assert f"{value:.2f}" in row
        page.locator("#scores-dropped > summary").click()
        expect(page.locator("#scores-dropped")).to_contain_text(
            "2 plans across the cells: ext4 · fs default, 4 KiB · db 8 KiB | ext4 · fs default, 4 KiB · db 32 KiB"
        )
        # The heat map of a score is over the same cells as the table.
        page.select_option("#choose-metric", label="m_score")
        square = page.locator('#heat-list td[data-cell="0"]')
        expect(square).to_contain_text(f"{value:.2f}")
        page.evaluate("bedplate.choice.change({ filters: null, cells: [] })")
        expect(page.locator("#scores-note")).to_contain_text("Over 0 of 6 cells")
        expect(page.locator("#scores-kept")).to_contain_text("0 of 0 queries")
        assert [] == found.complaints


def test_the_chosen_cells_stay_with_another_pass(browser: Browser, report: Path) -> None:
    with opened(browser, report) as found:
        page = found.page
        page.evaluate("bedplate.choice.change({ cells: [0, 1] })")
        expect(page.locator("#scores-table tbody tr")).to_have_count(2)
        page.select_option("#choose-run", label="warm")
        expect(page.locator("#scores-note")).to_contain_text("warm, best score first")
        expect(page.locator("#scores-note")).to_contain_text("Over 2 of 6 cells")
        assert [] == found.complaints
