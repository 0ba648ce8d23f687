"""Advice over studies of which the truth is known: what leads, what is ruled out, what is not said."""

from __future__ import annotations

import json
import math
import random
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.studies.known_study import KNOWN, Place, change_records, known_study, with_provenance
from tests.support.studies.synthetic_study import HOSTILE, cells_of
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.advice import (
    Advised,
    Contest,
    RankedCell,
    Standing,
    advised,
    objectives_of,
    ranking,
)
from bedplate.analysis.answer import beside_words, fitted, headline, headline_lines, short_names
from bedplate.analysis.overview import overview
from bedplate.analysis.wording import durability_class
from bedplate.errors import PlanError
from bedplate.model.codec import read, write
from bedplate.model.device_cache import PROTECTED
from bedplate.model.figure import RunFigures
from bedplate.model.metrics import censored, figure
from bedplate.model.plan import NotWorse
from bedplate.model.visit import Durability, VisitRecord
from bedplate.statistics.comparison import Verdict
from bedplate.terminal.advice_tables import advice_document, advice_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

SPEED = {"ext4": 1000.0, "xfs": 1200.0, "btrfs": 1001.0}


def speed(place: Place) -> float:
    """XFS is a fifth faster than ext4 and Btrfs, without barriers ext4 twice as fast; a run scatters by 1 %."""
    noise = random.Random(f"{place.cell.id} {place.repetition}").gauss(0, 0.01)
    base = SPEED[place.cell.filesystem.type] * (1 + place.cell.build.block_size_bytes / 10000)
    return base * (2 if place.cell.filesystem.barrier is False else 1) * math.exp(noise)


def with_figures(study: Path, more: Callable[[str, int], Mapping[str, float]]) -> Path:
    """Give every run figures more, by file system type and repetition, in place of those of their names."""
    for path in study.glob("visits/*/*/*/runs/*/run.json"):
        record = read(VisitRecord, path.parents[2] / "visit.json")
        values = more(record.cell.filesystem.type, record.key.repetition)
        run = read(RunFigures, path)
        kept = tuple(each for each in run.figures if each.metric not in values)
        write(path, replace(run, figures=(*kept, *(figure(name, value) for name, value in values.items()))))
    return study


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return known_study(tmp_path_factory.mktemp("advice") / "study", speed)


def ask(study: Path, **more: object) -> Advised:
    return advised(overview(study), **more)  # type: ignore[arg-type]


def only(found: Advised) -> Contest:
    (one,) = found.contests
    return one


def standings(found: Advised) -> dict[tuple[str, int], Standing]:
    """By file system type and database block, of a study without barriers as a factor in the class."""
    contest = only(found)
    cells = found.overview.study.schedule.cells
    return {
        (cells[cell].filesystem.type, cells[cell].build.block_size_bytes): standing
        for cell, standing in zip(contest.cells, contest.standings, strict=True)
    }


def said(found: Advised) -> str:
    """All lines of the answer."""
    return " ".join(fitted(headline_lines(headline(found.overview, found)), columns=2000, most=None))


def row_of(found: Advised, kind: str) -> RankedCell:
    """The first of this type in the table."""
    cells = found.overview.study.schedule.cells
    return next(row for row in ranking(found, only(found)) if cells[row.cell].filesystem.type == kind)


def document_of(found: Advised) -> dict[str, Any]:
    return advice_document(headline(found.overview, found))


def printed(found: Advised) -> str:
    return as_printed(advice_tables(headline(found.overview, found)))


def test_the_fastest_leads_within_its_class_and_the_unsafe_do_not_compete(study: Path) -> None:
    found = ask(study)
    assert ("durable", 6) == (only(found).durability, len(only(found).cells))
    best = standings(found)
    assert Standing.LEADING is best["xfs", 8192]
    assert [("xfs", 8192)] == [cell for cell, own in best.items() if own is Standing.LEADING]
    assert re.search(r"Unsafe +ext4 nobarrier [^:]*: 0 flushes in 64 appending fsyncs", said(found))
    assert not any("nobarrier" in row.cell for row in ranking(found, only(found)))


def test_with_a_protected_cache_all_compete(study: Path) -> None:
    found = ask(study, cache=PROTECTED)
    assert 8 == len(only(found).cells)
    assert re.search(r"^Take +ext4 nobarrier db 8k", said(found))
    assert "Unsafe" not in said(found)


def test_a_class_is_asked_for_by_name(study: Path) -> None:
    found = ask(study, durability="unsafe")
    assert ("unsafe", 2) == (only(found).durability, len(only(found).cells))
    # Nobody is told to take what may lose data.
    assert re.search(r"^Fastest +ext4 nobarrier db 8k: .* the best of 2 unsafe cells\.", said(found))
    assert "Take" not in said(found)
    with pytest.raises(
        PlanError, match="no cell is bounded loss with a volatile cache; there are durable, unsafe"
    ):
        ask(study, durability="bounded loss")
    with pytest.raises(PlanError, match="is no class"):
        ask(study, durability="quick")
    with pytest.raises(PlanError, match="no run is called 'tpch'; there are read-write"):
        ask(study, workloads=("tpch",))


def test_a_commit_that_does_not_wait_counts_as_the_least_that_is_promised() -> None:
    promise = Durability(
        "durable", "durable", "declared", (), Durability("bounded loss", "durable", "declared")
    )
    assert ("bounded loss", "durable") == (
        durability_class(promise, "volatile"),
        durability_class(promise, PROTECTED),
    )
    assert "unknown" == durability_class(None, PROTECTED)


def small_btrfs(kind: str, repetition: int) -> dict[str, float]:
    """Btrfs takes half the space, and XFS has twice ext4's p99."""
    share = 0.5 if kind == "btrfs" else 1.0
    return {
        "database_mib": 400 * share,
        "wal_mib": 100 * share + 0.01 * repetition,
        "latency_ms_p99": (40.0 if kind == "xfs" else 20.0) + 0.01 * repetition,
        "device_written_kib_per_transaction": 12.0 + 0.01 * repetition,
    }


def test_the_figure_that_the_run_is_about_ranks_and_the_others_say_what_that_costs(tmp_path: Path) -> None:
    found = ask(with_figures(known_study(tmp_path / "study", speed), small_btrfs))
    heads = [each.head for each in only(found).objectives]
    assert ["tps", "p99", "cv of tps", "space", "written"] == heads
    best = standings(found)
    assert {("xfs", 8192)} == {c for c, own in best.items() if own is Standing.LEADING}
    assert {Standing.RULED_OUT} == {own for c, own in best.items() if c != ("xfs", 8192)}
    space = next(each for each in only(found).objectives if each.head == "space")
    cell = only(found).cells[0]
    assert 500.0 < (found.summary(only(found), space, cell).centre or 0) < 501


def test_a_figure_that_may_not_be_worse_rules_out_what_is_and_leaves_open_what_may_be(tmp_path: Path) -> None:
    """The plan's first cell is ext4: XFS has twice its p99, and of Btrfs that scatters too far."""

    def figures(kind: str, repetition: int) -> dict[str, float]:
        scattered = 20.0 * (1 + 0.3 * (repetition % 2)) if kind == "btrfs" else 0.0
        own = small_btrfs(kind, repetition)
        return own | ({"latency_ms_p99": scattered} if scattered else {})

    def alike(place: Place) -> float:
        return 1000 * math.exp(random.Random(f"{place.cell.id} {place.repetition}").gauss(0, 0.01))

    study = with_figures(known_study(tmp_path / "study", alike), figures)
    limit = NotWorse("latency_ms_p99", 0.1)
    assert {Standing.LEADING} == set(standings(ask(study)).values())
    found = ask(study, not_worse=(limit,))
    by_type = {(kind, own) for (kind, _), own in standings(found).items()}
    assert {("ext4", Standing.LEADING), ("xfs", Standing.RULED_OUT), ("btrfs", Standing.OPEN)} == by_type
    names = short_names(found.overview)
    worse, scattered = (
        beside_words(row_of(found, kind), names).replace("\N{NO-BREAK SPACE}", " ")
        for kind in ("xfs", "btrfs")
    )
    assert re.fullmatch(r"p99 ×(2\.00|1\.99\d*) \(.*\) of ext4 barrier db 2k; 10 % worse is allowed", worse)
    assert scattered.startswith("p99 ×1.")
    # What is within its limit goes before what may not be.
    assert re.search(r"Take +ext4", said(found))
    cells = document_of(found)["contests"][0]["cells"]
    assert {None, 0.1} == {each["limit"] and each["limit"]["share"] for each in cells}
    for wrong, words in (
        (NotWorse("load_s", 0.1), "--not-worse load_s: no run ranks its cells by another figure"),
        (NotWorse("tps", 0.1), "--not-worse tps"),
        (NotWorse("latency_ms_p99", 1.5), "expected a share between 0 and 100 %, found 1.5"),
    ):
        with pytest.raises(PlanError, match=re.escape(words)):
            ask(study, not_worse=(wrong,))


def test_a_p99_that_scatters_keeps_no_cell_open(tmp_path: Path) -> None:
    def figures(kind: str, repetition: int) -> dict[str, float]:
        noise = random.Random(f"{kind} {repetition}").gauss(0, 1)
        return {"latency_ms_p99": 20 * math.exp(noise)}

    found = ask(with_figures(known_study(tmp_path / "study", speed), figures))
    assert 5 == sum(own is Standing.RULED_OUT for own in standings(found).values())


def test_hardly_anything_written_is_no_objective(tmp_path: Path) -> None:
    known = known_study(tmp_path / "study", speed)
    study = with_figures(known, lambda *_: {"device_written_kib_per_transaction": 0.02})
    found = overview(study)
    assert "written" not in [each.head for each in objectives_of(found, found.runs[0])]


def test_two_repetitions_describe_and_recommend_nothing(tmp_path: Path) -> None:
    found = ask(known_study(tmp_path / "study", speed, replace(KNOWN, repetitions=2)))
    assert (0, 0, ()) == (found.judged, found.verdicts, only(found).cells)
    text = " ".join(printed(found).split())
    assert "2 trusted repetitions show a figure, not a difference; a verdict needs at least 3" in text
    assert {"2 trusted runs, a verdict needs 3"} == {row.why_not for row in ranking(found, only(found))}
    assert "not judged" in text
    assert "best mean" not in text
    document = document_of(found)
    assert [False] == [each["judged"] for each in document["contests"]]
    assert [] == document["contests"][0]["not_ruled_out"]


def test_noise_recommends_nobody_alone_and_says_what_would_tell(tmp_path: Path) -> None:
    def noisy(place: Place) -> float:
        return 1000.0 * math.exp(random.Random(f"{place.cell.id} {place.repetition}").gauss(0, 0.2))

    noise = random.Random(3)
    study = with_figures(
        known_study(tmp_path / "study", noisy),
        lambda *_: {"latency_ms_p99": 20.0 * math.exp(noise.gauss(0, 0.2))},
    )
    found = ask(study)
    assert [Standing.LEADING] * 6 == list(standings(found).values())
    assert "none of 6 durable cells is shown better" in said(found)
    assert "Or      not distinguished from" in said(found)
    assert re.search(
        r"Next +(\d+ more repetitions? .* should show whether|no number of repetitions)", said(found)
    )


def test_every_standing_is_borne_by_its_interval(study: Path) -> None:
    found = ask(study)
    first, *rows = ranking(found, only(found))
    assert (Standing.LEADING, None) == (first.standing, first.evidence)
    assert 5 == len(rows)
    for row in rows:
        assert row.evidence is not None
        assert (first.cell, row.cell) == (row.evidence.baseline, row.evidence.contender)
        comparison = row.evidence.comparison
        assert (row.standing is Standing.RULED_OUT) is (comparison.verdict is Verdict.SLOWER)
        assert only(found).confidences[0].difference == comparison.confidence
        assert comparison.low is not None


def test_cells_that_are_the_same_in_force_compete_once(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed)
    change_records(
        study,
        lambda record: replace(
            record,
            effective_digest=(
                "one"
                if record.cell.filesystem.type in ("ext4", "btrfs")
                and record.cell.filesystem.barrier is not False
                else record.cell.id
            ),
        ),
    )
    found = ask(study)
    assert 3 == len(only(found).cells)
    assert [3] == [len(others) for others in only(found).same_as.values() if others]
    (document,) = document_of(found)["contests"]
    assert [3] == [len(each["same_in_force_as"]) for each in document["cells"] if each["same_in_force_as"]]


def test_other_surroundings_are_not_compared(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed)
    change_records(
        study,
        lambda record: with_provenance(
            record, {"kernel": "6.1" if record.cell.filesystem.type == "xfs" else "6.12"}
        ),
    )
    found = ask(study)
    assert 2 * 4 == only(found).incomparable
    assert "8 pairs of cells were measured in other surroundings" in " ".join(printed(found).split())
    # No interval leaves out equality beside words that say that nothing is told.
    row = row_of(found, "ext4")
    assert row.evidence is not None
    assert (None, Verdict.CANNOT_TELL) == (row.evidence.comparison.low, row.evidence.comparison.verdict)
    best = standings(found)
    # Btrfs may be behind ext4, which has its kernel; XFS leads beside both, as nothing is held against it.
    assert {"ext4", "xfs"} <= {kind for (kind, _), own in best.items() if own is Standing.LEADING}
    kinds = [found.overview.study.schedule.cells[cell].filesystem.type for cell in only(found).cells]
    for kind, ahead in zip(kinds, only(found).ahead, strict=True):
        assert all((kinds[other] == "xfs") == (kind == "xfs") for other in ahead)


def test_cells_with_too_few_trusted_runs_are_to_be_measured_and_not_judged(tmp_path: Path) -> None:
    recipe = replace(KNOWN, repetitions=3, suspect=((0, 1),), failed=((1, 2),), missing=((4, 3),))
    found = ask(known_study(tmp_path / "study", speed, recipe))
    assert 3 == len(only(found).left_out)
    assert 3 == len(only(found).cells)
    rows = ranking(found, only(found))
    assert ["2 trusted runs, a verdict needs 3"] * 3 == [row.why_not for row in rows[3:]]
    assert {None} == {row.standing for row in rows[3:]}
    for part in ("1 run failed", "--retry-failed", "1 run is still due", "1 of 22 completed runs is suspect"):
        assert part in said(found)


def test_a_run_that_was_stopped_at_a_limit_is_not_taken_for_a_missing_one(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed)
    for path in study.glob("visits/xfs*/*/*/runs/*/run.json"):
        run = read(RunFigures, path)
        kept = tuple(each for each in run.figures if each.metric != "tps")
        write(path, replace(run, figures=(*kept, censored("tps", 10.0, phase="measure", item=""))))
    found = ask(study)
    assert {"xfs"} == {
        found.overview.study.schedule.cells[cell].filesystem.type for cell in only(found).left_out
    }
    row = row_of(found, "xfs")
    assert row.standing is None
    assert "0 trusted runs, a verdict needs 3; 5 stopped at a limit" in row.why_not
    assert not re.search(r"Take +xfs", said(found))


def test_a_class_that_nobody_has_is_said_to_be_empty(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed)
    change_records(study, lambda record: replace(record, durability=None))
    found = ask(study)
    assert () == found.contests
    assert "Not yet  read-write: no cell is known to survive a power cut, so take none." in said(found)
    assert re.search(r"Open +ext4 nobarrier db 8k .* are not known to survive a power cut", said(found))
    assert 8 == len(only(ask(study, durability="unknown")).cells)


def test_the_table_fits_into_80_columns_with_all_figures(tmp_path: Path) -> None:
    study = with_figures(
        known_study(tmp_path / "study", lambda place: 100 * speed(place)),
        lambda *_: {
            "database_mib": 123456.0,
            "wal_mib": 1024.0,
            "device_written_kib_per_transaction": 1234.5,
            "latency_ms_p99": 12345.6,
        },
    )
    lines = printed(ask(study)).splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    for word in (
        "Image file",
        "durable with a volatile cache",
        "take this one",
        "shown worse",
        "124,500",
        "95 % interval",
    ):
        assert word in text


def test_the_document_is_json_and_says_the_same(study: Path) -> None:
    found = ask(study)
    document = json.loads(json.dumps(document_of(found), allow_nan=False))
    (contest,) = document["contests"]
    leading = [each["label"] for each in contest["cells"] if each["standing"] == "leading"]
    assert ["xfs fs 4k db 8k"] == leading
    assert (found.judged, found.verdicts) == (document["judged"], document["verdicts"])
    behind = [each for each in contest["cells"] if each["standing"] != "leading"]
    assert all(each["behind"] for each in behind)
    cited = [each["beside"] for each in behind]
    assert all(proof["low"] <= proof["estimate"] <= proof["high"] for proof in cited)
    assert {"unsafe"} == {
        each["class"] for each in document["durability"].values() if "nobarrier" in each["label"]
    }


def test_markup_in_names_is_printed_not_obeyed(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed, replace(KNOWN, hostile=True))
    assert HOSTILE[:10] in printed(ask(study))


def test_steadiness_is_the_same_within_a_share_of_it_and_not_within_points(tmp_path: Path) -> None:
    steady = {"xfs": 0.019, "ext4": 0.066, "btrfs": 0.0665}
    study = with_figures(
        known_study(tmp_path / "study", speed),
        lambda kind, repetition: {"tps_cv": steady[kind] * (1 + 0.001 * (repetition % 2))},
    )
    found = ask(study)
    contest = only(found)
    place = [each.metric.name for each in contest.objectives].index("tps_cv")
    cells = found.overview.study.schedule.cells
    row = {cells[cell].filesystem.type: number for number, cell in enumerate(contest.cells)}
    assert contest.better[place, row["xfs"], row["ext4"]]
    assert not contest.same[place, row["xfs"], row["ext4"]]
    assert contest.same[place, row["ext4"], row["btrfs"]]


def test_cells_that_differ_in_size_alone_are_not_told_apart_in_speed(tmp_path: Path) -> None:
    noise = random.Random(5)
    study = with_figures(
        known_study(tmp_path / "study", lambda _: 1000 * math.exp(noise.gauss(0, 0.04))),
        lambda kind, _: {
            "latency_ms_p99": 20.0 * math.exp(noise.gauss(0, 0.1)),
            "tps_cv": 0.1 * math.exp(noise.gauss(0, 0.2)),
            "database_mib": {"xfs": 100.0, "ext4": 120.0, "btrfs": 150.0}[kind],
        },
    )
    found = ask(study)
    contest = only(found)
    told = dict(
        zip(
            [each.head for each in contest.objectives],
            [bool(each.any()) for each in contest.better],
            strict=True,
        )
    )
    assert {"tps": False, "p99": False, "cv of tps": False, "space": True} == told


def test_a_cell_that_is_alone_in_its_class_is_said_to_be(tmp_path: Path) -> None:
    """Of two that are the same in force one takes part, and neither is alone."""
    one = next(cell for cell in cells_of(KNOWN) if cell.filesystem.type == "xfs")
    study = known_study(tmp_path / "alone", speed, replace(KNOWN, cells=(one,)))
    assert "no other cell is durable." in said(ask(study))
    other = replace(one, filesystem=replace(one.filesystem, mount_options=("noatime",)))
    study = known_study(tmp_path / "alike", speed, replace(KNOWN, cells=(one, other)))
    change_records(study, lambda record: replace(record, effective_digest="the same"))
    assert re.search(r"no other cell is durable but xfs.*, effectively the same\.", said(ask(study)))
