"""`bedplate ask` up to its one question: the plan is written and shown, and nothing begins by itself."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.studies.synthetic_study import Recipe, write_study
from tests.support.tools.command_line import Done, call_here
from tests.unit.plan.conftest import MACHINE

from bedplate.campaign.questions import USUAL, filesystem_question, kernel_question
from bedplate.cli import asking

KERNELS = ("kernel", "6.1", "6.12", "--on", "ext4")
SAFE = ("safe", "full_page_writes=off", "--on", "ext4")


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Calls in an empty directory with an empty cache, as root would, which measures nothing here."""
    monkeypatch.setattr("bedplate.campaign.preparation.is_root", lambda: True)

    def call(*words: str) -> Done:
        return call_here("ask", *words, cwd=tmp_path, COLUMNS="200", BEDPLATE_CACHE=str(tmp_path / "cache"))

    return call


def said_no_to(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def no(question: str) -> bool:
        asked.append(question)
        return False

    monkeypatch.setattr(asking, "agreed", no)
    monkeypatch.setattr(asking, "can_ask", lambda: True)


@pytest.mark.parametrize(
    ("words", "directory"),
    [(KERNELS, "ask-kernel-6.1-6.12-ext4"), (SAFE, "ask-safe-full_page_writes-off-ext4")],
)
def test_the_plan_is_kept_and_shown_and_nobody_to_ask_ends_with_2(
    ask: Any, tmp_path: Path, words: tuple[str, ...], directory: str
) -> None:
    done = ask(*words)
    assert 2 == done.returncode
    assert "nobody can be asked here; give the same command with --yes" in done.stderr
    plan = tmp_path / directory / "plan.toml"
    assert tomllib.loads(plan.read_text(encoding="utf-8"))["filesystem"] == [{"type": "ext4"}]
    for line in (f"plan      {directory}/plan.toml", "time      about", "erased    nothing"):
        assert f"  {line}" in done.stdout
    assert ["plan.toml"] == [path.name for path in plan.parent.iterdir()]


def test_the_plan_itself_is_shown_as_it_is_written(ask: Any, tmp_path: Path) -> None:
    said = ask(*SAFE).stdout
    plan = (tmp_path / "ask-safe-full_page_writes-off-ext4" / "plan.toml").read_text(encoding="utf-8")
    written = plan[plan.index("title = ") :].rstrip().splitlines()
    assert "\n".join(f"    {line}".rstrip() for line in written) in said


@pytest.mark.parametrize("words", [("safe", "fsnyc=off", "--on", "ext4"), ("ab", "--vary", "fsnyc=on,off")])
def test_a_setting_that_the_build_does_not_know_is_refused_before_anything_is_written(
    ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    check = "bedplate.engines.postgresql.prepare.SETTINGS_CHECK"
    monkeypatch.setattr(check, lambda cells: [f"{sorted(cells[0].cluster.settings)}: did you mean fsync?"])
    done = call_here(*words, cwd=tmp_path) if words[0] == "ab" else ask(*words)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: [")
    assert "'fsnyc'" in line
    assert not list(tmp_path.iterdir())


def test_a_guests_kernels_are_said_to_be_fetched_and_postgresql_to_be_built(ask: Any) -> None:
    said = ask(*KERNELS).stdout
    assert "to build PostgreSQL 18, 8 kB blocks before that" in said
    assert "fetches   kernel 6.1 and 6.12, some 100 MB each" in said


def test_the_same_question_goes_on_and_another_gets_a_place_of_its_own(ask: Any, tmp_path: Path) -> None:
    for words in (SAFE, SAFE, (*SAFE, "--points", "8")):
        ask(*words)
    assert ["ask-safe-full_page_writes-off-ext4", "ask-safe-full_page_writes-off-ext4-2"] == sorted(
        path.name for path in tmp_path.iterdir()
    )
    named = ask(*KERNELS, "--directory", "ask-safe-full_page_writes-off-ext4")
    assert 2 == named.returncode
    assert "has the plan of another question" in named.stderr


def test_a_no_begins_nothing(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    said_no_to(asked, monkeypatch)
    done = ask(*SAFE)
    assert 0 == done.returncode
    assert ["Begin?"] == asked
    assert "Nothing was begun. The plan stays" in done.stdout


def test_what_no_kernel_at_hand_has_is_left_out_after_a_yes_alone(
    ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    refused: Mapping[str, tuple[str, ...]] = {"zfs": ("its modules are not built",)}
    monkeypatch.setattr(asking, "_refused", lambda _found: refused)
    said_no_to(asked, monkeypatch)
    done = ask("safe", "--on", "ext4,zfs")
    assert ["Begin without zfs?"] == asked
    assert "left out  zfs: its modules are not built" in done.stdout
    alone = ask("safe", "--on", "zfs")
    assert 3 == alone.returncode
    assert "zfs: its modules are not built" in alone.stderr


def test_its_help_says_what_is_asked_without_an_option(ask: Any) -> None:
    for name, question, types in (
        ("filesystem", filesystem_question(MACHINE, ()), f"those of {', '.join(USUAL)} that this kernel has"),
        ("kernel", kernel_question(("6.1", "6.12"), ()), USUAL[0]),
    ):
        said = " ".join(ask(name, "--help").stdout.split())
        repetitions = tomllib.loads(question.text)["repetitions"]
        assert f"how often each cell is visited; without it {repetitions}" in said
        assert f"file systems, with commas between; without it {types}" in said
        assert "default" not in said


def test_without_root_it_says_what_needs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bedplate.campaign.preparation.is_root", lambda: False)
    done = call_here("ask", *SAFE, cwd=tmp_path)
    assert 3 == done.returncode
    assert "that needs root" in done.stderr
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a\x1b[31mb", "<b>bold</b>", "x" * 10_000, "\u202eevil", "a b'c\"d"])
def test_directories_with_hostile_names_are_shown_and_never_obeyed(ask: Any, name: str) -> None:
    done = ask(*SAFE, "--directory", name)
    assert 2 == done.returncode
    assert "another question" not in done.stderr
    assert not {"\x1b", "\u202e"} & {*done.stdout, *done.stderr}


def test_as_json_the_answer_is_one_document_and_all_else_goes_to_standard_error(
    ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(_plan: Path, place: Path, **_: object) -> int:
        write_study(place / "study", Recipe())
        print("report: its page")
        return 0

    monkeypatch.setattr(asking, "_run", run)
    done = ask("filesystem", "--on", "ext4", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["study"].endswith("/study")
    assert document["report"].endswith("/report.html")
    assert document["exit_status"] == 0
    assert document["answer"]["runs"]
    assert "report: its page" in done.stderr
    assert "  plan      " in done.stderr
