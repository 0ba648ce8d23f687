"""The verdicts of power cuts for the terminal and as JSON: a row for each recording."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from bedplate.analysis.power_cut_view import bound_words, disagreement, told_apart, upper_share
from bedplate.analysis.recording_words import recording_words
from bedplate.analysis.wording import block_words, device_sectors
from bedplate.model.codec import to_json
from bedplate.model.device_cache import (
    CACHES,
    PROTECTED,
    VOLATILE_4K,
    VOLATILE_512,
    sectors_told,
)
from bedplate.model.power_cut import DEVICE_UNIT
from bedplate.model.power_cut_verdict import FINDINGS, GOOD, OK, CacheCuts, CutCounts
from bedplate.model.reason import sentences
from bedplate.terminal.table_parts import Notes, plain_table
from bedplate.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from bedplate.analysis.overview import CellFacts, Overview
    from bedplate.analysis.power_cut_view import CutRun
    from bedplate.model.power_cut_verdict import TriedStates
    from bedplate.terminal.fitting_table import FittingTable

_REFUSED = "refused"
_NOT_MADE = "not made"
# More columns than any table has.
_ENDLESS = 1000
_WORDS = (
    "Cache: a volatile one in a device with sectors of 4 KiB, which it writes whole, one with sectors of 512 bytes, and a "
    "protected one. Drawn: bad cuts of those that chance placed, after which something acknowledged was missing or damaged, and "
    "how many in a hundred that may be (exact 95 % interval of k of n). Beneath is "
    "what was found. Lost: the most acknowledged transactions that one cut took and left the rest whole; – where each that took some broke "
    "the rest. Back after: median time until the engine answered, in memory. After a power cut: the class with that cache."
)
_SOUGHT_WORDS = (
    " Sought: the same of cuts where metadata of the file system waited that a cut can tear; they show what can happen, and not how "
    "often."
)
_LATE_WORDS = " With late completions, behind flushes that met writes on their way, too."
_RECUT_WORDS = (
    "What some cuts left was recorded while file system and engine recovered, and that recording was cut again between its flushes. Shown are bad cuts "
    "of all such, and how many in a hundred that may be, at the most. Recoveries: those that were recorded, of those asked for; a cut that was bad itself has none. One "
    "bad cut lowers the class above."
)
# Of a recording that nothing cut: it has one row, which says why.
_NOT_CUT = "not cut"
_SHORT: Mapping[str, str] = {
    VOLATILE_4K: "4 KiB",
    VOLATILE_512: "512 B",
    PROTECTED: "protected",
    _NOT_CUT: "–",
}
# A cell of the table keeps its lines beside those of its neighbours, so they are broken here and not by the terminal.
_DRAWN_WIDTH, _NARROW_DRAWN_WIDTH, _CLASS_WIDTH = 17, 10, 8


def power_cut_table(found: Overview) -> RenderableType | None:
    """One row per recording; None where no power was cut."""
    runs = [(cell, run) for cell in found.cells.values() for run in cell.cuts]
    if not runs:
        return None
    notes = Notes()
    # Made here, both, as the notes below are in the order of the rows.
    table = _Fitting(
        _table(runs, notes, narrow=False), _table(runs, notes, narrow=True), _table_of_caches(runs, notes)
    )
    windows = {run.verdict.window_bytes for _, run in runs}
    sizes = ", ".join(format_size(size) for size in sorted(windows))
    sectors = sectors_told(device_sectors(found))
    words = Text(
        f"{_WORDS}{_sought_words(runs)} At risk are the last {sizes} of writes{_disks(runs)}. Of this machine: {sectors}.",
        style="dim",
    )
    again = _table_of_recoveries(runs)
    return Group(Text("Power cuts", style="bold"), table, words, *notes.lines(), *([again] if again else []))


def power_cut_document(cell: CellFacts) -> list[dict[str, Any]]:
    """The recordings of a cell as JSON: verdict, tallies with their bounds, what was lost, recovery."""
    return [_document(run) for run in cell.cuts]


def _disks(runs: Sequence[tuple[CellFacts, CutRun]]) -> str:
    sizes = sorted({run.verdict.image_bytes for _, run in runs if run.verdict.image_bytes is not None})
    return f", recorded on disks of {', '.join(map(format_size, sizes))}" if sizes else ""


@dataclass(frozen=True)
class _Fitting:
    """The wide table where the terminal holds it with no cell broken, else the narrow one, else a row for each cache.

    A cell has a line for each cache in several columns, which a table of lines would not keep beside each other.
    """

    wide: FittingTable
    narrow: FittingTable
    by_cache: FittingTable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        endless = options.update(width=_ENDLESS)
        if console.measure(self.wide, options=endless).maximum <= options.max_width:
            yield self.wide
        elif self.narrow.fits(console, options.max_width):
            yield self.narrow
        else:
            yield self.by_cache


def _table(runs: Sequence[tuple[CellFacts, CutRun]], notes: Notes, *, narrow: bool) -> FittingTable:
    """Narrow tallies have the bound on a line of its own, which leaves the cell's settings the room they need."""
    table = plain_table()
    has_sought = _has_sought(runs)
    table.add_column("cell", min_width=12, max_width=26)
    table.add_column("cache", no_wrap=True)
    table.add_column("drawn,\nbad", no_wrap=True)
    if has_sought:
        table.add_column("sought,\nbad", no_wrap=True)
    table.add_column("after a\npower\ncut", no_wrap=True)
    table.add_column("lost", justify="right", no_wrap=True)
    table.add_column("back\nafter,\ns" if narrow else "back\nafter, s", justify="right", no_wrap=True)
    for cell, run in runs:
        row = _row(cell, run, notes, narrow=narrow)
        table.add_row(*(row if has_sought else [*row[:3], *row[4:]]))
    return table


def _table_of_caches(runs: Sequence[tuple[CellFacts, CutRun]], notes: Notes) -> FittingTable:
    """A row for each recording and cache; what holds of the recording stands in the first of them."""
    table = plain_table()
    heads = ["cell", "cache", "drawn, bad", "sought, bad", "after a power cut", "lost", "back after, s"]
    for head in heads:
        table.add_column(head)
    for cell, run in runs:
        marks = _marks(cell, run, notes)
        name, lost, again = _name(cell, run), _lost(run), _again(run)
        for cache in _caches(run):
            found = run.verdict.cuts(cache)
            first = cache == _caches(run)[0]
            table.add_row(
                name.copy(),
                Text(_SHORT[cache]),
                _tally_in_a_line(found),
                Text(_share(found.sought), style=_style(found.sought)) if found.sought.cuts else Text(),
                _class(run, cache, marks if first else ""),
                lost if first else Text(),
                again if first else Text(),
            )
    return table


def _sought_words(runs: Sequence[tuple[CellFacts, CutRun]]) -> str:
    if not _has_sought(runs):
        return ""
    is_late = any(run.verdict.cuts(cache).is_late for _, run in runs for cache in CACHES)
    return _SOUGHT_WORDS + (_LATE_WORDS if is_late else "")


def _table_of_recoveries(runs: Sequence[tuple[CellFacts, CutRun]]) -> RenderableType | None:
    """A row for each recording of which recoveries were cut again; None without any."""
    asked = [(cell, run, again) for cell, run in runs if (again := run.verdict.recoveries) is not None]
    if not asked:
        return None
    table = plain_table()
    for head in ("cell", "recoveries", "cuts, bad", "found"):
        table.add_column(head)
    for cell, run, again in asked:
        tally = run.verdict.recut
        without = _NOT_MADE if again.not_made is not None else _REFUSED if again.refused else ""
        bad = Text(without or bound_words(tally), style=_style(tally))
        why = again.refused if again.not_made is None else (again.not_made,)
        found = sentences(why) or [said for said, _ in _found(tally, "")]
        table.add_row(_name(cell, run), f"{again.recorded} of {again.asked}", bad, "; ".join(found))
    return Group(Text("\nCuts in recovery", style="bold"), table, Text(_RECUT_WORDS, style="dim"))


def _has_sought(runs: Sequence[tuple[CellFacts, CutRun]]) -> bool:
    return any(run.verdict.cuts(cache).sought.cuts for _, run in runs for cache in CACHES)


def _row(cell: CellFacts, run: CutRun, notes: Notes, *, narrow: bool) -> list[Text]:
    columns = [Text(), Text(), Text(), Text()]
    caches = _caches(run)
    marks = _marks(cell, run, notes)
    for cache in caches:
        found = run.verdict.cuts(cache)
        lines = [
            Text(_SHORT[cache]),
            _tally(found, narrow=narrow),
            Text(_share(found.sought), style=_style(found.sought)),
            _class(run, cache, marks if cache == caches[0] else ""),
        ]
        height = max(len(text.split("\n", allow_blank=True)) for text in lines)
        for column, text in zip(columns, lines, strict=True):
            missing = height - len(text.split("\n", allow_blank=True)) + (cache != caches[-1])
            column.append_text(text)
            column.append("\n" * missing)
    return [_name(cell, run), *columns, _lost(run), _again(run)]


def _name(cell: CellFacts, run: CutRun) -> Text:
    name = Text(cell.label.panel)
    aside = [block_words(cell.label), *told_apart(run, cell.cuts)]
    name.append("".join(f"\n{words}" for words in aside), style="dim")
    return name


def _caches(run: CutRun) -> list[str]:
    """Those that power was cut with; never empty."""
    found = [cache for cache in (VOLATILE_4K, VOLATILE_512, PROTECTED) if run.verdict.cuts(cache).all.cuts]
    return found or [_NOT_CUT]


def _lost(run: CutRun) -> Text:
    lost = run.verdict.loss.transactions_max
    return Text("–" if lost is None else f"{lost:,}")


def _again(run: CutRun) -> Text:
    again = run.recovery_s
    return Text(f"{median(again):.2f}" if again else "–")


def _share(tally: CutCounts) -> str:
    return f"{tally.bad} of {tally.cuts}" if tally.cuts else "–"


def _style(tally: CutCounts) -> str:
    if not tally.cuts:
        return "dim"
    return "red" if tally.bad else "green"


def _tally(found: CacheCuts, *, narrow: bool) -> Text:
    width = _NARROW_DRAWN_WIDTH if narrow else _DRAWN_WIDTH
    words = bound_words(found.drawn)
    # Left to the terminal the line would break between the sign and its figure.
    text = Text(words.replace(", <", ",\n<") if narrow else words, style=_style(found.drawn))
    for said, style in _findings(found):
        for line in wrap(said, width):
            text.append(f"\n{line}", style=style)
    return text


def _tally_in_a_line(found: CacheCuts) -> Text:
    text = Text(bound_words(found.drawn), style=_style(found.drawn))
    for said, style in _findings(found):
        text.append("; ").append(said, style=style)
    return text


def _findings(found: CacheCuts) -> Iterator[tuple[str, str]]:
    """What the cuts found that is not `ok`, each with its style."""
    for kind, tally in (
        ("", found.drawn),
        ("sought: ", found.sought),
        ("enumerated: ", found.enumerated),
        ("in recovery: ", found.recut),
    ):
        yield from _found(tally, kind)


def _found(tally: CutCounts, kind: str) -> Iterator[tuple[str, str]]:
    for name in reversed(FINDINGS):
        if name != OK and tally.of(name):
            yield f"{kind}{tally.of(name)} {name}", "dim" if name in GOOD else ""


def _class(run: CutRun, cache: str, marks: str) -> Text:
    if run.verdict.refused:
        text = Text(_REFUSED, style="yellow")
    elif cache == _NOT_CUT:
        text = Text("–")
    else:
        text = Text("\n".join(wrap(run.words_with(cache), _CLASS_WIDTH)))
    text.append(marks, style="dim")
    return text


def _marks(cell: CellFacts, run: CutRun, notes: Notes) -> str:
    """The marks of the notes that hold for all of a recording."""
    if run.verdict.refused:
        return notes.marks(*(f"refused: {reason}" for reason in run.verdict.refused), before="\n")
    differs = disagreement(run.declared, run.measured)
    asides = [*([differs] if differs else []), *recording_words(run)]
    if not run.verdict.of_the_cell and run.spec.levels.get(DEVICE_UNIT) is None:
        asides.append(
            "the journal in RAM was kept, as if it were on a device of its own: no class of the cell as it is"
        )
    if cell.cuts and run.verdict.journal_lost:
        asides.append("the journal was in memory and gone after each cut")
    return notes.marks(*asides, before="\n")


def _document(run: CutRun) -> dict[str, Any]:
    verdict = run.verdict
    again = run.recovery_s
    return {
        "dataset": run.key.dataset,
        "run": run.spec.name,
        "repetition": run.key.repetition,
        "volatile_cache": verdict.cuts(VOLATILE_4K).shown,
        "volatile_cache_512": verdict.cuts(VOLATILE_512).shown,
        "protected_cache": verdict.cuts(PROTECTED).shown,
        "pages": None if (ground := run.ground(VOLATILE_4K)) is None else ground.verdict,
        "refused": list(sentences(verdict.refused)),
        "of_the_cell": verdict.of_the_cell,
        "image_bytes": verdict.image_bytes,
        "foreign_syncs": verdict.foreign_syncs,
        "declared": to_json(run.declared, in_words=True),
        "disagreement": disagreement(run.declared, run.measured),
        "window_bytes": verdict.window_bytes,
        "volatile": _cache(verdict.cuts(VOLATILE_4K)),
        "volatile_512": _cache(verdict.cuts(VOLATILE_512)),
        "protected": _cache(verdict.cuts(PROTECTED)),
        "waiting": None if verdict.waiting is None else dict(verdict.waiting),
        "states": None if verdict.states is None else _states(verdict.states),
        "controls": _counts(verdict.controls),
        "recovery": _recovery(run),
        "profiles": {name: _counts(tally) for name, tally in verdict.profiles.items()},
        "loss": to_json(verdict.loss),
        "recovery_s_median": median(again) if again else None,
        "recovery_s_max": max(again, default=None),
    }


def _recovery(run: CutRun) -> dict[str, Any] | None:
    """The cuts in recovery, by cache too; None where none was asked for."""
    recoveries = run.verdict.recoveries
    if recoveries is None:
        return None
    return {
        **_counts(run.verdict.recut),
        "caches": {cache: _counts(run.verdict.cuts(cache).recut) for cache in CACHES},
        "recoveries_asked": recoveries.asked,
        "recoveries": recoveries.recorded,
        "refused": list(sentences(recoveries.refused)),
        "not_made": None if recoveries.not_made is None else recoveries.not_made.sentence,
    }


def _cache(found: CacheCuts) -> dict[str, Any]:
    """The drawn cuts, and those that were sought without a share, which they have not."""
    return {**_counts(found.drawn), "idle": found.idle, "sought": _without_share(found.sought)}


def _states(tried: TriedStates) -> dict[str, Any]:
    return {
        "small_states": tried.small_states,
        "small": _without_share(tried.small),
        "large": _without_share(tried.large),
    }


def _without_share(tally: CutCounts) -> dict[str, Any]:
    return {"cuts": tally.cuts, "bad": tally.bad, "findings": dict(tally.findings)}


def _counts(tally: CutCounts) -> dict[str, Any]:
    return {
        "cuts": tally.cuts,
        "bad": tally.bad,
        "bad_share_high": upper_share(tally),
        "findings": dict(tally.findings),
    }
