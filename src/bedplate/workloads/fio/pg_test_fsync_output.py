"""What pg_test_fsync says: how often each way of making a write durable can be done in a second.

Known are the outputs of PostgreSQL 15 to 18 (src/bin/pg_test_fsync/pg_test_fsync.c), which differ in
two quotation marks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bedplate.errors import OutputNotUnderstood
from bedplate.model.reason import Reason, because

_TOOL = "pg_test_fsync"
_USECS_PER_S = 1_000_000
# The headings that begin a part, and what the part is called here.
_PARTS = (
    (re.compile(r"Compare file sync methods using one (\d+)kB write:", re.ASCII), "one write"),
    (re.compile(r"Compare file sync methods using two (\d+)kB writes:", re.ASCII), "two writes"),
    (re.compile(r"Compare open_sync with different write sizes:"), "open_sync sizes"),
    (re.compile(r"Test if fsync on non-write file descriptor is honored:"), "other descriptor"),
    (re.compile(r"Non-sync'ed (\d+)kB writes:", re.ASCII), "no sync"),
)
PARTS = tuple(name for _, name in _PARTS)
# ` 1 *` is aligned with `16 *`.
_MEASURED = re.compile(r" {8,9}(\S.*?) +(\d+\.\d{3}) ops/sec +(\d+) usecs/op", re.ASCII)
_NOT_AVAILABLE = re.compile(r" {8,9}(\S.*?) +n/a(\*?)")
# What stands between the figures: lines that say nothing of this run.
_PROSE = (
    re.compile(r"\d+ seconds? per test", re.ASCII),
    re.compile(r"O_DIRECT supported on this platform for open_datasync and open_sync\."),
    re.compile(r"Direct I/O is not supported on this platform\."),
    re.compile(r'\(in "?wal_sync_method"? preference order, except fdatasync is Linux\'s default\)'),
    re.compile(r"\(This is designed to compare the cost of writing 16kB in different write"),
    re.compile(r"open_sync sizes\.\)"),
    re.compile(r"\(If the times are similar, fsync\(\) can sync data written on a different"),
    re.compile(r"descriptor\.\)"),
    re.compile(r"\* This file system and its mount options do not support direct"),
    re.compile(r"  I/O, e\.g\. ext4 in journaled mode\."),
)
_ABSENT = because("method-missing", "PostgreSQL has no such method on this platform")
_NO_DIRECT = because("direct-io-refused", "the file system and its mount options do not support direct I/O")


@dataclass(frozen=True)
class SyncMethod:
    """One line: a method in its part of the output, by pg_test_fsync's own words.

    `ops_per_s` is None with its `reason` where the method is not available.
    """

    part: str
    method: str
    ops_per_s: float | None
    reason: Reason | None


@dataclass(frozen=True)
class PgTestFsyncResult:
    """One run: the size of its writes in bytes (wal_block_size), and every method of every part."""

    write_size_bytes: int
    methods: tuple[SyncMethod, ...]

    def method(self, method: str, part: str = "one write") -> SyncMethod:
        """The method of that name in that part; KeyError where pg_test_fsync tries none."""
        for candidate in self.methods:
            if (candidate.part, candidate.method) == (part, method):
                return candidate
        raise KeyError(f"{method} in {part}")


def parse_pg_test_fsync_result(output: str, errors: str = "") -> PgTestFsyncResult:
    """The run in pg_test_fsync's standard output; `errors` is its standard error.

    OutputNotUnderstood where a part is missing, comes twice or is empty, and for any line that is not
    pg_test_fsync's. Where it gave up, its own words are quoted.
    """
    part: str | None = None
    sizes: set[int] = set()
    methods: list[SyncMethod] = []
    begun: list[str] = []
    for line in output.splitlines():
        heading = _heading(line)
        if heading is not None:
            part, size_kib = heading
            begun.append(part)
            sizes.update(size_kib)
        elif part is not None and line.startswith(" " * 8):
            methods.append(_method(line, part))
        elif line and not any(pattern.fullmatch(line) for pattern in _PROSE):
            raise OutputNotUnderstood(_TOOL, expected="a line of its own", found=line)
    filled = tuple(dict.fromkeys(method.part for method in methods))
    if tuple(begun) != PARTS or filled != PARTS or len(sizes) != 1:
        found = errors.strip() or output or "(it printed nothing)"
        raise OutputNotUnderstood(_TOOL, expected=f"the parts {', '.join(PARTS)}", found=found)
    _refuse_doubles(methods)
    return PgTestFsyncResult(sizes.pop() * 1024, tuple(methods))


def _heading(line: str) -> tuple[str, list[int]] | None:
    for pattern, part in _PARTS:
        found = pattern.fullmatch(line)
        if found is not None:
            return part, [int(size) for size in found.groups()]
    return None


def _method(line: str, part: str) -> SyncMethod:
    unavailable = _NOT_AVAILABLE.fullmatch(line)
    if unavailable is not None:
        return SyncMethod(part, _name(unavailable[1]), None, _NO_DIRECT if unavailable[2] else _ABSENT)
    measured = _MEASURED.fullmatch(line)
    if measured is None:
        raise OutputNotUnderstood(_TOOL, expected="`method  N ops/sec  N usecs/op`, or n/a", found=line)
    ops_per_s, usecs = float(measured[2]), int(measured[3])
    # The second number is the inverse of the first, both rounded; where it is not, one was misread.
    if ops_per_s <= 0 or abs(_USECS_PER_S / ops_per_s - usecs) > 0.501 + _USECS_PER_S * 5.1e-4 / ops_per_s**2:
        raise OutputNotUnderstood(_TOOL, expected="a rate and its inverse", found=line)
    return SyncMethod(part, _name(measured[1]), ops_per_s, None)


def _name(words: str) -> str:
    # `2 *  8kB` is aligned with `16 *  1kB`.
    return re.sub(" +", " ", words)


def _refuse_doubles(methods: list[SyncMethod]) -> None:
    seen = set()
    for method in methods:
        if (method.part, method.method) in seen:
            raise OutputNotUnderstood(
                _TOOL, expected=f"one line for each method of {method.part!r}", found=method.method
            )
        seen.add((method.part, method.method))
