"""What a study says of disks that fail: a verdict for each fault, and no speed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bedplate.analysis.run_heads import AnswerLine, RunHead, WorkloadView
from bedplate.cuts.faults import FaultRecord, FaultTries, FaultVerdict, counted, fault_named, read_tries
from bedplate.model.cell import RunSpec
from bedplate.model.course import and_more, first_of
from bedplate.units import format_count
from bedplate.workloads.faulty_disk.figures import NONE_HIT, NOT_SEEN, NOT_WHOLE
from bedplate.workloads.faulty_disk.model import WORKLOAD

if TYPE_CHECKING:
    from bedplate.analysis.overview import CellFacts, Measurement, Overview

_CELLS_SHOWN, _FAULTS_SHOWN = 3, 2

_OF_CONTROLS = frozenset({NOT_WHOLE.code, NOT_SEEN.code})

_NO_RESULT = "no fault was hit, or none left a trace"

_LOST = {
    FaultVerdict.LOST_SILENT: "acknowledged rows are lost silently",
    FaultVerdict.LOST_DETECTED: "lost, and refused by the engine or the file system",
    FaultVerdict.BOUNDED: "the last transactions are lost, no more than their settings allow",
}


_HEADS = {
    FaultVerdict.LOST_SILENT: "Unsafe",
    FaultVerdict.LOST_DETECTED: "Unsafe",
    FaultVerdict.BOUNDED: "Less safe",
}


def answer_lines(rows: Sequence[FaultRow], names: Mapping[str, str]) -> Iterator[AnswerLine]:
    """A line for each kind of loss, the worst first; of cells whose runs are doubted, as their controls went wrong, nothing is said but that."""
    believed = [row for row in rows if not row.codes - {NONE_HIT.code}]
    doubted = [row for row in rows if row not in believed]
    for rank, (verdict, words) in enumerate(_LOST.items()):
        losing = [(row, squares) for row in believed if (squares := _with(row, verdict))]
        if losing:
            losing.sort(key=lambda each: -_share(each[1], verdict))
            named = [f"{_name(row, names)} ({_faults(squares, verdict)})" for row, squares in losing]
            yield AnswerLine(_HEADS[verdict], f"{words}: {first_of(named, _CELLS_SHOWN, '; ')}.", words, rank)
    false = [(row, count) for row in believed if (count := _false_failures(row))]
    if false:
        words = "reported as failed, and there all the same"
        named = [f"{_name(row, names)} ({count} of {_results(row)} tries)" for row, count in false]
        yield AnswerLine("Less safe", f"{words}: {first_of(named, _CELLS_SHOWN, '; ')}.", words, len(_LOST))
    whole = [row for row in believed if _results(row) and not any(_with(row, each) for each in _LOST)]
    if whole:
        tries = sum(map(_results, whole))
        lead = f"nothing that was acknowledged is lost in {tries} {'try' if tries == 1 else 'tries'} in which the disk failed"
        listed = ", ".join(dict.fromkeys(_name(row, names) for row in whole[: 2 * _CELLS_SHOWN]))
        yield AnswerLine("Safe", f"{lead}: {listed}{and_more(len(whole), 2 * _CELLS_SHOWN)}.", lead, 1)
    no_result = [row for row in believed if not _results(row)]
    for words in dict.fromkeys((*map(_why_doubted, doubted), _NO_RESULT)):
        kind = no_result if words == _NO_RESULT else [row for row in doubted if _why_doubted(row) == words]
        if kind:
            listed = ", ".join(_name(row, names) for row in kind[:_CELLS_SHOWN])
            yield AnswerLine("Open", f"{listed}{and_more(len(kind), _CELLS_SHOWN)}: {words}.", "", 2)


def _why_doubted(row: FaultRow) -> str:
    why = "the controls went wrong" if row.codes & _OF_CONTROLS else row.doubts[0]
    return f"{why}, so that nothing is said"


def _with(row: FaultRow, verdict: FaultVerdict) -> list[FaultSquare]:
    return [square for square in row.squares if verdict in counted(square.records)]


def _share(squares: Sequence[FaultSquare], verdict: FaultVerdict) -> float:
    """Of the tries of these faults that are results, the worst of them."""
    return max(
        counted(square.records)[verdict] / sum(each.is_result for each in square.records)
        for square in squares
    )


def _results(row: FaultRow) -> int:
    return sum(record.is_result for square in row.squares for record in square.records)


def _false_failures(row: FaultRow) -> int:
    """Tries after which a transaction is there that the engine had reported as failed."""
    return sum(
        record.is_result and bool(record.false_failures)
        for square in row.squares
        for record in square.records
    )


def _name(row: FaultRow, names: Mapping[str, str]) -> str:
    return names[row.cell.id]


def _faults(squares: Sequence[FaultSquare], verdict: FaultVerdict) -> str:
    """`one write fails with EIO, in the data: 6 of 6 tries`, of the tries that are results."""
    words = [
        f"{square.words}: {counted(square.records)[verdict]} of {format_count(sum(each.is_result for each in square.records), 'try', 'tries')}"
        for square in squares
    ]
    return first_of(words, _FAULTS_SHOWN, "; ")


_HEAD = RunHead("faults_lost", "faults that lost", "faults_hit", "faults hit", beneath=True)


class FaultyDiskView(WorkloadView):
    """Faults on disks of their own."""

    heads: ClassVar[Mapping[str, RunHead]] = {WORKLOAD: _HEAD}
    headlines: ClassVar[tuple[str, ...]] = ("faults_hit",)

    def writes(self, overview: Overview, run: tuple[str, str], spec: RunSpec) -> bool:  # noqa: ARG002 -- its kind says it
        """Clients write while the disk fails."""
        return True

    def answer(self, overview: Overview, names: Mapping[str, str]) -> Iterator[AnswerLine]:
        """What was lost, and where nothing was."""
        return answer_lines(fault_rows(overview), names)

    def kind(self, spec: RunSpec) -> str | None:  # noqa: ARG002 -- all alike
        """They have a kind of their own."""
        return WORKLOAD


@dataclass(frozen=True)
class FaultSquare:
    """What came of one fault in one cell: the tries of all repetitions."""

    fault: str
    records: tuple[FaultRecord, ...]

    @property
    def words(self) -> str:
        """What fails, for a person."""
        return fault_named(self.fault).words

    @property
    def worst(self) -> FaultVerdict:
        """The gravest verdict of those that are results; of none, why."""
        return next(iter(counted(self.records)))

    @property
    def verdicts(self) -> str:
        """`lost, silent 5 of 6; stopped, whole 1 of 6`; the verdict alone where all are alike."""
        found = counted(self.records)
        if len(found) == 1:
            return f"{next(iter(found)).value}{f' {len(self.records)} of {len(self.records)}' if len(self.records) > 1 else ''}"
        return "; ".join(
            f"{verdict.value} {count} of {len(self.records)}" for verdict, count in found.items()
        )

    @property
    def detected(self) -> str:
        """Who said that something was wrong, of those that are results; without the kernel's log nobody knows what a file system said."""
        hit = [record for record in self.records if record.is_result]
        if not hit:
            return "–"
        names = [*dict.fromkeys(each.value for record in hit for each in record.detected)]
        silent = [record for record in hit if not record.detected]
        if any(record.kernel_heard for record in silent):
            names.append("nobody")
        elif silent:
            names.append("unknown: no kernel log")
        return ", ".join(names)


@dataclass(frozen=True)
class FaultRow:
    """A cell whose disk failed, its squares, and why they may not be believed; `codes` are those of the doubts."""

    cell: CellFacts
    dataset: str
    squares: tuple[FaultSquare, ...]
    doubts: tuple[str, ...]
    codes: frozenset[str] = frozenset()


def fault_runs(overview: Overview) -> Iterator[tuple[Measurement, FaultTries]]:
    """The runs of faults that left any, with their tries."""
    for m in overview.measurements:
        spec = overview.spec((m.dataset, m.run))
        if spec is None or spec.workload != WORKLOAD or m.directory is None or m.canary:
            continue
        tries = read_tries(m.directory)
        if tries.tried:
            yield m, tries


def fault_rows(overview: Overview) -> tuple[FaultRow, ...]:
    """One for each cell and dataset, in the order of the cells; worked out once."""
    return overview.once(_rows)


def _rows(overview: Overview) -> tuple[FaultRow, ...]:
    by_cell: dict[tuple[str, str], list[tuple[Measurement, FaultTries]]] = {}
    for m, tries in fault_runs(overview):
        by_cell.setdefault((m.cell, m.dataset), []).append((m, tries))
    order = {cell: number for number, cell in enumerate(overview.cells)}
    return tuple(
        _row(overview.cells[cell], dataset, runs)
        for (cell, dataset), runs in sorted(by_cell.items(), key=lambda item: order.get(item[0][0], 0))
        if cell in overview.cells
    )


def _squares(runs: list[tuple[Measurement, FaultTries]]) -> tuple[FaultSquare, ...]:
    together: dict[str, list[FaultRecord]] = {}
    for _, tries in runs:
        for fault, records in tries.by_fault.items():
            together.setdefault(fault, []).extend(records)
    return tuple(FaultSquare(fault, tuple(records)) for fault, records in together.items())


def _row(cell: CellFacts, dataset: str, runs: list[tuple[Measurement, FaultTries]]) -> FaultRow:
    reasons = [reason for m, _ in runs if m.trouble for reason in m.reasons]
    doubts = tuple(dict.fromkeys(reason.sentence for reason in reasons))
    return FaultRow(cell, dataset, _squares(runs), doubts, frozenset(reason.code for reason in reasons))


ANALYSIS = FaultyDiskView()
