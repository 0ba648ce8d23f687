"""Lines that a person reads are broken between words, and never within a number."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from tests.synthetic_study import Recipe, write_study

from bedplate.cli.plans import show_plan
from bedplate.cli.printing import say
from bedplate.cli.status import status

PLANS = Path(__file__).parents[3] / "plans"
NUMBER = re.compile(r"\d[\d.,]*\d")
WIDTHS = (40, 47, 53, 60, 80, 120, 200)


@pytest.mark.parametrize("width", range(40, 121, 5))
def test_a_line_goes_on_below_its_text(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    say("  time         10 h 35 min measured in 1,234,567 s of visits, all in all: 97% of 1,300,000 s")
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert {"1,234,567", "1,300,000", "97%"} <= set(" ".join(lines).split())
    if width < 90:
        assert all(line.startswith(" " * 15) for line in lines[1:])


def test_a_program_reads_whole_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    say("word " * 100)
    assert 1 == len(capsys.readouterr().out.splitlines())


def test_a_word_that_is_wider_than_the_terminal_stays_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    path = f"/dev/disk/by-id/{'x' * 60}-123456"
    say(f"  scratch device   {path}, WHICH WILL BE ERASED")
    assert path in capsys.readouterr().out


@pytest.mark.parametrize("name", ["database-blocks", "power-cut-quick", "tpch-quick"])
def test_a_plan_is_shown_without_a_broken_number(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    show_plan(PLANS / f"{name}.toml", as_json=False)
    wide = Counter(NUMBER.findall(capsys.readouterr().out))
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        show_plan(PLANS / f"{name}.toml", as_json=False)
        assert not wide - Counter(NUMBER.findall(capsys.readouterr().out))


def test_status_is_shown_without_a_broken_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = write_study(tmp_path / "study", Recipe(course_s=2, failed=((1, 1),)))
    monkeypatch.setenv("COLUMNS", "400")
    status(study, as_json=False)
    wide = Counter(NUMBER.findall(capsys.readouterr().out))
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        status(study, as_json=False)
        assert not wide - Counter(NUMBER.findall(capsys.readouterr().out))
