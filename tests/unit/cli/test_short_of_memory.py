"""A command that has too little memory says so, and ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.tools.command_line import SOURCES, call_here
from tests.support.tools.patience import AT_MOST_S


@pytest.mark.parametrize("kib", [250_000, 400_000, 1_000_000])
@pytest.mark.parametrize("words", [("show", "none"), ("report", "none"), ("plan", "quick")])
def test_a_limit_of_the_address_space_is_named_before_a_library_meets_it(
    kib: int, words: tuple[str, ...], tmp_path: Path
) -> None:
    done = subprocess.run(
        ["prlimit", f"--as={kib * 1024}", sys.executable, "-m", "bedplate", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=AT_MOST_S,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
    assert 3 == done.returncode, done.stderr
    assert "the address space is limited to" in done.stderr
    assert "ulimit -v unlimited" in done.stderr
    assert 1 == done.stderr.count("\n")


def test_no_memory_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(_: object) -> int:
        raise MemoryError

    monkeypatch.setattr("bedplate.cli.app.call", call)
    done = call_here("show", "study")
    assert (3, 1) == (done.returncode, done.stderr.count("\n"))
    assert "error: show: memory ran out" in done.stderr
