"""What somebody types who does not know the commands yet, and what is answered."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from tests.support.studies.synthetic_study import Recipe, write_study
from tests.support.tools.command_line import call_here

from bedplate.cli.app import GROUPS, program
from bedplate.cli.commands import every_command, root_context

PLAN = """
title = "t"
[scratch_device]
image_size = "1 GB"
[[filesystem]]
type = "ext4"
[[workload]]
type = "fio"
jobs = ["fsync"]
duration = "60 s"
"""


def test_every_command_is_in_one_group_and_explained_on_one_line_of_80_columns() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    commands = {
        words: command
        for words, command, _ in every_command(program, root_context(program))
        if " --" not in words and not isinstance(command, click.Group)
    }
    assert sorted(commands) == sorted(grouped)
    assert len(grouped) == 20
    lines = call_here("--help").stdout.splitlines()
    assert len(lines) < 48
    for name in grouped:
        (line,) = (line for line in lines if line.startswith(f"  {name}  "))
        assert len(line) <= 80
        assert line.endswith(".")
        assert "…" not in line
        assert "..." not in line


@pytest.mark.parametrize(
    ("words", "as_words"),
    [
        (("-h",), ("--help",)),
        (("help",), ("--help",)),
        (("-V",), ("--version",)),
        (("run", "-h"), ("run", "--help")),
        (("help", "run"), ("run", "--help")),
        (("help", "power-cut", "try"), ("power-cut", "try", "--help")),
    ],
)
def test_the_usual_ways_to_help_and_version(words: tuple[str, ...], as_words: tuple[str, ...]) -> None:
    found, expected = call_here(*words), call_here(*as_words)
    assert found.returncode == expected.returncode == 0
    assert found.stdout == expected.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "ask filesystem --erase x",
            "error: --erase is no option of `bedplate ask filesystem`, but of `bedplate ",
        ),
        (
            "show x --durability any",
            "error: --durability is no option of `bedplate show`, but of `bedplate show --advice`",
        ),
        ("show x --effects --mail", "error: --effects and --mail are views of their own; give one at a time"),
        (
            "run mine.toml --add x.toml",
            "error: --repetitions and --add go with a study alone: `bedplate run mine --rep",
        ),
        ("release x --cache", "error: a study and --cache are two things to release; name one of them"),
        ("doctor -o mine.toml", "error: --output goes with a server's directory, a device or a mount point"),
        (
            "ab --kernel --on ext4",
            "error: --kernel takes two kernels, found '--on ext4': ab --kernel 6.1 6.12",
        ),
        ("ask filesystem --yess", "error: no such option --yess\n"),
        (
            "--study x run quick",
            "error: options come behind the command: --study is one of `bedplate search`, `bedplate run`",
        ),
        ("run quick --stdy x", "error: no such option --stdy; did you mean --study?\n"),
        ("shwo x", "error: no such command 'shwo'. Did you mean 'show'?\n"),
        ("help shwo", "error: no such command 'shwo'\n"),
        ("ab --vary barier=true,false", "error: --vary 'barier' is no key of a plan; did you mean barrier?"),
    ],
)
def test_a_wrong_call_is_one_error_of_one_style_and_never_suggests_consent(words: str, expected: str) -> None:
    found = call_here(*words.split())
    assert found.returncode == 2
    assert found.stderr.startswith(expected)
    assert "did you mean --yes" not in found.stderr
    assert "did you mean --erase" not in found.stderr
    assert "Error:" not in found.stderr


def test_a_plan_where_a_study_is_wanted_and_a_study_where_a_plan_is(tmp_path: Path) -> None:
    plan, study = tmp_path / "mine.toml", tmp_path / "study"
    plan.write_text(PLAN)
    write_study(study, Recipe())
    for command in ("show", "status", "report", "advise"):
        found = call_here(command, str(plan))
        assert found.returncode == 2
        assert f"it is a plan: `bedplate run {plan}` makes a study of it, in the folder mine" in found.stderr
    for words in (("plan", str(study)), ("run", str(study), "--study", str(tmp_path / "x"))):
        found = call_here(*words)
        assert found.returncode == 2
        assert f"{study} is a study, and a plan is wanted" in found.stderr


def test_a_plan_that_names_no_study_is_run_into_a_folder_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []

    def run(_plan: Path, study: Path, **_: object) -> int:
        made.append(study)
        return 0

    monkeypatch.setattr("bedplate.cli.measuring.run", run)
    for plan in ("quick", "mine.toml", "elsewhere/other.toml"):
        assert call_here("run", plan).returncode == 0
    assert made == [Path("quick"), Path("mine"), Path("other")]


FORMER = {
    "advise {study}": "show {study} --advice",
    "effects {study}": "show {study} --effects",
    "claims {study}": "show {study} --claims",
    "summary {study}": "show {study} --mail",
    "status {study}": "show {study} --status",
    "index {folder}": "report {folder}",
    "inspect {folder}": "doctor {folder}",
    "extend {study} --repetitions 1": "run {study} --repetitions 1",
    "extend {study} --plan {folder}/none.toml": "run {study} --add {folder}/none.toml",
    "cancel {study}": "release {study}",
    "setup {folder}/none.toml": "doctor {folder}/none.toml --install",
    "device measure {folder}/none": "doctor {folder}/none --measure",
    "ask kernel 6.1": "ab --kernel 6.1 6.1",
}


@pytest.mark.parametrize("before", FORMER)
def test_a_former_name_does_what_it_did_and_names_the_one_of_today(tmp_path: Path, before: str) -> None:
    names = {"folder": str(tmp_path), "study": str(tmp_path / "first")}
    write_study(tmp_path / "first", Recipe(repetitions=1, course_s=2))
    write_study(tmp_path / "second", Recipe(repetitions=1, course_s=2))
    former, today = (call_here(*words.format(**names).split()) for words in (before, FORMER[before]))
    note, _, complaint = former.stderr.partition("\n")
    assert note.startswith("note: this is `bedplate ")
    assert note.split("`")[1].split()[1] == FORMER[before].split()[0]
    assert former.returncode == today.returncode
    if not before.startswith("ask kernel"):
        assert (former.stdout, complaint) == (today.stdout, today.stderr)


def test_a_former_name_says_so_beside_a_document_and_not_in_it(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", Recipe(repetitions=1, course_s=2))
    done = call_here("status", study, "--json")
    assert json.loads(done.stdout)["visits"]
    assert done.stderr == "note: this is `bedplate show STUDY --status` now\n"


def test_the_flag_of_a_view_may_be_anywhere_and_its_help_is_its_own(tmp_path: Path) -> None:
    study = str(write_study(tmp_path / "study", Recipe(repetitions=1, course_s=2)))
    behind = call_here("show", study, "--effects", "--metric", "tps")
    assert behind.returncode == 0
    assert call_here("show", "--effects", "--metric", "tps", study).stdout == behind.stdout
    assert call_here("show", "--effects", "--help").stdout.startswith(
        "Usage: bedplate show --effects [OPTIONS] STUDY"
    )
    # Behind `--` it is the name of a study.
    assert "--effects is not a study" in call_here("show", "--", "--effects").stderr


def test_a_folder_of_studies_is_reported_as_one_page_over_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        write_study(tmp_path / "shelf" / name, Recipe(repetitions=1, course_s=2))
    assert call_here("report", "shelf").stdout == "shelf/index.html\n"
    assert call_here("report", "shelf/one").stdout == "report.html\n"
    done = call_here("report", "shelf", "--cells", "type=ext4")
    assert done.returncode == 2
    assert "takes neither --cells nor --claims" in done.stderr
