"""What an LMDB test promises in a cell: its class of durability, which stands beside every speed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bedplate.analysis.wording import durability_words
from bedplate.model.durability import UNKNOWN
from bedplate.model.lmdb import TESTS, WORKLOAD, is_synchronous, tests_of, writes
from bedplate.model.visit import Durability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.analysis.overview import CellFacts, Overview

Run = tuple[str, str]

SPEED = "lmdb_operations_per_s"
ONLY_READS = "reads only"
# A test that only reads stands beside the classes, as one of its own.
_READS = Durability(ONLY_READS, ONLY_READS, "declared")


def is_lmdb(found: Overview, run: Run) -> bool:
    """Whether a run is one of LMDB's tests."""
    spec = found.spec(run)
    return spec is not None and spec.workload == WORKLOAD


def run_tests(found: Overview, run: Run) -> tuple[str, ...]:
    """The tests of a run in their order."""
    spec = found.spec(run)
    return () if spec is None else tests_of(spec)


def promised_classes(cell: CellFacts, test: str) -> tuple[str, ...]:
    """The classes of what this test commits there, with the volatile cache of the device and with a protected one.

    Nothing of a test that only reads, and one class where both agree.
    """
    if not writes(test):
        return ()
    found = _promised(cell.durability, test)
    if found is None:
        return (UNKNOWN,)
    return tuple(dict.fromkeys((found.class_with(cell.cache), found.protected_cache)))


def promise(cell: CellFacts, test: str) -> str:
    """What survives a power cut of what this test commits there, volatile / protected cache."""
    return durability_words(_promised(cell.durability, test))


def promised(durability: Durability | None, *, workload: str, phase: str, item: str) -> Durability | None:
    """The class that stands beside a figure of a cell: of an LMDB test its own, else the cell's."""
    return _promised(durability, item) if (workload, phase) == (WORKLOAD, TESTS) else durability


def _promised(durability: Durability | None, test: str) -> Durability | None:
    if not writes(test):
        return _READS
    if durability is None or durability.without_waiting is None:
        return durability
    return replace(durability, without_waiting=None) if is_synchronous(test) else durability.without_waiting


def lmdb_document(overviews: Sequence[Overview], runs: Sequence[Run]) -> dict[str, Any] | None:
    """The tests of every run by its index on a page, and what each promises in each cell; None without any.

    `promises` has an entry for each test, with one for each cell of the page in it.
    """
    tests: dict[int, list[str]] = {}
    for found in overviews:
        for run in found.runs:
            if is_lmdb(found, run):
                tests[runs.index(run)] = list(run_tests(found, run))
    if not tests:
        return None
    cells = [cell for found in overviews for cell in found.cells.values()]
    names = dict.fromkeys(name for named in tests.values() for name in named)
    return {
        "phase": TESTS,
        "runs": [[run, named] for run, named in sorted(tests.items())],
        "promises": {name: [promise(cell, name) for cell in cells] for name in names},
    }
