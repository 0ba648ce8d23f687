"""How far a test was at each second, as its driver says it (drivers/microbenchmark/progress.h), kept where its course needs it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_NS = 1e9


@dataclass(frozen=True)
class OperationsDone:
    """What was done when a line came: `elapsed_s` on the driver's clock, which begins with the test, `monotonic_s` on ours."""

    monotonic_s: float
    elapsed_s: float
    operations: int


def progress_of(line: bytes, now_s: float) -> OperationsDone | None:
    """A line of progress that came now; None for any other line."""
    try:
        said = json.loads(line)
        return OperationsDone(now_s, int(said["elapsed_ns"]) / _NS, int(said["operations"]))
    except (ValueError, KeyError, TypeError):
        return None


def write_progress(path: Path, told: Sequence[OperationsDone]) -> None:
    """A line each."""
    path.write_text("".join(json.dumps(asdict(each)) + "\n" for each in told), encoding="utf-8")


def read_progress(path: Path) -> tuple[tuple[float, int], ...]:
    """The moments on our clock, and what was done then, from the test's begin on; none where the file is not there, or damaged.

    A line may come late, and never early, so the earliest of the begins that they tell is the closest.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        told = [OperationsDone(**json.loads(line)) for line in lines]
        begun_s = min((each.monotonic_s - each.elapsed_s for each in told), default=0.0)
        return ((begun_s, 0), *((begun_s + each.elapsed_s, each.operations) for each in told)) if told else ()
    except (OSError, ValueError, TypeError):
        return ()
