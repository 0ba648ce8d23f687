"""What helps at a command line: examples that parse, completion, the manual page, the version."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import click
import pytest
from tests.support.tools.command_line import call_here

from bedplate import __version__
from bedplate.cli.app import program
from bedplate.cli.commands import every_command, root_context
from bedplate.cli.documents import manual_page
from bedplate.cli.options import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def commands() -> Iterator[tuple[str, click.Command]]:
    for words, command, _ in every_command(program, root_context(program)):
        if not isinstance(command, click.Group):
            yield words, command


def test_every_command_has_examples_at_the_end_of_its_help() -> None:
    assert sorted(words for words, _ in commands()) == sorted(EXAMPLES)
    for words, command in commands():
        assert command.epilog is not None
        assert all(
            f"  {line}" in call_here(*words.split(), "--help", COLUMNS="200").stdout
            for line in EXAMPLES[words]
        )


def test_a_group_of_commands_shows_the_first_example_of_each() -> None:
    for group in ("ask", "power-cut"):
        said = call_here(group, "--help", COLUMNS="200").stdout
        own = [lines[0] for words, lines in EXAMPLES.items() if words.startswith(f"{group} ")]
        assert 2 <= len(own)
        assert all(f"  {line}" in said for line in own)


def test_an_example_is_of_its_command() -> None:
    """That it works is looked at with every other command of the documents (tests/unit/test_commands_of_documents.py)."""
    for words, lines in EXAMPLES.items():
        command, _, view = words.partition(" --")
        for line in lines:
            assert f"{line.removeprefix('sudo ')} ".startswith(f"bedplate {command} "), line
            assert not view or f" --{view}" in line, line


def test_the_version_is_said() -> None:
    assert (0, f"bedplate {__version__}\n") == (
        call_here("--version").returncode,
        call_here("--version").stdout,
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_completion(shell: str) -> None:
    done = call_here("completion", shell)
    assert 0 == done.returncode
    assert f"_BEDPLATE_COMPLETE={shell}_complete" in done.stdout


@pytest.mark.parametrize(
    ("line", "found", "not_found"),
    [
        ("se", "plain,search", "plain,setup"),
        ("show study --ef", "plain,--effects", "plain,--metric"),
        ("show study --s", "plain,--sort", "plain,--metric"),
        ("show study --sort latency_ms_p9", "plain,latency_ms_p99", "plain,tps"),
        ("show study --effects --metric tp", "plain,tps_cv", "plain,latency_ms_p99"),
        ("search quick --best p", "plain,p99", "plain,tps"),
        ("plan qui", "plain,quick", "plain,aa"),
        ("plan ./mi", "plain,./mine.toml", "plain,./other.txt"),
        ("completion f", "plain,fish", "plain,bash"),
    ],
)
def test_a_line_is_completed(tmp_path: Path, line: str, found: str, not_found: str) -> None:
    (tmp_path / "mine.toml").touch()
    (tmp_path / "other.txt").touch()
    words = f"bedplate {line}"
    done = call_here(
        cwd=tmp_path,
        _BEDPLATE_COMPLETE="bash_complete",
        COMP_WORDS=words,
        COMP_CWORD=str(len(words.split()) - 1),
    )
    assert 0 == done.returncode
    assert found in done.stdout.splitlines()
    assert not_found not in done.stdout.splitlines()


def test_the_manual_page_has_every_command_and_is_right_roff() -> None:
    page = manual_page()
    for words, _ in commands():
        assert f".SS {words.replace('-', chr(92) + '-')}" in page
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    shown = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z"],
        input=page,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "" == shown.stderr
