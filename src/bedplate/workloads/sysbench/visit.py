"""sysbench: the same OLTP scripts on every server that speaks SQL, driven and recorded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bedplate.errors import BedplateError, CommandFailed
from bedplate.host.apt import PackageTree
from bedplate.host.command import Account
from bedplate.host.shut_in import Restriction
from bedplate.model.cell import Dataset, RunSpec
from bedplate.model.levels import Scalar
from bedplate.model.reason import reasons_of
from bedplate.model.visit import RunRecord
from bedplate.visit.recording import (
    MEASURE,
    WARMUP,
    ClientRecording,
    Driver,
    LoggedClient,
    VisitContext,
    Workload,
)
from bedplate.visit.server import MYSQL, SqlEndpoint, sql_server_of, why_the_server_is_gone

PACKAGE = "sysbench"

# Where a load may use several: each fills a table of its own.
_LOADERS_MOST = 4

LOGGING_SCRIPT = Path(__file__).with_name("transaction_log.lua")


class Sysbench:
    """An unpacked sysbench, and how a server is reached; BedplateError where the request names no tree."""

    def __init__(self, inputs: Mapping[str, str], endpoint: SqlEndpoint, dataset: Dataset) -> None:
        if PACKAGE not in inputs:
            raise BedplateError(
                "the request names no sysbench; `bedplate doctor PLAN --install` unpacks its package"
            )
        self._tree = PackageTree(Path(inputs[PACKAGE]), {}, {})
        self._scripts = self._tree.root / "usr/share/sysbench"
        self._endpoint = endpoint
        self._tables = dataset.levels.integer("tables") or 1
        self._rows = dataset.levels.integer("table_size") or 1
        self.row_count = self._tables * self._rows

    @property
    def program(self) -> str:
        """Its path."""
        return str(self._tree.demand_program("sysbench"))

    def restriction(
        self, account: Account, *, writable: tuple[Path, ...] = (), readable: tuple[Path, ...] = ()
    ) -> Restriction:
        """What it is left: its tree, the server's socket, and these."""
        socket = Path(self._endpoint.socket)
        folder = socket.parent if self._endpoint.protocol == MYSQL else socket
        return Restriction(account, writable, (self._tree.root, *readable), (folder,))

    def environment(self, **variables: str) -> Mapping[str, str]:
        """What an unpacked program needs to find its libraries and its scripts."""
        return {**self._tree.environment, "LUA_PATH": f"{self._scripts}/?.lua;;", **variables}

    def preparing(self) -> list[str]:
        """The argument list that makes and fills the tables."""
        threads = min(self._tables, _LOADERS_MOST)
        return self._argv(threads, self.script("oltp_read_write"), "prepare")

    def running(
        self, spec: RunSpec, script: Path, *, duration_s: float, seed: int, rate_tps: float | None
    ) -> list[str]:
        """That of a run; `script` is the logging one, as the account can read it."""
        return self._argv(
            spec.levels.integer("threads") or 1,
            f"--time={max(1, round(duration_s))}",
            "--events=0",
            f"--rand-seed={seed % 2**31}",
            "--percentile=99",
            "--histogram=on",
            *(() if rate_tps is None else (f"--rate={rate_tps:g}",)),
            str(script),
            "run",
        )

    def script(self, name: str) -> str:
        """The path of one of the distribution's scripts."""
        return f"{self._scripts}/{name}.lua"

    def _argv(self, threads: int, *words: str) -> list[str]:
        end = self._endpoint
        driver, host = ("mysql", "socket") if end.protocol == MYSQL else ("pgsql", "host")
        return [
            self.program,
            f"--db-driver={driver}",
            f"--{driver}-{host}={end.socket}",
            f"--{driver}-user={end.user}",
            f"--{driver}-db={end.database}",
            f"--tables={self._tables}",
            f"--table-size={self._rows}",
            f"--threads={threads}",
            *words,
        ]


_LOG_READER = Driver("pgbench_log")

# Loading is bounded, not timed out by accident: a thousand rows a second is a very slow disk.
_LOAD_LIMIT_ROWS_PER_S = 1000.0


class SysbenchWorkload(Workload):
    """`type = "sysbench"` in a plan."""

    name = "sysbench"
    protocol = "sysbench 1"
    drivers: tuple[Driver, ...] = (_LOG_READER,)

    def load(self, dataset: Dataset, context: VisitContext) -> None:
        """Make and fill the tables, then force everything to the device."""
        server = sql_server_of(context)
        tool = Sysbench(context.inputs, server.endpoint, dataset)
        said = context.commands.run(
            [tool.program, "--version"],
            confinement=tool.restriction(context.account),
            extra_environment=tool.environment(),
        ).stdout
        context.tool_versions[PACKAGE] = said.removeprefix(PACKAGE).strip()
        try:
            context.commands.run(
                tool.preparing(),
                confinement=tool.restriction(context.account),
                timeout_s=600 + tool.row_count / _LOAD_LIMIT_ROWS_PER_S,
                extra_environment=tool.environment(),
            )
        except CommandFailed as error:
            # sysbench only says that a statement failed; the cause is the server's to tell.
            raise BedplateError(*why_the_server_is_gone(context), *reasons_of(error)) from error
        with server.session() as session:
            server.settle(session)
            server.checkpoint(session)

    def run(self, spec: RunSpec, context: VisitContext, directory: Path) -> RunRecord:
        """A checkpoint, the warm-up, the measurement; probes beside both."""
        recording = ClientRecording(spec, context, directory)
        return recording.run_steps(_SysbenchRun(recording).measure)


class _SysbenchRun:
    """One run under way."""

    def __init__(self, recording: ClientRecording) -> None:
        self._recording = recording
        self._spec = recording.spec
        self._context = context = recording.context
        self._tool = Sysbench(context.inputs, recording.server.endpoint, context.dataset)
        levels = self._spec.levels
        self._warmup_s = levels.number("warmup_s") or 0.0
        self._duration_s = levels.number("duration_s") or 1.0
        self._rate_tps = levels.number("rate_tps")
        threads = levels.integer("threads") or 1
        known: dict[str, Scalar] = {**dict(levels), **dict(context.dataset.levels)}
        facts = ("script", "rate_tps", "tables", "table_size")
        recording.facts |= {name: known[name] for name in facts if name in known}
        recording.facts |= {"clients": threads, "threads": threads, "duration_s_asked": self._duration_s}

    def measure(self) -> None:
        """The run itself; raises what stops it, after the probes have been stopped."""
        script = self._context.log_directory / f"{self._spec.id}.lua"
        script.write_text(LOGGING_SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")
        script.chmod(0o644)
        with self._recording.server.session() as session, self._recording.watched(session):
            if self._warmup_s > 0:
                with self._recording.warm_up():
                    self._follow(WARMUP, script, self._warmup_s)
            with self._recording.timed_phase(MEASURE):
                self._follow(MEASURE, script, self._duration_s)

    def _follow(self, phase: str, script: Path, duration_s: float) -> None:
        ended = self._recording.follow(
            phase, duration_s, lambda log_prefix: self._client(phase, script, duration_s, log_prefix)
        )
        self._recording.demand(ended)

    def _client(self, phase: str, script: Path, duration_s: float, log_prefix: Path) -> LoggedClient:
        context, directory, is_measured = self._context, self._recording.directory, phase == MEASURE
        return LoggedClient(
            argv=self._tool.running(
                self._spec,
                script,
                duration_s=duration_s,
                # Another seed for the measurement: else it would repeat the warm-up's rows.
                seed=context.seed + is_measured,
                # A rate is a question about latency under load; the warm-up goes at full speed.
                rate_tps=self._rate_tps if is_measured else None,
            ),
            restriction=self._tool.restriction(
                context.account, writable=(log_prefix.parent,), readable=(context.log_directory,)
            ),
            log_reader=(context.native_drivers[_LOG_READER.name],),
            log_prefix=log_prefix,
            condensed=directory / f"{phase}.bin",
            output=directory / "logs" / (PACKAGE if is_measured else phase),
            more_environment=self._tool.environment(
                BEDPLATE_SCRIPT=self._tool.script(self._spec.levels.text("script") or ""),
                BEDPLATE_LOG=str(log_prefix),
            ),
        )


RUN: Workload = SysbenchWorkload()
