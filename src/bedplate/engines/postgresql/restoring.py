"""Restores an archive into a cluster of its own: a process of its own, as what an archive says runs in the server.

    python -m bedplate.engines.postgresql.restoring JOB.json

It is begun as the first process of namespaces (processes, shared memory) that end with it, so nothing stays of it. It takes
the network and the rights to write from itself (`host/shut_in.py`), then: initdb, a server, the extensions that only a
superuser makes, pg_restore by a role that owns the database and is no superuser, the scripts, a clean shutdown.
Standard output: a line for each step; the reason of a failure is the last line of standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bedplate.engines.postgresql.visit import FOREIGN, Cluster
from bedplate.errors import BedplateError, CommandFailed
from bedplate.host.account import server_account
from bedplate.host.command import Commands, bare_environment
from bedplate.host.ledger import Holding
from bedplate.host.shut_in import restrict
from bedplate.installation import sources
from bedplate.model import codec
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, DeviceLevels, FilesystemLevels, KernelLevels
from bedplate.model.visit import EngineBuild
from bedplate.units import MIB
from bedplate.visit.server import ServerSite

# Folders of a job: what the server's account owns, and root's own, whose names that account cannot give to anything else.
DATA, SOCKET, LOG = "data", "run", "log"

PLACES = (DATA, SOCKET)

_LIMIT_S = 7 * 86400.0
_SAID_CHARACTERS = 1000

# An error has the words of the archive's author, as many as they like.
_PRINTED_BYTES_MOST = 16 * MIB

# Nothing of it is kept if it does not end well, so nothing waits for the disk until all is there.
_QUICKLY = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "1h",
    "autovacuum": "off",
    "shared_buffers": "256MB",
    "maintenance_work_mem": "256MB",
}

# Roles, publications and tablespaces are those of another cluster; a subscription would look for a network.
_WITHOUT = (
    *("--no-owner", "--no-privileges", "--no-comments", "--no-publications", "--no-subscriptions"),
    *("--no-security-labels", "--no-tablespaces"),
)

# Its own sources and its Python, wherever they are unpacked.
_OF_THIS_PROGRAM = (sources(), Path(sys.prefix), Path(sys.base_prefix))


@dataclass(frozen=True)
class RestoringJob:
    """What is restored, where, and with which server. `work` is root's; the folders of `PLACES` in it are all that is written.

    `archive` lies in it; `scripts` are paths of pgbench scripts in it, run in order; `extensions` are made beforehand.
    """

    work: str
    archive: str
    build: EngineBuild
    data_checksums: bool | None
    extensions: tuple[str, ...]
    scripts: tuple[str, ...]
    jobs: int


class _NothingHeld:
    """In place of a ledger: what is taken here ends with the namespaces."""

    def note(self, holding: Holding) -> None:
        """Nothing to write down."""

    def settled(self, holding: Holding) -> None:
        """Nothing to write down."""


def restore(restoration: RestoringJob) -> Iterator[str]:
    """The steps, each named before it is begun; BedplateError with the program's words where one fails."""
    account, work = server_account(), Path(restoration.work)
    restrict(
        [work / name for name in (*PLACES, LOG)], (work, Path(restoration.build.prefix), *_OF_THIS_PROGRAM)
    )
    cluster = Cluster(
        ServerSite(
            build=restoration.build,
            data_directory=work / DATA,
            socket_directory=work / SOCKET,
            log=work / LOG / "server.log",
            account=account,
            commands=Commands(),
            ledger=_NothingHeld(),
        )
    )
    levels = BuildLevels(
        version=restoration.build.version,
        block_size_bytes=restoration.build.block_size_bytes,
        wal_block_size_bytes=restoration.build.wal_block_size_bytes,
    )
    yield "initdb"
    cluster.initialise(
        Cell(
            DeviceLevels(),
            KernelLevels(),
            FilesystemLevels("none"),
            levels,
            ClusterLevels(data_checksums=restoration.data_checksums),
        )
    )
    settings = {**FOREIGN, **_QUICKLY}
    cluster.start(
        options=tuple(word for name, value in settings.items() for word in ("-c", f"{name}={value}"))
    )
    try:
        cluster.create_database()
        with cluster.session() as session:
            for name in restoration.extensions:
                session.execute(f'CREATE EXTENSION IF NOT EXISTS "{name}" CASCADE')
        client = cluster.connection.of_client
        connection = client.options()
        yield "pg_restore"
        cluster.run(
            "pg_restore",
            *_WITHOUT,
            "--exit-on-error",
            f"--jobs={restoration.jobs}",
            *connection[:-1],
            f"--dbname={connection[-1]}",
            restoration.archive,
            timeout_s=_LIMIT_S,
            most_bytes=_PRINTED_BYTES_MOST,
            readable=(work,),
        )
        for script in restoration.scripts:
            yield Path(script).name
            cluster.run(
                *("pgbench", "--no-vacuum", "--transactions=1", "--protocol=simple", f"--file={script}"),
                *connection,
                timeout_s=_LIMIT_S,
                most_bytes=_PRINTED_BYTES_MOST,
                readable=(work,),
            )
        yield "VACUUM ANALYZE"
        with cluster.client_session() as session:
            session.execute("VACUUM (ANALYZE)", timeout_s=_LIMIT_S)
        yield "shutdown"
    finally:
        # The process is the first of its namespace: whatever is left of a server ends with it.
        cluster.stop(timeout_s=3600)


def main(path: str) -> int:
    """0 where all was restored."""
    bare = bare_environment()
    os.environ.clear()
    os.environ.update(bare)
    job = codec.from_json(RestoringJob, json.loads(Path(path).read_text(encoding="utf-8")))
    try:
        for step in restore(job):
            print(step, flush=True)
    except CommandFailed as error:
        # The program's own words: its command line, which stands before them in the reason, tells the author of a dump nothing.
        print(" ".join(error.output.split())[-_SAID_CHARACTERS:] or error.reasons[0], file=sys.stderr)
        return 1
    except BedplateError as error:
        print(" | ".join(" ".join(str(reason).split()) for reason in error.reasons), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
