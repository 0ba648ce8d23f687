"""pgbench: PostgreSQL's own benchmark, driven and recorded.

Warm-up and measurement are two pgbench processes, so that pgbench's own summary speaks of exactly
the measured window and can be held against the figures made from its transaction log.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.counters import PostgresqlProbe
from bedplate.engines.postgresql.foreign_data import ClusterLayout, size_of
from bedplate.engines.postgresql.server import cluster_of
from bedplate.errors import BedplateError, CommandFailed
from bedplate.host.cgroups.group import drop_page_cache
from bedplate.model.reason import Reason, distinct, reasons_of
from bedplate.model.visit import Outcome, Phase, RunRecord, Sample
from bedplate.probe.kernel import ProcessProbe
from bedplate.probe.sampler import Sampler, read_all
from bedplate.units import format_size
from bedplate.visit.engine_server import ServerFailed
from bedplate.visit.logged_client import LoggedClient
from bedplate.visit.piped_session import SessionFailed
from bedplate.visit.server import why_the_server_is_gone
from bedplate.visit.workload import Driver
from bedplate.workloads.pgbench.commits import commit_facts, unlogged_writes
from bedplate.workloads.pgbench.dump import DUMP, without_data
from bedplate.workloads.pgbench.scripts import BUILT_IN, READ_WRITE, scripts_of, variables_of
from bedplate.workloads.pgbench.steadiness import SteadyDetector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.engines.postgresql.session import Session
    from bedplate.host.requirement import Need
    from bedplate.model.cell import Dataset, RunSpec
    from bedplate.model.levels import Scalar
    from bedplate.probe.protocol import Probe
    from bedplate.visit.workload import VisitContext, Workload

_DEFAULT_DURATION_S = 60.0
# Loading is bounded, not timed out by accident: 20 s for each unit of scale is a very slow disk.
_LOAD_LIMIT_S_PER_SCALE = 20.0


class Pgbench:
    """`type = "pgbench"` in a plan."""

    name = "pgbench"
    # Raised whenever a change of how it is measured makes old and new figures incomparable.
    protocol = "pgbench 1"
    needs: tuple[Need, ...] = ()
    drivers: tuple[Driver, ...] = (Driver("pgbench_log"),)

    def load(self, dataset: Dataset, context: VisitContext) -> None:
        """Create and fill pgbench's tables, or copy one's own database, then force everything to the device."""
        if dataset.levels.text(DUMP) is not None:
            _copy_database(context)
            return
        scale = dataset.levels.integer("scale") or 1
        connection = cluster_of(context).connection.of_client
        try:
            context.commands.run(
                [
                    str(connection.program("pgbench")),
                    "--initialize",
                    "--quiet",
                    f"--scale={scale}",
                    *_fillfactor(dataset),
                    *connection.options(),
                ],
                account=context.account,
                timeout_s=600 + _LOAD_LIMIT_S_PER_SCALE * scale,
            )
        except CommandFailed as error:
            # pgbench only says that its connection failed; the cause is the server's to tell.
            raise BedplateError(*why_the_server_is_gone(context), *reasons_of(error)) from error
        _checkpoint(context)

    def run(self, spec: RunSpec, context: VisitContext, directory: Path) -> RunRecord:
        """A CHECKPOINT, the warm-up, the measurement; probes beside both."""
        measurement = _Measurement(spec, context, directory)
        try:
            with cluster_of(context).session() as session:
                measurement.measure(session)
        except (ServerFailed, SessionFailed) as error:
            measurement.reasons.extend(reasons_of(error))
            measurement.reasons.extend(why_the_server_is_gone(context))
        except BedplateError as error:
            measurement.reasons.extend(reasons_of(error))
        return measurement.record()


def _copy_database(context: VisitContext) -> None:
    """Put the copy of the restored database that fits this cluster in the place of the empty one."""
    cluster = cluster_of(context)
    layout = ClusterLayout(cluster.build, context.request.cell.cluster.data_checksums)
    data = context.inputs.get(layout.key)
    if data is None:
        raise BedplateError(
            f"the request names no restored {context.dataset.levels.text(DUMP)} for this build"
        )
    needed, free = size_of(Path(data)), shutil.disk_usage(context.mount_point).free
    if needed > free:
        raise BedplateError(
            f"the restored database has {format_size(needed)}, and the file system {format_size(free)} free; a larger image_size "
            "gives it room"
        )
    cluster.take_over(Path(data))
    if context.request.cell.device.memory_bytes is not None:
        # Pages belong to the group that first touched them; the copy was made outside.
        drop_page_cache()
    _checkpoint(context)


def _checkpoint(context: VisitContext) -> None:
    with cluster_of(context).session() as session:
        session.execute("CHECKPOINT")


@dataclass(frozen=True)
class _Settings:
    """The levels of a run, with pgbench's own defaults where the plan is silent."""

    script: str
    clients: int
    jobs: int
    duration_s: float
    warmup_s: float
    until_steady: bool
    rate_tps: float | None

    @classmethod
    def of(cls, spec: RunSpec) -> _Settings:
        levels = spec.levels
        clients = levels.integer("clients") or 1
        return cls(
            script=levels.text("script") or READ_WRITE,
            clients=clients,
            jobs=levels.integer("jobs") or 1,
            duration_s=levels.number("duration_s") or _DEFAULT_DURATION_S,
            warmup_s=levels.number("warmup_s") or 0.0,
            until_steady=levels.text("warmup") == "until steady",
            rate_tps=levels.number("rate_tps"),
        )


class _Measurement:
    """One run under way: collects what the record will say, whatever happens."""

    def __init__(self, spec: RunSpec, context: VisitContext, directory: Path) -> None:
        self.reasons: list[Reason] = []
        self._spec = spec
        self._context = context
        self._directory = directory
        self._settings = _Settings.of(spec)
        self._phases: list[Phase] = []
        self._before: Sample | None = None
        self._after: Sample | None = None
        self._facts: dict[str, Scalar] = {
            "script": self._settings.script,
            "clients": self._settings.clients,
            "jobs": self._settings.jobs,
            "duration_s_asked": self._settings.duration_s,
            "cpu_count": os.cpu_count() or 1,
            "block_size_bytes": cluster_of(context).build.block_size_bytes,
            "memory_bytes": context.memory_bytes,
        }
        self._is_own_database = context.dataset.levels.text(DUMP) is not None
        if not self._is_own_database:
            self._facts["scale"] = context.dataset.levels.integer("scale") or 1
        scale_asked = context.dataset.levels.text("scale_asked")
        if scale_asked is not None:
            self._facts["scale_asked"] = scale_asked
        if self._settings.rate_tps is not None:
            self._facts["rate_tps"] = self._settings.rate_tps
        self._commands: list[tuple[str, ...]] = []
        self._client_pids: list[int] = []
        self._watching_pids: list[int] = [os.getpid()]
        self._detector = SteadyDetector()
        self._last_reads: float | None = None

    def measure(self, session: Session) -> None:
        """The run itself; raises what stops it, after the probes have been stopped."""
        self._watching_pids.append(session.pid)
        session.execute("CHECKPOINT")
        probes = self._probes(session)
        unlogged_before = unlogged_writes(session)
        sampler = Sampler(probes, self._directory / "course.jsonl", on_sample=self._watch_reads)
        sampler.start()
        try:
            self._warm_up()
            self._before = read_all(probes, phase="measure")
            sampler.phase = "measure"
            self._run_phase("measure", self._settings.duration_s)
            self._after = read_all(probes, phase="measure")
        finally:
            sampler.stop()
            if sampler.problem is not None:
                self._facts["course_problem"] = sampler.problem
        cluster_of(self._context).check_alive()
        self._facts["database_bytes"] = int(session.value("SELECT pg_database_size(current_database())"))
        self._facts["wal_bytes_on_disk"] = int(
            session.value("SELECT coalesce(sum(size), 0)::bigint FROM pg_ls_waldir()")
        )

        assert self._before is not None  # noqa: S101 -- read above
        assert self._after is not None  # noqa: S101
        self._facts |= commit_facts(
            self._context,
            before=self._before,
            after=self._after,
            clients=self._settings.clients,
            scripts=scripts_of(self._spec.levels),
            unlogged_before=unlogged_before,
        )

    def record(self) -> RunRecord:
        """What is known now; `completed` only if nothing spoke against it."""
        return RunRecord(
            spec=self._spec,
            outcome=Outcome.FAILED if self.reasons else Outcome.COMPLETED,
            reasons=distinct(self.reasons),
            phases=tuple(self._phases),
            before=self._before,
            after=self._after,
            facts=self._facts,
            commands=tuple(self._commands),
        )

    def _probes(self, session: Session) -> list[Probe]:
        return [
            *self._context.probes,
            PostgresqlProbe(session, cluster_of(self._context).build.version),
            ProcessProbe("client", lambda: tuple(self._client_pids)),
            ProcessProbe("watching", lambda: tuple(self._watching_pids)),
        ]

    def _warm_up(self) -> None:
        if self._settings.until_steady:
            self._run_phase("warmup", self._settings.warmup_s, until_steady=True)
        elif self._settings.warmup_s > 0:
            self._run_phase("warmup", self._settings.warmup_s)
            self._facts["warmup_ended"] = "fixed"

    def _run_phase(self, phase: str, duration_s: float, *, until_steady: bool = False) -> None:
        log_directory = self._context.log_directory / f"{phase}-{self._spec.id}"
        log_directory.mkdir()
        shutil.chown(log_directory, self._context.account.uid, self._context.account.gid)
        process = LoggedClient(
            argv=pgbench_options(
                self._spec,
                self._context,
                duration_s=duration_s,
                # Another seed for the measurement: else it would repeat the warm-up's rows.
                seed=self._context.seed + (phase == "measure"),
                log_prefix=log_directory / "log",
                rate_tps=self._rate(phase),
            ),
            account=self._context.account,
            log_reader=self._log_reader(phase),
            log_prefix=log_directory / "log",
            condensed=self._directory / f"{phase}.bin",
            output=self._directory / "logs" / ("pgbench" if phase == "measure" else phase),
            kept_of_errors=without_data if self._is_own_database else str,
        )
        self._commands.append(tuple(process.argv))
        try:
            start_monotonic_s, start_wall_s = time.monotonic(), time.time()
            process.start()
            self._client_pids.append(process.pid)
            self._watching_pids.append(process.log_reader_pid)
            stopped = self._follow(process, phase, duration_s, until_steady=until_steady)
            self._phases.append(Phase(phase, start_monotonic_s, time.monotonic(), start_wall_s, time.time()))
            ended = process.finish()
            if until_steady:
                self._facts["warmup_ended"] = "steady" if stopped else "limit"
            self._facts[f"{phase}_client_cpu_s"] = ended.client_cpu_s
            self._facts[f"{phase}_client_sleeps"] = ended.sleeps
            self._facts[f"{phase}_pgbench_status"] = ended.status
            if ended.problem is not None:
                raise BedplateError(ended.problem, *why_the_server_is_gone(self._context))
        finally:
            process.abandon()
            shutil.rmtree(log_directory, ignore_errors=True)

    def _follow(self, process: LoggedClient, phase: str, duration_s: float, *, until_steady: bool) -> bool:
        """Pass on what each second brings; True if a steady warm-up was ended early."""
        stopped = False
        for seen in process.seconds():
            self._context.emit(seen.event(self._spec.name, phase, duration_s))
            if until_steady and not stopped:
                self._detector.add_second(seen.transactions)
                if self._detector.steady:
                    # pgbench's own alarm for the end of its time (pgbench.c, handle_sig_alarm).
                    process.stop_early(signal.SIGALRM)
                    stopped = True
        return stopped

    def _watch_reads(self, sample: Sample) -> None:
        reads = sample.values.get("device.reads")
        if reads is not None and self._last_reads is not None:
            self._detector.add_reads(reads - self._last_reads)
        self._last_reads = reads

    def _log_reader(self, phase: str) -> tuple[str, ...]:
        # A rate adds the schedule lag to every line of the log; the reader must know.
        return (
            self._context.native_drivers["pgbench_log"],
            *(("--schedule-lag",) if self._rate(phase) is not None else ()),
        )

    def _rate(self, phase: str) -> float | None:
        """A rate is a question about latency under load; the warm-up goes at full speed."""
        return self._settings.rate_tps if phase == "measure" else None


def pgbench_options(
    spec: RunSpec,
    context: VisitContext,
    *,
    duration_s: float,
    seed: int,
    log_prefix: Path | None = None,
    rate_tps: float | None = None,
) -> list[str]:
    """The argument list of a run; without `log_prefix` nothing is logged (the bare benchmark)."""
    settings = _Settings.of(spec)
    connection = cluster_of(context).connection.of_client
    protocol = spec.levels.text("protocol")
    return [
        str(connection.program("pgbench")),
        "--no-vacuum",
        f"--client={settings.clients}",
        f"--jobs={settings.jobs}",
        f"--time={max(1, round(duration_s))}",
        f"--random-seed={seed % 2**31}",
        *(() if log_prefix is None else ("--log", f"--log-prefix={log_prefix}")),
        *(() if protocol is None else (f"--protocol={protocol}",)),
        *(() if rate_tps is None else (f"--rate={rate_tps:g}",)),
        *_script_options(spec, context),
        *connection.options(),
    ]


def _script_options(spec: RunSpec, context: VisitContext) -> Iterator[str]:
    scripts = scripts_of(spec.levels)
    # pgbench finds the scale of its own scripts only; an own script's :scale would be 1.
    if any(script.text is not None for script in scripts) and context.dataset.levels.text(DUMP) is None:
        yield f"--scale={context.dataset.levels.integer('scale') or 1}"
    yield from (f"--define={name}={value}" for name, value in variables_of(spec.levels).items())
    for number, script in enumerate(scripts, start=1):
        weight = f"@{script.weight}" if len(scripts) > 1 else ""
        built_in = BUILT_IN.get(script.name)
        if script.text is None and built_in is not None:
            yield f"--builtin={built_in.option}{weight}"
            continue
        if script.text is None:
            raise BedplateError(f"the script {script.name!r} has no text")
        path = context.log_directory / f"{spec.id}-{number}.sql"
        path.write_text(script.text, encoding="utf-8")
        path.chmod(0o644)
        yield f"--file={path}{weight}"


def _fillfactor(dataset: Dataset) -> list[str]:
    fillfactor = dataset.levels.integer("fillfactor")
    return [] if fillfactor is None else [f"--fillfactor={fillfactor}"]


RUN: Workload = Pgbench()
