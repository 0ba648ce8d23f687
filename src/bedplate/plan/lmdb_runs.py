"""The runs of an LMDB visit: fills and overwrites first, then reads of what the last of them left."""

from __future__ import annotations

from collections.abc import Sequence

from bedplate.model.cell import RunSpec
from bedplate.model.levels import Levels, Scalar

WORKLOAD = "lmdb"
# `by-test` is the published way: synchronous for the tests that are called so, else nosync.
LMDB_SYNC_MODES = ("by-test", "full", "nometasync", "nosync", "mapasync")
LMDB_PREALLOCATIONS = ("none", "ftruncate", "fallocate", "written")
# In the published order; those of 100 kB values are a set of their own.
_SMALL_WRITES = (
    "fillrandsync",
    "fillrandom",
    "fillrandbatch",
    "fillseqsync",
    "fillseq",
    "fillseqbatch",
    "overwrite",
)
_SMALL_READS = ("readrandom", "readseq", "readreverse", "readwhilewriting")
_LARGE_WRITES = ("fillrand100K", "fillseq100K")
_LARGE_READS = ("readrand100K", "readseq100K")
LMDB_TESTS = (*_SMALL_WRITES, *_SMALL_READS, *_LARGE_WRITES, *_LARGE_READS)
# The writer of readwhilewriting fills the cache as it goes: it has no cold pass.
_WARM_ONLY = frozenset({"readwhilewriting"})
_SETS = (("", _SMALL_WRITES, _SMALL_READS), ("-100K", _LARGE_WRITES, _LARGE_READS))


def lmdb_misfits(tests: Sequence[str], reads: Sequence[str]) -> list[str]:
    """What cannot be done: reads of what nothing fills, passes that nothing reads in."""
    reasons = []
    for _, writes, reading in _SETS:
        wanted = [name for name in reading if name in tests]
        if wanted and not any(name in tests for name in writes if name.startswith("fill")):
            reasons.append(
                f"{', '.join(wanted)} read what a fill leaves, and no fill of their size is asked for"
            )
        if wanted and not reads:
            reasons.append(f'{", ".join(wanted)} need a pass: reads = ["cold", "warm"]')
    if "overwrite" in tests and not any(name in tests for name in _SMALL_WRITES[:-1]):
        reasons.append("overwrite needs a fill before it")
    return list(dict.fromkeys(reasons))


def lmdb_runs(tests: Sequence[str], reads: Sequence[str], *, batch: int, threads: int) -> tuple[RunSpec, ...]:
    """One run for what writes, and one for each pass of reads; the 100 kB values after the small ones."""
    common: dict[str, Scalar] = {"batch": batch, "threads": threads}
    found = []
    for suffix, writes, reading in _SETS:
        writing = [name for name in writes if name in tests]
        if writing:
            levels = Levels({**common, "kind": "write", "tests": ",".join(writing)})
            found.append(RunSpec(f"write{suffix}", WORKLOAD, levels))
        for number, kind in enumerate(reads, start=1):
            named = [
                name for name in reading if name in tests and not (kind == "cold" and name in _WARM_ONLY)
            ]
            if not named:
                continue
            again = sum(other == kind for other in reads[:number])
            name = f"read-{kind}{suffix}" + (f"-{again}" if again > 1 else "")
            levels = Levels(
                {**common, "kind": "read", "pass": kind, "pass_number": number, "tests": ",".join(named)}
            )
            found.append(RunSpec(name, WORKLOAD, levels))
    return tuple(found)
