"""A study in twelve lines and a table, for a mail, a ticket or a mailing list: plain text, no wider than 72 columns but for a command's longest word.

A row of Markdown is as wide as the name of its cell.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import NamedTuple
from unicodedata import east_asian_width

from bedplate.analysis.advice import RECOMMENDED, RankedCell, Standing
from bedplate.analysis.answer import (
    NAME_CHARACTERS,
    CutsAnswer,
    Headline,
    RunAnswer,
    SeenCell,
    cell_names,
    headline_lines,
    named_cells,
    placed,
    shortened,
    table_rows,
)
from bedplate.analysis.labels import stands_on_image
from bedplate.analysis.overview import Overview, is_chosen
from bedplate.analysis.run_heads import has_speed
from bedplate.analysis.wording import (
    BASIS_MARKS,
    SUSPECT_MARK,
    UNKNOWN_MARK,
    UNKNOWN_VALIDITY,
    durability_class,
    figure,
    unit_words,
)
from bedplate.cuts.runs import cut_cell_words
from bedplate.model.cell import engine_model
from bedplate.model.metrics import METRICS
from bedplate.statistics.comparison import Verdict
from bedplate.statistics.estimation import REPETITIONS_MIN
from bedplate.statistics.summary import SUSPECT, UNKNOWN_BASIS
from bedplate.units import format_count, format_size

COLUMNS = 72

ROWS_MAX = 12

_POWER_CUT = "power cut"

_ANSWER_LINES = 12

_NAME_COLUMNS_MIN = 8

# A longer name of a metric stands above the table alone.
_HEAD_COLUMNS = 8

# Of several datasets.
_NAMED = 2

# What a level is called that says how many work at once.
_CLIENTS = ("clients", "threads", "streams")

# Longer ones are cut in their middle: a name may be of any length.
_NAME_LINES_MAX = 3

_DOUBTED = (
    (SUSPECT, SUSPECT_MARK, "suspect"),
    (UNKNOWN_BASIS, UNKNOWN_MARK, UNKNOWN_VALIDITY),
)


class _Table(NamedTuple):
    """What it shows, its heads, its rows, and what its marks mean; the first column has names. Of `figures` columns stand right."""

    about: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]
    figures: int = 0
    notes: tuple[str, ...] = ()

    def is_figure(self, place: int) -> bool:
        """Whether a column is one of the figures, which are the last."""
        return place >= len(self.heads) - self.figures


def mail_text(told: Headline, *, markdown: bool = False) -> str:
    """The text, ending with a line end. As Markdown its table has bars, and its lines stay lines; it reads the same."""
    found = told.found
    title = _plain(found.study.facts.title) or "A study without a title"
    lines = [title, "=" * min(_width(title), COLUMNS), ""]
    fence = ["```"] if markdown else []
    about = textwrap.wrap(measured_line(found), COLUMNS, break_on_hyphens=False)
    answer = placed(headline_lines(told), columns=COLUMNS, most=_ANSWER_LINES)
    # A command that is cut does something else.
    texts = [_printable(text) if line.copied else _cut(_printable(text)) for line, text in answer]
    lines = [*map(_cut, (*lines, *about, "")), *fence, *texts, *fence]
    rest: list[str] = []
    # The means of cells that a search chose are too good to be ranked.
    is_ranked = told.answers and not is_chosen(found.study)
    tables = [_of_run(told, told.answers[0])] if is_ranked else []
    tables += [_of_cuts(found, told.cuts)] if told.cuts is not None else []
    for table in tables:
        if table.rows:
            rest += ["", *textwrap.wrap(table.about, COLUMNS, break_on_hyphens=False), ""]
            rest += _drawn(table, markdown=markdown)
        notes = list(table.notes)
        # A line right behind a table of Markdown is a row of it.
        rest += ["", *notes] if notes and markdown else notes
    return "\n".join((*lines, *(line if line.startswith("|") else _cut(line) for line in rest))) + "\n"


_VERDICTS = {
    "same": "as good as the cell to take, within the margin",
    "open": "not distinguished from the cell to take",
    "worse": "shown worse than another cell",
    "worse level": "one of its levels is shown worse over all pairs",
    "not judged": f"fewer than {REPETITIONS_MIN} trusted runs, or none that can be compared",
}


def _of_run(told: Headline, answer: RunAnswer) -> _Table:
    """The cells of the answer, the best first, then those that are not to be taken."""
    found, names = told.found, cell_names(told.found)
    others = [each for group in answer.not_taken for each in group.seen]
    seen = [*(each for each in answer.seen if each not in others), *others]
    named = named_cells(answer)
    shown = [each for place, each in enumerate(seen) if place < ROWS_MAX or each.cell in named]
    contest = next((each for each in told.contests if told.answer_of(each) is answer), None)
    ranked = () if contest is None else table_rows(told.advice, contest, answer)[0]
    verdicts = {each.cell: _verdict(each, answer) for each in ranked}
    metric, tail = answer.metric, METRICS["latency_ms_p99"]
    unit = f", {unit}" if (unit := unit_words(metric)) else ""
    kind = next((each.summary.centre_kind for each in seen if each.summary.centre_kind), "mean")
    figures = [figure(each.summary) for each in shown]
    tails = {each.cell: figure(found.summary(each.cell, answer.run, tail.name)).mean for each in shown}
    has_tails = metric is not tail and any(
        found.summary(cell, answer.run, tail.name).centre for cell in tails
    )
    classes = {each.cell: _class(found, each.cell) for each in shown}
    of_all = next(iter(classes.values())) if len(set(classes.values())) == 1 else ""
    columns = [
        ("cell", [names[each.cell] for each in shown]),
        *([] if of_all else [(_POWER_CUT, [classes[each.cell] for each in shown])]),
        ("verdict", [verdicts.get(each.cell, "–") for each in shown]),
        (metric.name if len(metric.name) <= _HEAD_COLUMNS else "mean", [words.mean for words in figures]),
        # An interval that is not known has words in place of its lower end.
        ("from", [words.low if words.high else "–" for words in figures]),
        ("to", [words.high or "–" for words in figures]),
        *([("p99 ms", [tails[each.cell] for each in shown])] if has_tails else []),
        ("n", [_counted(each) for each in shown]),
    ]
    left = len(seen) - len(shown)
    return _Table(
        f"{_plain(answer.run[1])}: {metric.name}{unit}, {kind} of n, and 95 % interval or range{f'; all are {of_all}' if of_all else ''}",
        tuple(head for head, _ in columns),
        list(zip(*(own for _, own in columns), strict=True)),
        figures=4 + has_tails,
        notes=(
            *([f"{left} more {'cell is' if left == 1 else 'cells are'} left out here."] if left else []),
            *(
                f"{word}: {words}."
                for word, words in _VERDICTS.items()
                if word in columns[2 - bool(of_all)][1]
            ),
            *(
                f"{mark} {words}: no part of a verdict."
                for basis, mark, words in _DOUBTED
                if any(each.summary.basis == basis for each in shown)
            ),
        ),
    )


def _class(found: Overview, cell: str) -> str:
    facts = found.cells[cell]
    return durability_class(facts.durability, facts.cache)


def _verdict(ranked: RankedCell, answer: RunAnswer) -> str:
    """In a word."""
    if answer.taken is not None and answer.taken.cell == ranked.cell:
        return "take" if answer.durability in RECOMMENDED else "fastest"
    if ranked.standing in (None, Standing.RULED_OUT):
        return "worse" if ranked.standing else "not judged"
    if ranked.cell in answer.beaten:
        return "worse level"
    is_same = ranked.evidence is not None and ranked.evidence.comparison.verdict is Verdict.SAME
    return "same" if is_same and ranked.limit is None else "open"


def _counted(each: SeenCell) -> str:
    mark = BASIS_MARKS.get(each.summary.basis or "")
    return f"{each.summary.n} {mark}" if mark else str(each.summary.n)


def _of_cuts(found: Overview, cuts: CutsAnswer) -> _Table:
    """Every cell whose power was cut, those that lost something first."""
    names = cell_names(found)
    cells = [*(cell for group in cuts.groups for cell in group.bad), *cuts.sound]
    left = len(cells) - ROWS_MAX
    return _Table(
        "bad cuts of those that chance placed; < is the 95 % bound of their share",
        ("cell", "bad cuts", _POWER_CUT),
        [
            (
                names[each.cell],
                cut_cell_words(each.cuts),
                durability_class(found.cells[each.cell].durability, cuts.cache),
            )
            for each in cells[:ROWS_MAX]
        ],
        notes=(f"{left} more {'cell is' if left == 1 else 'cells are'} left out here.",) if left > 0 else (),
    )


def _drawn(table: _Table, *, markdown: bool) -> Iterable[str]:
    rows = [tuple(map(_plain, row)) for row in (table.heads, *table.rows)]
    edge, between = ("| ", " | ") if markdown else ("", "  ")
    # Markdown takes a delimiter of two characters or more.
    widths = [max(2, *(_width(row[place]) for row in rows)) for place in range(len(table.heads))]
    others = sum(widths[1:]) + len(between) * (len(widths) - 1) + 2 * len(edge)
    room = max(_NAME_COLUMNS_MIN, COLUMNS - others)
    widths[0] = min(widths[0], NAME_CHARACTERS if markdown else room)
    for place, row in enumerate(rows):
        # Plain text goes on below: two names may differ in what is cut.
        name, *more = [row[0]] if markdown else _name_lines(row[0], widths[0])
        cells = [
            _padded(text, width, right=table.is_figure(at))
            for at, (text, width) in enumerate(zip((name, *row[1:]), widths, strict=True))
        ]
        yield f"{edge}{between.join(cells)}{edge[::-1]}".rstrip()
        yield from more
        if place == 0:
            dashes = [
                "-" * (width - 1) + (":" if markdown and table.is_figure(at) else "-")
                for at, width in enumerate(widths)
            ]
            yield f"{edge}{between.join(dashes)}{edge[::-1]}".rstrip()


def _name_lines(name: str, width: int) -> list[str]:
    """Broken between its words; one of more lines than a name may have is shortened."""
    lines = textwrap.wrap(name, width, break_on_hyphens=False, subsequent_indent="  ")
    is_whole = len(lines) <= _NAME_LINES_MAX and all(_width(line) <= width for line in lines)
    return lines if is_whole and lines else [name]


def _padded(text: str, width: int, *, right: bool) -> str:
    shown = shortened(text.replace("|", "/"), width)
    # Of wide characters fewer fit.
    while _width(shown) > width:
        shown = shown[:-1]
    gap = " " * (width - _width(shown))
    return gap + shown if right else shown + gap


def measured_line(found: Overview) -> str:
    """What ran, by how many clients, on how much data, and on what: `… scale 30, 4 clients, …; 2 x Example CPU, 8 GiB, …`."""
    work: dict[str, dict[str, None]] = {}
    for run in found.runs:
        if (spec := found.spec(run)) is not None:
            # The dataset of a recording has all that is known of it.
            words = found.dataset_words(run[0]) if has_speed(found, run) else spec.workload.replace("_", " ")
            clients = [name for name in _CLIENTS if has_speed(found, run) and spec.levels.get(name)]
            counts = (
                format_count(spec.levels.integer(name) or 0, name.removesuffix("s")) for name in clients
            )
            work.setdefault(words, {}).update(dict.fromkeys(counts))
    engines = dict.fromkeys(cell.build.engine for cell in found.study.schedule.cells.values())
    labels = [engine_model(engine).label for engine in engines]
    named = [", ".join((words, *clients)) for words, clients in work.items()]
    more = [f"{len(named) - _NAMED} more"] if len(named) > _NAMED else []
    return "; ".join(
        filter(None, (_plain(", ".join((*named[:_NAMED], *more, *labels))), machine_line(found)))
    )


def machine_line(found: Overview) -> str:
    """The day, the processors, the memory and the kernel of a study, in one line."""
    machine, facts = found.study.machine, found.study.facts
    if facts.is_imported or machine.memory_bytes is None:
        return _plain(f"imported {facts.created[:10]}, made on {machine.hostname}, bedplate {facts.bedplate}")
    cpu = f"{machine.cpu_count} x {machine.cpu_model}, {format_size(machine.memory_bytes)}"
    image = ", on an image file" if any(stands_on_image(each.record) for each in found.study.visits) else ""
    return _plain(
        f"{facts.created[:10]}, {cpu}, Linux {facts.kernel_release}, bedplate {facts.bedplate}{image}"
    )


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
