"""What somebody types who does not know the commands yet, and what is answered."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.studies.synthetic_study import Recipe, write_study
from tests.support.tools.command_line import call_here

from bedplate.cli.app import GROUPS, program

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
    assert sorted(name for name, command in program.commands.items() if not command.hidden) == sorted(grouped)
    lines = call_here("--help").stdout.splitlines()
    assert len(lines) < 55
    for name in grouped:
        (line,) = (line for line in lines if line.split()[:1] == [name] and line.startswith("  "))
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
        ("ask filesystem --yess", "error: no such option --yess\n"),
        ("--study x run quick", "error: options come behind the command: --study is one of `bedplate run`"),
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
