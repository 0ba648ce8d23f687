"""A program of a test that is killed by SIGKILL after so many of its lines, again and again, and then left to its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.tools.patience import AT_MOST_S

if TYPE_CHECKING:
    from collections.abc import Sequence

_CHECKOUT = Path(__file__).resolve().parents[3]


def killed_after(lines: Sequence[int], module: str, folder: Path) -> None:
    """Run `python -m module folder`, killed after each of these numbers of lines; the last time it ends by itself, with status 0."""
    for most in lines:
        process = _started(module, folder)
        assert process.stdout is not None
        said = [line for _, line in zip(range(most), process.stdout, strict=False)]
        process.kill()
        process.communicate()
        assert said, "it ended before it said anything"
    process = _started(module, folder)
    told, _ = process.communicate(timeout=AT_MOST_S)
    assert 0 == process.returncode, told


def _started(module: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", module, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=_CHECKOUT,
        env={"PYTHONPATH": f"{_CHECKOUT / 'src'}:{_CHECKOUT}", "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
    )
