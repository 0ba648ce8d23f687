"""The verdicts of power cuts for the terminal and as JSON: a row for each recording."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from bedplate.model.codec import to_json
from bedplate.model.power_cut_verdict import FINDINGS, GOOD, OK, Tally
from bedplate.report.power_cut_view import bound_words, disagreement, told_apart, upper_share
from bedplate.report.recording_words import recording_words
from bedplate.report.table_parts import Notes, block_words, plain_table
from bedplate.units import format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from bedplate.report.fitting_table import FittingTable
    from bedplate.report.overview import CellFacts, Overview
    from bedplate.report.power_cut_view import CutRun

_REFUSED = "refused"
# More columns than any table has.
_ENDLESS = 1000
_WORDS = (
    "Volatile and protected cache: cuts after which something acknowledged was missing or damaged, of all cuts of that "
    "kind, and how many in a hundred such cuts that may be, at the most (exact 95 % interval of k of n; cuts of one "
    "recording); beneath, what was found. Lost: the most acknowledged transactions that one cut took and left the rest "
    "whole; – where each that took some broke the rest. Back after: median time until the engine answered, in memory. After a "
    "power cut: the class with a volatile cache / with a protected one, where they differ."
)


def power_cut_table(found: Overview) -> RenderableType | None:
    """One row per recording; None where no power was cut."""
    runs = [(cell, run) for cell in found.cells.values() for run in cell.cuts]
    if not runs:
        return None
    notes = Notes()
    # Made here, both, as the notes below are numbered by what stands in the rows.
    table = _Fitting(*(_table(runs, notes, narrow=narrow) for narrow in (False, True)))
    windows = {run.verdict.window_bytes for _, run in runs}
    sizes = ", ".join(format_size(size) for size in sorted(windows))
    words = Text(f"{_WORDS} At risk are the last {sizes} of writes.", style="dim")
    return Group(Text("Power cuts", style="bold"), table, words, *notes.lines())


def power_cut_document(cell: CellFacts) -> list[dict[str, Any]]:
    """The recordings of a cell as JSON: verdict, tallies with their bounds, what was lost, recovery."""
    return [_document(run) for run in cell.cuts]


@dataclass(frozen=True)
class _Fitting:
    """The wide table where the terminal holds it with no cell broken, else the narrow one."""

    wide: FittingTable
    narrow: FittingTable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        needed = console.measure(self.wide, options=options.update(width=_ENDLESS)).maximum
        yield self.wide if needed <= options.max_width else self.narrow


def _table(runs: Sequence[tuple[CellFacts, CutRun]], notes: Notes, *, narrow: bool) -> FittingTable:
    """Narrow tallies have the bound on a line of its own, which leaves the cell's settings the room they need."""
    table = plain_table()
    table.add_column("cell", min_width=14, max_width=26)
    for head in ("volatile\ncache", "protected\ncache"):
        table.add_column(head, max_width=12 if narrow else 17)
    table.add_column("lost", justify="right", no_wrap=True)
    table.add_column("back\nafter, s", justify="right", no_wrap=True)
    head = "after\na power\ncut" if narrow else "after a\npower cut"
    table.add_column(head, max_width=8 if narrow else 12)
    for cell, run in runs:
        table.add_row(*_row(cell, run, notes, narrow=narrow))
    return table


def _row(cell: CellFacts, run: CutRun, notes: Notes, *, narrow: bool) -> list[Text]:
    name = Text(cell.label.panel)
    aside = [block_words(cell), *told_apart(run, cell.cuts)]
    name.append("".join(f"\n{words}" for words in aside), style="dim")
    lost = run.verdict.loss.transactions_max
    again = run.recovery_s
    return [
        name,
        _tally(run.verdict.volatile, narrow=narrow),
        _tally(run.verdict.protected, narrow=narrow),
        Text("–" if lost is None else f"{lost:,}"),
        Text(f"{median(again):.2f}" if again else "–"),
        _class(cell, run, notes),
    ]


def _tally(tally: Tally, *, narrow: bool) -> Text:
    if not tally.cuts:
        return Text("–")
    words = bound_words(tally)
    # Left to the terminal the line would break between the sign and its figure.
    text = Text(words.replace(", <", ",\n<") if narrow else words, style="red" if tally.bad else "green")
    for name in reversed(FINDINGS):
        if name != OK and tally.of(name):
            style = "dim" if name in GOOD else ""
            text.append(f"\n{tally.of(name)} {name}", style=style)
    return text


def _class(cell: CellFacts, run: CutRun, notes: Notes) -> Text:
    if run.verdict.refused:
        text = Text(_REFUSED, style="yellow")
        for reason in run.verdict.refused:
            text.append(notes.number(f"refused: {reason}"), style="dim")
        return text
    classes = run.classes
    text = Text(" /\n".join(dict.fromkeys(classes)))
    differs = disagreement(run.declared, run.measured)
    asides = [*([differs] if differs else []), *recording_words(run)]
    if not run.verdict.of_the_cell:
        asides.append(
            "the journal in RAM was kept, as if it stood on a device of its own: no class of the cell as it is"
        )
    if cell.cuts and run.verdict.journal_lost:
        asides.append("the journal stood in memory and was gone after each cut")
    for words in asides:
        text.append(notes.number(words), style="dim")
    return text


def _document(run: CutRun) -> dict[str, Any]:
    verdict = run.verdict
    again = run.recovery_s
    return {
        "dataset": run.key.dataset,
        "run": run.spec.name,
        "repetition": run.key.repetition,
        "volatile_cache": verdict.volatile_cache,
        "protected_cache": verdict.protected_cache,
        "refused": list(verdict.refused),
        "of_the_cell": verdict.of_the_cell,
        "image_bytes": verdict.image_bytes,
        "foreign_syncs": verdict.foreign_syncs,
        "declared": to_json(run.declared),
        "disagreement": disagreement(run.declared, run.measured),
        "window_bytes": verdict.window_bytes,
        "idle": verdict.idle,
        "volatile": _counts(verdict.volatile),
        "protected": _counts(verdict.protected),
        "controls": _counts(verdict.controls),
        "profiles": {name: _counts(tally) for name, tally in verdict.profiles.items()},
        "loss": to_json(verdict.loss),
        "recovery_s_median": median(again) if again else None,
        "recovery_s_max": max(again, default=None),
    }


def _counts(tally: Tally) -> dict[str, Any]:
    return {
        "cuts": tally.cuts,
        "bad": tally.bad,
        "bad_share_high": upper_share(tally),
        "findings": dict(tally.findings),
    }
