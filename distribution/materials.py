"""The bill of materials: every Python package that bedplate runs with, its version and hashes, as CycloneDX."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from distribution.sources import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

    from distribution.sources import Sources


def build(sources: Sources, into: Path) -> Path:
    """The bill in the folder `into`, from the locked requirements."""
    target = into / f"bedplate-{sources.version}.cdx.json"
    command = [sys.executable, "-P", "-s", "-m", "cyclonedx_py", "requirements"]
    subprocess.run(
        [
            *command,
            "--output-reproducible",
            "--pyproject",
            str(CHECKOUT / "pyproject.toml"),
            "--output-file",
            str(target),
            str(CHECKOUT / "requirements" / "runtime.txt"),
        ],
        check=True,
        env=sources.environment,
        stderr=subprocess.DEVNULL,
    )
    # The tool reads no version that stands in the package itself.
    bill = json.loads(target.read_text(encoding="utf-8"))
    bill["metadata"]["component"]["version"] = sources.version
    target.write_text(json.dumps(bill, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return target
