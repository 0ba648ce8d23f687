"""What must add up on a server after a cut: notes of clients without a gap, and accounts whose balances are the number of their notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.visit.piped_session import SessionFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bedplate.visit.piped_session import PipedSession

ANSWER_LIMIT_S = 300.0


def notes(
    session: PipedSession, promised: Mapping[int, int], detected: list[str], silent: list[str]
) -> dict[int, int] | None:
    """The last note of each client; a gap, a note twice or one that was never made is silent corruption."""
    try:
        found = session.rows(
            "SELECT client, count(*), count(DISTINCT sequence), min(sequence), max(sequence) FROM note GROUP BY client",
            timeout_s=ANSWER_LIMIT_S,
        )
    except SessionFailed as error:
        detected.extend(error.reasons)
        return None
    present = {}
    for row in found:
        client, count, distinct, first, last = (int(cell or 0) for cell in row)
        present[client] = last
        if (count, distinct, first) != (last, last, 1):
            silent.append(
                f"client {client} has {count} notes, {distinct} different, from {first} to {last}: some are missing "
                "between others, or there twice"
            )
        # The one under way may have been committed, and its answer not yet read; a later one was never begun.
        if last > promised.get(client, 0) + 1:
            silent.append(
                f"client {client} has transaction {last}, but {promised.get(client, 0)} was the last acknowledged"
            )
    return present


def balances(rows: int, *, there: int, distinct: int, total: int, wrong: int, torn: int) -> Iterator[str]:
    """What the accounts say, of which `rows` were made: those that are there, their sum, and those that do not add up."""
    if (there, distinct) != (rows, rows):
        yield f"{rows} accounts were made, {there} are there, {distinct} different"
    if wrong:
        yield f"{wrong} accounts' balances are not the number of their notes; all balances are {total}"
    if torn:
        yield f"{torn} accounts have a filler that does not follow from their number and balance"
