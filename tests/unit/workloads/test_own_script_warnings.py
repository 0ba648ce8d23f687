"""An own script is held to a checkpoint only where it may write."""

from __future__ import annotations

import pytest

from bedplate.workloads.pgbench.model import RunScript
from bedplate.workloads.pgbench.script import seems_to_read_only


@pytest.mark.parametrize(
    ("script", "reads"),
    [
        ("\\set n random(1, 9)\nSELECT * FROM t WHERE id = :n;\n", True),
        ("-- UPDATE nothing\nSELECT 1;\nselect 2;", True),
        ("SELECT * FROM t FOR NO KEY UPDATE;", False),
        ("SELECT 1;\nUPDATE t SET a = 1;", False),
        ("SELECT * INTO u FROM t;", False),
        ("SELECT nextval('s');", False),
        ("BEGIN;\nSELECT 1;\nEND;", False),
        ("\\set n 1\n", False),
        (None, False),
    ],
)
def test_a_script_of_selects_alone_seems_to_read_only(script: str | None, *, reads: bool) -> None:
    assert seems_to_read_only(RunScript("custom", script)) is reads
