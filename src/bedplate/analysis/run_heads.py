"""Which figures stand for a run where there is room for two: by what the run does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.analysis.workload_view import RunHead, view_of
from bedplate.model.power_cut import WORKLOAD as POWER_CUT
from bedplate.model.raw import BONNIE, FIO

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.analysis.overview import Overview

# Also of a run that no visit has begun: nothing is said at its head.
TRANSACTIONS = RunHead("tps", "tps", "latency_ms_p99", "p99 ms")


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


def is_power_cut(found: Overview, run: tuple[str, str]) -> bool:
    """Whether a run is one of power cuts, which have a verdict and no speed."""
    return run_kind(found, run) == POWER_CUT


def makes_transactions(found: Overview, run: tuple[str, str]) -> bool:
    """Whether a run makes transactions, or would, where no visit has begun it."""
    spec = found.spec(run)
    return spec is None or view_of(spec.workload).makes_transactions


def has_transactions(overviews: Sequence[Overview]) -> bool:
    """Whether any run makes transactions; without any run the page is that of transactions."""
    made = [makes_transactions(found, run) for found in overviews for run in found.runs]
    return not made or any(made)


def has_raw(overviews: Sequence[Overview]) -> bool:
    """Whether any run is one of bonnie++ or of a job of fio."""
    return any(run_kind(found, run) in (BONNIE, FIO) for found in overviews for run in found.runs)
