"""A study in ten lines and a table, for a mail, a ticket or a mailing list: plain text, no wider than 72 columns but for a command's longest word."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import east_asian_width

from bedplate.analysis.headline.lines import headline_lines, placed
from bedplate.analysis.headline.names import cell_names, shortened
from bedplate.analysis.power_cut_view import bound_words
from bedplate.analysis.wording import durability_class, figure
from bedplate.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bedplate.analysis.headline.answered import Headline, RunAnswer, SeenCell
    from bedplate.analysis.headline.cuts import CutsAnswer
    from bedplate.analysis.overview import Overview

COLUMNS = 72
ROWS_MAX = 12
_POWER_CUT = "power cut"
# With the line of the machine they are ten.
_ANSWER_LINES = 9
_NAME_COLUMNS_MIN = 8


class _Table(NamedTuple):
    """What it shows, its heads, and its rows; the first column has names, which are shortened. Of `figures` columns stand right."""

    about: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]
    figures: int = 0

    def is_figure(self, place: int) -> bool:
        """Whether a column is one of the figures, which are the last."""
        return place >= len(self.heads) - self.figures


def mail_text(told: Headline, *, markdown: bool = False) -> str:
    """The text, ending with a line end. As Markdown its table has bars, and its lines stay lines; it reads the same."""
    found = told.found
    title = _plain(found.study.facts.title) or "A study without a title"
    lines = [title, "=" * min(_width(title), COLUMNS), ""]
    fence = ["```"] if markdown else []
    answer = placed(headline_lines(told), columns=COLUMNS, most=_ANSWER_LINES)
    # A command that is cut does something else.
    texts = [_printable(text) if line.copied else _cut(_printable(text)) for line, text in answer]
    lines = [*map(_cut, lines), *fence, *texts, *fence]
    rest: list[str] = []
    tables = [_of_run(told, told.answers[0])] if told.answers else []
    tables += [_of_cuts(found, told.cuts)] if told.cuts is not None else []
    for table in tables:
        if table.rows:
            rest += ["", table.about, "", *_drawn(table, markdown=markdown)]
        if len(table.rows) > ROWS_MAX:
            rest.append(f"{len(table.rows) - ROWS_MAX} more cells are left out here.")
    about = textwrap.wrap(_machine(found), COLUMNS, break_on_hyphens=False)
    return "\n".join((*lines, *map(_cut, (*rest, "", *about)))) + "\n"


def _of_run(told: Headline, answer: RunAnswer) -> _Table:
    """The cells of the answer, the best first, then those that are not to be taken."""
    names = cell_names(told.found)
    seen = [*answer.seen, *(each for group in answer.not_taken for each in group.seen)]
    metric = answer.metric
    unit = "" if metric.unit in ("1", "1/s") else f", {metric.unit}"
    kind = next((each.summary.centre_kind for each in seen if each.summary.centre_kind), "mean")
    return _Table(
        f"{_plain(answer.run[1])}: {metric.name}{unit}, {kind} of n, and 95 % interval or range",
        ("cell", _POWER_CUT, metric.name, "from", "to", "n"),
        [_row(told, names[each.cell], each) for each in seen],
        figures=4,
    )


def _row(told: Headline, name: str, each: SeenCell) -> tuple[str, ...]:
    facts, words = told.found.cells[each.cell], figure(each.summary)
    return (
        name,
        durability_class(facts.durability, facts.cache),
        words.mean,
        words.low or "–",
        words.high or "–",
        str(each.summary.n),
    )


def _of_cuts(found: Overview, cuts: CutsAnswer) -> _Table:
    """Every cell whose power was cut, those that lost something first."""
    names = cell_names(found)
    cells = [*(cell for group in cuts.groups for cell in group.bad), *cuts.sound]
    return _Table(
        "bad cuts of those that chance placed; < is the 95 % bound of their share",
        ("cell", "bad cuts", _POWER_CUT),
        [
            (
                names[each.cell],
                bound_words(each.tally),
                durability_class(found.cells[each.cell].durability, cuts.cache),
            )
            for each in cells
        ],
    )


def _drawn(table: _Table, *, markdown: bool) -> Iterable[str]:
    rows = [tuple(map(_plain, row)) for row in (table.heads, *table.rows[:ROWS_MAX])]
    edge, between = ("| ", " | ") if markdown else ("", "  ")
    # Markdown takes a delimiter of two characters or more.
    widths = [max(2, *(_width(row[place]) for row in rows)) for place in range(len(table.heads))]
    others = sum(widths[1:]) + len(between) * (len(widths) - 1) + 2 * len(edge)
    widths[0] = min(widths[0], max(_NAME_COLUMNS_MIN, COLUMNS - others))
    for place, row in enumerate(rows):
        cells = [
            _padded(text, width, right=table.is_figure(at))
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield f"{edge}{between.join(cells)}{edge[::-1]}".rstrip()
        if place == 0:
            dashes = [
                "-" * (width - 1) + (":" if markdown and table.is_figure(at) else "-")
                for at, width in enumerate(widths)
            ]
            yield f"{edge}{between.join(dashes)}{edge[::-1]}".rstrip()


def _padded(text: str, width: int, *, right: bool) -> str:
    shown = shortened(text.replace("|", "/"), width)
    # Of wide characters fewer fit.
    while _width(shown) > width:
        shown = shown[:-1]
    gap = " " * (width - _width(shown))
    return gap + shown if right else shown + gap


def _machine(found: Overview) -> str:
    machine, facts = found.study.machine, found.study.facts
    cpu = f"{machine.cpu_count} x {machine.cpu_model}, {format_size(machine.memory_bytes)}"
    return _plain(f"{facts.created[:10]}, {cpu}, Linux {facts.kernel_release}, bedplate {facts.bedplate}")


def _plain(text: str) -> str:
    """One line without double blanks."""
    return _printable(" ".join(text.split()))


def _printable(text: str) -> str:
    """Nothing that a terminal, or a program that shows mails, would obey."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def _cut(line: str) -> str:
    """No wider than the columns: a word may be longer than a line, and a path too."""
    if _width(line) <= COLUMNS:
        return line
    while _width(line) > COLUMNS - 1:
        line = line[: max(1, len(line) - max(1, (_width(line) - COLUMNS + 1) // 2))]
    return f"{line}…"


def _width(text: str) -> int:
    """In columns, of which wide characters take two."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)
