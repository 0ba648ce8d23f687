"""Whether a completed run of TPC-H may be believed: one small rule for each way in which it may not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.figures.rule import Rule
from bedplate.figures.validity import (
    CHECKPOINTS_UNKNOWN,
    CLOCK_STEPPED,
    COURSE_INCOMPLETE,
    COURSE_MISSING,
    INPUT_UNREADABLE,
    KERNEL_WARNING,
    OTHERS_AT_WORK,
    SERVER_BROKE,
    THROTTLED_MACHINE,
)
from bedplate.units import format_size

if TYPE_CHECKING:
    from bedplate.figures.evidence import TpchEvidence

# A pass reads nearly every table. Compression by the file system may divide that by three, hardly by ten.
COLD_READ_SHARE_MIN = 0.1
_SHOWN = 5


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


TPCH_RULES: tuple[Rule[TpchEvidence], ...] = (
    Rule(
        "not cold",
        f"a cold pass reads less than {COLD_READ_SHARE_MIN:.0%} of the database's size from the device, or nothing "
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
    KERNEL_WARNING,
    SERVER_BROKE,
    CLOCK_STEPPED,
    THROTTLED_MACHINE,
    OTHERS_AT_WORK,
    INPUT_UNREADABLE,
    COURSE_INCOMPLETE,
    COURSE_MISSING,
    CHECKPOINTS_UNKNOWN,
)
