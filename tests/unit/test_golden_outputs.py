"""All that reading commands say of one study of each kind is what was kept: `python -m tests.support.goldens --write` keeps it again."""

from __future__ import annotations

import shlex
from itertools import dropwhile
from typing import TYPE_CHECKING

import click
import pytest
from tests.support.goldens.normal import difference, normal
from tests.support.goldens.outputs import differences, kept_outputs, outputs
from tests.support.goldens.studies import NOT_READING, OUTPUTS, STUDIES, GoldenStudy

from bedplate.cli.app import program
from bedplate.cli.commands import every_command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMMANDS = [shlex.split(command) for study in STUDIES for command in study.commands]


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_what_is_said_of_a_study_is_what_was_kept(study: GoldenStudy, tmp_path: Path) -> None:
    lines = differences(kept_outputs(study), outputs(study, tmp_path))
    assert not lines, "\n".join(lines)


def test_every_command_is_asked_of_a_study_or_reads_none() -> None:
    asked = {name for name, _ in commands() if any(is_of(words, name) for words in COMMANDS)}
    assert {name for name, _ in commands()} - asked == set(NOT_READING)


def test_every_option_of_a_reading_command_is_given() -> None:
    missing = [
        f"{name} {option.opts[-1]}"
        for name, command in commands()
        if name not in NOT_READING
        for option in command.params
        if isinstance(option, click.Option)
        if not any(is_of(words, name) and {*option.opts} & {*words} for words in COMMANDS)
    ]
    assert not missing


def test_nothing_is_kept_of_a_study_that_is_none() -> None:
    assert {path.name.split(".")[0] for path in OUTPUTS.iterdir()} <= {study.name for study in STUDIES}


def test_a_figure_a_word_and_a_line_are_found_and_last_digits_are_not() -> None:
    before = "tps 100.123456789012\ncount 1000000001\nclass durable\n"
    assert not difference(before, before.replace("789012", "789018"), "")
    for now in (
        before.replace("100.1234", "100.1235"),
        before.replace("1000000001", "1000000002"),
        before.replace("durable", "unsafe"),
        f"{before}more\n",
        "",
    ):
        assert difference(before, now, "")


def test_where_a_study_lies_is_left_out(tmp_path: Path) -> None:
    assert "read study in ." == normal(f"read {tmp_path}/study in {tmp_path}", tmp_path)


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command of the program's own registry, by its words, each view with its flag."""
    for name, command, _ in every_command(program, click.Context(program, info_name="bedplate")):
        if not isinstance(command, click.Group):
            yield name, command


def is_of(words: list[str], name: str) -> bool:
    """Whether a call is of a command: it begins with its words, and has the flag of a view."""
    call = list(dropwhile(lambda word: "=" in word, words))
    flags = {word for word in name.split() if word.startswith("--")}
    own = [word for word in name.split() if word not in flags]
    return call[: len(own)] == own and flags <= {*call}
