"""Parts of the page's script in Node.js, without a browser: what it judges is held against Python."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bedplate.page.build import SCRIPT

HARNESS = Path(__file__).parent / "script_in_node.js"
ASSETS = Path(__file__).parents[3] / "src/bedplate/page/assets/script"
# What draws nothing, in the page's own order.
PURE = tuple(
    part
    for part in SCRIPT
    if part.startswith("statistics/")
    or part in {"core/data", "core/inflate", "core/words", "core/choice", "core/pairs", "core/pooled"}
)
in_node = pytest.mark.skipif(
    shutil.which("node") is None, reason="Node.js is missing (package node-typescript)"
)


def said_by_script(document: dict[str, Any], ask: str, given: Any = None) -> Any:
    """What a function, as its source, says with the pure parts of the script around it."""
    parts = [(ASSETS / f"{part}.js").read_text(encoding="utf-8") for part in PURE]
    done = subprocess.run(
        ["node", str(HARNESS)],
        input=json.dumps({"document": document, "parts": parts, "ask": ask, "given": given}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    return json.loads(done.stdout)
