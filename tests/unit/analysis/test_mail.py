"""A study in twelve lines and a table: plain text of 72 columns, whatever a study is called."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

import pytest
from tests.support.studies.former_studies import NAMES, unpacked
from tests.support.studies.published_sources import pg_fs_benchmark
from tests.support.studies.synthetic_power_cuts import power_cut_study
from tests.support.studies.synthetic_study import Recipe, write_study
from tests.support.tools.command_line import call_here

from bedplate.analysis.answer import headline, headline_lines
from bedplate.analysis.mail import COLUMNS, ROWS_MAX, mail_text
from bedplate.analysis.overview import Overview, overview
from bedplate.imported.importing import import_source

if TYPE_CHECKING:
    from pathlib import Path

SMALL = Recipe(filesystem_blocks=(4096,), database_blocks=(8192,), repetitions=3, course_s=2)
LONG = "\N{CJK UNIFIED IDEOGRAPH-6E2C}x" * 5_000
TITLES = ("| # [bold]pipe[/] `x` |\x1b[31m\n\u202eabc", LONG, "   ")


def width(line: str) -> int:
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in line)


def texts(found: Overview) -> list[str]:
    told = headline(found)
    return [mail_text(told, markdown=markdown) for markdown in (False, True)]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study(tmp_path_factory.mktemp("mail") / "study", SMALL)


@pytest.mark.parametrize("name", NAMES)
def test_a_real_study_is_twelve_lines_and_a_table(name: str, tmp_path: Path) -> None:
    found = overview(unpacked(name, tmp_path))
    commands = [line.text for line in headline_lines(headline(found)) if line.copied]
    for text in texts(found):
        lines = text.splitlines()
        # A command goes on behind a backslash, and is never cut: the path of this study is longer than a line.
        whole = " ".join(text.replace("\\\n", " ").split())
        assert all(command in whole for command in commands)
        # A row of Markdown is as wide as its name.
        narrow = [line for line in lines if not line.startswith("|")]
        wide = [line.rstrip("\\").strip() for line in narrow if width(line) > COLUMNS]
        assert all(any(line in command for command in commands) for line in wide)
        before, _, table = text.partition("\ncell " if "\n| cell" not in text else "\n| cell")
        said = [line for line in before.splitlines()[3:] if line and not line.startswith("```")]
        # What was measured on what, the answer, and what the table shows.
        assert 3 <= len(said) <= 3 + 12 + 2
        assert table
        assert "" != lines[-1]


def test_the_table_has_the_best_first_and_numbers_whole(study: Path) -> None:
    found = overview(study)
    plain, markdown = texts(found)
    rows = [line.split("|")[1:-1] for line in markdown.splitlines() if line.startswith("|")]
    heads = ["cell", "power cut", "verdict", "tps", "from", "to", "p99 ms", "n"]
    assert heads == [cell.strip() for cell in rows[0]]
    assert all(re.fullmatch(r" -+:? ", cell) and len(cell) >= 4 for cell in rows[1])
    figures = {cell.strip() for row in rows[2:] for cell in row[3:]}
    assert all(re.fullmatch(r"[\d.,]+|–", figure) for figure in figures)
    assert all(figure in plain for figure in figures)
    durable = [float(row[3].replace(",", "")) for row in rows[2:] if "durable" == row[1].strip()]
    assert durable
    assert durable == sorted(durable, reverse=True)
    # What may not be taken stands below what may.
    verdicts = [row[2].strip() for row in rows[2:] if "durable" == row[1].strip()]
    assert 1 == verdicts.count("take")
    assert {"take", "same", "open", "worse", "worse level"} >= set(verdicts)
    classes = [row[1].strip() for row in rows[2:]]
    assert classes == sorted(classes, key=lambda name: name != "durable")


@pytest.mark.parametrize("title", TITLES, ids=["markup", "long", "blank"])
def test_a_hostile_study_is_as_wide_and_obeyed_by_nothing(title: str, tmp_path: Path) -> None:
    found = overview(write_study(tmp_path / "study", replace(SMALL, title=title, hostile=True)))
    named = replace(found, study=replace(found.study, facts=replace(found.study.facts, title=title)))
    for text in texts(named):
        # The one word of a command that may be longer is the study's path.
        lines = [line for line in text.splitlines() if str(tmp_path) not in line]
        assert max(width(line) for line in lines if not line.startswith("|")) <= COLUMNS
        assert text.replace("\n", "").isprintable()
        assert text.splitlines()[0].strip()


def test_what_is_told_of_many_cells_keeps_its_ratio_and_what_it_costs_to_know_more(tmp_path: Path) -> None:
    options = tuple((f"commit={5 * number}",) for number in range(1, 4))
    many = replace(SMALL, database_blocks=(4096, 8192, 16384), mount_options=options)
    found = overview(write_study(tmp_path / "study", many))
    for text in texts(found):
        assert re.search(r"^Types +ext4 / xfs, durable: ×[\d.]+ \([\d.]+ to [\d.]+\): ", text, re.MULTILINE)
        assert "…" not in text
        assert re.search(
            r"^Next +\d+ more repetitions?,? \(?about .* (s|min|h)",
            text,
            re.MULTILINE,
        )
        assert re.search(r"--repetitions \d", text)


def test_power_cuts_and_a_study_without_a_run_have_their_text(tmp_path: Path) -> None:
    _, markdown = texts(overview(power_cut_study(tmp_path / "cuts")))
    assert re.search(r"^\| cell +\| bad cuts +\| power cut +\|$", markdown, re.MULTILINE)
    assert re.search(r"\| \d+ of \d+", markdown)
    missing = tuple((cell, 1) for cell in range(4))
    nothing = write_study(tmp_path / "nothing", replace(SMALL, repetitions=1, missing=missing))
    assert "nothing" in texts(overview(nothing))[0]


def test_of_many_cells_the_first_are_shown_and_the_rest_is_counted(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", replace(SMALL, database_blocks=(2048, 4096, 8192, 16384)))
    found = overview(study)
    plain, _ = texts(found)
    assert f"{len(found.cells) - ROWS_MAX} more cells are left out here.\n" in plain


def test_doubted_figures_are_marked_and_an_image_file_is_named(tmp_path: Path) -> None:
    cells = len(overview(write_study(tmp_path / "trusted", SMALL)).cells)
    every = tuple((cell, repetition) for cell in range(cells) for repetition in (1, 2, 3))
    doubted = overview(write_study(tmp_path / "study", replace(SMALL, suspect=every[3:6])))
    for text in texts(doubted):
        rows = [line for line in text.splitlines() if re.search(r" 3( !)?( \|)?$", line)]
        assert [True] == [line.lstrip("| ").startswith("ext4 nobarrier") for line in rows if "3 !" in line]
        assert len(rows) == cells
        assert "! suspect: no part of a verdict." in text.splitlines()
        assert "on an image file" in " ".join(text.split())
    disk = overview(write_study(tmp_path / "disk", replace(SMALL, device_kind="whole disk")))
    for text in texts(disk):
        assert "image file" not in text
        assert "suspect" not in text


def test_the_heading_of_a_run_with_a_long_name_is_whole(tmp_path: Path) -> None:
    import_source(pg_fs_benchmark(tmp_path / "source"), tmp_path / "study")
    for text in texts(overview(tmp_path / "study")):
        assert (
            "\n\nsimple-update clients=16: tps, geometric mean of n, and 95 % interval or\nrange; all are unknown\n\n"
            in text
        )


def test_names_that_differ_in_their_middle_are_told_apart(tmp_path: Path) -> None:
    (power_cuts,) = [name for name in NAMES if name.startswith("power-cut")]
    plain, markdown = texts(overview(unpacked(power_cuts, tmp_path)))
    names = [line.split("|")[1].strip() for line in markdown.splitlines() if line.startswith("|")]
    assert len(set(names)) == len(names) > ROWS_MAX
    whole = " ".join(plain.split())
    assert "ext4 PostgreSQL no 12 of 24, < 71 % unsafe data_checksums full_page_writes=off" in whole
    assert "1 more cell is left out here." in plain
    # Behind a table of Markdown a line is a row of it, unless a blank one stands between.
    assert not re.search(r"^\|.*\n[^|\n]", markdown, re.MULTILINE)


def test_summary_prints_it_and_takes_cells(study: Path) -> None:
    done = call_here("show", study, "--mail", "--markdown", "--cells", "type=ext4")
    assert (0, "") == (done.returncode, done.stderr)
    assert "| ext4" in done.stdout
    assert "| xfs" not in done.stdout
    assert "```\n" in done.stdout
    assert "```" not in call_here("show", study, "--mail").stdout
