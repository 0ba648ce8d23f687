"""Whether a completed run of the microbenchmark may be believed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.figures.rule import Rule, RunRules
from bedplate.figures.tool_validity import READ_SHARE_MIN, ToolEvidence, below
from bedplate.figures.validity import OF_EVERY_TIMED_RUN
from bedplate.units import format_size, percent

if TYPE_CHECKING:
    from bedplate.workloads.microbenchmark.output import BenchOptions, BenchTest

_PAGE_BYTES = 4096
LATE_SHARE_MAX = 0.05
LATE_S_MAX = 1.0
# Tests of 100 kB values have a thousandth of the entries.
_LARGE = "100K"


@dataclass(frozen=True, kw_only=True)
class BenchEvidence(ToolEvidence):
    """Of a run of tests: `reads` are what its tests had to read at least.

    `missing` names those that the record lacks, has twice or cut off, `late` those that took longer than they were asked to.
    """

    cold: bool
    made_cold: bool
    missing: tuple[str, ...]
    late: tuple[str, ...] = ()


def must_read_bytes(test: BenchTest, options: BenchOptions) -> float:
    """What a test that reads had to get from somewhere: the entries that it met, of a large one its first page.

    A random read may meet an entry again, so that there are no more than were written.
    """
    entries = options.entries // 1000 if test.test.endswith(_LARGE) else options.entries
    met = test.operations if test.found is None else test.found
    if not met:
        return 0.0
    return min(met, entries) * min(test.bytes / met, _PAGE_BYTES)


def _not_cold(evidence: BenchEvidence) -> str | None:
    if not evidence.cold:
        return None
    if not evidence.made_cold:
        return (
            "the record does not say that the file system was mounted anew before the tests of this cold pass"
        )
    found = [
        f"{read.what} read {format_size(given)} from the device, of at least {format_size(read.asked_bytes)}"
        for read, given in below(evidence.reads, READ_SHARE_MIN)
    ]
    return f"a cache answered in a cold pass: {'; '.join(found)}" if found else None


def longer_than_asked(test: BenchTest, options: BenchOptions) -> str | None:
    """Of a test of processes at locks: what it took more than it was asked to; None where it ended in time."""
    if test.busy is None or options.duration_s is None:
        return None
    took_s, limit_s = test.elapsed_ns / 1e9, options.duration_s * (1 + LATE_SHARE_MAX) + LATE_S_MAX
    return (
        f"{test.test} took {took_s:.1f} s, and {options.duration_s} s were requested"
        if took_s > limit_s
        else None
    )


def _late(evidence: BenchEvidence) -> str | None:
    if not evidence.late:
        return None
    return f"{'; '.join(evidence.late)}: a process waited for a lock while the others were done"


def _missing(evidence: BenchEvidence) -> str | None:
    return "; ".join(evidence.missing) or None


VALIDITY: RunRules[BenchEvidence] = RunRules(
    "Microbenchmark",
    (
        Rule(
            "cold test from a cache",
            f"a test of a cold pass reads less than {percent(READ_SHARE_MIN)} of what it must from the device, or its "
            "record does not say that it was made cold",
            "the entries that it met, of values above a page their first page; the limit is a convention of bedplate",
            _not_cold,
        ),
        Rule(
            "tests missing",
            "a test that was asked for is not in the record, is there twice, or was cut off",
            "drivers/microbenchmark.c",
            _missing,
        ),
        Rule(
            "longer than asked",
            f"tpcb took more than {percent(LATE_SHARE_MAX)} and {LATE_S_MAX:g} s longer than asked",
            "its rate is of the time until the last process is done, and one that waits for a lock alone makes it low",
            _late,
        ),
        *OF_EVERY_TIMED_RUN,
    ),
)
