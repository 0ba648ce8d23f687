"""A search whose process is killed by SIGKILL again and again comes to the same visits in the same order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.studies.planted_executor import PlantedExecutor
from tests.support.studies.search_lab import search_lab, truth
from tests.support.tools.patience import AT_MOST_S

from bedplate.study.stored import read_study

if TYPE_CHECKING:
    import pytest

SOURCES = Path(__file__).resolve().parents[3]


def started(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.studies.search_process", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=SOURCES,
        env={"PYTHONPATH": f"{SOURCES / 'src'}:{SOURCES}", "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
    )


def test_killed_after_any_line_it_comes_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = tmp_path / "killed"
    killed.mkdir()
    # Lines of a start: it goes on, where the search is, then two for each visit.
    for lines in (1, 2, 3, 4, 9, 14, 15, 16, 30):
        process = started(killed)
        assert process.stdout is not None
        said = [line for _, line in zip(range(lines), process.stdout, strict=False)]
        process.kill()
        process.communicate()
        assert said, "it ended before it said anything"
    process = started(killed)
    told, _ = process.communicate(timeout=AT_MOST_S)
    assert 0 == process.returncode, told
    whole = tmp_path / "whole"
    whole.mkdir()
    lab = search_lab(whole, monkeypatch)
    lab.play(PlantedExecutor(truth))
    first, second = read_study(killed / "study"), read_study(whole / "study")
    assert first.schedule.visits == second.schedule.visits
    assert first.search == second.search
    assert not first.set_aside
    assert [v.record.key for v in first.visits] == [v.record.key for v in second.visits]
