"""The sheets that are read as they stand: each workload wide, the cells, what was in force, the runs, the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate import __version__
from bedplate.analysis.effective import effective_document
from bedplate.analysis.fleet import folded, node_kinds
from bedplate.analysis.flush_rates import COUNTED, rate_text
from bedplate.analysis.labels import stands_on_image
from bedplate.analysis.run_heads import has_speeds
from bedplate.analysis.search.searched import search_of
from bedplate.analysis.wording import (
    AFTER_POWER_CUT,
    capital,
    device_sectors,
    durability_words,
    repetitions_sentence,
)
from bedplate.export.search_table import SEARCH_TABLE
from bedplate.export.tables import runs_table, workload_exports
from bedplate.export.workbook.look import CHOICES, LOOK, RESULTS
from bedplate.export.workbook.model import COLUMNS_MAX, Column, Sheet, cells, sheet_names
from bedplate.export.workbook.results import (
    cell_names,
    cell_remarks,
    factor_cells,
    factor_columns,
    label_name,
    promise_width,
)
from bedplate.model.device_cache import CACHE_WORDS, PROTECTED, VOLATILE_512, sectors_told
from bedplate.model.reason import sentences

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bedplate.analysis.overview import CellFacts, Overview
    from bedplate.export.factor_columns import Factors
    from bedplate.export.workbook.model import Plain
    from bedplate.export.workbook.results import Result, SheetChoice
    from bedplate.model.machine import StoredMachine

CELLS, EFFECTIVE, RUNS, SEARCHED, ABOUT = "Cells", "Asked and effective", "Runs", "Search", "About"
FIXED = (LOOK, RESULTS, CELLS, EFFECTIVE, RUNS, SEARCHED, ABOUT, CHOICES)
_WIDE_HEADS = ("cell", AFTER_POWER_CUT, "validity")
_STATISTICS = ("mean", "low", "high", "n")
_CELL_HEADS = (
    Column("cell", 44),
    Column("cell id", 30),
    Column("in the study", 12),
    Column("file system", 24),
    Column("file system block, bytes", 22),
    Column("engine", 12),
    Column("database block, bytes", 20),
    Column("throttle", 12),
    Column("volatile cache", 15),
    Column(CACHE_WORDS[VOLATILE_512], 15),
    Column(CACHE_WORDS[PROTECTED], 15),
    Column("durability by", 13),
    Column("reasons for the class", 60),
    *(Column(f"flushes per fsync: {device}, {pattern}", 16) for device, pattern in COUNTED),
    Column("emulated", 10),
    Column("image file", 10),
    Column("remarks, or why it cannot be", 80),
)
_SEARCH_WIDTHS = {"cell": 30.0, "label": 44.0, "dataset": 24.0, "run": 16.0, "left_out": 80.0}
_RUN_WIDTHS = {"cell": 30.0, "variant": 24.0, "dataset": 24.0, "run": 16.0, "reasons": 80.0, "kernel": 20.0}


def wide_sheets(
    choices: Sequence[SheetChoice], results: Sequence[Result], factors: Factors
) -> Iterator[Sheet]:
    """One sheet for each run, a row for each cell with its factors; a run of very many figures takes several."""
    names_of_factors = factors.cell_names
    most = max(1, (COLUMNS_MAX - len(_WIDE_HEADS) - len(names_of_factors)) // len(_STATISTICS))
    by_run: dict[tuple[str, str], list[SheetChoice]] = {}
    for choice in choices:
        by_run.setdefault(choice.run, []).append(choice)
    pages = [
        (run, of_run[first : first + most])
        for run, of_run in by_run.items()
        for first in range(0, len(of_run), most)
    ]
    names = sheet_names([f"{shown[0].workload} {run[1]}" for run, shown in pages], FIXED)
    count = len(results) // len(choices) if choices else 0
    place_of = {choice.label: place * count for place, choice in enumerate(choices)}
    for name, (_, shown) in zip(names, pages, strict=True):
        columns = [results[place_of[choice.label] : place_of[choice.label] + count] for choice in shown]
        widths = (44, promise_width(result.cell.durability for result in columns[0]), 11)
        heads = map(Column, _WIDE_HEADS, widths)
        rows = (
            (*_wide_row(of_cell), *factor_cells(factors, names_of_factors, of_cell[0]))
            for of_cell in zip(*columns, strict=True)
        )
        all_columns = (*heads, *_wide_columns(shown), *factor_columns(names_of_factors))
        yield Sheet(name, all_columns, tuple(rows))


def _wide_columns(shown: Sequence[SheetChoice]) -> Iterator[Column]:
    for choice in shown:
        for word in _STATISTICS:
            head = f"{choice.within} {word}" + ("" if word == "n" else f", {choice.metric.unit}")
            yield Column(head, max(8.0, min(len(head), 40)))


def _wide_row(of_cell: Sequence[Result]) -> tuple[Plain, ...]:
    first = of_cell[0]
    figures: list[Plain] = []
    for result in of_cell:
        summary = result.summary
        figures += [summary.centre, summary.low, summary.high, summary.n]
    return cells(first.name, durability_words(first.cell.durability), first.validity, *figures)


def cells_sheet(found: Overview, factors: Factors) -> Sheet:
    """A row for each cell with its factors, then one for each that cannot exist."""
    images = {v.record.key.cell for v in found.study.visits if stands_on_image(v.record)}
    names = cell_names(found)
    rows = [
        (
            *_cell_row(found, cell, names[cell.id], image=cell.id in images),
            *cells(*(factors.of_cells.get(cell.id, {}).get(name) for name in factors.cell_names)),
        )
        for cell in found.cells.values()
    ]
    empty = (None,) * len(factors.cell_names)
    for label, reasons in found.pruned:
        blocks = (label.filesystem_block_bytes, None, label.database_block_bytes or None)
        nothing = (None,) * (len(_CELL_HEADS) - 8)
        why = "; ".join(reasons)
        rows.append(cells(label_name(label), None, False, label.panel, *blocks, *nothing, why, *empty))
    columns = (*_CELL_HEADS, *factor_columns(factors.cell_names))
    return Sheet(CELLS, columns, tuple(rows), filtered=True)


def _cell_row(found: Overview, cell: CellFacts, name: str, *, image: bool) -> tuple[Plain, ...]:
    label, durability = cell.label, cell.durability
    flushes = (rate_text(cell.flushes, device, pattern) for device, pattern in COUNTED)
    build = found.study.schedule.cells[cell.id].build
    return cells(
        name,
        cell.id,
        True,
        label.panel,
        label.filesystem_block_bytes,
        f"{build.engine} {build.version}".strip(),
        label.database_block_bytes,
        label.emulated_device or None,
        durability.volatile_cache if durability else None,
        durability.class_with(VOLATILE_512) if durability else None,
        durability.protected_cache if durability else None,
        durability.basis if durability else None,
        "; ".join(sentences(durability.reasons)) if durability else "no visit has said yet",
        *(_rate(rate) for rate in flushes),
        cell.emulated,
        image,
        "; ".join(cell_remarks(found, cell.id)),
    )


def _rate(shown: str) -> Plain:
    """A number where visits agree, `0–1` where they do not, nothing where none was counted."""
    if shown == "–":
        return None
    return shown if "–" in shown else float(shown)


def effective_sheet(found: Overview) -> Sheet:
    """What was asked and what was read back, from the latest completed visit of each cell."""
    document = effective_document(found)
    names = cell_names(found)
    rows = [cells("all cells", *row) for row in document["common"]]
    for cell, of_cell in document["cells"].items():
        rows += [cells(names[cell], *row) for row in of_cell["rows"]]
        rows += [
            cells(names[cell], f"version of {tool}", None, version, "the visit's record")
            for tool, version in of_cell["versions"].items()
        ]
        rows += [
            cells(names[cell], f"device {fact}", None, value, "the visit's record")
            for fact, value in of_cell["device"].items()
        ]
    heads = ("cell", "option", "asked", "effective", "source")
    columns = tuple(Column(head, width) for head, width in zip(heads, (44, 40, 30, 30, 20), strict=True))
    return Sheet(EFFECTIVE, columns, tuple(rows), filtered=True)


def runs_sheet(found: Overview, factors: Factors) -> Sheet:
    """Every run that was due, with what became of it, as `bedplate export` writes the table `runs`."""
    table = factors.beside(runs_table(found).drop("study"))
    columns = tuple(Column(name, _RUN_WIDTHS.get(name, 13.0)) for name in table.columns)
    return Sheet(RUNS, columns, tuple(cells(*row) for row in table.iter_rows()), filtered=True)


def search_sheets(found: Overview) -> tuple[Sheet, ...]:
    """The cells of a search, as `bedplate export` writes the table `search`; none of any other study."""
    if search_of(found) is None:
        return ()
    table = SEARCH_TABLE.made(found).drop("study")
    columns = tuple(Column(name, _SEARCH_WIDTHS.get(name, 13.0)) for name in table.columns)
    return (Sheet(SEARCHED, columns, tuple(cells(*row) for row in table.iter_rows()), filtered=True),)


def about_sheet(found: Overview) -> Sheet:
    """The study, the machine, and what the numbers mean."""
    facts = found.study.facts
    rows = [
        ("study", facts.title),
        ("made", facts.created),
        ("by bedplate", facts.bedplate),
        ("exported by bedplate", __version__),
        ("cells", len(found.cells)),
        ("repetitions", found.repetitions),
        (
            "what they can tell",
            repetitions_sentence(found.repetitions, executor=facts.executor, has_speeds=has_speeds([found])),
        ),
        *(("is said beside every figure", f"{capital(words)}.") for words in found.marks),
        *(row for each in workload_exports() if each.is_in(found) for row in each.about),
        *_machines(found),
        ("sectors", f"{sectors_told(device_sectors(found))}. Colours are those of that class"),
        *((f"history, {entry.when}", entry.what) for entry in facts.history),
        *_MEANINGS,
    ]
    return Sheet(ABOUT, (Column("what", 28), Column("is", 140)), tuple(cells(*row) for row in rows))


def _machines(found: Overview) -> Iterator[tuple[str, Plain]]:
    """What the machine is; of a fleet each kind of node."""
    study = found.study
    kinds = node_kinds(study)
    for kind in kinds:
        yield (f"node{'s' * (len(kind.nodes) > 1)} {folded(kind.nodes)}", "")
        yield from _machine(kind.facts.machine, "kernel", kind.facts.machine.kernel_release)
    if not kinds:
        yield from _machine(study.machine, "kernel of the last start", study.facts.kernel_release)


def _machine(machine: StoredMachine, what: str, kernel: str) -> Iterator[tuple[str, Plain]]:
    yield ("machine", machine.cpu_model)
    yield ("architecture", machine.architecture)
    yield ("processors", machine.cpu_count)
    yield ("memory", machine.memory_words)
    yield ("distribution", machine.distribution)
    yield (what, kernel)
    yield ("virtualisation", machine.virtualisation)


_MEANINGS = (
    (
        f"sheet {LOOK}",
        "One figure of every cell. The cell beside “choose here” has a list; formulas and bars follow it.",
    ),
    (
        f"sheet {RESULTS}",
        "The same for every figure: a row for each cell and choice. Sort and filter it freely.",
    ),
    ("a sheet for each run", "A row for each cell, four columns for each figure."),
    (f"sheet {CELLS}", "What the cells are, and those that cannot exist, with the reason."),
    (f"sheet {EFFECTIVE}", "What the plan asked for and what was read back as effective."),
    (
        f"sheet {SEARCHED}",
        "Of a search: every cell as it was measured, as the model predicts it, and as fresh runs proved it; see docs/EXPORT.md, “search”.",
    ),
    (f"sheet {RUNS}", "Every run that was due, with its outcome and the reasons."),
    (
        f"sheet {CHOICES}",
        "What the list of the sheet Look offers: every figure with its unit and definition.",
    ),
    (
        "mean",
        (
            "The geometric mean of the n repetitions, in the unit named; of shares, counts and zeros their mean. Of those in doubt "
            "(see basis) only where there is no other. Where some were stopped at a limit the median, with those above every time."
        ),
    ),
    (
        "low, high",
        (
            "The 95 % interval of the geometric mean. It needs three of them, and a figure whose "
            "logarithm can be taken; empty else."
        ),
    ),
    ("smallest, largest", "Of the same repetitions."),
    (
        "n",
        "How many repetitions the figure is made of. The run is the unit of statistics, never the second.",
    ),
    ("an empty cell", "Nothing was measured, which is not zero; the column remarks says why."),
    (
        "censored, limit",
        "How many repetitions were stopped at their limit, which counts as longer than any time.",
    ),
    (
        AFTER_POWER_CUT,
        (
            "What survives it with a volatile cache / a protected one, in one word where all agree. Behind them is "
            "what holds with sectors of 512 bytes, where a cut can tear what a device with 4 KiB writes whole. Classes: durable, "
            "bounded loss (the last commits may go, what stays is whole), unsafe, unknown. Speeds of two classes are no contest."
        ),
    ),
    (
        "units",
        "1/s per second, ms milliseconds, s seconds; KiB and MiB are 1024 and 1024² bytes; 1 is a count; share 1 is all.",
    ),
)
