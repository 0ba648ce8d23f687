"""pgbench: PostgreSQL's own benchmark, driven and recorded."""

from __future__ import annotations

import re
import shutil
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.own_data.foreign_data import ClusterLayout, size_of
from bedplate.engines.postgresql.pgbench_script import SIMPLE, WAY_OUT, read_script
from bedplate.engines.postgresql.server import cluster_of
from bedplate.errors import BedplateError, CommandFailed
from bedplate.host.cgroups.group import drop_page_cache
from bedplate.model.reason import reasons_of
from bedplate.units import format_size
from bedplate.visit.client_recording import MEASURE, WARMUP, ClientRecording
from bedplate.visit.logged_client import ClientEnded, LoggedClient
from bedplate.visit.server import why_the_server_is_gone
from bedplate.visit.workload import Driver
from bedplate.workloads.pgbench.commits import commit_facts, unlogged_writes
from bedplate.workloads.pgbench.filler import FILLER, RANDOM, demand_random, load_random
from bedplate.workloads.pgbench.own_database import COPY, DUMP, is_own, without_data
from bedplate.workloads.pgbench.own_directory import DATABASE, demand_unchanged
from bedplate.workloads.pgbench.scripts import BUILT_IN, READ_WRITE, scripts_of, variables_of
from bedplate.workloads.pgbench.steadiness import SteadyDetector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.host.requirement import Need
    from bedplate.model.cell import Dataset, RunSpec
    from bedplate.model.levels import Scalar
    from bedplate.model.visit import RunRecord, Sample
    from bedplate.visit.logged_client import SecondSeen
    from bedplate.visit.workload import VisitContext, Workload

_DEFAULT_DURATION_S = 60.0
# Loading is bounded, not timed out by accident: 20 s for each unit of scale is a very slow disk.
_LOAD_LIMIT_S_PER_SCALE = 20.0
# What the server says of parameters where it takes none.
_PARAMETERS_REFUSED = re.compile(
    r"bind message supplies \d+ parameters|(?:syntax error at or near|there is no parameter|could not determine data type of parameter) "
    r'"?\$\d+|cannot insert multiple commands into a prepared statement|has too many arguments'
)


class Pgbench:
    """`type = "pgbench"` in a plan."""

    name = "pgbench"
    # Raised whenever a change of how it is measured makes old and new figures incomparable.
    protocol = "pgbench 1"
    needs: tuple[Need, ...] = ()
    drivers: tuple[Driver, ...] = (Driver("pgbench_log"),)

    def load(self, dataset: Dataset, context: VisitContext) -> None:
        """Create and fill pgbench's tables, or copy one's own database, then force everything to the device."""
        if is_own(dataset.levels):
            _copy_database(context)
            return
        if dataset.levels.text(FILLER) == RANDOM:
            _initialise(dataset, context, "--init-steps=dt")
            with cluster_of(context).client_session() as session:
                load_random(session, dataset.levels.integer("scale") or 1, context.seed)
            _initialise(dataset, context, "--init-steps=vp")
            with cluster_of(context).client_session() as session:
                demand_random(session)
        else:
            _initialise(dataset, context)
        _checkpoint(context)

    def run(self, spec: RunSpec, context: VisitContext, directory: Path) -> RunRecord:
        """A CHECKPOINT, the warm-up, the measurement; probes beside both."""
        recording = ClientRecording(spec, context, directory)
        return recording.made(_PgbenchRun(recording).measure)


def _initialise(dataset: Dataset, context: VisitContext, *steps: str) -> None:
    """Pgbench's own initialisation; of some of its steps where they are named."""
    scale = dataset.levels.integer("scale") or 1
    connection = cluster_of(context).connection.of_client
    try:
        context.commands.run(
            [
                str(connection.program("pgbench")),
                "--initialize",
                "--quiet",
                f"--scale={scale}",
                *steps,
                *_fillfactor(dataset),
                *connection.options(),
            ],
            confinement=connection.restriction(),
            timeout_s=600 + _LOAD_LIMIT_S_PER_SCALE * scale,
        )
    except CommandFailed as error:
        # pgbench only says that its connection failed; the cause is the server's to tell.
        raise BedplateError(*why_the_server_is_gone(context), *reasons_of(error)) from error


def _copy_database(context: VisitContext) -> None:
    """Put a copy of the restored database that fits this cluster, or of a data directory, in the place of the empty one."""
    cluster, levels = cluster_of(context), context.dataset.levels
    layout = ClusterLayout(cluster.build, context.request.cell.cluster.data_checksums)
    found = context.inputs.get(COPY if COPY in levels else layout.key)
    if found is None:
        raise BedplateError(
            f"the request names no database to be copied for {levels.get(DUMP) or levels.get(COPY)}"
        )
    data = Path(found)
    demand_unchanged(data, levels)
    needed, free = size_of(data), shutil.disk_usage(context.mount_point).free
    if needed > free:
        raise BedplateError(
            f"the database has {format_size(needed)}, and the file system {format_size(free)} free; a larger image_size gives it room"
        )
    cluster.take_over(data, database=levels.text(DATABASE))
    # A server that was started on them meanwhile wrote while they were read.
    demand_unchanged(data, levels)
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


class _PgbenchRun:
    """One run under way."""

    def __init__(self, recording: ClientRecording) -> None:
        self._recording = recording
        self._spec = recording.spec
        self._context = context = recording.context
        self._settings = _Settings.of(recording.spec)
        levels = context.dataset.levels
        self._is_own_database = is_own(levels)
        facts: dict[str, Scalar | None] = {
            "script": self._settings.script,
            "clients": self._settings.clients,
            "jobs": self._settings.jobs,
            "duration_s_asked": self._settings.duration_s,
            "block_size_bytes": cluster_of(context).build.block_size_bytes,
            "scale": None if self._is_own_database else levels.integer("scale") or 1,
            "scale_asked": levels.text("scale_asked"),
            FILLER: levels.text(FILLER),
            "rate_tps": self._settings.rate_tps,
        }
        recording.facts |= {name: value for name, value in facts.items() if value is not None}
        self._detector = SteadyDetector()
        self._stopped = False
        self._last_reads: float | None = None

    def measure(self) -> None:
        """The run itself; raises what stops it, after the probes have been stopped."""
        recording, settings = self._recording, self._settings
        with cluster_of(self._context).session() as session:
            unlogged_before = unlogged_writes(session)
            with recording.watched(session, on_sample=self._watch_reads):
                if settings.until_steady or settings.warmup_s > 0:
                    with recording.warm_up():
                        self._follow(WARMUP, settings.warmup_s)
                with recording.timed_phase(MEASURE):
                    self._follow(MEASURE, settings.duration_s)
            counters = recording.last_counters
            recording.facts |= commit_facts(
                self._context,
                before=counters.before,
                after=counters.after,
                clients=settings.clients,
                scripts=scripts_of(self._spec.levels),
                unlogged_before=unlogged_before,
            )

    def _follow(self, phase: str, duration_s: float) -> None:
        ends_early = phase == WARMUP and self._settings.until_steady
        ended = self._recording.follow(
            phase,
            duration_s,
            lambda log_prefix: self._client(phase, duration_s, log_prefix),
            on_second=self._stop_when_steady if ends_early else None,
        )
        self._recording.facts[f"{phase}_pgbench_status"] = ended.status
        if phase == WARMUP:
            early = "steady" if self._stopped else "limit"
            self._recording.facts["warmup_ended"] = early if ends_early else "fixed"
        self._recording.demand(_explained(ended, self._spec.levels.text("protocol")))

    def _client(self, phase: str, duration_s: float, log_prefix: Path) -> LoggedClient:
        context, directory = self._context, self._recording.directory
        # A rate is a question about latency under load; the warm-up goes at full speed.
        rate_tps = self._settings.rate_tps if phase == MEASURE else None
        # A rate adds the schedule lag to every line of the log; the reader must know.
        log_reader = (
            context.native_drivers["pgbench_log"],
            *(() if rate_tps is None else ("--schedule-lag",)),
        )
        return LoggedClient(
            argv=pgbench_options(
                self._spec,
                context,
                duration_s=duration_s,
                # Another seed for the measurement: else it would repeat the warm-up's rows.
                seed=context.seed + (phase == MEASURE),
                log_prefix=log_prefix,
                rate_tps=rate_tps,
            ),
            # Its scripts lie beside its log.
            restriction=cluster_of(context).connection.restriction(
                writable=(log_prefix.parent,), readable=(context.log_directory,)
            ),
            log_reader=log_reader,
            log_prefix=log_prefix,
            condensed=directory / f"{phase}.bin",
            output=directory / "logs" / ("pgbench" if phase == MEASURE else phase),
            kept_of_errors=without_data if self._is_own_database else str,
        )

    def _stop_when_steady(self, client: LoggedClient, seen: SecondSeen) -> None:
        if not self._stopped:
            self._detector.add_second(seen.transactions)
            if self._detector.steady:
                # pgbench's own alarm for the end of its time (pgbench.c, handle_sig_alarm).
                client.stop_early(signal.SIGALRM)
                self._stopped = True

    def _watch_reads(self, sample: Sample) -> None:
        reads = sample.values.get("device.reads")
        if reads is not None and self._last_reads is not None:
            self._detector.add_reads(reads - self._last_reads)
        self._last_reads = reads


def _explained(ended: ClientEnded, protocol: str | None) -> ClientEnded:
    """With the way out where the server refused what a protocol makes of variables."""
    if protocol in (None, SIMPLE) or not _PARAMETERS_REFUSED.search(ended.said):
        return ended
    why = f'it ran with protocol = "{protocol}", where variables are parameters of statements'
    return replace(ended, problem=f"{ended.problem}; {why}; {WAY_OUT}")


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
    if any(script.text is not None for script in scripts) and not is_own(context.dataset.levels):
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
        # A request may come from a study that somebody else wrote, and no plan.
        if problems := read_script(script.text).problems:
            raise BedplateError(*(f"script {script.name}: {problem}" for problem in problems))
        path = context.log_directory / f"{spec.id}-{number}.sql"
        path.write_text(script.text, encoding="utf-8")
        path.chmod(0o644)
        yield f"--file={path}{weight}"


def _fillfactor(dataset: Dataset) -> list[str]:
    fillfactor = dataset.levels.integer("fillfactor")
    return [] if fillfactor is None else [f"--fillfactor={fillfactor}"]


RUN: Workload = Pgbench()
