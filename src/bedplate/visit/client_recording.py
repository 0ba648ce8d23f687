"""A run of a client that logs its transactions, on a server that speaks SQL: a checkpoint, the warm-up, the measurement.

Warm-up and measurement are two processes of the client, so that its own summary speaks of exactly the measured window and can
be held against the figures made from its transaction log.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.host.pages.extents import extents_of
from bedplate.probe.kernel import ProcessProbe
from bedplate.units import MIB
from bedplate.visit.recording import Recording
from bedplate.visit.server import why_the_server_is_gone
from bedplate.visit.sql_server import sql_server_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from bedplate.model.cell import RunSpec
    from bedplate.model.levels import Scalar
    from bedplate.model.visit import RunRecord, Sample
    from bedplate.visit.logged_client import ClientEnded, LoggedClient, SecondSeen
    from bedplate.visit.piped_session import PipedSession
    from bedplate.visit.workload import VisitContext

WARMUP, MEASURE = "warmup", "measure"
# A catalogue's file is one piece, and there are hundreds of them.
_LARGER_BYTES = MIB


class ClientRecording(Recording):
    """What a run has recorded so far; `watched` frames both phases, `follow` is one process of the client."""

    def __init__(self, spec: RunSpec, context: VisitContext, directory: Path) -> None:
        super().__init__(spec, context, directory)
        self.server = sql_server_of(context)
        self._client_pids: list[int] = []
        self._watching_pids: list[int] = [os.getpid()]

    @contextlib.contextmanager
    def watched(
        self, session: PipedSession, *, on_sample: Callable[[Sample], None] | None = None
    ) -> Iterator[None]:
        """A checkpoint, then probes beside the run, which have the session to themselves; its sizes at the end."""
        self._watching_pids.append(session.pid)
        self.server.checkpoint(session)
        probes = [
            self.server.probe(session),
            ProcessProbe("client", lambda: tuple(self._client_pids)),
            ProcessProbe("watching", lambda: tuple(self._watching_pids)),
        ]
        with self.sampled(probes, first_phase=WARMUP, on_sample=on_sample):
            yield
        if self.context.server is not None:
            self.context.server.check_alive()
        sizes = self.server.sizes(session)
        self.facts |= {
            "database_bytes": sizes.database_bytes,
            "wal_bytes_on_disk": sizes.log_bytes,
            "block_size_bytes": sizes.block_size_bytes,
            **pieces_of(sizes.files),
        }

    def follow(
        self,
        phase: str,
        duration_s: float,
        client_of: Callable[[Path], LoggedClient],
        *,
        on_second: Callable[[LoggedClient, SecondSeen], None] | None = None,
    ) -> ClientEnded:
        """One process from its start to its end, good or bad; `client_of` gets how the names of its logs begin."""
        logs = self.context.log_directory / f"{phase}-{self.spec.id}"
        logs.mkdir()
        shutil.chown(logs, self.context.account.uid, self.context.account.gid)
        client = client_of(logs / "log")
        self.commands.append(tuple(client.argv))
        try:
            client.start()
            self._client_pids.append(client.pid)
            self._watching_pids.append(client.log_reader_pid)
            for seen in client.seconds():
                self.context.emit(seen.event(self.spec.name, phase, duration_s))
                if on_second is not None:
                    on_second(client, seen)
            ended = client.finish()
        finally:
            client.abandon()
            shutil.rmtree(logs, ignore_errors=True)
        self.facts[f"{phase}_client_cpu_s"] = ended.client_cpu_s
        self.facts[f"{phase}_client_sleeps"] = ended.sleeps
        return ended

    def demand(self, ended: ClientEnded) -> None:
        """BedplateError with what the client said where it ended badly, and why the server is gone, if it is."""
        if ended.problem is not None:
            raise BedplateError(ended.problem, *why_the_server_is_gone(self.context))

    def record(self) -> RunRecord:
        """What is known now; the counters of its one measured phase are those of the run."""
        return replace(super().record(), phase_counters=())


def pieces_of(files: Iterable[Path]) -> Mapping[str, Scalar]:
    """In how many pieces the larger of them lie, and their bytes; nothing where the file system has no map of them."""
    pieces = size_bytes = 0
    for path in files:
        try:
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_size >= _LARGER_BYTES:
                # Mapped as they are: to write them back would be a part of the next run.
                pieces += len(extents_of(path, written_back=False))
                size_bytes += status.st_size
        except FileNotFoundError:
            continue
        except OSError:
            return {}
    return {"data_extents": pieces, "data_bytes": size_bytes} if size_bytes else {}
