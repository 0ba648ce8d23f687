"""The answer where some cells have too few trusted runs for a verdict: a better one may be among them, and so may the default."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from tests.support.studies.known_study import Place, change_records, known_study, with_provenance
from tests.support.studies.planted_reasons import planted
from tests.support.studies.synthetic_study import MACHINE, Recipe, write_changed_study

from bedplate.analysis.answer import (
    Answered,
    NotTakenFor,
    StepKind,
    cell_names,
    fitted,
    headline,
    headline_lines,
)
from bedplate.analysis.mail import mail_text
from bedplate.analysis.overview import Overview, overview
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, DeviceLevels, FilesystemLevels, KernelLevels
from bedplate.model.machine import NodeFacts
from bedplate.model.visit import Durability, Outcome, Validity
from bedplate.terminal.advice_tables import advice_document, advice_tables

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.model.figure import RunFigures
    from bedplate.model.plan import ScheduledVisit
    from bedplate.model.visit import VisitRecord

SPEED = {"ext4": 1000.0, "xfs": 1100.0, "btrfs": 2000.0}
KINDS = tuple(SPEED)
CELLS = tuple(
    Cell(DeviceLevels(), KernelLevels(), FilesystemLevels(kind), BuildLevels(), ClusterLevels())
    for kind in KINDS
)


def speed(place: Place) -> float:
    noise = random.Random(f"{place.cell.id} {place.repetition}").gauss(0, 0.01)
    return SPEED[place.cell.filesystem.type] * math.exp(noise)


RECIPE = Recipe(cells=CELLS, runs=("read-write",), repetitions=5, course_s=2, canaries=0)


def doubted(place: Path, kind: str) -> Overview:
    """Three of five runs of one cell are suspect."""
    suspect = tuple((KINDS.index(kind), number) for number in (1, 2, 3))
    return overview(known_study(place / "study", speed, replace(RECIPE, suspect=suspect)))


def words_of(found: Overview) -> str:
    return " ".join(fitted(headline_lines(headline(found)), columns=500, most=None))


def test_the_best_is_said_of_the_cells_that_are_judged_and_the_others_are_named(tmp_path: Path) -> None:
    """Btrfs is twice as fast in the two runs that are left of it, and no verdict is about them."""
    found = doubted(tmp_path, "btrfs")
    own = headline(found).answers[0]
    assert own.taken is not None
    assert (Answered.LEADS, CELLS[1].id, 2) == (own.answered, own.taken.cell, own.cells)
    assert [(NotTakenFor.TOO_FEW, (CELLS[2].id,))] == [(each.why, each.cells) for each in own.not_taken]
    words = words_of(found)
    assert "the best of 2 durable cells" in words
    named = (
        r"Open +btrfs \((1,9|2,0)\d\d tps, looks better\) is not judged: 2 trusted runs, a verdict needs 3\."
    )
    assert re.search(named, words)
    text = mail_text(headline(found))
    rows = re.findall(r"^(\w+) +(take|worse|not judged) ", text, re.MULTILINE)
    assert [("xfs", "take"), ("ext4", "worse"), ("btrfs", "not judged")] == rows
    assert "all are durable" in " ".join(text.split())


def test_why_nothing_is_said_of_the_default_is_the_reason(tmp_path: Path) -> None:
    found = doubted(tmp_path, "ext4")
    assert "default is not known: ext4 is not judged here." in words_of(found)
    machine = replace(found.study.machine, distribution="Fedora Linux 41")
    elsewhere = replace(found, study=replace(found.study, machine=machine))
    assert "default is not known: what its distribution installs on is not known." in words_of(elsewhere)


def test_why_a_cell_that_may_be_taken_is_not_compared_is_said(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed, RECIPE)
    change_records(
        study,
        lambda record: with_provenance(record, {"machine": str(record.cell.filesystem.type == "btrfs")}),
    )
    words = words_of(overview(study))
    assert re.search(r"not compared with \S+, which has [\d,]+; measured in other surroundings", words)


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("planted", " without what makes the others doubtful, about"),
        ("others-at-work", " while nothing else uses the machine, about"),
    ],
)
def test_where_one_cell_alone_is_trusted_repetitions_are_no_reason(
    tmp_path: Path, code: str, how: str
) -> None:
    """There are three, which is enough for a verdict; all of the other's are suspect, and not every doubt is of a busy machine."""
    suspect = tuple((1, number) for number in (1, 2, 3))
    recipe = replace(RECIPE, cells=CELLS[:2], repetitions=3, suspect=suspect)

    def of_a_rule(run: RunFigures, _: Cell, __: ScheduledVisit) -> RunFigures:
        return replace(run, validity_reasons=tuple(replace(each, code=code) for each in run.validity_reasons))

    found = overview(write_changed_study(tmp_path / "study", recipe, of_a_rule))
    words = words_of(found)
    assert (
        "read-write: only one durable cell has 3 trusted repetitions, so nothing can be compared with it."
        in words
    )
    assert f"5 more repetitions{how}" in words
    assert "give verdicts" not in words


@pytest.mark.parametrize(
    ("repetitions", "doubted_each", "nodes", "more"),
    [
        (2, 0, 1, 3),
        (4, 4, 1, 5),
        (3, 1, 1, 3),
        (5, 5, 1, 5),
        (6, 4, 1, 3),
        (4, 4, 2, 6),
        (2, 0, 2, 4),
        (3, 3, 2, 5),
    ],
)
def test_doubted_runs_bring_no_verdict_nearer(
    tmp_path: Path, repetitions: int, doubted_each: int, nodes: int, more: int
) -> None:
    """As many repetitions as bring each cell to five that are trusted; each node runs as many as the others."""
    suspect = tuple((cell, number) for cell in (0, 1) for number in range(1, doubted_each + 1))
    recipe = replace(RECIPE, cells=CELLS[:2], repetitions=repetitions, suspect=suspect)
    study = known_study(tmp_path / "study", speed, recipe)
    found = overview(study)
    if nodes > 1:
        facts = {f"n{number}": NodeFacts(f"n{number}", MACHINE) for number in range(nodes)}
        found = replace(found, study=replace(found.study, nodes=facts))
    (step,) = (each for each in headline(found).following if each.kind is StepKind.REPETITIONS)
    assert (more, repetitions + more) == (step.count, step.repetitions)
    assert [str(step.repetitions)] == re.findall(r"run \S+ --repetitions (\d+)", words_of(found))


def test_a_cell_that_is_the_same_in_force_is_no_other_one_and_is_named(tmp_path: Path) -> None:
    ext4 = CELLS[0]
    asking = replace(ext4, filesystem=replace(ext4.filesystem, mount_options=("noatime",)))
    study = known_study(tmp_path / "study", speed, replace(RECIPE, cells=(asking, ext4)))
    change_records(study, lambda record: replace(record, effective_digest="the same"))
    found = overview(study)
    assert Answered.ALONE is headline(found).answers[0].answered
    assert re.search(r"no other cell is durable but ext4( noatime)?, effectively the same\.", words_of(found))


def test_what_speaks_against_one_cell_is_not_said_of_another(tmp_path: Path) -> None:
    """Both failed, each at its own mkfs; of figures in a sentence no two cells have the same."""
    failed = tuple((number, repetition) for number in (1, 2) for repetition in range(1, 6))
    found = overview(known_study(tmp_path / "study", speed, replace(RECIPE, failed=failed)))
    assert "xfs, btrfs; xfs: mkfs.xfs exited with status 1: no space." in words_of(found)

    def slow(run: RunFigures, cell: Cell, _: ScheduledVisit) -> RunFigures:
        share = 20 if cell.filesystem.type == "xfs" else 30
        reasons = planted(f"other programs used {share} % of the processors' time")
        is_alone = cell.filesystem.type == "ext4"
        return run if is_alone else replace(run, validity=Validity.SUSPECT, validity_reasons=reasons)

    found = overview(write_changed_study(tmp_path / "doubted", RECIPE, slow))
    assert re.search(
        r"Doubtful +xfs \([^)]* tps, looks better\), btrfs \([^)]* tps\) are not trusted: other programs used [23]0 % of",
        words_of(found),
    )


def test_two_cells_are_unsafe_each_for_a_reason_of_its_own(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed, RECIPE)
    why = {"xfs": "0 flushes in 64 appending fsyncs", "btrfs": "fsync is off"}

    def change(record: VisitRecord) -> VisitRecord:
        reason = why.get(record.cell.filesystem.type)
        if reason is None:
            return record
        return replace(record, durability=Durability("unsafe", "unsafe", "declared", planted(reason)))

    change_records(study, change)
    words = words_of(overview(study))
    first, second = ("xfs", "btrfs") if "; xfs: " in words else ("btrfs", "xfs")
    assert f"; {first}: {why[first]}." in words
    assert why[second] not in words


def test_of_cells_with_one_and_two_trusted_runs_what_both_lack_is_said(tmp_path: Path) -> None:
    asking = replace(CELLS[2], filesystem=replace(CELLS[2].filesystem, mount_options=("noatime",)))
    suspect = (*((2, number) for number in (1, 2, 3)), *((3, number) for number in (1, 2, 3, 4)))
    recipe = replace(RECIPE, cells=(*CELLS, asking), suspect=suspect)
    words = words_of(overview(known_study(tmp_path / "study", speed, recipe)))
    assert re.search(r"Open +btrfs[^:]*, btrfs[^:;]* are not judged: fewer than 3 trusted runs\.", words)


@pytest.mark.parametrize(
    ("lost", "head", "why"),
    [
        ({"suspect": range(1, 6)}, "Doubtful", r"is not trusted: "),
        ({"suspect": (1, 2, 3)}, "Open", r"is not judged: 2 trusted runs, a verdict needs 3"),
        ({"failed": (1, 2, 3)}, "Open", r"is not judged: 2 trusted runs, a verdict needs 3"),
        ({"missing": (2, 3, 4)}, "Open", r"is not judged: 2 trusted runs, a verdict needs 3"),
    ],
)
def test_the_cell_that_looks_best_is_in_the_lines_with_the_reason_however_many_others_there_are(
    tmp_path: Path, lost: dict[str, tuple[int, ...]], head: str, why: str
) -> None:
    """Btrfs with pages of 8 kB is the fastest of ten; eight lines have room for little else."""
    sizes = (2048, 4096, 8192)
    cells = tuple(
        replace(one, build=replace(one.build, block_size_bytes=size)) for size in sizes for one in CELLS
    )
    unsafe = replace(CELLS[0], filesystem=replace(CELLS[0].filesystem, barrier=False))
    broken = ((9, number) for number in range(1, 6))
    places = {name: tuple((8, number) for number in numbers) for name, numbers in lost.items()}
    places["failed"] = (*places.get("failed", ()), *broken)
    recipe = replace(
        RECIPE,
        cells=(*cells, unsafe),
        runs=("read-write", "read-only"),
        suspect=places.get("suspect", ()),
        failed=places["failed"],
        missing=places.get("missing", ()),
    )
    found = overview(known_study(tmp_path / "study", speed, recipe))
    own = headline(found).answers[0]
    assert own.taken is not None
    assert own.taken.cell != cells[8].id
    for columns, lines in ((80, 8), (72, 9)):
        text = " ".join(fitted(headline_lines(headline(found)), columns=columns, most=lines))
        assert re.search(rf"{head} +btrfs db 8k \([\d,]+ tps, looks better\)", text)
    assert re.search(rf"{head} +btrfs db 8k \([\d,]+ tps, looks better\) {why}", words_of(found))


def test_no_line_says_not_before_what_is_a_not_and_nothing_is_taken_without_a_cell(tmp_path: Path) -> None:
    heads = set()
    for number, recipe in enumerate(
        (
            replace(RECIPE, repetitions=1),
            replace(RECIPE, suspect=tuple((1, number) for number in range(1, 6))),
            replace(RECIPE, failed=tuple((cell, number) for cell in range(3) for number in range(1, 6))),
            replace(RECIPE, missing=tuple((2, number) for number in range(1, 6))),
        )
    ):
        found = headline(overview(known_study(tmp_path / str(number), speed, recipe)))
        lines = headline_lines(found)
        heads |= {line.head for line in lines}
        is_taken = bool(found.answers) and found.answers[0].taken is not None
        assert ("Take" in {line.head for line in lines}) is is_taken
    assert "Not" not in heads
    assert {"Take", "Not yet", "Doubtful", "Next"} <= heads


def test_what_fails_alike_everywhere_is_not_answered_by_trying_again(tmp_path: Path) -> None:
    def fails(run: RunFigures, _: Cell, __: ScheduledVisit) -> RunFigures:
        reasons = planted("initdb: error: cannot be run as root")
        return replace(run, outcome=Outcome.FAILED, figures=(), reasons=reasons)

    found = overview(write_changed_study(tmp_path / "study", RECIPE, fails))
    steps = headline(found).following
    assert [StepKind.MEND] == [step.kind for step in steps]
    words = words_of(found)
    assert re.search(r"\d+ runs failed alike", words)
    assert "cannot be run as root" in words
    assert "--retry-failed" not in words


@pytest.mark.parametrize("kinds", [(0,), (0, 1)])
def test_what_fails_alike_in_all_runs_of_a_cell_is_to_be_mended_though_others_were_not_run(
    tmp_path: Path, kinds: tuple[int, ...]
) -> None:
    """A start ends where its first visits fail alike: the rest is due."""
    failed = tuple((kind, number) for kind in kinds for number in (1, 2, 3))
    missing = tuple(
        (kind, number) for kind in range(3) for number in range(1, 6) if (kind, number) not in failed
    )
    found = overview(known_study(tmp_path / "study", speed, replace(RECIPE, failed=failed, missing=missing)))
    kept = [step.kind for step in headline(found).following]
    # Two types fail each with its own mkfs.
    assert kept == ([StepKind.MEND] if len(kinds) == 1 else [StepKind.RETRY, StepKind.GO_ON])


def test_two_cells_are_named_so_that_neither_name_hides_in_what_they_differ(tmp_path: Path) -> None:
    btrfs = CELLS[2]
    larger = replace(btrfs, build=replace(btrfs.build, block_size_bytes=16384))
    discard = replace(larger, filesystem=replace(btrfs.filesystem, mount_options=("discard",)))
    again = replace(btrfs, filesystem=replace(btrfs.filesystem, mount_options=("discard",)))
    found = overview(known_study(tmp_path / "study", speed, replace(RECIPE, cells=(btrfs, discard, again))))
    assert {"btrfs db 8k", "btrfs discard db 16k", "btrfs discard db 8k"} == set(cell_names(found).values())


def test_what_the_answer_is_worse_in_is_said_beside_it(tmp_path: Path) -> None:
    """XFS is the fastest, and its p99 is twice as high."""

    def slow_at_the_end(run: RunFigures, cell: Cell, visit: ScheduledVisit) -> RunFigures:
        noise = random.Random(f"{cell.id} {visit.repetition}").gauss(0, 0.01)
        twice = 2 if cell.filesystem.type == "xfs" else 1
        values = {
            "tps": SPEED[cell.filesystem.type] * math.exp(noise),
            "latency_ms_p99": 10 * twice * math.exp(noise),
        }
        figures = tuple(replace(each, value=values.get(each.metric, each.value)) for each in run.figures)
        return replace(run, figures=figures)

    recipe = replace(RECIPE, cells=CELLS[:2])
    words = words_of(overview(write_changed_study(tmp_path / "study", recipe, slow_at_the_end)))
    assert re.search(r"Take +xfs: 1,\d\d\d tps", words)
    assert re.search(r"But +it is worse in p99: ext4 has ×0\.(50|49\d*) \([^)]*\) of it\.", words)


def test_advise_begins_with_the_answer_and_its_document_has_the_same(tmp_path: Path) -> None:
    found = doubted(tmp_path, "btrfs")
    told = headline(found)
    document = advice_document(told)["answer"]
    assert [(line.head, line.text.replace("\N{NO-BREAK SPACE}", " ")) for line in headline_lines(told)] == [
        (line["head"], line["text"]) for line in document["lines"]
    ]
    (own,) = document["runs"]
    assert (CELLS[1].id, "durable", "leads", 2) == (
        own["taken"],
        own["durability"],
        own["answered"],
        own["judged_cells"],
    )
    (left,) = own["not_taken"]
    assert ("too few", [CELLS[2].id], [CELLS[2].id]) == (left["why"], left["cells"], left["looks_better"])
    assert [step.command or None for step in told.following] == [each["command"] for each in document["next"]]
    console = Console(width=80, record=True, file=StringIO())
    for part in advice_tables(told):
        console.print(part)
    text = console.export_text()
    assert text.index("Take  ") < text.index("take this one")
    assert "looks better" in text
