"""A program that might print until memory is full, and is bounded in bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bedplate.errors import CommandFailed, PrintedTooMuch
from bedplate.host.command import Commands


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], list[str]]:
    def made(text: str) -> list[str]:
        path = tmp_path / "script"
        path.write_text(text)
        return ["sh", str(path)]

    return made


def test_one_that_prints_without_end_is_killed(script: Callable[[str], list[str]]) -> None:
    with pytest.raises(PrintedTooMuch, match="yes printed more than 100000 bytes and was killed"):
        Commands().run(["yes"], timeout_s=60, most_bytes=100_000)
    with pytest.raises(PrintedTooMuch):
        Commands().run(script("exec yes >&2"), timeout_s=60, most_bytes=100_000)


def test_one_that_ends_is_as_without_a_bound(script: Callable[[str], list[str]]) -> None:
    done = Commands().run(script("echo words; echo wrong >&2; exit 3"), check=False, most_bytes=12)
    assert (3, "words\n", "wrong\n") == (done.status, done.stdout, done.stderr)
    # One that closes what it prints to is waited for all the same.
    assert 4 == Commands().run(script("exec >&- 2>&-; exit 4"), check=False, most_bytes=1).status


def test_the_time_limit_holds_too(script: Callable[[str], list[str]]) -> None:
    with pytest.raises(CommandFailed, match=r"did not end within 0\.1 s and was killed") as caught:
        Commands().run(script("echo begun; exec sleep 4242"), timeout_s=0.1, most_bytes=100)
    assert not isinstance(caught.value, PrintedTooMuch)
