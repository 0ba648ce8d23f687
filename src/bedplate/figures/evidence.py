"""What the rules of validity look at: records of everything that speaks for or against a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bedplate.figures.server_log import Complaint
    from bedplate.figures.steadiness import TwoSpeeds
    from bedplate.model.figure import Window


@dataclass(frozen=True, kw_only=True)
class RunEvidence:
    """Of one completed run of any workload; None is not known, which is not the same as all being well.

    Times are seconds since the start of what was measured. `windows` are its checkpoints, None where the
    server's log could not be read. `course_problem` says why the samples end early, `course_missing` that they are gone. `problems` are inputs
    that could not be read at all. `others_cpu_share` is the least that other programs used of all processors.
    """

    duration_s: float
    windows: tuple[Window, ...] | None
    complaints: tuple[Complaint, ...]
    kernel_messages: tuple[str, ...]
    clock_step_s: float | None
    steal_share: float | None
    course_problem: str | None
    problems: tuple[str, ...]
    others_cpu_share: float | None = None
    course_missing: bool = False


@dataclass(frozen=True, kw_only=True)
class PgbenchEvidence(RunEvidence):
    """Of a run of pgbench.

    `reads_per_transaction_trend` and `tps_trend` are growth over the window as a share of the mean.
    `asked_times_memory` is the plan's scale as a multiple of the memory. `log_damage` names lines that the
    log's reader did not understand. `phase_s` is the phase on the monotonic clock, `pgbench_s` how long
    pgbench says that it connected and ran.
    """

    read_only: bool
    canary: bool
    asked_duration_s: float | None
    client_cpu_s: float | None
    client_threads: int
    cpu_count: int
    tps_trend: float | None
    reads_per_transaction_trend: float | None
    device_reads_per_s: float | None
    database_bytes: int | None
    memory_bytes: int | None
    asked_times_memory: float | None
    log_complete: bool | None
    log_damage: str | None
    transactions_in_log: int | None
    transactions_by_pgbench: int | None
    transactions_failed: int | None
    transactions_outside_window: int | None
    phase_s: float
    pgbench_s: float | None
    two_speeds: TwoSpeeds | None = None
    clients: int | None = None
    rate_limited: bool = False
    idle_cpu_share: float | None = None


@dataclass(frozen=True, kw_only=True)
class TpchEvidence(RunEvidence):
    """Of a run of TPC-H.

    `cold` says that the pass was to be cold, `made_cold` that it was made so. `read_bytes` came from the data
    device over the whole run. `stopped` counts the queries that were stopped at their limit. `missing` names
    phases, queries and streams that the record lacks or has twice.
    """

    cold: bool
    made_cold: bool
    read_bytes: float | None
    database_bytes: int | None
    stopped: int
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Moved:
    """What a part of a run asked to read or write, and what the device gave or took meanwhile; None is not known."""

    what: str
    asked_bytes: float
    device_bytes: float | None


@dataclass(frozen=True, kw_only=True)
class BonnieEvidence(RunEvidence):
    """Of a run of bonnie++: `reads` are those of the stages that must read its file."""

    canary: bool
    file_bytes: int | None
    memory_bytes: int | None
    reads: tuple[Moved, ...]


@dataclass(frozen=True, kw_only=True)
class FioEvidence(RunEvidence):
    """Of a run of fio: `writes` are those through the page cache, `steady_state_missed` a criterion that was not met."""

    reads: tuple[Moved, ...]
    writes: tuple[Moved, ...]
    steady_state_missed: str | None
