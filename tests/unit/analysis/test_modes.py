"""A run that was scheduled otherwise than its repetitions is marked, whichever mode is the usual one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.studies.planted_reasons import planted
from tests.support.studies.synthetic_study import Recipe, write_study

from bedplate.analysis.overview import Measurement, marked_by_mode, overview
from bedplate.model import codec
from bedplate.model.figure import RunFigures
from bedplate.model.metrics import figure
from bedplate.model.visit import Outcome, Validity
from bedplate.study.store import read_progress
from bedplate.terminal.tables import show_document

# As measured with 4 clients of 2 threads on 2 processors: 67,000 to 77,000 and 102,000 to 124,000 tps.
SLOW, FAST = (70_000.0, 0.95), (110_000.0, 0.55)


def run(
    tps: float, sleeps: float | None, *, wal_kib: float = 0.001, cell: str = "c", repetition: int = 1
) -> Measurement:
    rows = (
        figure("tps", tps),
        figure("client_sleeps_per_transaction", sleeps, reason=planted("not counted")[0]),
        figure("wal_kib_per_transaction", wal_kib),
    )
    return Measurement(
        cell=cell,
        dataset="d",
        run="read-only",
        repetition=repetition,
        attempt=1,
        order=repetition,
        canary=False,
        outcome=Outcome.COMPLETED,
        validity=Validity.VALID,
        reasons=(),
        by_metric={row.metric: row for row in rows},
    )


def suspect(*runs: Measurement) -> list[int]:
    return [number for number, m in enumerate(marked_by_mode(runs)) if m.validity is Validity.SUSPECT]


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([SLOW, SLOW, SLOW], []),
        ([SLOW, SLOW, FAST], [2]),
        ([FAST, SLOW, FAST, FAST], [1]),
        # Nothing tells which of two is the usual one.
        ([SLOW, FAST], [0, 1]),
        # A machine that was slower, and a client that slept otherwise and was as fast, are no other mode.
        ([SLOW, (60_000.0, 0.95), SLOW], []),
        ([SLOW, (70_000.0, 0.55), SLOW], []),
        ([SLOW, (110_000.0, None), SLOW], []),
    ],
)
def test_the_run_in_the_other_mode_is_marked(
    runs: list[tuple[float, float | None]], expected: list[int]
) -> None:
    assert expected == suspect(*(run(tps, sleeps) for tps, sleeps in runs))


def test_cells_are_not_held_against_each_other_and_writes_not_at_all() -> None:
    assert [] == suspect(run(*SLOW, cell="a"), run(*FAST, cell="b"))
    assert [] == suspect(run(*SLOW, wal_kib=0.5), run(*FAST, wal_kib=0.5))


def test_it_says_what_was_counted() -> None:
    slow, _, fast = marked_by_mode([run(*SLOW), run(*SLOW), run(*FAST)])
    assert () == slow.reasons
    (reason,) = fast.reasons
    assert "threads slept 0.55 times for each transaction, where the median is 0.95" in reason.sentence
    assert "110000 tps, where the median of 3 repetitions is 70000" in reason.sentence


def test_the_processors_changes_of_tasks_show_it_too() -> None:
    def switched(tps: float, switches: float) -> Measurement:
        row = figure("context_switches_per_transaction", switches)
        plain = run(tps, None)
        return replace(plain, by_metric={**plain.by_metric, row.metric: row})

    assert [2] == suspect(switched(70_000, 2.0), switched(71_000, 2.1), switched(110_000, 1.6))


def test_a_study_shows_the_mark(tmp_path: Path) -> None:
    study = write_study(
        tmp_path / "s",
        Recipe(filesystem_blocks=(None,), database_blocks=(8192,), runs=("read-only",), canaries=0),
    )
    for number, path in enumerate(sorted(study.glob("visits/*/*/*/runs/*/run.json"))):
        made = codec.read(RunFigures, path)
        tps, sleeps = FAST if number == 0 else SLOW
        kept = tuple(row for row in made.figures if row.metric not in ("tps", "wal_kib_per_transaction"))
        rows = (
            figure("tps", tps),
            figure("client_sleeps_per_transaction", sleeps),
            figure("wal_kib_per_transaction", 0.0),
        )
        codec.write(path, replace(made, figures=(*kept, *rows)))
    marked = [m for m in overview(study).measurements if m.validity is Validity.SUSPECT]
    assert 1 == len(marked) == read_progress(study).suspect
    assert "the scheduler ran it in another way" in json.dumps(show_document([study]))
