"""The spreadsheet in LibreOffice: another figure is chosen, and the sheet and its bars follow."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import find_office
from tests.support.studies.synthetic_microbenchmark import synthetic_microbenchmark
from tests.support.studies.synthetic_study import Recipe, write_study
from tests.support.studies.synthetic_tpch import TpchRecipe, synthetic_tpch_study

from bedplate.analysis.overview import Overview, overview
from bedplate.analysis.part_summaries import ranked
from bedplate.export.tables import export
from bedplate.export.workbook import choices_of
from bedplate.statistics.summary import SummaryKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    LookThrough: TypeAlias = Callable[[Path, Sequence[str]], "Seen"]

pytestmark = pytest.mark.office

# Both programs take `*` and `?` for patterns, and LibreOffice `.*` for another; case is nothing to either.
PATTERNS = ("read-.*", "read-only", "READ-ONLY", "read-*", "read-~*", "=1+2")


@dataclass(frozen=True)
class Seen:
    """What LibreOffice showed: after the opening and after each step, and the chart after the last."""

    sheets: list[str]
    choices: list[str]
    validation: dict[str, Any]
    bars: list[dict[str, Any]]
    errors: list[str]
    widths: list[list[int]]
    looks: list[list[list[Any]]] = field(repr=False)

    def rows(self, step: int, cells: int) -> list[list[Any]]:
        """The rows of cells after a step, 0 is the opening."""
        look = self.looks[step]
        head = next(number for number, row in enumerate(look) if row[0] == "cell")
        return look[head + 1 : head + 1 + cells]


@pytest.fixture(scope="module")
def look_through(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LookThrough]:
    """One LibreOffice for all files: to start takes it longer than to open one."""
    found = find_office()
    assert found is not None, "mark the test `office`: it is then skipped where no LibreOffice is"
    pipe = f"bedplate-{os.getpid()}"
    profile = tmp_path_factory.mktemp("profile").as_uri()
    words = ["--headless", "--norestore", "--nologo", "--nodefault", f"-env:UserInstallation={profile}"]
    office = subprocess.Popen(
        [found.program, *words, f"--accept=pipe,name={pipe};urp;"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    script = str(Path(__file__).with_name("look_through.py"))

    def look(file: Path, steps: Sequence[str]) -> Seen:
        arguments = [found.python, script, pipe, str(file), *steps]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, (done.stderr, office.poll())
        told = json.loads(done.stdout)
        looks = told.pop("seen")
        return Seen(**told, looks=looks)

    try:
        yield look
    finally:
        office.terminate()
        office.wait(timeout=120)


def _expected(found: Overview, number: int) -> list[list[Any]]:
    """What the sheet shall show of a choice: mean, low, high, n, unit, each cell's."""
    choice = choices_of(found)[number]
    rows = []
    for cell in found.cells.values():
        key = SummaryKey(cell.id, *choice.run, choice.metric.name, choice.part.phase, choice.part.item)
        summary = ranked(found, key, found.summaries[key]).summary
        shown = (summary.centre, summary.low, summary.high, summary.n)
        rows.append(
            ["" if one is None else pytest.approx(one, rel=1e-12) for one in shown] + [choice.metric.unit]
        )
    return rows


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Overview:
    recipe = Recipe(
        filesystem_blocks=(None,),
        database_blocks=(8192, 16384),
        runs=PATTERNS,
        course_s=2,
        hostile=False,
        failed=((0, 1), (0, 2), (0, 3)),
        suspect=((2, 1), (2, 2), (2, 3)),
        canaries=0,
    )
    return overview(write_study(tmp_path_factory.mktemp("small") / "study", recipe))


def test_another_choice_is_calculated_and_drawn(
    small: Overview, look_through: LookThrough, tmp_path: Path
) -> None:
    (file,) = export(small.study.directory, tmp_path / "results.xlsx")
    choices = choices_of(small)
    # One of each run, and one that has a value in no cell.
    numbers = [n for n, choice in enumerate(choices) if choice.metric.name == "latency_ms_p99"]
    assert len(PATTERNS) == len(numbers)
    numbers.append(
        next(n for n, choice in enumerate(choices) if choice.metric.name == "page_cache_hit_ratio")
    )
    numbers.append(numbers[1])
    steps = [f"choose {choices[number].label}" for number in numbers]
    steps[-1:] = ["sort", steps[-1], "choose no such figure", steps[-1]]
    seen = look_through(file, steps)

    assert [choice.label for choice in choices] == seen.choices
    assert ("LIST", f"$Choices.$A$2:$A${len(choices) + 1}", 1) == tuple(
        seen.validation[k] for k in ("kind", "formula", "shown")
    )
    assert [] == seen.errors
    count = len(small.cells)
    assert _expected(small, 0) == [row[2:7] for row in seen.rows(0, count)]
    for step, number in enumerate(numbers[:-1], start=1):
        rows = seen.rows(step, count)
        assert [cell.label.full for cell in small.cells.values()] == [row[0] for row in rows]
        assert _expected(small, number) == [row[2:7] for row in rows]
        assert all(row[7] for row in rows if row[2] == "")
    # Sorting `Results` changes where `Look` finds what it shows, and nothing else.
    last = len(numbers)
    before, after = seen.rows(numbers.index(numbers[1]) + 1, count), seen.rows(last + 1, count)
    assert [row[:8] for row in before] == [row[:8] for row in after]
    assert [row[8] for row in before] != [row[8] for row in after]
    # What is not in the list shows nothing and says so.
    assert "not in the list: take one from it" == seen.looks[last + 2][2][0]
    assert {""} == {one for row in seen.rows(last + 2, count) for one in row}
    _require_bars(small, seen, numbers[1])


def _require_bars(found: Overview, seen: Seen, number: int) -> None:
    """One bar for each cell that has a value, in the colour of its durability class."""
    (bars,) = seen.bars
    classes = ("durable", "unsafe", "unknown")  # the last of a cell without a completed visit
    assert [f"{name} with a volatile cache" for name in classes] == bars["colours"]
    expected = _expected(found, number)
    for cell, (mean, *_), label, values in zip(
        found.cells.values(), expected, bars["labels"], bars["values"], strict=False
    ):
        assert label.startswith(cell.label.full)
        assert ("(no value)" in label) == (mean == "")
        assert cell.durability is not None
        drawn = None if mean == "" else mean
        assert [drawn if name == cell.durability.volatile_cache else None for name in classes] == values
    assert any("(suspect)" in label for label in bars["labels"])
    # The axis begins at 0, since this is one of the values.
    assert (" ", [0.0, None, None]) == (bars["labels"][-1], bars["values"][-1])


def test_a_query_of_tpch_can_be_chosen(look_through: LookThrough, tmp_path: Path) -> None:
    found = overview(synthetic_tpch_study(tmp_path / "study", TpchRecipe()))
    (file,) = export(found.study.directory, tmp_path / "results.xlsx")
    choices = choices_of(found)
    number = next(
        n
        for n, choice in enumerate(choices)
        if (choice.run[1], choice.part.item, choice.metric.name) == ("cold", "20", "query_s")
    )
    seen = look_through(file, [f"choose {choices[number].label}"])
    rows = seen.rows(1, len(found.cells))
    assert _expected(found, number) == [row[2:7] for row in rows]
    assert ["stopped at the limit of 30" in row[7] for row in rows] == [place == 4 for place in range(6)]
    assert [] == seen.errors


def test_a_test_of_lmdb_has_its_own_class_and_colour_when_it_is_chosen(
    look_through: LookThrough, tmp_path: Path
) -> None:
    found = overview(synthetic_microbenchmark(tmp_path / "study", repetitions=1))
    (file,) = export(found.study.directory, tmp_path / "results.xlsx")
    choices = {
        choice.part.item: choice.label
        for choice in choices_of(found)
        if choice.metric.name == "test_operations_per_s" and not choice.run[1].startswith("read-warm")
    }
    tests = ("fillseqsync", "readseq", "fillseq")
    whole = next(choice.label for choice in choices_of(found) if choice.metric.name == "tests_s")
    steps = [whole, *(choices[test] for test in tests)]
    seen = look_through(file, [f"choose {label}" for label in steps])
    assert "write · fillrandsync: test_operations_per_s, 1/s" == seen.looks[0][1][0]
    assert {"durable; without sync unsafe / bounded loss"} == {
        row[1] for row in seen.rows(1, len(found.cells))
    }
    # Nothing of it is hidden by the column behind.
    assert [] == [(width, needed) for width, needed in seen.widths if width < needed]
    assert len({needed for _, needed in seen.widths}) > 1
    shown = [{row[1] for row in seen.rows(step, len(found.cells))} for step in (2, 3, 4)]
    assert [{"durable"}, {"reads only"}, {"unsafe / bounded loss"}] == shown
    (bars,) = seen.bars
    assert ["durable with a volatile cache", "unsafe with a volatile cache", "reads only"] == bars["colours"]
    for durable, unsafe, reads in bars["values"][: len(found.cells)]:
        assert (None, None) == (durable, reads)
        assert unsafe > 0
    assert [] == seen.errors
