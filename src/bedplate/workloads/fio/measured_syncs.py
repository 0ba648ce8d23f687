"""What each way of making a write durable costs in a directory, by the pg_test_fsync of a PostgreSQL that this cache has.

A release's alone, and shut in as in a visit: the release may have come from somebody's tarball.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.builds.build import builds_directory, read_build
from bedplate.engines.postgresql.builds.version import release_key
from bedplate.errors import RequirementMissing
from bedplate.host.account import server_account
from bedplate.host.cache import cache_directory
from bedplate.host.ledger import Holding
from bedplate.host.shut_in.confinement import DATA, PROGRAMS, Confinement
from bedplate.installation import COMMAND
from bedplate.units import MIB
from bedplate.workloads.fio.pg_test_fsync_command import PROGRAM, PgTestFsyncJob
from bedplate.workloads.fio.pg_test_fsync_output import PgTestFsyncResult, parse_pg_test_fsync_result

if TYPE_CHECKING:
    from bedplate.host.command import Commands
    from bedplate.host.ledger import Holdings

# PostgreSQL's own default, and the most that is taken for each of its sixteen.
_MOST_S = 5
_MORE_S = 60.0
# What it says is 2 KB.
_PRINTED_BYTES_MOST = MIB


@dataclass(frozen=True)
class MeasuredSyncs:
    """What pg_test_fsync said; `program` is the PostgreSQL that it is of."""

    program: str
    result: PgTestFsyncResult

    @property
    def lines(self) -> tuple[str, ...]:
        """A heading, and a line for each method; of one that is not available why."""
        size_kib = self.result.write_size_bytes // 1024
        return (
            f"{PROGRAM} of {self.program}, writes of {size_kib} kB:",
            *(
                f"  {each.part:16} {each.method:26} "
                + (f"{each.reason}" if each.ops_per_s is None else f"{each.ops_per_s:12,.0f} per s")
                for each in self.result.methods
            ),
        )


def measure_syncs(directory: Path, seconds: int, ledger: Holdings, commands: Commands) -> MeasuredSyncs:
    """In a new folder of `directory`, which is removed: some 80 s, less with fewer than five `seconds` for each method.

    RequirementMissing where the cache has no such program.
    """
    prefix, version = _newest_release()
    job = PgTestFsyncJob(min(seconds, _MOST_S))
    folder = directory.absolute() / f"bedplate-measure-{os.urandom(8).hex()}"
    # In this order a release gives them back in the other one.
    holdings = (Holding("directory", str(folder)), Holding("image", str(job.file_in(folder))))
    for holding in holdings:
        ledger.note(holding)
    folder.mkdir(mode=0o700)
    try:
        if os.geteuid() == 0:
            account = server_account()
            os.chown(folder, account.uid, account.gid)
            # It sees the folder under a name of its own: not every account may pass those above.
            argv = job.argv(Path(DATA), Path(PROGRAMS, "bin"))
            confinement = Confinement(tuple(argv), folder, prefix, account)
        else:
            argv, confinement = job.argv(folder, prefix / "bin"), None
        done = commands.run(
            argv,
            timeout_s=job.duration_s + _MORE_S,
            most_bytes=_PRINTED_BYTES_MOST,
            confinement=confinement,
        )
    finally:
        shutil.rmtree(folder)
        for holding in reversed(holdings):
            ledger.settled(holding)
    return MeasuredSyncs(f"PostgreSQL {version}", parse_pg_test_fsync_result(done.stdout, done.stderr))


def _newest_release() -> tuple[Path, str]:
    """Where the newest one that was built lies, and its version."""
    directory = builds_directory(cache_directory())
    builds = [read_build(folder) for folder in sorted(directory.iterdir())] if directory.is_dir() else []
    fitting = [
        build
        for build in builds
        if build is not None
        and not build.commit_digits
        and not build.patches
        and build.program(PROGRAM).is_file()
    ]
    if not fitting:
        raise RequirementMissing(
            f"{PROGRAM} is a program of PostgreSQL, and {directory} has none that was built of a release",
            f"`{COMMAND} setup quick` builds one",
        )
    newest = max(fitting, key=lambda build: release_key(build.version) or (0, 0))
    return newest.prefix, newest.version
