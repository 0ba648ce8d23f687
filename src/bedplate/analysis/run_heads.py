"""Which figures stand for a run where there is room for two: by what the run does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate import registry
from bedplate.analysis.workload_view import MovedBytes, RunHead, view_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.analysis.overview import Overview
    from bedplate.model.cell import RunSpec
    from bedplate.model.visit import Durability

# Also of a run that no visit has begun: nothing is said at its head.
TRANSACTIONS = RunHead("tps", "tps", "latency_ms_p99", "p99 ms")


def runs_of(found: Overview, workload: str) -> list[tuple[str, str]]:
    """Those of a type of workload, by whatever name they were recorded."""
    return [run for run in found.runs if run_type(found, run) == registry.type_today(workload)]


def run_type(found: Overview, run: tuple[str, str]) -> str | None:
    """The type of a run as it is called today; None of one that no visit has begun."""
    spec = found.spec(run)
    return None if spec is None else registry.type_today(spec.workload)


def is_meant(found: Overview, run: tuple[str, str], workload: str | None) -> bool:
    """Whether a reader who names a run or a type, or neither, means this one."""
    return workload in (None, run[1]) or registry.type_today(workload or "") == run_type(found, run)


def run_kind(found: Overview, run: tuple[str, str]) -> str | None:
    """What a run does, where runs of its type do different things or have no transactions; None for any other."""
    spec = found.spec(run)
    return None if spec is None else view_of(spec.workload).kind(spec)


def run_head(found: Overview, run: tuple[str, str]) -> RunHead:
    """The two figures of a run of a study."""
    spec = found.spec(run)
    return TRANSACTIONS if spec is None else view_of(spec.workload).head(spec)


def writes(found: Overview, run: tuple[str, str]) -> bool:
    """Whether a run writes to a file system that is measured, by what its workload does and not by its name."""
    spec = found.spec(run)
    return spec is not None and view_of(spec.workload).writes(found, run, spec)


def has_speed(found: Overview, run: tuple[str, str]) -> bool:
    """Whether cells differ by the speed of a run, and not by a verdict."""
    spec = found.spec(run)
    return spec is None or view_of(spec.workload).has_speed


def has_speeds(overviews: Sequence[Overview]) -> bool:
    """Whether any run has a speed; without any run the page is that of speeds."""
    told = [has_speed(found, run) for found in overviews for run in found.runs]
    return not told or any(told)


def promised(spec: RunSpec | None, durability: Durability | None, phase: str, item: str) -> Durability | None:
    """The class that stands beside a figure of a part of a run: its own where its workload has one, else its cell's."""
    return durability if spec is None else view_of(spec.workload).promised(durability, phase, item)


def makes_transactions(found: Overview, run: tuple[str, str]) -> bool:
    """Whether a run makes transactions, or would, where no visit has begun it."""
    spec = found.spec(run)
    return spec is None or view_of(spec.workload).makes_transactions


def has_transactions(overviews: Sequence[Overview]) -> bool:
    """Whether any run makes transactions; without any run the page is that of transactions."""
    made = [makes_transactions(found, run) for found in overviews for run in found.runs]
    return not made or any(made)


def moved_bytes(found: Overview, run: tuple[str, str]) -> MovedBytes | None:
    """What a run is that is about bytes in a second; None of any other."""
    spec = found.spec(run)
    return None if spec is None else view_of(spec.workload).moved_bytes(spec)


def has_raw(overviews: Sequence[Overview]) -> bool:
    """Whether any run is about bytes in a second."""
    return any(moved_bytes(found, run) for found in overviews for run in found.runs)
