"""Tables of TPC-H for the terminal: the load, scores, power and throughput, and the times of the queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from bedplate.analysis.overview import SCORES, CellFacts, Overview, ScoreView
from bedplate.analysis.run_heads import cells_due
from bedplate.analysis.wording import capital, number_words
from bedplate.model.course import filled
from bedplate.model.reason import Reason, sentences
from bedplate.statistics.summary import TRUSTED, Summary
from bedplate.statistics.tpch_scores import CellScores, Score, Scores
from bedplate.terminal.fitting_table import FittingTable
from bedplate.terminal.table_parts import MARKS, Notes, cell_name, plain_table, state_text
from bedplate.terminal.tables import PartEntry, WorkloadTables, entry_tables
from bedplate.units import format_count, percent
from bedplate.workloads.tpch import model as tpch
from bedplate.workloads.tpch.figures import NOT_AUDITED, WITHOUT_REFRESH, throughput
from bedplate.workloads.tpch.scores import NONE_TRUSTED, SOME_UNTRUSTED, plan_letters, power_notes

Run = tuple[str, str]
_QUERIES = len(tpch.QUERY_NUMBERS)
_RATES_IN_A_TABLE = 4
# 28 hours: five digits, which is what a column of the load has room for.
_WIDEST_S = 100_000.0
_SMALLEST = 0.001
# Heads of columns that would be wider than the times below them.
_HEADS = {"indexes": "in-\ndexes", "analyze": "ana-\nlyze", "checkpoint": "check-\npoint"}
_SCORE_WORDS = (
    "Over medians of the repetitions, with the share of a cell that is best in every query, and the 95 % "
    "interval below where there are 3 repetitions. time: the sum; a timeout counts as its limit. score: the sum "
    "of best time / time; a timeout scores 0, and how many were stopped is below. m-time, m-score: only the queries that finished in every cell with "
    f"one and the same plan. {MARKS}"
)
_QUERY_WORDS = (
    "Median seconds. A letter is a plan: the same letter in a row is the same plan, two letters are two plans of "
    "one cell, ? is not known. > stopped at its limit. * no part of m-time and m-score."
)


def tpch_tables(overview: Overview, runs: Sequence[Run]) -> list[RenderableType]:
    """Every table of these runs of a study, its load first."""
    loads = [run for run in runs if _kind(overview, run) == tpch.LOAD]
    powers = [run for run in runs if _kind(overview, run) == tpch.POWER]
    views = {(view.dataset, view.run): view for view in overview.scores}
    queries = [_query_table(overview, views[run]) for run in powers if run in views]
    rated = [run for run in runs if run not in loads]
    return [
        *(_load_table(overview, run) for run in loads),
        *(_score_table(overview, run, views.get(run)) for run in powers),
        *([Text(_SCORE_WORDS, style="dim")] if powers else []),
        *(_rate_tables(overview, rated) if rated else []),
        *queries,
        *([Text(_QUERY_WORDS, style="dim")] if queries else []),
    ]


def _kind(overview: Overview, run: Run) -> str | None:
    spec = overview.spec(run)
    return None if spec is None else spec.levels.text("kind")


def _title(overview: Overview, run: Run, words: str) -> Text:
    dataset = overview.study.schedule.datasets[run[0]]
    scale = dataset.levels.number("scale_factor")
    return Text(f"{words}, scale factor {scale:g}" if scale is not None else words, style="bold")


def _load_table(overview: Overview, run: Run) -> RenderableType:
    notes = Notes()
    totals = {cell: overview.summary(cell, run, "load_total_s") for cell in overview.cells}
    unit, seconds = _unit(total.centre for total in totals.values())
    table = _cells_table()
    for phase in tpch.LOAD_PHASES:
        table.add_column(_HEADS.get(phase, phase.replace(" ", "\n")), justify="right", no_wrap=True)
    table.add_column("total", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, min_width=5)
    for cell in cells_due(overview, [run]):
        phases = [overview.summary(cell.id, run, "phase_s", phase) for phase in tpch.LOAD_PHASES]
        times = [Text(_few(summary.centre, seconds)) for summary in (*phases, totals[cell.id])]
        # Seven columns of times leave no room for both ends of a range beside each other.
        times[-1].append(_range(totals[cell.id], seconds, columns=7), style="dim")
        state = state_text([totals[cell.id].n], overview.of(cell.id, run), notes)
        table.add_row(cell_name(overview, cell, notes), *times, state)
    words = f"Geometric means in {unit} of n repetitions, range of the total below it. {MARKS}"
    return Group(Text(), _title(overview, run, "Load"), table, Text(words, style="dim"), *notes.lines())


def _unit(values_s: Iterable[float | None]) -> tuple[str, float]:
    """Hours where a time in seconds would be too wide for its column; the unit, and its seconds."""
    largest = max((value for value in values_s if value is not None), default=0.0)
    return ("h", 3600.0) if largest >= _WIDEST_S else ("s", 1.0)


def _few(value: float | None, unit: float = 1.0) -> str:
    """A number in as few columns as it takes: nothing between thousands, no more than three decimals."""
    if value is not None and 0 < value / unit < 1:
        return f"{value / unit:.3f}" if value / unit >= _SMALLEST else "<.001"
    return number_words(None if value is None else value / unit).replace(",", "")


def _range(summary: Summary, unit: float = 1.0, *, columns: int = 11) -> str:
    """The range on a line of its own, or on two where it is too wide; nothing below two values."""
    if summary.n < 2:
        return "\n"
    low, high = _few(summary.minimum, unit), _few(summary.maximum, unit)
    text = f"{low}–{high}"
    return f"\n{text}" if len(text) <= columns else f"\n{low}–\n{high}"


def _score_table(overview: Overview, run: Run, view: ScoreView | None) -> RenderableType:
    notes = Notes()
    scores = None if view is None else view.scores
    unit, seconds = _unit(cell.time.value for cell in scores.cells) if scores else _unit(())
    all_, kept = (len(scores.queries), len(scores.kept)) if scores else (_QUERIES, _QUERIES)
    table = _cells_table()
    for head in (f"time\n{unit}", f"score\nof {all_}", f"m-time\n{unit}, {kept} left", f"m-score\nof {kept}"):
        table.add_column(head if scores else head.partition(",")[0], justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, min_width=5)
    by_cell = {cell.cell: cell for cell in scores.cells} if scores else {}
    for cell in cells_due(overview, [run]):
        count = 0 if view is None else view.repetitions.get(cell.id, 0)
        state = state_text([count], overview.of(cell.id, run), notes)
        texts = _score_texts(cell, by_cell.get(cell.id), notes, seconds=seconds)
        table.add_row(cell_name(overview, cell, notes), *texts, state)
    return Group(
        Text(),
        _title(overview, run, _over(overview, f"Scores of {run[1]}, over {len(by_cell)}")),
        table,
        *([] if scores is None else [Text(line) for line in dropped_lines(scores)]),
        *([] if scores is None else [Text(line) for line in suspect_lines(overview, scores)]),
        *notes.lines(),
    )


def _over(overview: Overview, words: str) -> str:
    """The cells that have scores, of those that are here, and which of the study's these are."""
    of = f"{words} of {len(overview.cells)} cells"
    return f"{of} (selected: {overview.selection})" if overview.selection else of


def _score_texts(cell: CellFacts, scores: CellScores | None, notes: Notes, *, seconds: float) -> list[Text]:
    if scores is None:
        return [Text("–") for _ in SCORES]
    texts = []
    for name in SCORES:
        score: Score = getattr(scores, name)
        if score.value is None:
            # Of the m-figures the lines below the table say it, once for all cells.
            own = name in {"time", "score"} or scores.basis != TRUSTED
            why = notes.marks(f"{name}: {', '.join(score.reasons)}") if own else ""
            texts.append(Text(f"–{why}"))
            continue
        unit = seconds if name.endswith("time") else 1.0
        text = Text(number_words(score.value / unit))
        if score.ideal_share is not None:
            text.append(f" · {percent(score.ideal_share)}")
        # Of visits that cannot be compared there is no interval (CellFacts.incomparable).
        if score.low is not None and score.high is not None and not cell.incomparable:
            text.append(f"\n{number_words(score.low / unit)}–{number_words(score.high / unit)}", style="dim")
        if name == "score" and scores.timeouts:
            text.append(f"\n{len(scores.timeouts)} stopped", style="yellow")
        texts.append(text)
    return texts


def dropped_lines(scores: Scores) -> list[str]:
    """How many queries the m-figures are made of, and which are dropped, grouped by what speaks against them."""
    if not scores.queries:
        return ["No query has a time yet."]
    left = f"m-time and m-score: {len(scores.kept)} of {len(scores.queries)} queries are left"
    if not scores.dropped:
        return [f"{left}; none was dropped."]
    groups: dict[str, list[str]] = {}
    for query in scores.dropped:
        groups.setdefault(", ".join(scores.causes.get(query, ("no reason is known",))), []).append(query)
    return [f"{left}. Dropped:", *(f"  {', '.join(queries)}: {why}" for why, queries in groups.items())]


def suspect_lines(overview: Overview, scores: Scores) -> list[str]:
    """Which cells have no trusted run, and what that means for the others; nothing where there are none."""
    named = "; ".join(overview.cells[cell].label.full for cell in scores.only_suspect)
    if not named:
        return []
    if len(scores.only_suspect) == len(scores.cells):
        return [NONE_TRUSTED]
    return [filled(SOME_UNTRUSTED, cells=named)]


def _rate_tables(overview: Overview, runs: Sequence[Run]) -> list[RenderableType]:
    """Power of every pass, throughput, and the composite of the two; no table mixes scale factors."""
    tables = []
    for dataset in dict.fromkeys(run[0] for run in runs):
        columns = list(_rate_columns(overview, [run for run in runs if run[0] == dataset]))
        tables += [
            _rate_table(overview, columns[start : start + _RATES_IN_A_TABLE])
            for start in range(0, len(columns), _RATES_IN_A_TABLE)
        ]
    words = f"{_sentence(rate_notes(overview, runs))} Mean of n repetitions, range below it. {MARKS}"
    return [*tables, Text(words, style="dim")]


def _rate_columns(overview: Overview, runs: Sequence[Run]) -> Iterator[tuple[Run, str, str]]:
    """Run, metric and head of every column, power before throughput."""
    for run in runs:
        if _kind(overview, run) == tpch.POWER:
            yield run, "tpch_power", f"power\n{run[1]}"
    for run in runs:
        spec = overview.spec(run)
        if spec is not None and _kind(overview, run) == tpch.THROUGHPUT:
            streams = spec.levels.integer("streams") or 1
            yield run, "tpch_throughput", f"throughput\n{format_count(streams, 'stream')}"
            yield run, "tpch_composite", "composite\n"


def _rate_table(overview: Overview, columns: Sequence[tuple[Run, str, str]]) -> RenderableType:
    notes = Notes()
    table = _cells_table()
    for _, _, head in columns:
        table.add_column(head, justify="right", no_wrap=True, min_width=10)
    table.add_column("", no_wrap=True, min_width=5)
    for cell in cells_due(overview, (run for run, _, _ in columns)):
        texts = []
        summaries = [overview.summary(cell.id, run, metric) for run, metric, _ in columns]
        for (run, metric, _), summary in zip(columns, summaries, strict=True):
            text = Text(_few(summary.centre))
            if summary.n == 0 and (reason := _absence(overview, cell, run, metric)):
                text.append(notes.marks(f"{metric}: {reason}"), style="dim")
            if metric == "tpch_power" and summary.n:
                text.append(notes.marks(*power_notes(overview, cell.id, run)), style="dim")
            text.append(_range(summary), style="dim")
            texts.append(text)
        runs = dict.fromkeys(run for run, _, _ in columns)
        measurements = [m for run in runs for m in overview.of(cell.id, run)]
        state = state_text([summary.n for summary in summaries], measurements, notes)
        table.add_row(cell_name(overview, cell, notes), *texts, state)
    title = _title(overview, columns[0][0], "Power and throughput, QphH@SF")
    return Group(Text(), title, table, *notes.lines())


def _absence(overview: Overview, cell: CellFacts, run: Run, metric: str) -> Reason | None:
    reasons = (m.by_metric[metric].reason for m in overview.of(cell.id, run) if metric in m.by_metric)
    return next((reason for reason in reasons if reason), None)


def rate_notes(overview: Overview, runs: Sequence[Run]) -> tuple[str, ...]:
    """What sets these runs' power and throughput apart from the specification's; never without `not audited`."""
    notes = dict.fromkeys((NOT_AUDITED, WITHOUT_REFRESH))
    for run in runs:
        spec = overview.spec(run)
        scale = overview.study.schedule.datasets[run[0]].levels.number("scale_factor")
        streams = spec.levels.integer("streams") if spec else None
        if streams is not None and scale is not None:
            notes |= dict.fromkeys(throughput(streams, 1.0, scale).notes)
    return sentences(notes)


def _sentence(notes: Sequence[str]) -> str:
    return f"{capital('; '.join(notes))}."


def _query_table(overview: Overview, view: ScoreView) -> RenderableType:
    letters = plan_letters(view)
    rows: dict[str, dict[str, PartEntry]] = {}
    for query in view.scores.queries:
        label = f"{query} *" if query in view.scores.dropped else query
        rows[label] = {
            cell.cell: _query_entry(cell, query, view, letters)
            for cell in view.scores.cells
            if query in cell.times_s
        }
    run = (view.dataset, view.run)
    title = _title(overview, run, f"Queries of {view.run}")
    return Group(Text(), title, *entry_tables(overview, rows, head="query"))


def _query_entry(
    cell_scores: CellScores, query: str, view: ScoreView, letters: Mapping[str, Mapping[str, str]]
) -> PartEntry:
    seconds, over = cell_scores.times_s[query], query in cell_scores.timeouts
    text = Text(
        f"> {number_words(seconds)}" if over else number_words(seconds), style="yellow" if over else ""
    )
    hashes = view.plans.get(cell_scores.cell, {}).get(query, ())
    text.append(f" {'/'.join(letters[query][hashed] for hashed in hashes) or '?'}", style="dim")
    return PartEntry(seconds, over, text)


def _cells_table() -> FittingTable:
    table = plain_table()
    table.add_column("cell", min_width=14, max_width=36)
    return table


TERMINAL: WorkloadTables = tpch_tables
