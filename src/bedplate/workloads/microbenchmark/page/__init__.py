"""The tests on the page: one at a time in every cell, with what each promises there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bedplate.analysis.overview import Overview
from bedplate.analysis.run_heads import runs_of
from bedplate.page.static import WorkloadPage
from bedplate.workloads.microbenchmark.model import TESTS, WORKLOAD
from bedplate.workloads.microbenchmark.reading import promise, run_tests

Run = tuple[str, str]


def _document(overviews: Sequence[Overview], runs: Sequence[Run]) -> Mapping[str, Any]:
    """The tests of every run by its index on a page, and what each promises in each cell; None without any.

    `promises` has an entry for each test, with one for each cell of the page in it.
    """
    own = ((found, run) for found in overviews for run in runs_of(found, WORKLOAD))
    tests = {runs.index(run): list(run_tests(found, run)) for found, run in own}
    if not tests:
        return {WORKLOAD: None}
    cells = [cell for found in overviews for cell in found.cells.values()]
    names = dict.fromkeys(name for named in tests.values() for name in named)
    made = {
        "phase": TESTS,
        "runs": [[run, named] for run, named in sorted(tests.items())],
        "promises": {name: [promise(cell, name) for cell in cells] for name in names},
    }
    return {WORKLOAD: made}


PAGE = WorkloadPage(
    Path(__file__).parent,
    {"raw": (WORKLOAD, "Microbenchmark")},
    lambda overviews: any(runs_of(found, WORKLOAD) for found in overviews),
    _document,
)
