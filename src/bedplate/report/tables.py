"""Tables of a study for the terminal, readable at 80 columns, and the same as plain records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from bedplate.errors import PlanError
from bedplate.model.codec import to_json
from bedplate.model.metrics import METRICS
from bedplate.report.durability_table import durability_table
from bedplate.report.overview import Trouble, overview
from bedplate.report.wording import (
    FAILED_MARK,
    MISSING_MARK,
    SUSPECT_MARK,
    VALID_MARK,
    durability_words,
    mark,
    number,
    repetitions_sentence,
    span,
)
from bedplate.units import format_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from bedplate.report.overview import CellFacts, Measurement, Overview

Run = tuple[str, str]
_BAR_CELLS = 7
_EIGHTHS = " ▏▎▍▌▋▊▉█"
# Two runs fit beside each other in 80 columns.
_RUNS_IN_A_TABLE = 2
_STYLES = {VALID_MARK: "green", SUSPECT_MARK: "yellow", FAILED_MARK: "red", MISSING_MARK: "dim"}


def show_tables(
    study_paths: Sequence[Path], *, workload: str | None = None, metric: str = "tps"
) -> list[RenderableType]:
    """One table per study and pair of runs, each with its footnotes; `workload` is the name of a run.

    The last of a study's tables is that of its durability. PlanError where no study has the run or nothing knows the metric.
    """
    if metric not in METRICS:
        raise PlanError(f"metric {metric!r} is not known; known are {', '.join(sorted(METRICS))}")
    shown: list[RenderableType] = []
    names: list[str] = []
    for path in study_paths:
        found = overview(path)
        names += [run for _, run in found.runs]
        runs = [run for run in found.runs if workload in (None, run[1])]
        shown += [
            _study_table(found, runs[start : start + _RUNS_IN_A_TABLE], metric)
            for start in range(0, len(runs), _RUNS_IN_A_TABLE)
        ]
        durability = durability_table(found)
        if runs and durability is not None:
            shown.append(durability)
    if workload is not None and not shown:
        raise PlanError(
            f"no run is called {workload!r}; there are {', '.join(dict.fromkeys(names)) or 'none'}"
        )
    return shown


def show_document(
    study_paths: Sequence[Path], *, workload: str | None = None, metric: str = "tps"
) -> dict[str, Any]:
    """The same as JSON: one entry per study, cell and run. Absent figures are null."""
    return {
        "studies": [
            _study_document(overview(path), str(path), workload=workload, metric=metric)
            for path in study_paths
        ]
    }


def two_repetitions_sentence(study: Path) -> str:
    """What the repetitions of this study can and cannot tell, and how to get verdicts."""
    return repetitions_sentence(overview(study).repetitions, study=str(study))


def bar(value: float | None, largest: float, *, cells: int = _BAR_CELLS) -> str:
    """A bar of block characters, `cells` long for the largest value; empty without a value."""
    if value is None or largest <= 0 or value <= 0:
        return ""
    eighths = max(1, round(value / largest * cells * 8))
    whole, rest = divmod(min(eighths, cells * 8), 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def _study_table(found: Overview, runs: Sequence[Run], metric: str) -> RenderableType:
    notes = _Notes()
    several = len({dataset for dataset, _ in found.runs}) > 1
    # Where only some are, the footnote at their names says it.
    measured = [cell for cell in found.cells.values() if any(found.of(cell.id, run) for run in runs)]
    all_emulated = any(cell.emulated for cell in measured)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), expand=False)
    table.add_column("cell", overflow="fold", min_width=14, max_width=36)
    table.add_column("after a\npower cut", overflow="fold", max_width=12)
    for dataset, run in runs:
        title = f"{run} ({dataset})" if several else run
        unit = METRICS[metric].unit
        head = Text(f"{_shortened(title)}\n{metric}" + ("" if unit == "1/s" else f", {unit}"))
        if all_emulated:
            head.append("\n(emulated)", style="yellow")
        table.add_column(head, justify="right", overflow="fold", min_width=13)
    table.add_column("", no_wrap=True, width=_BAR_CELLS)
    table.add_column("p99\nms", justify="right", no_wrap=True, min_width=5)
    table.add_column("n", no_wrap=True, min_width=5)
    last = runs[-1]
    largest = max((found.summary(cell, last, metric).median or 0.0 for cell in found.cells), default=0.0)
    for cell in found.cells.values():
        table.add_row(*_row(found, cell, runs, metric=metric, largest=largest, notes=notes))
    return Group(
        Text(found.study.facts.title, style="bold"),
        *(Text(f"{mark_[:1].upper()}{mark_[1:]}.", style="yellow") for mark_ in found.marks),
        table,
        _legend(runs, metric),
        *(Text(line, style="dim") for line in notes.lines()),
    )


def _row(
    found: Overview, cell: CellFacts, runs: Sequence[Run], *, metric: str, largest: float, notes: _Notes
) -> list[RenderableType]:
    label = cell.label
    name = Text(label.panel)
    blocks = f"\nfs {_size(label.filesystem_block_bytes)} · db {_size(label.database_block_bytes)}"
    name.append(blocks, style="dim")
    survives = Text(durability_words(cell.durability).replace(" / ", " /\n").replace(" loss", "\nloss"))
    for reason in cell.durability.reasons if cell.durability else ():
        survives.append(notes.number(reason), style="dim")
    for other in cell.identical_to:
        name.append(notes.number(f"in force is the same as in {found.cells[other].label.full}"), style="dim")
    for note in cell.notes:
        name.append(notes.number(note), style="dim")
    figures: list[RenderableType] = []
    for run in runs:
        summary = found.summary(cell.id, run, metric)
        text = Text(number(summary.median))
        text.append(f"\n{span(summary)}", style="dim")
        figures.append(text)
    last = runs[-1]
    measurements = [m for run in runs for m in found.of(cell.id, run)]
    sign = mark(measurements)
    counts = [found.summary(cell.id, run, metric).n for run in runs]
    state = Text("/".join(str(count) for count in dict.fromkeys(counts)))
    state.append(f" {sign}", style=_STYLES[sign])
    # A line of their own: rich would cut off what does not fit behind the mark.
    numbers = [notes.number(reason) for reason in _reasons(measurements)]
    state.append("".join(f"\n{','.join(numbers[i : i + 3])}" for i in range(0, len(numbers), 3)), style="dim")
    return [
        name,
        survives,
        *figures,
        Text(bar(found.summary(cell.id, last, metric).median, largest), style="cyan"),
        Text(number(found.summary(cell.id, last, "latency_ms_p99").median)),
        state,
    ]


def _size(size_bytes: int | None) -> str:
    """A block size in few columns: `4k`; `default` where nothing was asked for and nothing read back."""
    if size_bytes is None:
        return "default"
    return format_size(size_bytes).replace(" KiB", "k").replace(" MiB", "M").replace(" B", "")


def _shortened(text: str, columns: int = 26) -> str:
    """The head of a column: what is longer stands in full in the legend."""
    return text if len(text) <= columns else f"{text[: columns - 1]}…"


def _reasons(measurements: Sequence[Measurement]) -> list[str]:
    """What is to be said of a cell's runs, with its repetition; failures of a visit stand once."""
    found: dict[str, None] = {}
    for m in measurements:
        if m.trouble is None:
            continue
        for reason in m.reasons or ("no reason was recorded",):
            where = f" ({m.run})" if m.figures else ""
            found.setdefault(
                reason if m.trouble is Trouble.NOT_RUN else f"{m.trouble.value}{where}: {reason}"
            )
    return list(found)


def _legend(runs: Sequence[Run], metric: str) -> Text:
    words = f"Median of n repetitions, range below it. Bar and p99: {runs[-1][1]}."
    marks = f"{VALID_MARK} valid, {SUSPECT_MARK} suspect, {FAILED_MARK} failed, {MISSING_MARK} incomplete."
    return Text(f"{words}\n{marks} {metric}: {METRICS[metric].definition}.", style="dim")


class _Notes:
    """Footnotes in the order in which they come up, each sentence once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, sentence: str) -> str:
        """The superscript of a sentence."""
        found = self._numbers.setdefault(sentence, len(self._numbers) + 1)
        return str(found).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))

    def lines(self) -> list[str]:
        """The notes as they stand below the table."""
        return [f"{found} {sentence}" for sentence, found in self._numbers.items()]


def _study_document(found: Overview, path: str, *, workload: str | None, metric: str) -> dict[str, Any]:
    runs = [run for run in found.runs if workload in (None, run[1])]
    return {
        "study": path,
        "title": found.study.facts.title,
        "marks": list(found.marks),
        "repetitions": found.repetitions,
        "sentence": repetitions_sentence(found.repetitions, study=path),
        "cells": [_cell_document(found, cell, runs, metric) for cell in found.cells.values()],
    }


def _cell_document(found: Overview, cell: CellFacts, runs: Sequence[Run], metric: str) -> Mapping[str, Any]:
    return {
        "cell": cell.id,
        "label": cell.label.full,
        "variant": cell.label.panel,
        "filesystem_block_size_bytes": cell.label.filesystem_block_bytes,
        "block_size_bytes": cell.label.database_block_bytes,
        "durability": to_json(cell.durability),
        "flushes": [{**to_json(rate), "per_fsync": rate.per_call} for rate in cell.flushes],
        "emulated": cell.emulated,
        "incomparable": list(cell.incomparable),
        "identical_to": list(cell.identical_to),
        "runs": [
            {
                "dataset": run[0],
                "run": run[1],
                "mark": mark(found.of(cell.id, run)),
                "reasons": _reasons(found.of(cell.id, run)),
                metric: to_json(found.summary(cell.id, run, metric)),
                "latency_ms_p99": to_json(found.summary(cell.id, run, "latency_ms_p99")),
            }
            for run in runs
        ],
    }
