"""Verdicts of power cuts where the declared class stood before: tables, JSON, advice."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.studies.planted_reasons import planted
from tests.support.studies.synthetic_power_cuts import (
    DATASET,
    RECIPE,
    RawCuts,
    controls,
    power_cut_study,
    recorded_study,
)
from tests.support.studies.synthetic_study import cells_of, write_study
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.advice import advised
from bedplate.analysis.answer import headline, headline_lines
from bedplate.analysis.overview import CellFacts, Overview, overview
from bedplate.cuts.points import CutCounts
from bedplate.cuts.runs import bound_words, disagreement, durability_by_cuts, pooled, upper_share
from bedplate.export.tables import export
from bedplate.model.device_cache import VOLATILE_4K
from bedplate.model.visit import Durability
from bedplate.page.document import page_document
from bedplate.terminal.tables import show_document, show_tables
from bedplate.workloads.power_cut.page import power_cut_document, power_cut_rows


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return power_cut_study(tmp_path_factory.mktemp("cuts") / "study", refused="xfs")


@pytest.fixture(scope="module")
def found(study: Path) -> Overview:
    return overview(study)


def cell_of(found: Overview, panel: str) -> CellFacts:
    return next(cell for cell in found.cells.values() if cell.label.panel.startswith(panel))


def printed(study: Path, *, width: int = 80, workload: str | None = None, metric: str | None = None) -> str:
    return as_printed(show_tables([study], workload=workload, metric=metric), width)


def test_a_cell_whose_power_was_cut_has_the_measured_class(found: Overview) -> None:
    classes = {
        panel: (cell.durability.volatile_cache, cell.durability.protected_cache, cell.durability.basis)
        for panel in ("ext4 barrier", "ext4 nobarrier", "xfs", "btrfs")
        if (cell := cell_of(found, panel)).durability
    }
    assert classes == {
        "ext4 barrier": ("durable", "durable", "measured"),
        "ext4 nobarrier": ("unsafe", "durable", "measured"),
        "xfs": ("durable", "durable", "declared"),
        "btrfs": ("unsafe", "durable", "measured"),
    }
    assert cell_of(found, "btrfs").declared == Durability("durable", "durable", "declared")


def test_a_refused_verdict_is_told_and_changes_no_class(found: Overview) -> None:
    durability = cell_of(found, "xfs").durability
    assert durability is not None
    assert "power cuts: verdict refused: 0 of 6 controls were bad" in durability.reasons[-1].sentence


def test_the_terminal_shows_counts_with_their_bounds_and_says_measured(study: Path) -> None:
    text = printed(study)
    assert "Power cuts" in text
    assert "5 of 20, < 50 %" in text
    assert "5 of 10, < 82 %" in text
    assert "5 corrupt," in text
    # The time until the engine answered, by what it is: the column says it, the words beneath explain it.
    assert "after, s" in text
    assert "Back after: median time" in " ".join(text.split())
    assert "refused" in text
    assert "measured" in text
    assert "declared durable, measured unsafe" in text
    assert "safe " not in text.replace("unsafe", "")
    assert max(map(len, text.splitlines())) <= 80
    # A run of power cuts makes no transactions, and has no table of them.
    assert text.count("p99") == printed(study, workload="pgbench").count("p99")


@pytest.mark.parametrize("width", [66, 72, 79, 80, 120])
def test_a_bound_is_never_torn_at_a_usual_width(study: Path, width: int) -> None:
    lines = printed(study, width=width).splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip() == "Power cuts")
    end = next(i for i, line in enumerate(lines) if line.startswith("Cache: a volatile one"))
    table = "\n".join(lines[start:end])
    # Beside its count where the whole table fits so, else beneath it.
    assert ("0 of 20, < 17 %" in table) == (width >= 79)
    # With 4 KiB two of no bad cut and one of five; of ten cuts two of none with 512 bytes and four in order, one of five.
    assert [2, 1, 6, 1] == [len(re.findall(rf"< {bound} %", table)) for bound in ("17", "50", "31", "82")]
    assert 10 == table.count("<")
    assert max(map(len, lines)) <= width


def test_json_has_declared_and_measured_and_every_count(study: Path) -> None:
    (document,) = show_document([study])["studies"]
    cells = {cell["variant"]: cell for cell in document["cells"]}
    btrfs = cells["btrfs nodatacow"]
    assert (btrfs["durability"]["basis"], btrfs["declared"]["basis"]) == ("measured", "declared")
    (cuts,) = btrfs["power_cuts"]
    assert cuts["dataset"] == DATASET.id
    assert cuts["volatile"]["findings"] == {"ok": 15, "corrupt, detected": 5}
    assert cuts["volatile_512"]["findings"] == {"ok": 5, "corrupt, silent": 5}
    assert cuts["volatile"]["bad_share_high"] == pytest.approx(0.491, abs=1e-3)
    assert cuts["disagreement"] == "with a volatile cache declared durable, measured unsafe"
    assert cells["xfs"]["power_cuts"][0]["volatile_cache"] is None
    json.dumps(document, allow_nan=False)


def test_advice_takes_the_measured_class_and_says_where_it_differs(found: Overview) -> None:
    advice = advised(found)
    btrfs = cell_of(found, "btrfs").id
    assert advice.classes[btrfs] == "unsafe"
    assert not any(btrfs in contest.cells for contest in advice.contests)
    assert not any(contest.run[1] == "power-cut" for contest in advice.contests)
    assert advice.without == ()
    # xfs competes as durable, by a declaration that its own cuts could not be held against.
    assert cell_of(found, "xfs").id in [cell for contest in advice.contests for cell in contest.cells]
    lines = [(line.head, line.text) for line in headline_lines(headline(found, advice))]
    (refused,) = [
        text for head, text in lines if head == "Open" and text.startswith("xfs: power was cut, but")
    ]
    assert "there is no verdict: " in refused
    assert str(next(run for run in cell_of(found, "xfs").cuts).verdict.refused[0]) in refused
    # The share of its own cuts; what a protected cache keeps is no reason why a volatile one is unsafe.
    (unsafe,) = [text for head, text in lines if head == "Unsafe" and "btrfs" in text and "corrupt" in text]
    assert "btrfs nodatacow (5\N{NO-BREAK SPACE}of\N{NO-BREAK SPACE}10 cuts" in unsafe
    assert "0\N{NO-BREAK SPACE}of" not in unsafe


def test_a_recording_that_nothing_cut_says_why_and_no_loss_of_nought(tmp_path: Path) -> None:
    """Its footnote once stood below without a mark."""
    study = recorded_study(tmp_path / "study", [RawCuts(cells_of(RECIPE)[0], tuple(controls()))])
    rows = [re.split(r"  +", line.strip()) for line in printed(study, width=120).splitlines()]
    (row,) = (row for row in rows if row[0] == "ext4 barrier" and "refused" in row)
    assert ["ext4 barrier", "–", "–", "refused", "–", "–"] == row
    assert any(row[-1] == "[a,b]" for row in rows)
    (run,) = overview(study).measurements
    lost = run.figure("lost_transactions_max")
    assert lost is not None
    assert (None, "no such cut") == (lost.value, lost.reason and lost.reason.sentence)


def test_a_study_without_power_cuts_says_nothing_of_them(tmp_path: Path) -> None:

    plain = write_study(tmp_path / "plain", RECIPE)
    assert "Power cuts" not in printed(plain)
    assert "power_cuts" not in json.dumps(show_document([plain]))
    assert not any("power cut" in line.text for line in headline_lines(headline(overview(plain))))


def test_commits_that_do_not_wait_keep_what_was_declared_of_them(found: Overview) -> None:
    others = Durability("unsafe", "bounded loss", "declared")
    declared = Durability("durable", "durable", "declared", without_waiting=others)
    made = durability_by_cuts(declared, cell_of(found, "ext4 barrier").cuts)
    assert made is not None
    assert (made.basis, made.without_waiting) == ("measured", others)


def test_a_run_that_did_not_wait_lowers_what_cuts_of_other_transactions_measured(found: Overview) -> None:
    cuts = cell_of(found, "ext4 barrier").cuts
    (reason,) = planted("run own: 72 flushes of the device for 42410 transactions that wrote")
    refused = Durability("unknown", "unknown", "declared", (reason,), by_runs=(reason,))
    made = durability_by_cuts(refused, cuts)
    assert made is not None
    assert ("unknown", "unknown", (reason,)) == (made.volatile_cache, made.protected_cache, made.by_runs)
    assert reason in made.reasons
    # What was only declared of the same cell is replaced by what was measured.
    declared = durability_by_cuts(replace(refused, by_runs=()), cuts)
    assert declared is not None
    assert declared.volatile_cache != "unknown"


def test_recordings_of_one_cell_together_are_the_worst_of_them(found: Overview) -> None:
    runs = (*cell_of(found, "ext4 barrier").cuts, *cell_of(found, "btrfs").cuts)
    made = durability_by_cuts(None, runs)
    assert made is not None
    assert made.volatile_cache == "unsafe"
    assert bound_words(pooled(runs, VOLATILE_4K).drawn).startswith("5 of 40, < ")


@settings(deadline=None)
@given(st.integers(1, 5000), st.data())
def test_a_bound_is_never_rounded_down(cuts: int, data: st.DataObject) -> None:
    bad = data.draw(st.integers(0, cuts - 1))
    tally = CutCounts({"ok": cuts - bad, **({"loss": bad} if bad else {})})
    said = float(bound_words(tally).rpartition("< ")[2].removesuffix(" %"))
    high = upper_share(tally)
    assert high is not None
    assert 100 * high <= said + 1e-6
    assert said <= 100 * high * 1.1


@pytest.mark.parametrize(
    ("bad", "cuts", "words"),
    [
        (0, 150, "0 of 150, < 2.5 %"),
        (0, 72, "0 of 72, < 5 %"),
        (44, 45, "44 of 45, < 100 %"),
        (9, 9, "9 of 9"),
    ],
)
def test_bounds_in_words(bad: int, cuts: int, words: str) -> None:
    assert bound_words(CutCounts({"ok": cuts - bad, "loss": bad})) == words


def test_nothing_disagrees_with_what_is_only_declared() -> None:
    declared = Durability("durable", "durable", "declared")
    assert disagreement(declared, declared) is None
    assert disagreement(None, declared) is None
    assert disagreement(declared, Durability("unsafe", "durable", "measured")) == (
        "with a volatile cache declared durable, measured unsafe"
    )


def test_a_run_whose_points_are_gone_has_no_verdict(tmp_path: Path) -> None:
    study = power_cut_study(tmp_path / "study")
    for path in study.glob("visits/*/*/*/runs/*/recording.json"):
        path.unlink()
    again = overview(study)
    assert all(not cell.cuts for cell in again.cells.values())
    assert all(cell.durability and cell.durability.basis == "declared" for cell in again.cells.values())


def test_the_page_has_a_row_for_each_recording_and_what_its_pictures_need(found: Overview) -> None:
    rows = {row.cell.split(" ·")[0]: row for row in power_cut_rows([found])}
    assert [row.index for row in rows.values()] == [0, 1, 2, 3]
    assert {"refused"} == {cache.verdict for cache in rows["xfs"].caches}
    assert [("20 of 20", "20 loss"), ("10 of 10", "10 loss"), ("0 of 10, < 31 %",)] == [
        cache.drawn for cache in rows["ext4 nobarrier"].caches
    ]
    # Nothing tells what device the study had, so that the least is promised.
    assert ["volatile cache, 512-byte sectors"] == [cache.words for cache in rows["xfs"].caches if cache.fits]
    assert ("43", "150.5 ms") == (rows["ext4 nobarrier"].lost, rows["ext4 nobarrier"].lost_within)
    assert "controls: 6 of 6 bad" in rows["ext4 barrier"].notes
    drawn = power_cut_document([found])
    assert drawn is not None
    assert drawn[1]["caches"]["volatile-4k"] == {
        "drawn": [20, 20, 0.83157, 1.0],
        "class": "unsafe",
        "sought": [0, 0],
    }
    assert len(drawn[1]["lost"]) == 30
    assert drawn[0]["lost"] == []
    json.dumps(drawn, allow_nan=False)


def test_a_page_without_power_cuts_has_nothing_of_them(tmp_path: Path) -> None:
    plain = overview(write_study(tmp_path / "plain", RECIPE))
    assert power_cut_rows([plain]) == ()
    assert power_cut_document([plain]) is None


def test_every_cut_and_verdict_is_exported(study: Path, found: Overview, tmp_path: Path) -> None:
    export(study, tmp_path / "all.json")
    tables = json.loads((tmp_path / "all.json").read_text())
    assert set(tables) >= {"verdicts", "power_cuts"}
    verdicts = {row["cell"]: row for row in tables["verdicts"]}
    btrfs = verdicts[cell_of(found, "btrfs").id]
    assert (btrfs["declared_volatile"], btrfs["measured_volatile"]) == ("durable", "unsafe")
    assert (btrfs["volatile_bad"], btrfs["volatile_cuts"], btrfs["control_bad"]) == (5, 20, 6)
    assert (btrfs["volatile_512_bad"], btrfs["volatile_512_cuts"]) == (5, 10)
    assert (btrfs["volatile_512_sought_cuts"], btrfs["device_sector_bytes"]) == (0, None)
    assert verdicts[cell_of(found, "xfs").id]["measured_volatile"] is None
    cuts = [row for row in tables["power_cuts"] if row["cell"] == btrfs["cell"]]
    assert len(cuts) == 46
    assert sum(row["finding"] == "corrupt, silent" for row in cuts) == 5
    assert [row["control"] for row in cuts[-6:]] == [True] * 6
    written = export(study, tmp_path / "tables", ["csv"])
    assert {path.name for path in written} >= {"verdicts.csv", "power_cuts.csv"}


def test_the_page_says_of_every_class_whether_it_was_measured(found: Overview) -> None:
    told = [cell["durability"] for cell in page_document([found])["cells"]]
    assert told == [
        "durable, measured",
        "unsafe / durable, measured",
        "durable, verdict refused",
        "unsafe / durable, measured",
    ]


def test_a_bound_just_below_all_is_a_plain_number() -> None:
    assert bound_words(CutCounts({"ok": 1, "loss": 44})) == "44 of 45, < 100 %"
