"""`bedplate release --cache`: says what and how much, and removes nothing that it was not told to."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.support.tools.command_line import Done, call_here

from bedplate.cli.asking import agreed
from bedplate.cli.release import release_cache


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment that no checkout uses, in a cache of its own."""
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "cache" / "environments" / "runtime-cpython-311-0123456789abcdef"
    path.mkdir(parents=True)
    (path / "requirements.txt").write_text("typer==0.29\n")
    (path / "complete").write_text("/usr/bin/python3\n")
    (path / "library").write_bytes(os.urandom(3_000_000))
    return path


def call(cache: Path, *words: str) -> Done:
    return call_here("release", *words, BEDPLATE_CACHE=str(cache))


def test_without_a_terminal_it_only_tells(old: Path) -> None:
    done = call(old.parents[1], "--cache")
    assert (0, "") == (done.returncode, done.stderr)
    listed, summary = done.stdout.splitlines()
    assert f"environments/{old.name}: no checkout has the requirements" in listed
    assert re.match(r" *[23](\.\d+)? MiB  ", listed)
    assert "nothing was removed, --yes removes them" in summary
    assert old.is_dir()


def test_yes_removes_and_says_so(old: Path) -> None:
    done = call(old.parents[1], "--cache", "--yes")
    assert (0, "") == (done.returncode, done.stderr)
    assert "1 of 1 removed" in done.stdout
    assert not old.exists()
    assert "has nothing to remove" in call(old.parents[1], "--cache").stdout


@pytest.mark.parametrize("words", [("--yes",), ("--days", "3")])
def test_what_goes_with_the_cache_is_a_wrong_call_alone(old: Path, words: tuple[str, ...]) -> None:
    done = call(old.parents[1], *words)
    assert 2 == done.returncode
    assert f"{words[0]} goes with --cache" in done.stderr
    assert old.is_dir()


def test_days_name_what_was_kept_for_the_next_start(old: Path) -> None:
    image = old.parents[1] / "datasets" / "key"
    image.mkdir(parents=True)
    for name in ("image", "kept.json"):
        (image / name).write_text("")
    cache = old.parents[1]
    assert "datasets" not in call(cache, "--cache").stdout
    assert (
        "datasets/key: no visit has asked for it for 0 days" in call(cache, "--cache", "--days", "0").stdout
    )
    assert 2 == call(cache, "--cache", "--days", "-1").returncode


@pytest.mark.parametrize(("answer", "stays"), [("n", True), ("", True), ("nyes", True), ("y", False)])
def test_a_person_is_asked_with_the_sum(
    old: Path, monkeypatch: pytest.MonkeyPatch, answer: str, stays: bool
) -> None:
    asked: list[str] = []

    def reply(question: str) -> str:
        asked.append(question)
        return answer

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", reply)
    assert 0 == release_cache(yes=False)
    (question,) = asked
    sum_of_all = r"Remove [23](\.\d+)? MiB in 1 folder of "
    assert re.fullmatch(rf"{sum_of_all}{re.escape(str(old.parents[1]))}\? \[y/N\] ", question)
    assert stays == old.exists()


def test_an_input_that_ends_is_no_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(_: str) -> str:
        raise EOFError

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", ends)
    assert not agreed("Remove it?")


def test_what_is_in_use_is_shown_and_stays(old: Path) -> None:
    process = subprocess.Popen(["sleep", "60"], cwd=old)
    try:
        done = call(old.parents[1], "--cache", "--yes")
    finally:
        process.kill()
        process.wait()
    assert 0 == done.returncode
    assert f"left alone: process {process.pid} " in done.stdout
    assert "has nothing to remove" in done.stdout
    assert old.is_dir()


def test_a_folder_that_cannot_be_removed_is_an_error(
    old: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "bedplate.campaign.preparation.remove", lambda spare: f"{spare.path}: Permission denied"
    )
    assert 1 == release_cache(yes=True)
    said = capsys.readouterr()
    assert f"error: {old}: Permission denied" in said.err
    assert "0 of 1 removed" in said.out
