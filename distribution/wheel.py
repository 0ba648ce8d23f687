"""A wheel, for pipx and pip."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from distribution.sources import CHECKOUT, settle

if TYPE_CHECKING:
    from distribution.sources import Sources


def build(sources: Sources, into: Path) -> Path:
    """The wheel in the folder `into`, made of tracked files alone."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "bedplate"
        for path in sources.files:
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / path, copy / path)
        settle(copy, sources.epoch)
        subprocess.run(
            [sys.executable, "-P", "-s", "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)],
            check=True,
            cwd=copy,
            env=sources.environment,
            stdout=subprocess.DEVNULL,
        )
    return into / f"bedplate-{sources.version}-py3-none-any.whl"
