"""What a study of disks that fail says first: what was lost in silence, what was lost and refused, and where nothing was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.analysis.workload_view import AnswerLine
from bedplate.model.template import and_more, first_of
from bedplate.workloads.faulty_disk.records import FaultVerdict
from bedplate.workloads.faulty_disk.tries import counted
from bedplate.workloads.faulty_disk.validity import NONE_HIT, NOT_SEEN, NOT_WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bedplate.workloads.faulty_disk.analysis import FaultRow, FaultSquare

_CELLS_SHOWN, _FAULTS_SHOWN = 3, 2
_OF_CONTROLS = frozenset({NOT_WHOLE.code, NOT_SEEN.code})
_NO_RESULT = "no fault was hit, or none left a trace"
_LOST = {
    FaultVerdict.LOST_SILENT: "acknowledged rows are lost silently",
    FaultVerdict.LOST_DETECTED: "lost, and refused by the engine or the file system",
    FaultVerdict.BOUNDED: "the last transactions are lost, no more than their settings allow",
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
            yield AnswerLine("Not", f"{words}: {first_of(named, _CELLS_SHOWN, '; ')}.", words, rank)
    whole = [row for row in believed if _results(row) and not any(_with(row, each) for each in _LOST)]
    if whole:
        tries = sum(map(_results, whole))
        lead = f"nothing that was acknowledged is lost in {tries} {'try' if tries == 1 else 'tries'} with a fault that was hit"
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


def _name(row: FaultRow, names: Mapping[str, str]) -> str:
    return names[row.cell.id]


def _faults(squares: Sequence[FaultSquare], verdict: FaultVerdict) -> str:
    """`one write fails with EIO, in the data: 6 of 6`, of the tries that are results."""
    words = [
        f"{square.words}: {counted(square.records)[verdict]} of {sum(each.is_result for each in square.records)}"
        for square in squares
    ]
    return first_of(words, _FAULTS_SHOWN, "; ")
