"""Tables of the tests for the terminal: a row for each test, a column for each cell."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from bedplate.analysis.overview import CellFacts, Overview
from bedplate.analysis.wording import (
    BASIS_MARKS,
    SUSPECT_MARK,
    UNKNOWN_MARK,
    Told,
    number_words,
    one_sentence,
    shape,
    told_of,
)
from bedplate.model.durability import BOUNDED_LOSS, DURABLE, UNKNOWN, UNSAFE
from bedplate.model.metrics import METRICS
from bedplate.terminal.tables import PartEntry, WorkloadTables, entry_tables
from bedplate.workloads.microbenchmark.model import TESTS
from bedplate.workloads.microbenchmark.reading import SPEED, promised_classes, run_tests

Run = tuple[str, str]

# The first ones tell what it is.
_DOUBTS_SHOWN = 3
_CELLS_SHOWN = 5
_LETTERS = {DURABLE: "D", BOUNDED_LOSS: "B", UNSAFE: "U", UNKNOWN: "?"}
_STYLES = {"D": "green", "B": "yellow", "U": "red", "?": "dim"}
_WORDS = (
    f"Geometric means over the repetitions. {SPEED}: {METRICS[SPEED].definition}. Behind it what survives a power cut, with a "
    "volatile / protected device cache: D durable, B bounded loss, U unsafe, ? unknown; nothing behind a test that only "
    f"reads. {SUSPECT_MARK} suspect runs alone, {UNKNOWN_MARK} runs of unknown validity alone, – no figure. Latency, CPU and space of each test: --metric test_latency_us_p99, "
    "test_cpu_us_per_operation, test_space_mib, …"
)


def test_tables(overview: Overview, runs: Sequence[Run]) -> list[RenderableType]:
    """The speed of every test of these runs, and what is to be said of the runs."""
    shown: list[RenderableType] = []
    for run in runs:
        rows = {
            test: {
                cell.id: entry
                for cell in overview.cells.values()
                if (entry := _entry(overview, cell, run, test))
            }
            for test in run_tests(overview, run)
        }
        several = sum(name == run[1] for _, name in overview.runs) > 1
        title = Text(
            f"{run[1]}{f' ({overview.dataset_words(run[0])})' if several else ''}: operations a second",
            style="bold",
        )
        shown.append(
            Group(
                Text(),
                title,
                *entry_tables(overview, rows, head="test", higher=True),
                *_doubts(overview, run),
            )
        )
    return [*shown, *([Text(_WORDS, style="dim")] if shown else [])]


def _entry(overview: Overview, cell: CellFacts, run: Run, test: str) -> PartEntry | None:
    summary = overview.summary(cell.id, run, SPEED, TESTS, test)
    if summary.centre is None:
        return None
    text = Text(number_words(summary.centre))
    letters = [_LETTERS[name] for name in promised_classes(cell, test)]
    if letters:
        text.append(f" {'/'.join(letters)}", style=_STYLES[letters[0]])
    if summary.basis in BASIS_MARKS:
        text.append(f" {BASIS_MARKS[summary.basis]}", style="yellow")
    return PartEntry(summary.centre, False, text)


def _doubts(overview: Overview, run: Run) -> list[Text]:
    """A line for each thing that is to be said of the runs, with the cells that it is said of; of many the first."""
    reasons: dict[tuple[str, ...], list[Told]] = {}
    cells: dict[tuple[str, ...], dict[str, None]] = {}
    for cell in overview.cells.values():
        for told in told_of(overview.of(cell.id, run)):
            reasons.setdefault(shape(told), []).append(told)
            cells.setdefault(shape(told), {})[cell.label.full] = None
    lines = [f"{one_sentence(alike)} ({_first(list(cells[key]))})" for key, alike in reasons.items()]
    return [Text(line, style="yellow") for line in _first_lines(lines)]


def _first(names: Sequence[str]) -> str:
    shown = [
        *names[:_CELLS_SHOWN],
        *([f"{len(names) - _CELLS_SHOWN} more"] if len(names) > _CELLS_SHOWN else []),
    ]
    return "; ".join(shown)


def _first_lines(lines: Sequence[str]) -> Sequence[str]:
    if len(lines) <= _DOUBTS_SHOWN:
        return lines
    return [*lines[:_DOUBTS_SHOWN], f"… and {len(lines) - _DOUBTS_SHOWN} more; --json has them all"]


TERMINAL: WorkloadTables = test_tables
