"""Cuts in order: what they must hold, and what the repair of a file system drops in them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.support.studies.planted_reasons import planted
from tests.support.studies.synthetic_power_cuts import RECIPE, RawCuts, controls, points_of, write_cut_visit
from tests.support.studies.synthetic_study import cells_of

from bedplate.cuts.points import read_cuts
from bedplate.cuts.records import PointOutcome, Profile
from bedplate.cuts.verdict import PowerCutVerdict, measured_durability, verdict_of
from bedplate.model import codec
from bedplate.model.device_cache import PROTECTED, VOLATILE_4K
from bedplate.model.durability import BOUNDED_LOSS, DURABLE, UNSAFE
from bedplate.model.reason import sentences
from bedplate.model.visit import Durability, RunRecord, VisitRecord

CELL = cells_of(RECIPE)[0]
DECLARED = Durability("durable", "durable", "declared", planted("flushes"))


def judged(path: Path, raw: RawCuts) -> PowerCutVerdict:
    run = write_cut_visit(path / "visit", raw)
    visit = codec.read(VisitRecord, path / "visit" / "visit.json")
    verdict = verdict_of(visit, codec.read(RunRecord, run / "record.json"), read_cuts(run))
    assert verdict is not None
    return verdict


def good(**changes: object) -> RawCuts:
    return replace(RawCuts(CELL, (*points_of({}), *controls())), **changes)  # type: ignore[arg-type]


def test_in_order_only_what_was_promised_must_hold(tmp_path: Path) -> None:
    points = (*points_of({Profile.ORDERED: PointOutcome.LOST}), *controls())
    for number, (promised, is_refused) in enumerate(
        ((DURABLE, True), (BOUNDED_LOSS, False), (UNSAFE, False), ("unknown", False))
    ):
        verdict = judged(
            tmp_path / str(number),
            good(points=points, durability=replace(DECLARED, protected_cache=promised)),
        )
        assert bool(verdict.refused) == is_refused, promised


def test_what_the_repair_drops_is_told_and_not_taken_for_a_broken_experiment(tmp_path: Path) -> None:
    cuts = points_of(dict.fromkeys(Profile, PointOutcome.DETECTED))
    unreplayed = tuple(replace(each, replay_failed=True) for each in cuts)
    verdict = judged(tmp_path / "all", good(points=(*unreplayed, *controls())))
    assert (verdict.refused, verdict.unreplayed) == ((), len(cuts))
    assert (UNSAFE, UNSAFE) == (verdict.cuts(VOLATILE_4K).shown, verdict.cuts(PROTECTED).shown)
    found = measured_durability(verdict, DECLARED)
    assert found is not None
    assert "protected cache: declared durable, measured unsafe" in sentences(found.reasons)
    assert any(
        f"after {len(cuts)} of {len(cuts)} cuts the repair could not replay" in each.sentence
        for each in found.reasons
    )
    # Where the journal is gone itself, there was nothing to replay.
    gone = replace(verdict, journal_lost=True)
    assert not any(
        "could not replay" in each.sentence for each in (measured_durability(gone, DECLARED) or found).reasons
    )
    # One whose journal was replayed, and that is bad in order all the same, is the experiment's fault as before.
    one = next(each for each in cuts if each.point.profile is Profile.ORDERED)
    mixed = (*(each for each in unreplayed if each.point.number != one.point.number), one)
    refused = judged(tmp_path / "mixed", good(points=(*mixed, *controls()))).refused
    assert any("1 of 1 cuts in order were bad" in reason.sentence for reason in refused), refused
