"""What a plan's own texts may do in the server: no program runs, whatever they say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bedplate.model.visit import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from bedplate.model.cell import RunSpec

pytestmark = pytest.mark.host

PROGRAM = "COPY (SELECT 1) TO PROGRAM 'cat > {place}/program';\n"


def test_no_text_of_a_plan_starts_a_program(bench: Any, make_run: Callable[..., RunSpec]) -> None:
    place = Path(bench.base) / "open"
    place.mkdir()
    place.chmod(0o777)
    command = f"touch {place}/archived"
    own = f"archive_mode = on\narchive_command'{command}'\nport'1'\nwal_level = replica\nwork_mem = 5MB\n"
    scripts = {
        "program": PROGRAM.format(place=place),
        "file": f"COPY (SELECT 1) TO '{place}/file';\n",
        "system": "ALTER SYSTEM SET work_mem = '8MB';\n",
        "role": "SET SESSION AUTHORIZATION nobody;\n" + PROGRAM.format(place=place),
        "allowed": "SELECT count(*) FROM pg_stat_activity;\nCREATE TEMPORARY TABLE IF NOT EXISTS mine (id int);\n",
    }
    runs = tuple(
        make_run(name, script="custom", script_text=text, script_stem=name, clients=1)
        for name, text in scripts.items()
    )
    record = bench.live(bench.request(configuration=own, runs=runs))
    assert [] == sorted(path.name for path in place.iterdir())
    wrong = " ".join(map(str, record.reasons))
    assert "allowed" not in wrong, record.reasons
    assert Outcome.FAILED is record.outcome or wrong == ""
    asked = {item.name: item for item in record.comparisons}
    assert "5MB" == asked["setting work_mem"].effective
    assert "setting archive_command" not in asked
    assert [] == bench.left_behind()
