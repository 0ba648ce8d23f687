"""What is asked of cuts of a kept log, answered here; or, as a program, in a guest whose kernel has the file system."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from bedplate.cuts.records import RECORDING_FILE, RECOVERY_LOG_FILE, CutPoint, PointRecord
from bedplate.errors import EXIT_DONE, EXIT_SOME_RUNS_FAILED, BedplateError
from bedplate.model import codec
from bedplate.model.levels import Scalar
from bedplate.visit.life import EventStream
from bedplate.workloads.power_cut.bench import Found, ReplayJob, inquire, judge_alone, replayed
from bedplate.workloads.power_cut.log import LOG_BYTES_MOST, UnpackedLog, free_bytes, unpack_log, unpacked

_Question = TypeVar("_Question")

PROGRAM = "bedplate.workloads.power_cut.cut_questions"

# The name of the event that has a part of an answer as JSON, and of its value; and whether it is the last part.
ANSWER, IS_LAST = "answer", "last"

# A line of the channel has an end, and a story of thousands of writes is longer. An escaped character takes six.
_PART_CHARACTERS = 100_000


@dataclass(frozen=True)
class CutQuestion:
    """Why these points of the run in `folder` are bad, each by `most` replays at most; without `most`, what comes of each.

    Of the latter the points may be others than the job has.
    """

    folder: str
    job: ReplayJob
    points: tuple[CutPoint, ...]
    most: int | None = None


def inquests(question: CutQuestion, most: int) -> Iterator[Found]:
    """Why each point is bad, one after the other; the log is unpacked once."""
    folder = Path(question.folder)
    with unpacked(folder) as unpacked_log:
        for point in question.points:
            yield inquest(folder, question.job, point, unpacked_log, most=most)


def inquest(folder: Path, job: ReplayJob, point: CutPoint, unpacked_log: UnpackedLog, *, most: int) -> Found:
    """Why a point of the run in `folder`, whose log is `unpacked_log`, is bad."""
    return inquire(
        unpacked_log.log,
        job,
        point,
        most=most,
        memory=unpacked_log.memory,
        ledger=unpacked_log.ledger,
        recording_file=folder / RECORDING_FILE,
        recovery=recovery_of(point, folder, unpacked_log),
    )


def outcomes(question: CutQuestion, report: Callable[[str], None]) -> Iterator[PointRecord]:
    """The record of each point as it comes: first of those that cut the recording, then of those that cut a recovery.

    `report` hears what workers say besides.
    """
    folder = Path(question.folder)
    of_recording = tuple(point for point in question.points if point.recovery_of is None)
    with unpacked(folder) as unpacked_log:
        if of_recording:
            job = replace(question.job, points=of_recording, recuts=())
            yield from replayed(
                unpacked_log.log, job, report, memory=unpacked_log.memory, ledger=unpacked_log.ledger
            )
        for point in question.points:
            if (recovery := recovery_of(point, folder, unpacked_log)) is not None:
                yield judge_alone(
                    unpacked_log.log,
                    question.job,
                    point,
                    memory=unpacked_log.memory,
                    ledger=unpacked_log.ledger,
                    recovery=recovery,
                )


def recovery_of(point: CutPoint, folder: Path, unpacked_log: UnpackedLog) -> Path | None:
    """The log of the recovery that a point cuts, unpacked once; None of a cut of the recording itself."""
    if point.recovery_of is None:
        return None
    path = unpacked_log.memory / f"recovery-{point.recovery_of}"
    if not path.exists():
        # A recovery is recorded on its own, with the room of a recording.
        most_bytes = min(LOG_BYTES_MOST, free_bytes(unpacked_log.memory) * 3 // 4)
        unpack_log(folder / RECOVERY_LOG_FILE.format(first=point.recovery_of), path, most_bytes)
    return path


def answer_events(record: object) -> Iterator[Mapping[str, Scalar]]:
    """The events that bring a record, in order."""
    text = codec.dumps(record, indent=None)
    starts = range(0, len(text), _PART_CHARACTERS)
    for start in starts:
        part = text[start : start + _PART_CHARACTERS]
        yield {"event": ANSWER, ANSWER: part, IS_LAST: start == starts[-1]}


def _answers(question: CutQuestion) -> Iterator[object]:
    if question.most is None:
        return outcomes(question, lambda text: print(text, file=sys.stderr))
    return inquests(question, question.most)


def answer(
    arguments: list[str], kind: type[_Question], answer_question: Callable[[_Question], Iterator[object]]
) -> int:
    """As a program: read the question of that kind, and print the events of each answer as soon as it is known."""
    parser = argparse.ArgumentParser(description=answer.__doc__)
    parser.add_argument("question", type=Path, help="the question, as JSON")
    parser.add_argument("folder", type=Path, help="as for a visit; nothing is written to it")
    given = parser.parse_args(arguments)
    events = EventStream(sys.stdout)
    try:
        for each in answer_question(codec.read(kind, given.question)):
            for event in answer_events(each):
                events.emit(event)
    except BedplateError as error:
        print(*error.reasons, sep="\n", file=sys.stderr)
        return EXIT_SOME_RUNS_FAILED
    return EXIT_DONE


def main(arguments: list[str]) -> int:
    """Answer a CutQuestion."""
    return answer(arguments, CutQuestion, _answers)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
