"""Figures: the long rows of `run.json`, from which every table and picture is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from bedplate.model.reason import Reason, because
from bedplate.model.visit import Outcome, Validity

# The definitions that figures are made under. One that changes gets a new version, and its metrics a line below.
DEFINITIONS_VERSION = 2

# What changed with which version, and what the figures of earlier versions are: they are never used as today's.
_CHANGED: Mapping[str, tuple[int, Reason]] = dict.fromkeys(
    ("device_writes_per_transaction", "journal_device_writes_per_transaction"),
    (
        2,
        because(
            "definition-changed",
            "made by an earlier version, which subtracted every flush from the writes, also those that came with a write",
        ),
    ),
)

# What is said of a censored figure.
STOPPED_AT = "stopped at its limit of {limit}"


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

    @property
    def words(self) -> str:
        """`higher is better`."""
        return "neither way is better" if self is Better.NEITHER else f"{self.value} is better"


class Status(StrEnum):
    """Absent is not zero, censored is not measured."""

    MEASURED = "measured"
    CENSORED = "censored"
    ABSENT = "absent"


@dataclass(frozen=True)
class Metric:
    """A named figure with its unit, scale, better direction and definition, and what it is taken from."""

    name: str
    unit: str
    scale: Scale
    better: Better
    definition: str
    source: str = ""


def taken_from(source: str, *metrics: Metric) -> tuple[Metric, ...]:
    """The metrics; those that name no source of their own are taken from this one."""
    return tuple(each if each.source else replace(each, source=source) for each in metrics)


@dataclass(frozen=True)
class Figure:
    """One value of one metric in one run."""

    phase: str
    """`measure` for the whole run; else a part of it: `prepare`, `load`, `queries`, `stream 1`, `tests`, `scripts`, …
    (STUDY_FORMAT.md, “What each workload records”)"""
    item: str
    """a query, a table, a test, a stage, a script; empty for the whole phase"""
    pass_: int
    """from 1; of a run that is one of several passes its place among the plan's passes"""
    metric: str
    """name in the registry (METRICS.md)"""
    value: float | None
    """the figure in `unit`; null where absent or censored"""
    unit: str
    """as in the registry: `1/s`, `ms`, `MiB`, `share` (of one), `1` for counts"""
    scale: Scale
    """`ratio`, `proportion`, `count` or `share`; it decides the statistics"""
    better: Better
    """`higher`, `lower` or `neither`"""
    status: Status = Status.MEASURED
    """`measured`, `censored` (only a limit is known) or `absent`"""
    limit: float | None = None
    """the bound of a censored value"""
    reason: Reason | None = None
    """why it is absent"""


@dataclass(frozen=True)
class Window:
    """A checkpoint (or another stretch worth shading), as the server's log says."""

    kind: str
    """`timed`, `requested`, `end of recovery`"""
    start_s: float
    """seconds since the start of `measure`; negative in the warm-up"""
    end_s: float | None
    """the same; null where it had not ended when the run did"""


@dataclass(frozen=True)
class RunFigures:
    """`run.json`: everything that was made of one run."""

    format_version: int
    """2; 1 in older ones"""
    run: str
    """name of the run"""
    run_id: str
    """name and hash of its levels"""
    workload: str
    """its type in a plan (“What each workload records”)"""
    outcome: Outcome
    reasons: tuple[Reason, ...]
    """why not completed"""
    validity: Validity
    """`valid`, `suspect`, `unknown`, when its figures were made; readers join it with what became of the visit
    afterwards (METRICS.md, “Validity rules”)"""
    validity_reasons: tuple[Reason, ...]
    """why not valid"""
    measure_start_wall_s: float | None
    """Unix time of the first transaction, or of the first phase's start"""
    warmup_s: float | None
    """length of the warm-up, null without one"""
    duration_s: float | None
    """length of the measured window, or of all phases with what lay between them"""
    figures: tuple[Figure, ...] = ()
    """a row for each phase, item, pass and metric"""
    windows: tuple[Window, ...] = ()
    """checkpoints"""
    definitions: int = 1
    """version of the definitions that the figures are made under, 2 today; 1 in older runs, whose
    `device_writes_per_transaction` and `journal_device_writes_per_transaction` are read as absent"""


def as_defined_now(run: RunFigures) -> RunFigures:
    """The same, but what was made under another definition than today's is absent, with that reason."""
    if run.definitions >= DEFINITIONS_VERSION:
        return run
    return replace(run, figures=tuple(_as_defined_now(found, run.definitions) for found in run.figures))


def _as_defined_now(figure: Figure, definitions: int) -> Figure:
    since, reason = _CHANGED.get(figure.metric, (1, None))
    if definitions >= since or figure.status is not Status.MEASURED:
        return figure
    return replace(figure, value=None, status=Status.ABSENT, reason=reason)
