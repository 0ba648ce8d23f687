"""sysbench: the same OLTP scripts on every server that speaks SQL, driven and recorded.

Warm-up and measurement are two processes, as with pgbench, so that sysbench's own summary speaks of exactly the measured window
and can be held against the figures made from the transaction log.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, CommandFailed
from bedplate.model.reason import reasons_of
from bedplate.probe.kernel import ProcessProbe
from bedplate.visit.engine_server import ServerFailed
from bedplate.visit.logged_client import LoggedClient
from bedplate.visit.piped_session import SessionFailed
from bedplate.visit.recording import Recording
from bedplate.visit.server import why_the_server_is_gone
from bedplate.visit.sql_server import sql_server_of
from bedplate.visit.workload import Driver
from bedplate.workloads.sysbench.command import PACKAGE, Sysbench, logging_script

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.host.requirement import Need
    from bedplate.model.cell import Dataset, RunSpec
    from bedplate.model.levels import Scalar
    from bedplate.model.visit import RunRecord
    from bedplate.visit.piped_session import PipedSession
    from bedplate.visit.workload import VisitContext, Workload

_LOG_READER = Driver("pgbench_log")
# Loading is bounded, not timed out by accident: a thousand rows a second is a very slow disk.
_LOAD_LIMIT_ROWS_PER_S = 1000.0


class SysbenchWorkload:
    """`type = "sysbench"` in a plan."""

    name = "sysbench"
    # Raised whenever a change of how it is measured makes old and new figures incomparable.
    protocol = "sysbench 1"
    needs: tuple[Need, ...] = ()
    drivers: tuple[Driver, ...] = (_LOG_READER,)

    def load(self, dataset: Dataset, context: VisitContext) -> None:
        """Make and fill the tables, then force everything to the device."""
        server = sql_server_of(context)
        tool = Sysbench(context.inputs, server.endpoint, dataset)
        rows = (dataset.levels.integer("tables") or 1) * (dataset.levels.integer("table_size") or 1)
        said = context.commands.run([tool.program, "--version"], extra_environment=tool.environment()).stdout
        context.tool_versions[PACKAGE] = said.removeprefix(PACKAGE).strip()
        try:
            context.commands.run(
                tool.preparing(),
                account=context.account,
                timeout_s=600 + rows / _LOAD_LIMIT_ROWS_PER_S,
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
        measurement = _SysbenchRun(spec, context, directory)
        recording = measurement.recording
        try:
            with sql_server_of(context).session() as session:
                measurement.measure(session)
        except (ServerFailed, SessionFailed) as error:
            recording.reasons.extend(reasons_of(error))
            recording.reasons.extend(why_the_server_is_gone(context))
        except BedplateError as error:
            recording.reasons.extend(reasons_of(error))
        return recording.record()


class _SysbenchRun:
    """One run under way."""

    def __init__(self, spec: RunSpec, context: VisitContext, directory: Path) -> None:
        self.recording = Recording(spec, context, directory)
        self._spec = spec
        self._context = context
        self._directory = directory
        self._server = sql_server_of(context)
        self._tool = Sysbench(context.inputs, self._server.endpoint, context.dataset)
        levels = spec.levels
        self._warmup_s = levels.number("warmup_s") or 0.0
        self._duration_s = levels.number("duration_s") or 1.0
        self._rate_tps = levels.number("rate_tps")
        threads = levels.integer("threads") or 1
        facts: dict[str, Scalar | None] = {
            "script": levels.text("script"),
            "clients": threads,
            "threads": threads,
            "duration_s_asked": self._duration_s,
            "rate_tps": self._rate_tps,
            "tables": context.dataset.levels.integer("tables"),
            "table_size": context.dataset.levels.integer("table_size"),
        }
        self.recording.facts |= {name: value for name, value in facts.items() if value is not None}
        self._client_pids: list[int] = []
        self._watching_pids: list[int] = [os.getpid()]

    def measure(self, session: PipedSession) -> None:
        """The run itself; raises what stops it, after the probes have been stopped."""
        recording, server = self.recording, self._server
        self._watching_pids.append(session.pid)
        server.checkpoint(session)
        script = self._context.log_directory / f"{self._spec.id}.lua"
        script.write_text(logging_script(), encoding="utf-8")
        script.chmod(0o644)
        probes = [
            server.probe(session),
            ProcessProbe("client", lambda: tuple(self._client_pids)),
            ProcessProbe("watching", lambda: tuple(self._watching_pids)),
        ]
        with recording.sampled(probes, first_phase="warmup"):
            if self._warmup_s > 0:
                with recording.warm_up():
                    self._follow("warmup", script, self._warmup_s)
            with recording.timed_phase("measure"):
                self._follow("measure", script, self._duration_s)
        if self._context.server is not None:
            self._context.server.check_alive()
        sizes = server.sizes(session)
        recording.facts |= {
            "database_bytes": sizes.database_bytes,
            "wal_bytes_on_disk": sizes.log_bytes,
            "block_size_bytes": sizes.block_size_bytes,
        }

    def _follow(self, phase: str, script: Path, duration_s: float) -> None:
        context, is_measured = self._context, phase == "measure"
        log_directory = context.log_directory / f"{phase}-{self._spec.id}"
        log_directory.mkdir()
        shutil.chown(log_directory, context.account.uid, context.account.gid)
        client = LoggedClient(
            argv=self._tool.running(
                self._spec,
                script,
                duration_s=duration_s,
                # Another seed for the measurement: else it would repeat the warm-up's rows.
                seed=context.seed + is_measured,
                # A rate is a question about latency under load; the warm-up goes at full speed.
                rate_tps=self._rate_tps if is_measured else None,
            ),
            account=context.account,
            log_reader=(context.native_drivers[_LOG_READER.name],),
            log_prefix=log_directory / "log",
            condensed=self._directory / f"{phase}.bin",
            output=self._directory / "logs" / (PACKAGE if is_measured else phase),
            more_environment=self._tool.environment(
                BEDPLATE_SCRIPT=self._tool.script(self._spec.levels.text("script") or ""),
                BEDPLATE_LOG=str(log_directory / "log"),
            ),
        )
        self.recording.commands.append(tuple(client.argv))
        with contextlib.ExitStack() as undo:
            undo.callback(shutil.rmtree, log_directory, ignore_errors=True)
            undo.callback(client.abandon)
            client.start()
            self._client_pids.append(client.pid)
            self._watching_pids.append(client.log_reader_pid)
            for seen in client.seconds():
                context.emit(seen.event(self._spec.name, phase, duration_s))
            ended = client.finish()
            self.recording.facts[f"{phase}_client_cpu_s"] = ended.client_cpu_s
            self.recording.facts[f"{phase}_client_sleeps"] = ended.sleeps
            if ended.problem is not None:
                raise BedplateError(ended.problem, *why_the_server_is_gone(context))


RUN: Workload = SysbenchWorkload()
