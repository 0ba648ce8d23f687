"""Comparisons over whole studies of which the truth is known."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.known_study import (
    KNOWN,
    Place,
    change_records,
    known_study,
    load_study,
    with_provenance,
)
from tests.support.studies.synthetic_study import HOSTILE, cells_of, with_barriers_of_xfs
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.comparison import (
    Compared,
    ComparisonAnswer,
    ComparisonQuestion,
    answer,
)
from bedplate.analysis.condition import Truth, exit_status, parse_condition, truth
from bedplate.analysis.overview import overview
from bedplate.errors import PlanError
from bedplate.statistics.comparison import Verdict
from bedplate.terminal.compare_tables import (
    closing_sentences,
    compare_document,
    compare_tables,
    condition_sentence,
    verdict_words,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


SPEED = {"ext4": 1000.0, "xfs": 1200.0, "btrfs": 1001.0}


def speed(place: Place) -> float:
    """XFS is a fifth faster than ext4, Btrfs is the same; a repetition slows all, a run scatters by 1 %."""
    noise = random.Random(f"{place.cell.id} {place.repetition} {place.canary}").gauss(0, 0.01)
    base = SPEED[place.cell.filesystem.type] * (1 + place.cell.build.block_size_bytes / 10000)
    if place.cell.filesystem.barrier is False:
        base *= 2
    return base * math.exp(noise) * 0.9**place.repetition


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return known_study(tmp_path_factory.mktemp("known") / "study", speed)


def ask(
    *studies: Path, baseline: str = "type=ext4 barrier=yes", contender: str, **more: object
) -> ComparisonAnswer:
    question = replace(ComparisonQuestion(baseline, contender), **more)  # type: ignore[arg-type]
    return answer([overview(path) for path in studies], question)


def only(found: ComparisonAnswer) -> Compared:
    (one,) = found.compared
    return one


def printed(found: ComparisonAnswer, condition: str | None = None) -> str:
    return as_printed(compare_tables(found, parse_condition(condition, margin=0.05) if condition else None))


def test_a_figure_of_the_visit_counts_once_whatever_its_runs(tmp_path: Path) -> None:
    study = load_study(tmp_path / "study", speed)
    found = ask(study, contender="type=xfs", metrics=("load_s",))
    pairs = len(found.matched.pairs)
    assert (pairs, pairs) == (len(found.compared), len(found.judged))
    assert {Verdict.FASTER} == {each.comparison.verdict for each in found.compared}
    # So it is beside the runs' own figures, and for one run alone.
    both = ask(study, contender="type=xfs", metrics=("tps", "load_s"))
    assert 3 * pairs == len(both.compared)
    alone = ask(study, contender="type=xfs", metrics=("load_s",), workload="read-write")
    assert [each.comparison for each in alone.compared] == [each.comparison for each in found.compared]
    document = compare_document(found)
    assert {None} == {each["run"] for each in document["comparisons"]}
    assert "pgbench scale 30: load_s" in printed(found)


def test_a_doubt_about_a_run_is_none_about_the_load(tmp_path: Path) -> None:
    study = load_study(tmp_path / "study", speed, doubted=("read-only",))
    for each in ask(study, contender="type=xfs", metrics=("load_s",)).compared:
        assert (0, 5) == (each.comparison.suspect, each.comparison.n)
    # With both in doubt the visit may be as well.
    study = load_study(tmp_path / "all", speed, doubted=("read-only", "read-write"))
    for each in ask(study, contender="type=xfs", metrics=("load_s",)).compared:
        assert (10, 0) == (each.comparison.suspect, each.comparison.n)


def test_verdicts_are_those_of_the_truth(study: Path) -> None:
    found = ask(study, contender="type=xfs")
    assert [Verdict.FASTER] * 2 == [each.comparison.verdict for each in found.compared]
    for each in found.compared:
        low, high = each.comparison.low, each.comparison.high
        assert low is not None
        assert high is not None
        assert low < 1.2 < high
    same = ask(study, contender="type=btrfs")
    assert ["same within 5 %"] * 2 == [verdict_words(each) for each in same.compared]
    back = ask(study, baseline="type=xfs", contender="type=ext4 barrier=yes")
    assert {Verdict.SLOWER} == {each.comparison.verdict for each in back.compared}


def test_what_a_repetition_does_to_all_takes_no_side(study: Path) -> None:
    """Every repetition is a tenth slower than the one before, which no interval of a ratio may show."""
    for each in ask(study, contender="type=xfs").compared:
        assert each.comparison.paired
        assert each.comparison.high is not None
        assert each.comparison.low is not None
        assert each.comparison.high / each.comparison.low < 1.1


def test_block_sizes_are_compared_within_each_variant(study: Path) -> None:
    found = ask(study, baseline="build.block_size=2k", contender="build.block_size=8k")
    assert 4 == len(found.compared)
    assert all(
        each.pair.baseline.levels["filesystem.type"] == each.pair.contender.levels["filesystem.type"]
        for each in found.compared
    )
    assert all(each.comparison.verdict is Verdict.FASTER for each in found.compared)


def test_two_repetitions_describe_and_do_not_judge(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed, replace(KNOWN, repetitions=2))
    found = ask(study, contender="type=xfs")
    assert () == found.judged
    assert {Verdict.CANNOT_TELL} == {each.comparison.verdict for each in found.compared}
    assert all(each.comparison.estimate and each.comparison.low is None for each in found.compared)
    assert "a verdict needs 3 repetitions" in printed(found)
    assert 125 == exit_status(truth(parse_condition("slower", margin=0.05), each) for each in found.compared)


def test_with_two_repetitions_a_range_is_called_one_and_the_way_to_a_verdict_is_told(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed, replace(KNOWN, repetitions=2))
    text = printed(ask(study, contender="type=xfs"))
    words = " ".join(text.split())
    assert "its interval" not in words
    assert "In brackets the smallest and the largest ratio of one repetition, which is no interval." in words
    assert "A verdict needs 3 repetitions and there are 2: `sudo ./bedplate run" in words
    assert "--repetitions 5` adds them." in words


def test_with_verdicts_intervals_are_called_so(study: Path) -> None:
    words = " ".join(printed(ask(study, contender="type=xfs")).split())
    assert "Below each ratio its interval." in words
    assert "In brackets" not in words


def test_suspect_runs_are_left_out_and_counted(tmp_path: Path) -> None:
    at = [cell.filesystem.type for cell in cells_of(KNOWN)].index("xfs")
    recipe = replace(KNOWN, suspect=((at, 1), (at, 2)))

    def lying(place: Place) -> float:
        trusted = place.cell.filesystem.type != "xfs" or place.repetition > 2
        return speed(place) * (1 if trusted else 0.1)

    found = ask(known_study(tmp_path / "study", lying, recipe), contender="type=xfs")
    assert [(3, 2), (5, 0)] == [(c.comparison.n, c.comparison.suspect) for c in found.compared]
    # The second cell has the same wild values, and no rule that speaks against them.
    assert [Verdict.FASTER, Verdict.CANNOT_TELL] == [c.comparison.verdict for c in found.compared]
    assert "2 values of suspect runs are no part" in " ".join(closing_sentences(found))
    assert "left out: 2 suspect runs" in printed(found)


def test_a_doubt_that_is_accepted_counts_and_is_told(tmp_path: Path) -> None:
    at = [cell.filesystem.type for cell in cells_of(KNOWN)].index("xfs")
    study = known_study(tmp_path / "study", speed, replace(KNOWN, suspect=((at, 1), (at, 2))))
    (doubts,) = {m.reasons for m in overview(study).measurements if m.reasons}
    found = ask(study, contender="type=xfs", accepted=(doubts[0].sentence[:20].upper(),))
    assert [(5, 0), (5, 0)] == [(c.comparison.n, c.comparison.suspect) for c in found.compared]
    assert "2 runs in doubt count here" in printed(found)
    by_code = ask(study, contender="type=xfs", accepted=(doubts[0].code,))
    assert [each.comparison for each in found.compared] == [each.comparison for each in by_code.compared]
    other = ask(study, contender="type=xfs", accepted=("the moon was full",))
    assert [(3, 2), (5, 0)] == [(c.comparison.n, c.comparison.suspect) for c in other.compared]


def test_identical_cells_are_said_to_be_and_not_compared(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed)
    change_records(
        study, lambda record: replace(record, effective_digest=f"{record.cell.build.block_size_bytes}")
    )
    found = ask(study, contender="type=xfs")
    assert all(each.identical and each.comparison.basis is None for each in found.compared)
    assert {"identical"} == {verdict_words(each) for each in found.compared}
    assert "one result, not two" in printed(found)
    # What is the same cannot be slower.
    assert 0 == exit_status(truth(parse_condition("slower", margin=0.05), each) for each in found.compared)


def test_no_verdict_between_kernels_that_no_factor_explains(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed)
    change_records(
        study,
        lambda record: with_provenance(
            record, {"kernel": "6.1" if record.cell.filesystem.type == "xfs" else "6.12"}
        ),
    )
    found = ask(study, contender="type=xfs")
    assert all(("kernel: 6.1, 6.12",) == each.incomparable for each in found.compared)
    assert {None} == {each.comparison.low for each in found.compared}
    assert all(each.comparison.estimate for each in found.compared)
    text = printed(found)
    assert "side by side, not comparable: kernel: 6.1, 6.12" in " ".join(text.split())
    assert "no verdict" in text
    assert "faster" not in text
    meant = ask(study, contender="type=xfs", factors=("kernel",))
    assert {Verdict.FASTER} == {each.comparison.verdict for each in meant.compared}


def test_builds_differ_where_the_block_size_is_a_factor_and_nowhere_else(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed)
    change_records(
        study, lambda record: with_provenance(record, {"build": f"b{record.cell.build.block_size_bytes}"})
    )
    assert all(
        not each.incomparable
        for each in ask(study, baseline="build.block_size=2k", contender="build.block_size=8k").compared
    )
    change_records(study, lambda record: with_provenance(record, {"build": record.cell.filesystem.type}))
    assert all(each.incomparable for each in ask(study, contender="type=xfs").compared)


def test_two_studies_are_judged_only_where_they_are_comparable(study: Path, tmp_path: Path) -> None:
    slower = known_study(tmp_path / "slower", lambda place: speed(place) * 0.5)
    filters = {"baseline": "study=study", "contender": "study=slower"}
    found = ask(study, slower, **filters)
    assert 8 == len(found.compared)
    assert all(each.pair.baseline.cell == each.pair.contender.cell for each in found.compared)
    assert not any(each.comparison.paired for each in found.compared)
    assert all(0.4 < (each.comparison.estimate or 0) < 0.6 for each in found.compared)
    assert "Two studies have no repetition in common" in " ".join(closing_sentences(found))
    change_records(slower, lambda record: with_provenance(record, {"machine": "other"}))
    change_records(study, lambda record: with_provenance(record, {"machine": "one"}))
    apart = ask(study, slower, **filters)
    assert all(("machine: one, other",) == each.incomparable for each in apart.compared)
    assert "slower beside study" in printed(apart)


def test_a_study_beside_another_one_keeps_its_pairs(study: Path, tmp_path: Path) -> None:
    other = known_study(tmp_path / "other", speed, replace(KNOWN, cells=with_barriers_of_xfs(KNOWN)))
    alone = ask(study, baseline="type=ext4", contender="type=xfs")
    beside = ask(study, other, baseline="type=ext4", contender="type=xfs")
    named = ask(study, other, baseline="study=study type=ext4", contender="study=study type=xfs")
    first, second, third = (
        [pair for pair in found.matched.pairs if pair.is_within_a_study] for found in (alone, beside, named)
    )
    assert len(first) > 0
    assert len(first) == len(second) == len(third)
    assert ("filesystem.barrier",) == alone.matched.one_sided
    assert "filesystem.barrier" in beside.matched.one_sided


def test_runs_that_are_measured_otherwise_are_not_compared(study: Path, tmp_path: Path) -> None:
    longer = known_study(tmp_path / "longer", speed, replace(KNOWN, course_s=3))
    found = ask(study, longer, baseline="study=study", contender="study=longer")
    assert all(
        ("duration_s of the run read-write: 2.0, 3.0",) == each.incomparable for each in found.compared
    )


def test_another_device_stack_is_no_verdict(study: Path, tmp_path: Path) -> None:
    real = known_study(tmp_path / "real", speed, replace(KNOWN, device_kind="block device"))
    found = ask(study, real, baseline="study=study", contender="study=real")
    assert all("device stack" in " ".join(each.incomparable) for each in found.compared)


def test_durability_that_differs_is_said(study: Path) -> None:
    found = ask(study, contender="type=ext4 barrier=no")
    assert {Verdict.FASTER} == {each.comparison.verdict for each in found.compared}
    text = " ".join(printed(found).split())
    assert "what survives a power cut differs: unsafe / durable beside durable" in text
    assert "not ranked by speed alone" in text


def test_all_verdicts_hold_together(study: Path) -> None:
    found = ask(
        study, baseline="barrier=yes", contender="type=xfs,btrfs", metrics=("tps", "latency_ms_p50", "tps_cv")
    )
    assert 12 >= len(found.judged) > 4
    assert len(found.judged) == len(found.confidences)
    for metric in ("tps", "latency_ms_p50", "tps_cv"):
        own = [each.comparison for each in found.judged if each.asked.metric == metric]
        (difference,) = {each.difference_confidence for each in own}
        told = sum(each.verdict in (Verdict.FASTER, Verdict.SLOWER) for each in own)
        # Of three figures all that scatter show a difference, and tps_cv is everywhere the same.
        assert difference == pytest.approx(0.95 if metric == "tps_cv" else 1 - 0.05 * told / len(own))
        assert (metric == "tps_cv") == (told == 0)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"contender": "type=ext4 barrier=yes"}, "mean the same cells"),
        ({"contender": "type=zfs"}, "nowhere 'zfs'"),
        ({"contender": "type=xfs", "workload": "tpch"}, "there are read-write"),
        ({"contender": "type=xfs", "metrics": ("speed",)}, "known are"),
        ({"contender": "type=xfs", "metrics": ("query_s",)}, "no run has a value of query_s; they have"),
        ({"contender": "type=xfs", "metrics": ("page_cache_hit_ratio",)}, "no run has a value of page_cache"),
        (
            {"baseline": "type=ext4 build.block_size=2k", "contender": "type=xfs barrier=yes"},
            "barrier is nowhere|no cell is all",
        ),
    ],
)
def test_a_question_that_names_nothing_is_refused(study: Path, more: dict[str, object], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        ask(study, **more)  # type: ignore[arg-type]


def test_figures_that_are_absent_on_one_side_are_told(tmp_path: Path) -> None:
    study = known_study(
        tmp_path / "study", lambda place: None if place.cell.filesystem.type == "xfs" else speed(place)
    )
    found = ask(study, contender="type=xfs")
    assert all(each.comparison.reasons == ("one side has no run with a value",) for each in found.compared)
    assert 125 == exit_status(truth(parse_condition("slower", margin=0.05), each) for each in found.compared)
    assert "–" in printed(found)


def lines_of(found: ComparisonAnswer) -> Sequence[str]:
    return printed(found, "slower 5%").splitlines()


def test_the_table_fits_into_80_columns_and_says_what_it_shows(study: Path) -> None:
    found = ask(study, contender="type=xfs,btrfs")
    assert max(map(len, lines_of(found))) <= 80
    text = " ".join(" ".join(lines_of(found)).split())
    for word in (
        "read-write: tps",
        "faster",
        "same within 5 %",
        "xfs fs 4k db 2k",
        "ext4 barrier fs 4k db 2k",
        "Image file",
    ):
        assert word in text
    assert "slower 5 %: does not hold 4 of 4; exit code 0" in text


def test_the_document_is_json_with_the_same_verdicts(study: Path) -> None:
    found = ask(study, contender="type=xfs")
    condition = parse_condition("faster 10%", margin=0.05)
    document = json.loads(json.dumps(compare_document(found, condition), allow_nan=False))
    assert ["faster", "faster"] == [each["verdict"] for each in document["comparisons"]]
    assert ["holds", "holds"] == [each["condition"] for each in document["comparisons"]]
    assert (1, 2, 2) == (document["condition"]["exit_status"], document["verdicts"], document["judged"])
    first = document["comparisons"][0]
    assert first["low"] < first["estimate"] < first["high"]
    assert ("ext4", "xfs") == (first["baseline"]["cell"][:4], first["contender"]["cell"][:3])
    assert "exit code 1" in condition_sentence(found, condition)


def test_markup_in_names_is_printed_not_obeyed(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", lambda place: 1000.0, replace(KNOWN, hostile=True))
    assert HOSTILE[:10] in printed(ask(study, baseline="xfs", contender="type=ext4 barrier=no"))


def test_a_condition_holds_fails_and_cannot_be_told(study: Path) -> None:
    faster = ask(study, contender="type=xfs").compared[0]
    told = {
        text: truth(parse_condition(text, margin=0.05), faster)
        for text in ("faster", "faster 20%", "faster 40%", "slower 1%")
    }
    assert {
        "faster": Truth.HOLDS,
        "faster 20%": Truth.CANNOT_TELL,
        "faster 40%": Truth.FAILS,
        "slower 1%": Truth.FAILS,
    } == told


def test_where_values_are_missing_no_repetitions_are_offered(tmp_path: Path) -> None:
    """There are five, and of the same kind more would lack the same."""
    no_value = lambda place: None if place.cell.filesystem.type == "xfs" else speed(place)  # noqa: E731
    study = known_study(tmp_path / "study", no_value)
    text = " ".join(printed(ask(study, contender="type=xfs")).split())
    assert "A verdict needs 3 repetitions and there are 0 in which both sides have a trusted value." in text
    assert "extend" not in text
