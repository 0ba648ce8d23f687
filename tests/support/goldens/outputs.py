"""All that bedplate says of a golden study, as one text: each command, how it ended, what it said, and what it wrote."""

from __future__ import annotations

import lzma
import os
import shlex
import shutil
from typing import TYPE_CHECKING
from unittest.mock import patch

from tests.support.goldens.normal import difference, normal
from tests.support.goldens.written_files import file_text
from tests.support.studies.read_once import read_once
from tests.support.tools.command_line import call_here

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.goldens.studies import GoldenStudy

# By these a terminal, or whoever runs the tests, asks for colours.
_OF_TERMINALS = ("FORCE_COLOR", "NO_COLOR", "COLORTERM", "TERM", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
_PROMPT = "$ bedplate "
_OUT = "out"


def outputs(study: GoldenStudy, folder: Path) -> str:
    """What this version says of the study, which is laid out in a place of its own in `folder`."""
    # An index has the name of the folder that holds the studies.
    place = folder / "studies"
    study.lay_out(place)
    with read_once():
        said = [_said(command, place) for command in study.commands]
    made_now = place / "study" / "study.json" if study.first else None
    return "".join(normal(text, place, made_now) for text in said)


def _said(command: str, place: Path) -> str:
    environment = {"COLUMNS": "80"}
    words = shlex.split(command)
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    with patch.dict(os.environ):
        for name in _OF_TERMINALS:
            os.environ.pop(name, None)
        done = call_here(*words, cwd=place, **environment)
    written = place / _OUT
    files = sorted(written.iterdir()) if written.exists() else []
    parts = [
        f"{_PROMPT}{command}",
        f"exit code {done.returncode}",
        *filter(None, (done.stdout, done.stderr)),
        *(f"# {path.name}\n{file_text(path)}" for path in files),
    ]
    if files:
        shutil.rmtree(written)
    return "\n".join(part.rstrip("\n") for part in parts) + "\n\n"


def kept_outputs(study: GoldenStudy) -> str:
    """What was said of it when that was kept; nothing before."""
    return lzma.decompress(study.kept.read_bytes()).decode() if study.kept.exists() else ""


def keep(study: GoldenStudy, text: str) -> None:
    """Keep what is said of it."""
    study.kept.write_bytes(lzma.compress(text.encode(), preset=9))


def differences(before: str, now: str) -> list[str]:
    """A unified diff for each command that says something else, that is new, or that is gone."""
    old, new = _by_command(before), _by_command(now)
    return [
        line
        for command in dict.fromkeys((*old, *new))
        for line in difference(old.get(command, ""), new.get(command, ""), f"bedplate {command}")
    ]


def _by_command(text: str) -> dict[str, str]:
    sections = f"\n{text}".split(f"\n{_PROMPT}")[1:]
    return {section.partition("\n")[0]: section for section in sections}
