"""Lines that a person reads are broken between words, and never within a number."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from tests.support.studies.synthetic_study import MACHINE, Recipe, write_changed_study

from bedplate.campaign.planning import planned_study, usual_levels
from bedplate.cli import doctor
from bedplate.cli.doctor import KernelAnswers
from bedplate.cli.planning import show_plan
from bedplate.cli.printing import say
from bedplate.cli.status import status
from bedplate.host.requirement import Requirement
from bedplate.study.store import read_progress

PLANS = Path(__file__).parents[3] / "plans"
NUMBER = re.compile(r"\d[\d.,]*\d")
WIDTHS = (40, 47, 53, 60, 80, 120, 200)


@pytest.mark.parametrize("width", range(40, 121, 5))
def test_a_line_goes_on_below_its_text(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    say("  time         10 h 35 min measured in 1,234,567 s of visits, all in all: 97 % of 1,300,000 s")
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert {"1,234,567", "1,300,000", "97"} <= set(" ".join(lines).split())
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
    found = planned_study(PLANS / f"{name}.toml")
    monkeypatch.setattr("bedplate.cli.planning.planned_study", lambda *_, **__: found)
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
    recipe = Recipe(course_s=2, failed=((1, 1),))
    study = write_changed_study(tmp_path / "study", recipe, lambda run, *_: run)
    found = read_progress(study)
    monkeypatch.setattr("bedplate.cli.status.read_progress", lambda _: found)
    monkeypatch.setenv("COLUMNS", "400")
    status(study, as_json=False)
    wide = Counter(NUMBER.findall(capsys.readouterr().out))
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        status(study, as_json=False)
        assert not wide - Counter(NUMBER.findall(capsys.readouterr().out))


def test_doctor_is_shown_without_a_broken_number(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    guests = "QEMU; kernels in the cache: 6.1.0-37-amd64, 6.12.48+deb13-amd64 (with ZFS), 7.2.0-1-amd64"
    monkeypatch.setattr(doctor, "_guests_line", lambda: guests)
    asked = usual_levels(MACHINE)
    refusal = (
        "mount: wrong fs type, bad option, block size of 65,536 bytes on a kernel with pages of 4,096 bytes"
    )
    answers = KernelAnswers(asked, dict.fromkeys(asked[::2], (refusal,)))
    needs = (
        Requirement("mkfs.xfs", "xfsprogs", "makes XFS of 512 to 65,536 bytes a block", found=True),
        Requirement("qemu-system-x86_64", "qemu-system-x86", "guests of 1,024 MiB", found=False),
    )

    def said(width: int) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        doctor._print(
            MACHINE, needs, {"ext3": "ext4", "zfs": None}, answers, ("apt-get", "install", "xfsprogs")
        )
        return capsys.readouterr().out

    wide = Counter(NUMBER.findall(said(400)))
    assert {"65,536", "4,096", "6.12.48"} <= set(wide)
    for width in (*range(20, 40), *WIDTHS):
        text = said(width)
        assert not wide - Counter(NUMBER.findall(text)), (width, text)


def test_numbers_keep_their_units_settings_their_values_and_commands_are_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    line = "  more         one hour buys some 340 visits, 95 % of page_size = 4096 with 16 KiB: `bedplate run s`, then go on"
    for taken in range(20):
        say(line.replace("some ", "x" * taken + " "))
        said = capsys.readouterr().out
        lines = said.splitlines()
        for whole in ("95 %", "page_size = 4096", "16 KiB", "`bedplate run s`"):
            assert any(whole in each for each in lines)
        assert all(len(each) <= 40 for each in lines)
        assert "\N{NO-BREAK SPACE}" not in said
    say("  more         `" + "a long command of many words " * 3 + "`")
    assert all(len(each) <= 40 for each in capsys.readouterr().out.splitlines())
