"""The jobs of a plan, each a run, and several where an option varies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from bedplate.model.cell import RunSpec
from bedplate.model.levels import Levels, Scalar
from bedplate.plan.words import joined, shown
from bedplate.workloads.fio.options import fio_misfits, fio_words
from bedplate.workloads.fio.ready_jobs import READY_FIO_JOBS
from bedplate.workloads.fio.words import PG_TEST_FSYNC, TEST_FSYNC_SECONDS

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,40}", re.ASCII)
_MOST_JOBS = 1000
# Sixteen measurements of this length. Its own 5 s would be 80 s in every cell.
_TEST_FSYNC_S = 2


@dataclass(frozen=True)
class FioRun:
    """One fio job of a plan with a single level of each option."""

    name: str
    options: Levels


def fio_jobs(value: object) -> tuple[FioRun, ...]:
    """The runs of one `[[workload.job]]` table, several where an option varies; ValueError has every reason.

    `job` names a ready one (`ready_jobs.py`), whose options hold unless the table gives its own; `name` names
    the run. Everything else is an option of fio's allow-list.
    """
    if not isinstance(value, Mapping):
        raise ValueError('allowed is a table such as { job = "wal-append", size = "1 GB", runtime = "30 s" }')
    table = dict(value)
    ready, name = table.pop("job", None), table.pop("name", None)
    if ready is not None and not isinstance(ready, str):
        raise ValueError(
            f"job is one name, and does not vary; found {shown(ready)}: write a [[workload.job]] for each of them"
        )
    if ready is not None and ready not in READY_FIO_JOBS:
        raise ValueError(f"job {shown(ready)} is not known; ready are {', '.join(READY_FIO_JOBS)}")
    base: Mapping[str, Scalar] = READY_FIO_JOBS[ready].options if ready is not None else {}
    title = name if name is not None else ready if ready is not None else table.get("rw")
    if not isinstance(title, str) or not _NAME.fullmatch(title):
        raise ValueError("a job needs a name of 1 to 41 letters, digits, - and _")
    factors = {option: _levels(option, level) for option, level in table.items()}
    combinations = list(_combinations(factors))
    runs = [
        FioRun(_run_name(title, combination, factors), Levels({**base, **combination}))
        for combination in combinations
    ]
    reasons = [reason for run in runs for reason in _misfits(run.options)]
    if reasons:
        raise ValueError(joined(dict.fromkeys(reasons)))
    return tuple(runs)


def fio_run_specs(jobs: Sequence[tuple[FioRun, ...]], *, pg_test_fsync: bool = False) -> tuple[RunSpec, ...]:
    """The runs of all jobs in order, pg_test_fsync last; ValueError where two have one name."""
    specs = [RunSpec(run.name, "fio", run.options) for job in jobs for run in job]
    if pg_test_fsync:
        levels = Levels({"tool": PG_TEST_FSYNC, TEST_FSYNC_SECONDS: _TEST_FSYNC_S})
        specs.append(RunSpec(PG_TEST_FSYNC, "fio", levels))
    twice = sorted(name for name, count in Counter(spec.name for spec in specs).items() if count > 1)
    if twice:
        raise ValueError(f"two jobs are called {', '.join(twice)}; give each a name")
    return tuple(specs)


def _levels(option: str, value: object) -> tuple[Scalar, ...]:
    if isinstance(value, Mapping) and set(value) == {"vary"} and isinstance(value["vary"], list):
        levels = tuple(value["vary"])
        if not levels or len(set(map(repr, levels))) < len(levels):
            raise ValueError(f"fio option {shown(option)}: vary takes a list of different levels")
    else:
        levels = (value,)
    wrong = [level for level in levels if not isinstance(level, (str, int, float, bool))]
    if wrong:
        raise ValueError(
            f"fio option {shown(option)} takes one value, or {{ vary = [...] }}; found {shown(wrong[0])}"
        )
    return levels


def _combinations(factors: Mapping[str, tuple[Scalar, ...]]) -> Iterator[dict[str, Scalar]]:
    count = 1
    for levels in factors.values():
        count *= len(levels)
    if count > _MOST_JOBS:
        raise ValueError(f"the table comes to {count} jobs; allowed are {_MOST_JOBS}")
    for levels in product(*factors.values()):
        yield dict(zip(factors, levels, strict=True))


def _run_name(title: str, combination: Mapping[str, Scalar], factors: Mapping[str, Any]) -> str:
    words = [
        f"{option}-{re.sub('[^A-Za-z0-9]+', '', str(level))}"
        for option, level in combination.items()
        if len(factors[option]) > 1
    ]
    return "-".join([title, *words])


def _misfits(options: Levels) -> list[str]:
    words, reasons = fio_words(options)
    return reasons or fio_misfits(words)
