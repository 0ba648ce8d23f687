"""A run that is called as its workload: `bonnie` beside `bonnie-direct`. Who names it means it, and not all runs of the type."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.known_study import KNOWN, Place, known_study
from tests.support.studies.xfs_claim import xfs_claim
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.advice import advised
from bedplate.analysis.claims import Finding, judge_claims, parse_claims
from bedplate.analysis.comparison import ComparisonQuestion, answer
from bedplate.analysis.effects import study_effects
from bedplate.analysis.overview import Overview, overview
from bedplate.model.codec import read, write
from bedplate.model.figure import RunFigures
from bedplate.terminal.tables import show_tables

if TYPE_CHECKING:
    from pathlib import Path


def opposite(place: Place) -> float:
    """XFS has twice the tps of ext4 in `pgbench`, and half of it in `read-write`."""
    noise = math.exp(random.Random(f"{place.cell.id} {place.run} {place.repetition}").gauss(0, 0.01))
    if place.cell.filesystem.type != "xfs":
        return 1000.0 * noise
    return (2000.0 if place.run == "pgbench" else 500.0) * noise


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Overview:
    recipe = replace(KNOWN, runs=("pgbench", "read-write"))
    return overview(known_study(tmp_path_factory.mktemp("named") / "study", opposite, recipe))


@pytest.mark.parametrize(("run", "finding"), [("pgbench", Finding.HOLDS), ("read-write", Finding.FAILS)])
def test_a_claim_of_a_run_rests_on_that_run(found: Overview, run: str, finding: Finding) -> None:
    judged = judge_claims([found], [parse_claims(xfs_claim("at_least = 1.1", run=run))])
    assert [[finding]] == [[claim.finding for claim in file] for file in judged.judged]


def test_a_run_without_the_figure_is_not_replaced_by_another_of_its_type(tmp_path: Path) -> None:
    known = known_study(tmp_path / "study", opposite, replace(KNOWN, runs=("pgbench", "read-write")))
    for path in known.glob("visits/*/*/*/runs/*/run.json"):
        figures = read(RunFigures, path)
        if figures.run == "pgbench":
            write(
                path,
                replace(figures, figures=tuple(each for each in figures.figures if each.metric != "tps")),
            )
    found = overview(known)
    ((claim,),) = judge_claims([found], [parse_claims(xfs_claim("at_least = 1.1", run="pgbench"))]).judged
    assert Finding.NOT_MEASURED is claim.finding


def test_every_command_takes_the_run_alone(found: Overview, tmp_path: Path) -> None:
    question = ComparisonQuestion("type=ext4 barrier=yes", "type=xfs", "pgbench", ("tps",))
    assert {"pgbench"} == {each.asked.run[1] for each in answer([found], question).compared}
    assert {"pgbench"} == {
        each.asked.run[1] for each in study_effects(found, workload="pgbench", metrics=("tps",)).found
    }
    assert {"pgbench"} == {contest.run[1] for contest in advised(found, workloads=("pgbench",)).contests}
    shown = as_printed(show_tables([found.study.directory], workload="pgbench"))
    assert "read-write" not in shown
    # Where no run is called so it is the type, with all of its runs.
    plain = overview(
        known_study(tmp_path / "plain", opposite, replace(KNOWN, runs=("read-only", "read-write")))
    )
    assert {"read-only", "read-write"} == {each.asked.run[1] for each in answer([plain], question).compared}
    ((claim,),) = judge_claims([plain], [parse_claims(xfs_claim("at_least = 1.1", run="pgbench"))]).judged
    assert Finding.FAILS is claim.finding
