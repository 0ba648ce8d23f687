"""Texts for others' lists: plain mails with a cover sheet, each with a script that cleans up after itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

UPSTREAM = Path(__file__).resolve().parents[2] / "docs" / "upstream"
TEXTS = sorted(UPSTREAM.glob("*.txt"))
SCRIPTS = sorted(UPSTREAM.glob("*.sh"))
COLUMNS = 80


def test_every_script_belongs_to_one_text_and_every_text_to_a_script() -> None:
    inlined = [re.findall(r"cat \S+\.txt (\S+\.sh)", path.read_text()) for path in TEXTS]
    assert sorted(name for names in inlined for name in names) == [path.name for path in SCRIPTS]
    assert {path.name for path in UPSTREAM.iterdir()} == {path.name for path in (*TEXTS, *SCRIPTS)}


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.stem)
def test_a_text_is_a_plain_mail_below_its_cover_sheet(text: Path) -> None:
    sheet, dashes, mail = text.read_text(encoding="ascii").partition(f"\n{'-' * 70}\n")
    assert dashes
    for head in ("To:", "Cc:", "Subject:", "Tried:", "Not done:"):
        assert f"\n  {head}" in sheet
    assert "was not sent" in sheet
    assert mail.endswith("The script:\n\n")
    too_long = [line for line in mail.splitlines() if len(line) > COLUMNS and not line.startswith("  ")]
    assert not too_long


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_undoes_what_it_did_wherever_it_ends(script: Path) -> None:
    """The trap comes before the first loop device and the first mount."""
    text = script.read_text(encoding="ascii")
    commands = [line for line in text.splitlines() if not line.startswith(("#", " "))]
    trap = next(number for number, line in enumerate(commands) if line.startswith("trap "))
    first = next(
        number
        for number, line in enumerate(commands)
        if "losetup --find" in line or line.startswith(("mount ", "dm create"))
    )
    assert trap < first
