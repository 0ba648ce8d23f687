"""A run of several scripts: each has its latencies in the terminal, on the page and in the spreadsheet."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.synthetic_study import Recipe, write_changed_study
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.overview import overview
from bedplate.export.workbook import choices_of
from bedplate.model.metrics import figure
from bedplate.page.document import page_document
from bedplate.terminal.tables import show_tables
from bedplate.workloads.pgbench.model import PHASE

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.model.cell import Cell
    from bedplate.model.figure import RunFigures
    from bedplate.model.plan import ScheduledVisit

_P99 = "latency_ms_p99"


def _with_scripts(run: RunFigures, cell: Cell, visit: ScheduledVisit) -> RunFigures:
    del cell
    rows = (
        figure(_P99, value + visit.repetition / 8, phase=PHASE, item=name)
        for name, value in {"new order": 31.0, "stock": 7.0}.items()
    )
    return replace(run, figures=(*run.figures, *rows))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recipe = Recipe(filesystem_blocks=(4096,), database_blocks=(8192,), runs=("mix",), course_s=2, canaries=0)
    return write_changed_study(tmp_path_factory.mktemp("scripts") / "study", recipe, _with_scripts)


def test_the_terminal_has_a_row_for_each_script(study: Path) -> None:
    text = as_printed(show_tables([study]))
    assert f"mix: {_P99}, ms" in text
    (row,) = [line for line in text.splitlines() if line.lstrip().startswith("scripts: stock")]
    assert "7.2" in row
    assert [] == [line for line in text.splitlines() if len(line) > 80]


def test_page_and_spreadsheet_let_a_script_be_chosen(study: Path) -> None:
    found = overview(study)
    assert [["new order", "scripts, one by one"], ["stock", "scripts, one by one"]] == page_document([found])[
        "parts"
    ][1:]
    chosen = [
        (choice.part.item, choice.metric.name) for choice in choices_of(found) if choice.part.phase == PHASE
    ]
    assert [("new order", _P99), ("stock", _P99)] == chosen
