"""A cut that was found bad makes a verdict, whatever else does not hold: one planted study, asked in every place that answers."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.support.studies.planted_reasons import planted
from tests.support.studies.study_readers import said_by_reader
from tests.support.studies.synthetic_power_cuts import (
    CONTROLS,
    RECIPE,
    RECORDING,
    RawCuts,
    controls,
    points_of,
    recorded_study,
)
from tests.support.studies.synthetic_study import cells_of

from bedplate.analysis.answer import fitted, headline, headline_lines
from bedplate.analysis.condition import cell_truth, exit_status, parse_condition
from bedplate.analysis.overview import overview
from bedplate.analysis.wording import durability_class
from bedplate.campaign.running import StudyOutcome
from bedplate.cuts.records import DEFAULT_PROFILES, RECORDING_FILE, PointOutcome, Profile, WeakerCut
from bedplate.errors import EXIT_CANNOT_TELL, EXIT_DONE, EXIT_SOME_RUNS_FAILED
from bedplate.model.device_cache import CACHES, PROTECTED, VOLATILE_4K
from bedplate.model.durability import DURABLE, UNKNOWN, UNSAFE
from bedplate.model.plan import Schedule
from bedplate.model.visit import Durability, Outcome
from bedplate.page.document import page_document
from bedplate.study.store import StudyStore

if TYPE_CHECKING:
    from pathlib import Path

CELL = next(cell for cell in cells_of(RECIPE) if cell.filesystem.type == "xfs")
# What its author says of an engine, in place of what flushes and settings would.
DURABLE_BY_README = Durability("durable", "durable", "declared", planted("its README says so"))
FEW = replace(RECORDING, flushes=3, all_flushes=40)
LOST_ALL = dict.fromkeys(DEFAULT_PROFILES, PointOutcome.LOST)
# Behind O_DIRECT without a flush what was written is there in order.
LOST_UNLESS_IN_ORDER = {**LOST_ALL, Profile.ORDERED: PointOutcome.OK}


def raw(bad: dict[Profile, PointOutcome], **changes: Any) -> RawCuts:
    planted_cuts = RawCuts(CELL, (*points_of(bad), *controls()), durability=DURABLE_BY_README)
    return replace(planted_cuts, **changes)


NEVER_SYNCED = {
    "append without a sync": raw(LOST_ALL, recording=replace(FEW, whole_log=PointOutcome.OK)),
    "a sync of the wrong file": raw(LOST_ALL, recording=replace(FEW, flushes=0, whole_log=PointOutcome.OK)),
    "O_DIRECT without a flush": raw(LOST_UNLESS_IN_ORDER, recording=FEW),
    "one commit in ten": raw({Profile.LOST: PointOutcome.LOST}, recording=replace(FEW, flushes=800)),
}

OTHERS = {
    "no control was bad": raw(
        LOST_UNLESS_IN_ORDER, points=(*points_of(LOST_UNLESS_IN_ORDER), *controls(PointOutcome.OK))
    ),
    "cuts are missing": raw(
        LOST_UNLESS_IN_ORDER, points=(*points_of(LOST_UNLESS_IN_ORDER, count=8), *controls())
    ),
    "the run died": raw(LOST_UNLESS_IN_ORDER, outcome=Outcome.FAILED),
    "the visit counted nothing": raw(LOST_UNLESS_IN_ORDER, flush_counts=()),
    "more flushes than in the visit": raw(
        LOST_UNLESS_IN_ORDER, flush_counts=RawCuts(CELL, ()).flush_counts[:0]
    ),
    "damaged in order, and whole uncut": raw(
        dict.fromkeys(DEFAULT_PROFILES, PointOutcome.SILENT),
        recording=replace(RECORDING, whole_log=PointOutcome.OK),
    ),
    "missing without any cut": raw(
        {},
        points=(),
        recording=replace(
            FEW,
            whole_log=PointOutcome.LOST,
            without_cut=("390 of 9523 acknowledged transactions are missing",),
        ),
    ),
}


def answers(study: Path) -> dict[str, Any]:
    """What each place says of the only cell."""
    found = overview(study)
    (facts,) = found.cells.values()
    conditions = {
        words: exit_status([cell_truth(parse_condition(words, of_cuts=True), found, facts.id)])
        for words in ("bad", "worse than promised", "unsafe")
    }
    page = page_document([found])
    code, text = said_by_reader(
        ("export", "{study}", "--cells", "class=durable", "-o", "{out}/none.csv"), study
    )
    _, advice = said_by_reader(("show", "{study}", "--advice", "--json"), study)
    said_by_reader(("export", "{study}", "-o", "{out}/all.json"), study)
    (row,) = json.loads((study.parent / "out" / "all.json").read_text())["verdicts"]
    return {
        "classes": {cache: durability_class(facts.durability, cache) for cache in CACHES},
        "conditions": conditions,
        "answer": "\n".join(fitted(headline_lines(headline(found)), columns=300, most=None)),
        "page": page["power_cuts"][0],
        "durable cells": (code, text),
        "advice": advice,
        "export": row,
    }


@pytest.mark.parametrize("name", [*NEVER_SYNCED, *OTHERS])
def test_what_was_found_bad_is_unsafe_in_every_place(tmp_path: Path, name: str) -> None:
    study = recorded_study(tmp_path / "study", [{**NEVER_SYNCED, **OTHERS}[name]])
    told = answers(study)
    assert UNSAFE == told["classes"][VOLATILE_4K]
    assert DURABLE not in (told["classes"][VOLATILE_4K], told["export"]["measured_volatile"])
    assert {"bad": 1, "worse than promised": 1, "unsafe": 1} == told["conditions"]
    assert "Unsafe" in told["answer"]
    assert not any(word in told["answer"] for word in ("Safe ", "refused", "suspect"))
    # Only of a run that died is more to be had.
    assert (name == "the run died") == ("--retry-failed" in told["answer"])
    assert [] == told["page"]["refused"]
    code, text = told["durable cells"]
    assert 0 != code
    assert "no cell has the durability class 'durable'" in text
    assert not told["export"]["refused"]
    assert "is as declared" not in told["advice"]


@pytest.mark.parametrize("name", NEVER_SYNCED)
def test_too_few_flushes_are_the_engines_and_one_sentence(tmp_path: Path, name: str) -> None:
    cuts = NEVER_SYNCED[name]
    told = answers(recorded_study(tmp_path / "study", [cuts]))
    bad = sum(record.outcome.is_bad for record in cuts.points) - CONTROLS
    assert cuts.recording is not None
    flushed = f"flushed {cuts.recording.flushes} times" if cuts.recording.flushes else "never flushed"
    sentence = f"it acknowledged 8,000 commits and {flushed}; {bad} of 40 cuts lost some"
    assert sentence in told["answer"]
    assert sentence == told["export"]["never_synced"]


def test_without_a_cut_what_is_missing_is_in_the_answer_and_the_exit_code(tmp_path: Path) -> None:
    study = recorded_study(tmp_path / "study", [OTHERS["missing without any cut"]])
    told = answers(study)
    assert "without any cut: 390 of 9523 acknowledged transactions are missing" in told["answer"]
    assert "known to be safe" not in told["answer"]
    # That of `run`, of which the study has no other fault; damage of a record is no finding.
    with StudyStore.open(study) as store:
        schedule = Schedule(7, 1, store.schedule.visits)
        assert (0, 1) == (store.unsuccessful(schedule), store.bad_without_cut(schedule))
        (recording,) = study.glob(f"visits/*/*/*/runs/*/{RECORDING_FILE}")
        recording.write_text("{")
        assert 0 == store.bad_without_cut(schedule)
    (plan, outcome) = (
        cast("Any", None),
        partial(StudyOutcome, study, failed=0, start=None, kernel_release=""),
    )
    assert EXIT_SOME_RUNS_FAILED == outcome(plan=plan, visits=1, bad_without_cut=1).exit_code
    assert EXIT_DONE == outcome(plan=plan, visits=1).exit_code


def test_too_few_flushes_without_a_bad_cut_promise_nothing(tmp_path: Path) -> None:
    told = answers(recorded_study(tmp_path / "study", [raw({}, recording=FEW)]))
    assert dict.fromkeys(CACHES, UNKNOWN) == told["classes"]
    assert {
        "bad": EXIT_CANNOT_TELL,
        "worse than promised": EXIT_CANNOT_TELL,
        "unsafe": EXIT_CANNOT_TELL,
    } == told["conditions"]
    assert "3 flushes were recorded for 8000 commits" in told["export"]["refused"]
    assert "Safe " not in told["answer"]


def test_a_recorder_that_never_saw_a_flush_condemns_nobody_and_leaves_no_promise(tmp_path: Path) -> None:
    """A queue that was set to write through sends none: then the cuts are those of another device."""
    blind = replace(RECORDING, flushes=0, all_flushes=0)
    told = answers(recorded_study(tmp_path / "study", [raw(LOST_ALL, recording=blind)]))
    assert dict.fromkeys(CACHES, UNKNOWN) == told["classes"]
    assert EXIT_CANNOT_TELL == told["conditions"]["bad"]
    assert told["export"]["refused"]


def test_behind_a_bad_cut_a_cache_that_none_cut_has_no_class_by_promise(tmp_path: Path) -> None:
    volatile = [each for each in points_of(LOST_ALL) if each.point.profile is not Profile.ORDERED]
    told = answers(recorded_study(tmp_path / "volatile", [raw({}, points=(*volatile, *controls()))]))
    assert (UNSAFE, UNKNOWN) == (told["classes"][VOLATILE_4K], told["classes"][PROTECTED])
    in_order = [each for each in points_of(LOST_ALL) if each.point.profile is Profile.ORDERED]
    whole = replace(RECORDING, whole_log=PointOutcome.OK)
    told = answers(
        recorded_study(tmp_path / "order", [raw({}, points=(*in_order, *controls()), recording=whole)])
    )
    assert (UNSAFE, UNSAFE) == (told["classes"][VOLATILE_4K], told["classes"][PROTECTED])


def test_a_cut_that_is_bad_without_tearing_is_laid_to_no_sector(tmp_path: Path) -> None:
    """A store that commits by unlink, then link: one cut of 40, drawn for sectors of 512 bytes, and bad in order too."""
    points = points_of({}, count=40)
    place = next(n for n, each in enumerate(points) if each.point.profile is Profile.SUBSET_512)
    torn = replace(points[place], outcome=PointOutcome.LOST, lost_transactions=12, lost_ms=40.0)
    whole = replace(RECORDING, whole_log=PointOutcome.OK)

    def asked(name: str, weaker: WeakerCut | None) -> dict[str, Any]:
        points[place] = replace(torn, weaker=weaker)
        study = recorded_study(tmp_path / name, [raw({}, points=(*points, *controls()), recording=whole)])
        for path in study.glob("visits/*/*/*/visit.json"):
            record = json.loads(path.read_text())
            record["device_facts"] = {"kind": "block device", "physical_block_size": 4096}
            path.write_text(json.dumps(record))
        return answers(study)

    told = asked("order", WeakerCut(Profile.ORDERED, PointOutcome.LOST, 12, 40.0))
    assert dict.fromkeys(CACHES, UNSAFE) == told["classes"]
    assert "Safe " not in told["answer"]
    assert "1 of 10 with 512-byte sectors" in told["answer"]
    told = asked("lost", WeakerCut(Profile.LOST, PointOutcome.LOST, 12, 40.0))
    assert (UNSAFE, DURABLE) == (told["classes"][VOLATILE_4K], told["classes"][PROTECTED])
    assert "1 cut made for a disk that loses more, bad on this one too" in told["answer"]
    # Where tearing alone makes it bad, sectors of 4 KiB are no worse for it, and the answer names it all the same.
    told = asked("torn", None)
    assert DURABLE == told["classes"][VOLATILE_4K]
    assert "Safe " not in told["answer"]
    assert "bad on a disk with 512-byte sectors: xfs (1 of 10 with 512-byte sectors)" in told["answer"]
