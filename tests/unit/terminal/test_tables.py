from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.synthetic_study import Recipe, write_study
from tests.support.tools.as_printed import as_printed

from bedplate.errors import PlanError
from bedplate.terminal.table_parts import Notes, bar
from bedplate.terminal.tables import Order, show_document, show_tables

if TYPE_CHECKING:
    from pathlib import Path


RECIPE = Recipe(filesystem_blocks=(None,), database_blocks=(8192,), repetitions=2, course_s=5)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recipe = replace(RECIPE, failed=((1, 1),), suspect=((2, 1),), missing=((3, 2),))
    return write_study(tmp_path_factory.mktemp("tables") / "study", recipe)


def test_what_is_too_much_at_one_place_is_counted_and_gets_no_note() -> None:
    notes = Notes()
    marks = notes.marks(*(f"reason {'x' * number}" for number in range(33)))
    assert marks.startswith(" [a,b,c] ")
    assert marks.endswith(" [ab,ac,ad] […]")
    lines = [line.plain for line in notes.lines()]
    assert 31 == len(lines)
    assert "[…] 3 more; the same command with --json has each." == lines[-1]


def test_a_hundred_thousand_reasons_are_a_page_of_notes() -> None:
    notes = Notes()
    for number in range(100_000):
        notes.marks(f"reason {number} of a damaged study")
    lines = [line.plain for line in notes.lines()]
    assert 251 == len(lines)
    assert "[…] 99,750 more; the same command with --json has each." == lines[-1]
    # What has its note keeps it.
    assert " [a]" == notes.marks("reason 0 of a damaged study")


def test_a_table_fits_into_80_columns(study: Path) -> None:
    text = as_printed(show_tables([study]))
    assert max(len(line) for line in text.splitlines()) <= 80
    for word in ("ext4 barrier", "nodatacow", "read-only", "read-write", "unsafe", "image file".capitalize()):
        assert word in text


def test_each_doubt_has_its_mark_and_footnote(study: Path) -> None:
    text = as_printed(show_tables([study]))
    assert "✗" in text
    assert "failed: mkfs.ext4 exited with status 1: no space" in text
    # Both runs of the visit give the same reason: it is one footnote.
    assert 1 == text.count("suspect (read-only, read-write): tps still climbed at the end of the")
    assert 1 == text.count("tps still climbed")
    assert "not run yet" in text


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_every_footnote_has_its_mark_and_no_mark_is_read_as_a_number(study: Path, width: int) -> None:
    tables = show_tables([study])
    text = as_printed(tables, width)
    table, _, notes = text.partition("Geometric mean of n")
    below = re.findall(r"^\[([a-z]+)\] ", notes, re.MULTILINE)
    assert below
    assert set(below) == {mark for marks in re.findall(r"\[([a-z,]+)\]", table) for mark in marks.split(",")}
    assert not set("⁰¹²³⁴⁵⁶⁷⁸⁹") & set(text)


def test_marks_stand_in_brackets_of_three_and_go_on_behind_z() -> None:
    notes = Notes()
    words = [f"sentence {'x' * place}" for place in range(28)]
    marks = notes.marks(*words)
    assert marks.startswith(" [a,b,c] [d,e,f] ")
    assert marks.endswith(" [y,z,aa] [ab]")
    # Once each, however often they come up.
    assert " [b,aa]" == notes.marks(words[1], words[26], words[1])
    assert "" == notes.marks()
    assert ["[aa]", "[ab]"] == [line.plain.split()[0] for line in notes.lines()[26:]]


def test_validity_and_p99_are_there_at_60_columns(study: Path) -> None:
    text = as_printed(show_tables([study]), 60)
    cells = 4
    assert cells == len(re.findall(r"^  p99 ms: (?:[\d.,]+|–)", text, re.MULTILINE))
    assert cells == len(re.findall(r"^  n: \S+ [✓!?✗·]", text, re.MULTILINE))


def test_a_workload_and_a_metric_can_be_chosen(study: Path) -> None:
    text = as_printed(show_tables([study], workload="read-only", metric="latency_ms_p50"))
    assert "read-write" not in text
    assert "median latency" in text


def test_an_unknown_choice_names_what_there_is(study: Path) -> None:
    with pytest.raises(PlanError, match="there are read-only, read-write"):
        show_tables([study], workload="tpch")
    with pytest.raises(PlanError, match="known are"):
        show_tables([study], metric="speed")


def test_markup_in_names_is_printed_not_obeyed(tmp_path: Path) -> None:
    recipe = replace(RECIPE, title="[bold red]title[/]", hostile=False)
    text = as_printed(show_tables([write_study(tmp_path / "study", recipe)]))
    assert "[bold red]title[/]" in text


def test_the_document_is_json_and_keeps_what_is_absent(study: Path) -> None:
    found = json.loads(json.dumps(show_document([study], workload="read-only"), allow_nan=False))
    cells = {cell["variant"]: cell for cell in found["studies"][0]["cells"]}
    assert 1 == cells["ext4 nobarrier"]["runs"][0]["tps"]["n"]
    # Its visit failed before the run began: the run did not fail, the mark says what became of it.
    nobarrier = cells["ext4 nobarrier"]["runs"][0]
    assert (0, 1) == (nobarrier["tps"]["failed"], nobarrier["tps"]["not_run"])
    assert "✗" == nobarrier["mark"]
    assert "suspect" == {"!": "suspect"}[cells["xfs"]["runs"][0]["mark"]]


def test_a_bar_is_as_long_as_its_share() -> None:
    assert "███████" == bar(10.0, 10.0)
    assert "███▌" == bar(5.0, 10.0)
    assert "▏" == bar(0.001, 10.0)
    assert "" == bar(None, 10.0)
    assert "" == bar(0.0, 10.0)


def test_cells_are_sorted_by_a_metric_and_the_first_are_shown(study: Path) -> None:
    def means(order: Order) -> list[float | None]:
        (found,) = show_document([study], order=order)["studies"]
        return [cell["runs"][1][order.metric]["centre"] for cell in found["cells"]]

    speeds = means(Order("tps"))
    known = [speed for speed in speeds if speed is not None]
    assert known == sorted(known, reverse=True)
    # A cell without a value is last, whichever way is better.
    assert speeds == [*known, *[None] * (len(speeds) - len(known))]
    times = [time for time in means(Order("latency_ms_p99")) if time is not None]
    assert times == sorted(times)
    assert speeds[:2] == means(Order("tps", 2))
    text = as_printed(show_tables([study], order=Order("tps", 2)))
    assert "Sorted by tps of read-write, the first 2 of 4 cells." in text
    with pytest.raises(PlanError, match=r"did you mean tps\?"):
        show_tables([study], order=Order("tsp"))
    with pytest.raises(PlanError, match="no run shown has test_prepare_s"):
        show_tables([study], order=Order("test_prepare_s"))
