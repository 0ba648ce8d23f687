"""Whether a completed run of TPC-H may be believed: one small rule for each way in which it may not."""

from __future__ import annotations

from dataclasses import dataclass

from bedplate.figures.evidence import RunEvidence
from bedplate.figures.rule import Rule, RunRules
from bedplate.figures.validity import CHECKPOINTS_UNKNOWN, OF_EVERY_TIMED_RUN, SERVER_BROKE
from bedplate.units import format_size, percent

# A pass reads nearly every table. Compression by the file system may divide that by three, hardly by ten.
COLD_READ_SHARE_MIN = 0.1
_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class TpchEvidence(RunEvidence):
    """Of a run of TPC-H.

    `cold` says that the pass was to be cold, `made_cold` that it was made so. `read_bytes` came from the data
    device over the whole run. `stopped` counts the queries that were stopped at their limit. `missing` names
    phases, queries and streams that the record lacks or has twice.
    """

    cold: bool
    made_cold: bool
    read_bytes: float | None
    database_bytes: int | None
    stopped: int
    missing: tuple[str, ...]


def _not_cold(evidence: TpchEvidence) -> str | None:
    if not evidence.cold:
        return None
    if not evidence.made_cold:
        return "the record does not say that server and file system were started anew before this cold pass"
    read, database = evidence.read_bytes, evidence.database_bytes
    if read is None or database is None:
        return None
    # Queries that were stopped may have been stopped before they read.
    least = 0.0 if evidence.stopped else COLD_READ_SHARE_MIN * database
    if read > least:
        return None
    return (
        f"a cold pass read {format_size(int(read))} from the device, of a database of {format_size(database)}: "
        "it was in a cache"
    )


def _parts_missing(evidence: TpchEvidence) -> str | None:
    if not evidence.missing:
        return None
    more = len(evidence.missing) - _SHOWN
    return "; ".join(evidence.missing[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")


VALIDITY: RunRules[TpchEvidence] = RunRules(
    "TPC-H",
    (
        Rule(
            "not cold",
            f"a cold pass reads less than {percent(COLD_READ_SHARE_MIN)} of the database's size from the device, or nothing "
            "at all where queries were stopped, or its record does not say that it was made cold",
            "shared buffers, page cache, ARC or the host may have kept it; the limit is a convention of bedplate",
            _not_cold,
        ),
        Rule(
            "parts missing",
            "a phase, a query or a stream is not in the record, or is there twice",
            "TPC-H, clause 5.3: all 22 queries, each once in a stream",
            _parts_missing,
        ),
        *OF_EVERY_TIMED_RUN,
        SERVER_BROKE,
        CHECKPOINTS_UNKNOWN,
    ),
)
