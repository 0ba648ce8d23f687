"""No table breaks a number, from 40 columns to 200, in whatever command."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.text import Text
from tests.support.runs.raw_sequential_run import sequential_study
from tests.support.studies.known_study import Place, known_study
from tests.support.studies.synthetic_microbenchmark import synthetic_microbenchmark
from tests.support.studies.synthetic_power_cuts import power_cut_study
from tests.support.studies.synthetic_study import HOSTILE, Recipe
from tests.support.studies.synthetic_tpch import synthetic_tpch_study
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.answer import headline
from bedplate.analysis.claims import judge_claims, load_claims
from bedplate.analysis.comparison import ComparisonQuestion, answer
from bedplate.analysis.effects import study_effects
from bedplate.analysis.overview import overview
from bedplate.terminal.advice_tables import advice_tables, claim_tables
from bedplate.terminal.compare_tables import compare_tables, effects_tables
from bedplate.terminal.fitting_table import unbroken
from bedplate.terminal.table_parts import plain_table
from bedplate.terminal.tables import show_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import RenderableType

CLAIMS = sorted(Path(__file__).parents[3].joinpath("claims").glob("*.toml"))
NUMBER = re.compile(r"\d[\d.,]*\d")
# Every width from 40 to 100 was tried; these are where layouts change, and some between them.
WIDTHS = (40, 43, 47, 52, 58, 60, 61, 66, 72, 79, 80, 81, 90, 100, 120, 160, 200)
KINDS: dict[str, Callable[[Path], Path]] = {
    "lmdb": synthetic_microbenchmark,
    "raw": sequential_study,
    "power_cut": power_cut_study,
    "tpch": synthetic_tpch_study,
}


def large(place: Place) -> float:
    """Figures of six digits, as read-only runs have them: their ranges are as wide as any."""
    noise = random.Random(f"{place.cell.id} {place.repetition} {place.canary}").gauss(0, 0.03)
    return 104_321.0 * (1.3 if place.cell.filesystem.type == "xfs" else 1.0) * math.exp(noise)


def require_unbroken(tables: Sequence[RenderableType], widths: Sequence[int] = WIDTHS) -> None:
    """Every number of a wide rendering stands in each narrow one as often, and no line is too wide."""
    wide = Counter(NUMBER.findall(as_printed(tables, 400)))
    assert wide
    for width in widths:
        text = as_printed(tables, width)
        assert max(map(len, text.splitlines())) <= width, width
        found = Counter(NUMBER.findall(text))
        assert not wide - found, (width, text)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recipe = Recipe(
        filesystem_blocks=(1024, 4096),
        database_blocks=(2048, 8192),
        repetitions=5,
        course_s=2,
        suspect=((0, 1),),
    )
    return known_study(tmp_path_factory.mktemp("large") / "study", large, recipe)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recipe = Recipe(filesystem_blocks=(4096,), database_blocks=(8192,), repetitions=2, course_s=2)
    return known_study(tmp_path_factory.mktemp("few") / "study", large, replace(recipe, hostile=True))


@pytest.mark.parametrize("name", ["study", "few"])
def test_show_breaks_no_number(name: str, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(name)
    require_unbroken(show_tables([path]))
    require_unbroken(show_tables([path], metric="latency_ms_p99"), (40, 61, 80))


@pytest.mark.parametrize("kind", KINDS)
def test_the_tables_of_every_workload_break_no_number(kind: str, tmp_path: Path) -> None:
    require_unbroken(show_tables([KINDS[kind](tmp_path / "study")]), (40, 52, 66, 80, 100, 200))


@pytest.mark.parametrize("name", ["study", "few"])
def test_compare_breaks_no_number(name: str, request: pytest.FixtureRequest) -> None:
    found = overview(request.getfixturevalue(name))
    question = ComparisonQuestion("type=ext4", "type=xfs", metrics=("tps", "latency_ms_p99", "tps_cv"))
    require_unbroken(compare_tables(answer([found], question)))


@pytest.mark.parametrize("name", ["study", "few"])
def test_effects_and_advice_break_no_number(name: str, request: pytest.FixtureRequest) -> None:
    found = overview(request.getfixturevalue(name))
    require_unbroken(effects_tables(study_effects(found)))
    require_unbroken(advice_tables(headline(found)))


def test_claims_break_no_number(study: Path) -> None:
    require_unbroken(claim_tables(judge_claims([overview(study)], load_claims(CLAIMS))))


def figures() -> RenderableType:
    table = plain_table()
    table.add_column("cell", min_width=14, max_width=36)
    table.add_column("read-only\ntps", justify="right", min_width=13)
    table.add_column("", no_wrap=True, width=7)
    table.add_column("n", no_wrap=True)
    table.add_row("ext4 nobarrier\nfs 4k · db 8k", Text("104,300\n100,300–111,000"), "███████", "5 ✓")
    return table


def test_where_there_is_room_nothing_changes() -> None:
    wide = as_printed([figures()], 80)
    assert "100,300–111,000" in wide
    assert "███████" in wide


def test_a_column_that_is_not_there_takes_its_cells_along() -> None:
    table, expected = plain_table(), plain_table()
    for head in ("first", "second", "third", "fourth"):
        table.add_column(head, is_there=head not in ("second", "fourth"))
    for head in ("first", "third"):
        expected.add_column(head)
    table.add_row("1", "2", "3", "4")
    expected.add_row("1", "3")
    assert as_printed([table], 80) == as_printed([expected], 80)
    with pytest.raises(ValueError, match="argument 2 is longer"):
        table.add_row("1", "2", "3", "4", "5")


def test_bars_go_before_a_number_is_broken() -> None:
    narrow = as_printed([figures()], 42)
    assert "100,300–111,000" in narrow
    assert "█" not in narrow
    assert "read-only" in narrow


def test_a_row_becomes_lines_where_its_columns_do_not_fit() -> None:
    lines = [line.strip() for line in as_printed([figures()], 24).splitlines() if line.strip()]
    assert [
        "ext4 nobarrier",
        "fs 4k · db 8k",
        "read-only tps: 104,300",
        "(100,300–111,000)",
        "n: 5 ✓",
    ] == lines


def test_a_sign_and_a_unit_stay_with_their_number() -> None:
    for width in range(8, 40):
        lines = unbroken(Text("0 of 80, < 4.6 % 12 of 40, < 8.9 % corrupt"), width).plain.split("\n")
        assert max(len(line.rstrip()) for line in lines) <= width
        assert ["< 4.6 %", "< 8.9 %"] == [
            found for line in lines for found in re.findall(r"< [\d.]+ %", line)
        ]


@pytest.mark.parametrize("width", range(1, 30))
def test_a_long_word_is_broken_beside_its_numbers(width: int) -> None:
    text = unbroken(Text("stride=128,stripe_width=100300 next"), width)
    for number in ("128", "100300"):
        if width >= len(number):
            assert number in text.plain
    assert text.plain.replace("\n", "") == "stride=128,stripe_width=100300 next"


def test_hostile_names_are_shown_as_they_are() -> None:
    table = plain_table()
    table.add_column("cell", max_width=20)
    table.add_row(Text(HOSTILE))
    assert HOSTILE.replace(" ", "") in as_printed([table], 30).replace("\n", "").replace(" ", "")


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (19, ["full_page_writes=", "off"]),
        (14, ["full_page_", "writes=off"]),
        (9, ["full_", "page_", "writes=", "off"]),
    ],
)
def test_a_setting_is_folded_behind_its_name(width: int, lines: list[str]) -> None:
    assert lines == unbroken(Text("full_page_writes=off"), width).plain.split("\n")
