"""Whether the answers of a run are right: held to the specification's, and to those of the study so far."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood
from bedplate.model.reason import Reason, because
from bedplate.workloads.tpch.model import DRAWN, QUERIES, stream_phase
from bedplate.workloads.tpch.run.answers import answer_digest
from bedplate.workloads.tpch.run.schema import exact_scale_factor
from bedplate.workloads.tpch.run.specification_answers import SCALE_FACTOR, check_answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from bedplate.workloads.tpch.run.asking import QueryAnswer, QueryCall
    from bedplate.workloads.tpch.run.recording import TpchRecording

# Enough to look at; query 16 alone has 18314 at scale factor 1.
_ROWS_SHOWN = 2000
_DIGEST_SHOWN = 12
# Not to be taken for an empty string; COPY's own word for it.
_NULL = "\\N"


def item_place(question: QueryCall) -> tuple[str, str]:
    """The phase and the item under which a question stands in the record."""
    phase = stream_phase(question.stream) if question.stream else QUERIES
    return phase, str(question.query)


def check_answers(recording: TpchRecording, asked: Iterable[QueryAnswer]) -> None:
    """Put a digest at each item that has an answer, and a reason into the record for each wrong one."""
    specified = (
        exact_scale_factor(recording.scale_factor) == SCALE_FACTOR
        and recording.spec.levels.text("parameters") != DRAWN
    )
    for one in asked:
        if one.rows is not None:
            recording.reasons += _problems(recording, one.question, one.rows, specified=specified)


def _problems(
    recording: TpchRecording, question: QueryCall, rows: Sequence[Sequence[str | None]], *, specified: bool
) -> list[Reason]:
    path = recording.directory / "logs" / answer_file(question)
    shown = f"the whole answer is in logs/{path.name}"
    name = f"query {question.query}" + (f" of stream {question.stream}" if question.stream else "")
    try:
        digest = answer_digest(question.query, rows)
        differences = check_answer(question.query, rows) if specified else ()
    except OutputNotUnderstood as error:
        write_answer(path, rows)
        head = f"{name}: no answer of its kind, {shown}"
        return [
            because("answer-not-understood", f"{head}: {reason}", query=question.query)
            for reason in error.reasons
        ]
    recording.add_facts(*item_place(question), answer=digest, answer_key=question.key)
    if differences:
        write_answer(path, rows)
        head = f"{name}: its answer differs from the specification's ({len(rows)} rows; {shown})"
        return [
            because("answer-unlike-specification", f"{head}: {difference}", query=question.query)
            for difference in differences
        ]
    known = recording.context.expected_answers
    if question.key not in known:
        # Right as far as can be told: what later runs are held to, and what a person may look at.
        known[question.key] = digest
        recording.context.answer_sources[question.key] = f"run {recording.spec.name} of this visit"
        write_answer(path, rows[:_ROWS_SHOWN])
        return []
    expected = known[question.key]
    if expected != digest:
        write_answer(path, rows)
        digests = f"digest {digest:.{_DIGEST_SHOWN}}…, expected digest {expected:.{_DIGEST_SHOWN}}…"
        source = recording.context.answer_sources.get(question.key)
        where = f" in {source}" if source else ""
        words = f"{name}: its answer differs from the one found before{where} ({len(rows)} rows, {digests}); {shown}"
        return [because("answer-unlike-earlier", words, query=question.query)]
    return []


def answer_file(question: QueryCall) -> str:
    """The name of the file of an answer in a run's logs: `answer-05.csv`, `answer-stream-2-05.csv`."""
    stream = f"stream-{question.stream}-" if question.stream else ""
    return f"answer-{stream}{question.query:02d}.csv"


def write_answer(path: Path, rows: Sequence[Sequence[str | None]]) -> None:
    """The rows as CSV without a header, as the client printed them; null as in PostgreSQL's own COPY."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([_NULL if value is None else value for value in row] for row in rows)
