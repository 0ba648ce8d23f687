"""Figures: the long rows of `run.json`, from which every table and picture is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from bedplate.model.visit import Outcome, Validity

# The definitions that figures are made under. One that changes gets a new version, and its metrics a line below.
DEFINITIONS_VERSION = 2
# What changed with which version, and what the figures of earlier versions are: they are never used as today's.
_CHANGED: Mapping[str, tuple[int, str]] = dict.fromkeys(
    ("device_writes_per_transaction", "journal_device_writes_per_transaction"),
    (
        2,
        "made by an earlier version, which subtracted every flush from the writes, also those that came with a write",
    ),
)


class Scale(StrEnum):
    """What kind of quantity a metric is; it decides the statistics."""

    RATIO = "ratio"
    PROPORTION = "proportion"
    COUNT = "count"
    SHARE = "share"


class Better(StrEnum):
    """Which way is better; `neither` for a description such as a size or a count of checkpoints."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


class Status(StrEnum):
    """Absent is not zero, censored is not measured."""

    MEASURED = "measured"
    CENSORED = "censored"
    ABSENT = "absent"


@dataclass(frozen=True)
class Metric:
    """A named figure with its unit, scale, better direction and definition."""

    name: str
    unit: str
    scale: Scale
    better: Better
    definition: str


@dataclass(frozen=True)
class Figure:
    """One value of one metric in one run. `reason` says why it is absent; `limit` where it is censored."""

    phase: str
    item: str
    pass_: int
    metric: str
    value: float | None
    unit: str
    scale: Scale
    better: Better
    status: Status = Status.MEASURED
    limit: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Window:
    """A checkpoint (or another stretch worth shading), in seconds since the start of `measure`.

    `kind` is `timed`, `requested` or `end of recovery`, as the server's log says. A checkpoint that
    had not ended when the run did has no end.
    """

    kind: str
    start_s: float
    end_s: float | None


@dataclass(frozen=True)
class RunFigures:
    """`run.json`: everything that was made of one run."""

    format_version: int
    run: str
    run_id: str
    workload: str
    outcome: Outcome
    reasons: tuple[str, ...]
    validity: Validity
    validity_reasons: tuple[str, ...]
    measure_start_wall_s: float | None
    warmup_s: float | None
    duration_s: float | None
    figures: tuple[Figure, ...] = ()
    windows: tuple[Window, ...] = ()
    definitions: int = 1


def as_defined_now(run: RunFigures) -> RunFigures:
    """The same, but what was made under another definition than today's is absent, with that reason."""
    return replace(run, figures=tuple(_as_defined_now(found, run.definitions) for found in run.figures))


def _as_defined_now(found: Figure, definitions: int) -> Figure:
    since, reason = _CHANGED.get(found.metric, (1, ""))
    if definitions >= since or found.status is not Status.MEASURED:
        return found
    return replace(found, value=None, status=Status.ABSENT, reason=reason)
