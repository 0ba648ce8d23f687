"""What stands on the page before its script runs: summary, failures, machine and plan, as plain records."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bedplate import registry
from bedplate.analysis.comparison import study_names
from bedplate.analysis.fleet import folded, node_kinds
from bedplate.analysis.overview import COUNTED, CellFacts, Measurement, Overview, is_chosen, rate_text
from bedplate.analysis.part_summaries import ranked
from bedplate.analysis.run_heads import (
    has_raw,
    has_speeds,
    has_transactions,
    run_head,
    run_told,
    runs_together,
)
from bedplate.analysis.search import search_of
from bedplate.analysis.wording import (
    FAILED_MARK,
    MISSING_MARK,
    SAME_IN_FORCE,
    SUSPECT_MARK,
    UNKNOWN_MARK,
    VALID_MARK,
    VERDICT_REFUSED,
    badge_class,
    counted,
    device_sectors,
    durability_told,
    durability_words,
    failures,
    figure,
    mark,
    number_words,
    repetitions_sentence,
    span,
)
from bedplate.model.course import filled
from bedplate.model.device_cache import sectors_told
from bedplate.model.figure import Metric, Scale
from bedplate.model.machine import StoredMachine
from bedplate.model.metrics import METRICS
from bedplate.model.reason import sentences
from bedplate.statistics.summary import Summary, SummaryKey
from bedplate.units import format_count

Run = tuple[str, str]

# The sections behind which those of workloads stand, each with the part of the page's script behind which theirs run; at the
# end of “durability” what has no heading stands within.
PLACES = {
    "ranking": "views/ranking",
    "compare": "statistics/tpch_scores",
    "raw": "views/raw",
    "courses": "views/raw",
    "items": "views/items",
    "durability": "core/rows",
}


@dataclass(frozen=True)
class WorkloadPage:
    """Sections, each an id and a heading, by one of `PLACES`; they stand on a page of studies that the workload `is_in`.

    In its `folder` a section has a template, `ID.html.j2`, and may have a part of the script, `ID.js`. `document` makes what
    the script reads, by its keys, of the studies and runs of a page, `variables` what the template does; `rules` and `templates`
    are what the script judges by and says.
    """

    folder: Path
    sections: Mapping[str, tuple[str, str]]
    is_in: Callable[[Sequence[Overview]], bool]
    document: Callable[[Sequence[Overview], Sequence[Run]], Mapping[str, Any]]
    variables: Callable[[Sequence[Overview]], Mapping[str, Any]] = lambda _: {}
    rules: Mapping[str, Any] = field(default_factory=dict)
    templates: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """ValueError for a place that the page has not."""
        if unknown := self.sections.keys() - PLACES:
            raise ValueError(
                f"no place for sections behind {', '.join(unknown)}; there are {', '.join(PLACES)}"
            )


def workload_pages() -> Sequence[WorkloadPage]:
    """Those of every workload that has the role."""
    return tuple(registry.parts("page").values())


# The chapters of the page with their parts, in its order, without those of workloads. Those of transactions stand only where a
# run made some.
CHAPTERS = (
    ("answer", "Answer", (("ranking", "Every cell"),)),
    ("search", "Search", ()),
    (
        "comparison",
        "Compare",
        (("summary", "Cells"), ("compare", "Side by side"), ("effects", "Effects"), ("claims", "Claims")),
    ),
    (
        "picture",
        "Picture",
        (
            ("heat-maps", "Block sizes"),
            ("raw", "Sequential I/O"),
            ("items", "Queries and phases"),
        ),
    ),
    (
        "time",
        "Time",
        (
            ("courses", "Courses"),
            ("latency", "Latency over time"),
            ("distribution", "Latency distribution"),
            ("caches", "Cache ratios"),
            ("checkpoints", "Checkpoints"),
        ),
    ),
    ("durability", "Durability", ()),
    (
        "method",
        "How it was measured",
        (
            ("failures", "Failures and doubts"),
            ("order", "Order and drift"),
            ("effective", "Asked and effective"),
            ("machine", "Machine"),
            ("plan", "Plan"),
        ),
    ),
)

# What a reader comes for, and what is counted; the other parts are folded until they are asked for.
_OPEN = ("summary", "compare", "heat-maps", "courses")

_FOLDED = ("comparison", "method")

# Its parts are pictures beside what it says.
_ANSWER = "answer"

_OF_TRANSACTIONS = ("latency", "distribution", "checkpoints")

# Of verdicts in the place of speeds there is none to show.
_OF_SPEEDS = ("effects", "courses")

_CACHE_RATIOS = ("shared_buffers_hit_ratio", "page_cache_hit_ratio", "fast_transaction_share")


@dataclass(frozen=True)
class Part:
    """A part of a chapter, which folds under its name; `aside` counts what is in it, where that is worth a look."""

    id: str
    name: str
    is_open: bool
    aside: str = ""


@dataclass(frozen=True)
class Chapter:
    """A section of the page: its own content, or parts."""

    id: str
    name: str
    parts: tuple[Part, ...]


def chapters_of(
    overviews: Sequence[Overview], *, claims: bool = False, asides: Mapping[str, str] | None = None
) -> tuple[Chapter, ...]:
    """The chapters that a page of these studies has, `claims` where some are judged; one without content is left out.

    Where no run has a speed, durability stands right behind the answer.
    """
    # Of an imported study nothing was recorded beside the figures.
    recorded = not all(found.study.facts.is_imported for found in overviews)
    transactions, own = recorded and has_transactions(overviews), own_sections(overviews)
    ratios = any(key.metric in _CACHE_RATIOS for found in overviews for key in found.summaries)
    has = {
        **dict.fromkeys(_OF_TRANSACTIONS, transactions),
        "caches": ratios or transactions,
        "raw": has_raw(overviews),
        "items": any(m.parts for found in overviews for m in found.measurements),
        "ranking": any(len(found.cells) > 1 for found in overviews),
        "heat-maps": any(_has_map(found) for found in overviews),
        "claims": claims,
        "search": any(search_of(found) is not None for found in overviews),
        "failures": any(found.pruned or failures(found, "") for found in overviews),
        **dict.fromkeys(_OF_SPEEDS, has_speeds(overviews)),
        "courses": recorded and has_speeds(overviews),
        # Of cells that a search chose the model says what factors do.
        "effects": has_speeds(overviews) and not all(is_chosen(found.study) for found in overviews),
    }
    chapters = []
    for chapter, head, known in sorted(CHAPTERS, key=lambda each: _place(each[0], overviews)):
        all_parts = (part for one in known for part in (one, *own.get(one[0], ())))
        names = [(part, name) for part, name in all_parts if has.get(part, bool(name))]
        if (known and not names and chapter != _ANSWER) or not has.get(chapter, True):
            continue
        is_open = {part for part, _ in names if part in _OPEN or (asides or {}).get(part)}
        if names and not is_open and chapter not in _FOLDED:
            is_open = {names[0][0]}
        chapters.append(
            Chapter(
                chapter,
                head,
                tuple(
                    Part(part, name, part in is_open, (asides or {}).get(part, "")) for part, name in names
                ),
            )
        )
    return tuple(chapters)


def _place(chapter: str, overviews: Sequence[Overview]) -> int:
    """What moves is durability, before all but the answer; the others stay in their order."""
    early = () if has_speeds(overviews) else (_ANSWER, "durability")
    return early.index(chapter) if chapter in early else len(early)


def _has_map(found: Overview) -> bool:
    """Whether a variant has several squares: one alone is no map."""
    panels = [cell.label.panel for cell in found.cells.values()]
    return len(set(panels)) < len(panels)


def own_sections(overviews: Sequence[Overview]) -> dict[str, list[tuple[str, str]]]:
    """The sections of these studies' workloads, by the one that they stand behind."""
    pages = [page for page in workload_pages() if page.is_in(overviews)]
    own = {place: [page.sections[place] for page in pages if place in page.sections] for place in PLACES}
    # A picture beside the answer is one of speeds.
    return own if has_speeds(overviews) else own | {"ranking": []}


_ORDER_OF_SOURCE = "The runs are in the order of the source. They may have been made in another one, so a drift of the machine may not show here."

_MARK_WORDS = {
    VALID_MARK: "valid",
    SUSPECT_MARK: "suspect",
    UNKNOWN_MARK: "unknown",
    FAILED_MARK: "failed",
    MISSING_MARK: "incomplete",
}


@dataclass(frozen=True)
class Strip:
    """A drawing of repetitions on a line from 0 to 100; `dots` are places and whether to trust them."""

    low: float | None
    high: float | None
    centre: float
    dots: tuple[tuple[float, bool], ...]


@dataclass(frozen=True)
class Head:
    """What stands over the one or two columns of a run; `second` is empty where there is one."""

    run: str
    first: str
    second: str


@dataclass(frozen=True)
class RunEntry:
    """The two figures of one run in the row of a cell, the first with its scatter."""

    head: Head
    figure: str
    range: tuple[str, ...]
    counted: str
    second: str
    strip: Strip | None


@dataclass(frozen=True)
class Row:
    """A cell in the summary, by its index among all of the page."""

    index: int
    name: str
    blocks: str
    notes: tuple[str, ...]
    durability: str
    durability_class: str
    durability_reasons: str
    runs: tuple[RunEntry, ...]
    mark_class: str
    mark_text: str
    counted: str


@dataclass(frozen=True)
class CellTable:
    """Cells that have runs in common, a row each."""

    heads: tuple[Head, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class FlushRow:
    """What a power cut leaves of a cell and how often fsync flushed its devices, in the order of the study's `counted`; `index` is the cell's on the page."""

    index: int
    cell: str
    rates: tuple[str, ...]
    durability: str
    durability_class: str
    reasons: tuple[str, ...]
    basis: str


@dataclass(frozen=True)
class StudyShell:
    """One study on the page.

    `name` is what filters call it, unique on the page; `place` says on what it was measured. `shared` are the notes
    that every cell has, `reasons` those of its class of durability; they stand once, and not in every row.
    """

    title: str
    name: str
    sentence: str
    place: str
    shared: tuple[str, ...]
    reasons: tuple[str, ...]
    repetitions_sentence: str
    marks: tuple[str, ...]
    tables: tuple[CellTable, ...]
    legend: str
    drift: tuple[str, ...]
    history: tuple[tuple[str, str], ...]
    plan: str
    flushes: tuple[FlushRow, ...]
    counted: tuple[tuple[str, str], ...]


def page_shell(overviews: Sequence[Overview], *, claims: bool = False) -> dict[str, Any]:
    """The variables of the page's template, `claims` where some are judged."""
    names = study_names(overviews)
    studies = [
        # The page counts the cells of all its studies in one row (`document.py`).
        _study(found, names[number], sum(len(before.cells) for before in overviews[:number]))
        for number, found in enumerate(overviews)
    ]
    titles = list(dict.fromkeys(study.title for study in studies))
    failed = [
        failure for name, found in zip(names, overviews, strict=True) for failure in failures(found, name)
    ]
    asides = {
        "summary": str(sum(len(found.cells) for found in overviews)),
        "failures": str(len(failed)) if failed else "",
    }
    chapters = chapters_of(overviews, claims=claims, asides=asides)
    parts = {part.id: part for chapter in chapters for part in chapter.parts}
    return {
        "title": titles[0] if len(titles) == 1 else f"{len(studies)} studies",
        "chapters": chapters,
        "durability_first": not has_speeds(overviews),
        "parts": parts,
        "shown": {*parts, *(chapter.id for chapter in chapters)},
        "own": {place: [name for name, _ in own] for place, own in own_sections(overviews).items()},
        "studies": studies,
        "places": _places(studies),
        "defined": _defined(overviews),
        "failures": failed,
        "pruned": [(label.full, reasons) for found in overviews for label, reasons in found.pruned],
    }


def _defined(overviews: Sequence[Overview]) -> list[Metric]:
    """The metrics of the summary's columns."""
    heads = [run_head(found, run) for found in overviews for run in found.runs]
    names = dict.fromkeys(name for head in heads for name in (head.first, head.second))
    return [METRICS[name] for name in names]


def _places(studies: Sequence[StudyShell]) -> list[tuple[tuple[str, ...], str]]:
    """On what the studies were measured, each machine once with the studies it holds for; no names where it is all."""
    names: dict[str, list[str]] = {}
    for study in studies:
        names.setdefault(study.place, []).append(study.name)
    return [(() if len(names) == 1 else tuple(of), place) for place, of in names.items()]


def _study(found: Overview, name: str, first: int) -> StudyShell:
    facts = found.study.facts
    shared = _shared([_notes(found, cell) for cell in found.cells.values()])
    reasons = _shared([_reasons(cell) for cell in found.cells.values()])
    # The devices and patterns of which any cell has a count: a column of dashes is none.
    known = {(rate.device, rate.pattern) for cell in found.cells.values() for rate in cell.flushes}
    devices = tuple(each for each in COUNTED if each in known)
    return StudyShell(
        title=facts.title,
        name=name,
        sentence=_sentence(found),
        place=_place_words(found),
        shared=shared,
        reasons=reasons,
        repetitions_sentence=repetitions_sentence(
            found.repetitions,
            study=shlex.quote(str(found.study.directory)),
            executor=found.study.facts.executor,
            has_speeds=has_speeds([found]),
        ),
        marks=found.marks,
        tables=tuple(_tables(found, first, shared)),
        legend=_legend(found),
        drift=(*((_ORDER_OF_SOURCE,) * found.study.facts.is_imported), *found.health.sentences()),
        history=tuple((entry.when, entry.what) for entry in facts.history),
        plan=found.study.plan_text,
        flushes=tuple(
            _flush_row(cell, first + place, reasons, devices)
            for place, cell in enumerate(found.cells.values())
            if cell.flushes or cell.durability
        ),
        counted=devices,
    )


def _notes(found: Overview, cell: CellFacts) -> list[str]:
    notes = [filled(SAME_IN_FORCE, cells=found.cells[other].label.full) for other in cell.identical_to]
    notes += sentences(cell.notes)
    if cell.label.emulated_device:
        notes.append(f"emulated device: {cell.label.emulated_device}")
    return notes


def _shared(lists: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """What every list holds, in the order of the first; nothing where there is but one."""
    if len(lists) < 2:
        return ()
    return tuple(text for text in lists[0] if all(text in each for each in lists))


def _reasons(cell: CellFacts) -> tuple[str, ...]:
    return sentences(cell.durability.reasons) if cell.durability else ()


def _flush_row(
    cell: CellFacts, index: int, shared: Sequence[str], devices: Sequence[tuple[str, str]]
) -> FlushRow:
    words = durability_words(cell.durability)
    basis = cell.durability.basis if cell.durability else ""
    return FlushRow(
        index=index,
        cell=cell.label.full,
        rates=tuple(rate_text(cell.flushes, device, pattern) for device, pattern in devices),
        durability=words,
        durability_class=badge_class(cell),
        reasons=tuple(words for words in _reasons(cell) if words not in shared),
        basis=f"{basis}, {VERDICT_REFUSED}" if basis and cell.verdict_refused else basis,
    )


def _sentence(found: Overview) -> str:
    # An engine's settings make cells, and no other file system.
    planned = found.study.schedule.cells
    cells, variants = len(found.cells), len({planned[name].variant for name in found.cells})
    runs = ", ".join(dict.fromkeys(run for _, run in found.runs)) or "nothing"
    return f"{format_count(cells, 'cell')} in {format_count(variants, 'file system variant')}, runs {runs}"


def _place_words(found: Overview) -> str:
    kinds = node_kinds(found.study)
    if found.study.facts.is_imported:
        machine = found.study.machine
        words = ", ".join(f"{head} {text}" for head, text in machine.stated_facts)
        return f"{machine.hostname}{f': {words}' if words else ''}; the source says no more of the machine"
    if not kinds:
        return f"{found.study.machine.hostname}: {_machine_words(found.study.machine, _kernels(found))}"
    return "; ".join(
        f"node{'s' * (len(kind.nodes) > 1)} {folded(kind.nodes)}: "
        f"{_machine_words(kind.facts.machine, f'kernel {kind.facts.machine.kernel_release}')}"
        for kind in kinds
    )


def _machine_words(machine: StoredMachine, kernel: str) -> str:
    virtual = f", virtualised ({machine.virtualisation})" if machine.virtualisation else ""
    return (
        f"{machine.cpus_words}, {machine.memory_words} of memory{virtual}, {kernel}, {machine.distribution}"
    )


def _kernels(found: Overview) -> str:
    """The kernel that the figures were made under: the guests' where visits were lived in guests."""
    own = f"kernel {found.study.machine.kernel_release}"
    places = [run.where for run in found.measurements if run.where is not None]
    guests = sorted({where.kernel for where in places if where.executor == "qemu" and where.kernel})
    if not guests:
        return own
    inside = f"in guests of QEMU with kernel {', '.join(guests)}"
    everywhere = all(where.executor == "qemu" for where in places)
    return (
        f"{inside} (the machine's own is {found.study.machine.kernel_release})"
        if everywhere
        else f"{own}, and {inside}"
    )


def _legend(found: Overview) -> str:
    words = "Figures are geometric means over the repetitions"
    if found.repetitions >= 2:
        words += "; dots are the single runs, the tick is their mean"
    if any(summary.low is not None for summary in found.summaries.values()):
        words += ", the line is the 95 % interval of the mean"
    promised = [durability_words(cell.durability) for cell in found.cells.values()]
    if any(" / " in text for text in promised):
        words += (
            ". Of two classes the first holds with a volatile device cache, the second with a protected one"
        )
    if any(cell.durability.tells_sectors for cell in found.cells.values() if cell.durability):
        words += f". Colours are those of the volatile cache that this machine has: {sectors_told(device_sectors(found))}"
    return (
        f"{words}. All strips of one run share a scale that starts at zero. Runs that are suspect, or of "
        "unknown validity, are left out where a cell has a trusted one. Where it has none, they are shown and marked."
    )


def _tables(found: Overview, first: int, shared: Sequence[str]) -> Iterator[CellTable]:
    index = {cell: number for number, cell in enumerate(found.cells, start=first)}
    for runs, cells in runs_together(found):
        largest = {run: _largest(found, run) for run in runs}
        yield CellTable(
            tuple(_head(found, run) for run in runs),
            tuple(
                _row(
                    found,
                    cell,
                    index[cell.id],
                    [note for note in _notes(found, cell) if note not in shared],
                    largest,
                )
                for cell in cells
            ),
        )


def _row(
    found: Overview,
    cell: CellFacts,
    index: int,
    notes: Sequence[str],
    largest: Mapping[tuple[str, str], float],
) -> Row:
    """In the runs that have a `largest` figure."""
    kind, words = _badge(found, cell.id, tuple(largest))
    return Row(
        index=index,
        name=cell.label.panel,
        blocks=cell.label.blocks,
        notes=tuple(notes),
        durability=durability_told(cell),
        durability_class=badge_class(cell),
        durability_reasons="; ".join(_reasons(cell)),
        runs=tuple(_run(found, cell.id, run, most) for run, most in largest.items()),
        mark_class=kind,
        mark_text=words,
        counted=_counted_in(found, cell, tuple(largest)),
    )


def _badge(found: Overview, cell: str, runs: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """How it is coloured, and what happened to the repetitions of a cell: `✓ valid`, `✗ 1 of 4 failed`, `✓ valid, stopped at a limit`."""
    measurements = [m for run in runs for m in found.of(cell, run)]
    sign = mark(measurements)
    kind = _MARK_WORDS[sign]
    alike = sum(mark([m]) == sign for m in measurements)
    is_part = alike < len(measurements)
    words = f"{sign} {alike} of {len(measurements)} {kind}" if is_part else f"{sign} {kind}"
    if any(found.summary(cell, run, run_head(found, run).first).censored for run in runs):
        words += ", stopped at a limit"
    # What some repetitions bear out is not lost with the others.
    return ("suspect" if is_part and kind == "failed" else kind), words


def _counted_in(found: Overview, cell: CellFacts, runs: Sequence[tuple[str, str]]) -> str:
    """`n = 3`; where runs differ, of which: `read-only: n = 3; read-write: n = 2, 1 suspect, left out`."""
    having: dict[str, list[str]] = {}
    for run in runs:
        words = counted(found.summary(cell.id, run, run_head(found, run).first))
        having.setdefault(words, []).append(run_told(found, run))
    if len(having) < 2:
        return "".join(having)
    return "; ".join(f"{', '.join(told)}: {words}" for words, told in having.items())


def _head(found: Overview, run: tuple[str, str]) -> Head:
    shown = run_head(found, run)
    return Head(run_told(found, run), shown.first_words, "" if shown.beneath else shown.second_words)


def _run(found: Overview, cell: str, run: tuple[str, str], largest: float) -> RunEntry:
    shown = run_head(found, run)
    seen = ranked(found, SummaryKey(cell, *run, shown.first), found.summary(cell, run, shown.first))
    summary = seen.summary
    stopped = summary.centre is None and seen.limit is not None
    other = found.summary(cell, run, shown.second)
    second = other.centre
    beneath: tuple[str, ...] = ()
    if shown.beneath and second is not None:
        words = f"{second:g}" if METRICS[shown.second].scale is Scale.COUNT else number_words(second)
        beneath = (f"{words} {shown.second_words}",)
    return RunEntry(
        head=_head(found, run),
        figure=f"> {number_words(seen.limit)}" if stopped else figure(summary).mean,
        range=(*_range(summary), *beneath),
        counted=counted(summary),
        second=figure(other).mean,
        strip=_strip(summary, found.of(cell, run), shown.first, largest),
    )


def _range(summary: Summary) -> tuple[str, ...]:
    """The range, and the interval where there is one."""
    if summary.n < 2:
        return ()
    if summary.low is None:
        return (span(summary),)
    return (span(summary), f"95\N{NO-BREAK SPACE}%: {figure(summary).between('–')}")


def _strip(
    summary: Summary, measurements: Sequence[Measurement], metric: str, largest: float
) -> Strip | None:
    if summary.centre is None or largest <= 0:
        return None

    def place(value: float) -> float:
        return round(min(value / largest, 1.0) * 100, 2)

    dots = [
        (place(value), m.validity.is_trusted) for m in measurements if (value := m.value(metric)) is not None
    ]
    return Strip(
        low=None if summary.low is None else place(summary.low),
        high=None if summary.high is None else place(summary.high),
        centre=place(summary.centre),
        dots=tuple(dots),
    )


def _largest(found: Overview, run: tuple[str, str]) -> float:
    metric = run_head(found, run).first
    values = [
        value for cell in found.cells for m in found.of(cell, run) if (value := m.value(metric)) is not None
    ]
    return max(values, default=0.0) * 1.03
