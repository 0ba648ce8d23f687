"""Commands of the documents that measure, from their first word to their answer, made as small as they get.

Their lines come from the documents; what is added makes them small. tests/unit/test_commands_of_documents.py says which go how far.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from tests.support.documents.command_lines import command_lines
from tests.support.studies.study_lab import Lab
from tests.support.tools.patience import AT_MOST_S

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

ROOT = Path(__file__).resolve().parents[2]
# The last of an option counts.
FEW_CUTS = ("--on", "ext4", "--points", "12", "--recut", "0", "--duration", "1")


def line_of(page: str, begin: str) -> list[str]:
    """The words of the only line of a page that begins so."""
    (words,) = {
        tuple(shlex.split(line.text)[1:])
        for line in command_lines(ROOT)
        if line.place == page and line.call.startswith(f"bedplate {begin}")
    }
    return list(words)


def test_a_plant_of_the_reference_is_found(lab: Lab) -> None:
    shutil.copytree(ROOT / "examples", lab.base / "examples")
    words = line_of("ENGINES.md", "power-cut try examples/engines/toy --on ext4 --plant")
    assert re.search(r"^Unsafe .*\bext4\b", lab.call(*words, *FEW_CUTS, "--yes"), re.MULTILINE)


@pytest.mark.skipif(shutil.which("go") is None, reason="the store is built with go, which is not installed")
def test_a_store_of_the_shelf_is_built_and_tried(lab: Lab) -> None:
    shutil.copytree(ROOT / "examples", lab.base / "examples")
    words = line_of("ENGINES.md", "power-cut try examples/engines/shelf/bbolt")
    assert "0 of 12 cuts bad" in lab.call(*words, *FEW_CUTS, "--yes")


def test_an_engine_of_ones_own_is_tried_blamed_and_bundled_as_its_page_says(lab: Lab) -> None:
    page = "engine.md"
    shutil.copytree(ROOT / "examples", lab.base / "examples")
    shutil.copytree(ROOT / "examples/engines/toy", lab.base / "my-engine")
    survives = lab.call(
        *line_of(page, "power-cut try examples/engines/toy --on ext4 --points 40 --yes"), *FEW_CUTS
    )
    assert "0 of 12 cuts bad" in survives
    faulty = line_of(page, "power-cut try examples/engines/toy --on ext4 --points 40 --set")
    tried = lab.call(
        *line_of(page, "power-cut try my-engine --on"), *FEW_CUTS, *faulty[faulty.index("--set") :]
    )
    assert "lost on ext4" in tried
    points = lab.call(*line_of(page, "power-cut points cuts/study ext4"))
    bad = re.search(r"^ *(\d+) ", points, re.MULTILINE)
    assert bad is not None, points
    assert "error" not in lab.call(*line_of(page, "power-cut blame cuts/study"))
    bundle = [
        bad[1] if word == "17" else word for word in line_of(page, "power-cut bundle cuts/study ext4 17")
    ]
    lab.call(*bundle)
    assert (lab.base / "cut-17/README.md").is_file()
    for begin in ("replay cuts ext4 17 --keep", "replay cuts ext4 --profile"):
        words = line_of("power-cut replay --help", f"power-cut {begin}")
        told = {"cuts": "cuts/study", "17": bad[1], "90": "4", "/var/tmp/cut-17": "kept"}
        lab.call(*(told.get(word, word) for word in words))
    assert [] == lab.left_behind()


def test_a_plan_of_ones_own_is_run_and_extended_as_the_readme_says(lab: Lab) -> None:
    lab.plan(name="mine.toml")
    run = line_of("README.md", "run mine.toml --study mine")
    assert "1 visit completed, 0 failed" in lab.call(*run)
    assert "mine is complete: 1 visit" in lab.call(*run)
    shutil.move(lab.base / "mine", lab.base / "first")
    extend = line_of("run --help", "run first --repetitions 5")
    assert "1 visit completed, 0 failed" in lab.call(*extend[:-1], "2")
    for begin, file in (("report mine -o", "mine.html"), ("export mine -o", "mine.xlsx")):
        words = line_of("README.md", begin)
        lab.call(*("first" if word == "mine" else word for word in words))
        assert (lab.base / file).stat().st_size > 1000
    assert [] == lab.left_behind()


def test_a_setting_is_told_from_another_as_its_page_says(lab: Lab) -> None:
    plan = lab.plan(('script = "read-only"', 'script = "read-write"'))
    process = lab.start(
        *line_of("change.md", "ab --vary wal_compression=off,lz4"),
        "--plan",
        plan,
        "--budget",
        # The first look, after four pairs, is reckoned to come within it.
        "90s",
        "--yes",
    )
    said, _ = process.communicate(timeout=AT_MOST_S)
    # In a second's run there is nothing to tell. That is no fault, and another test's.
    assert process.returncode in (0, 1), said
    assert "wal_compression=lz4 beside wal_compression=off" in said
    assert "failed in" not in said
    assert 8 <= said.count("completed in")
    assert [] == lab.left_behind()
