"""pg_test_fsync is a program of PostgreSQL: a dataset that asks for it gets those of a build that the study makes anyway."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

from bedplate.campaign.preparation import DatasetInputs, MadeAnyway
from bedplate.engines.postgresql.builds import builds_directory, read_build
from bedplate.engines.postgresql.versions import release_key
from bedplate.errors import OutputNotUnderstood, RequirementMissing
from bedplate.host.account import server_account
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory
from bedplate.host.ledger import Holding, Holdings
from bedplate.host.requirement import Need
from bedplate.host.shut_in import DATA, PROGRAMS, Confinement
from bedplate.installation import COMMAND
from bedplate.model.cell import Dataset
from bedplate.model.devices import MOST_FACTOR, MOST_PLACES, AtDepth, Law
from bedplate.model.engines import POSTGRESQL
from bedplate.units import MIB
from bedplate.workloads.fio.model import PG_TEST_FSYNC
from bedplate.workloads.fio.output import PgTestFsyncResult, parse_fio_result, parse_pg_test_fsync_result
from bedplate.workloads.fio.visit import PG_TEST_FSYNC_PROGRAM, PgTestFsyncJob, fio_path


class FioInputs(DatasetInputs):
    """The folder of PostgreSQL's programs; builds are kept and cleared by themselves."""

    def make(
        self,
        dataset: Dataset,
        resources: MadeAnyway,
        tell: Callable[[str, int, int], None],  # noqa: ARG002 -- of others' role
    ) -> Mapping[str, str]:
        """The programs, where they are asked for."""
        build = resources.build_of(POSTGRESQL)
        if build is None or dataset.levels.get(PG_TEST_FSYNC) is not True:
            return {}
        return {PG_TEST_FSYNC: str(Path(build.prefix) / "bin")}


INPUTS: DatasetInputs = FioInputs()

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
            f"{PG_TEST_FSYNC_PROGRAM} of {self.program}, writes of {size_kib} kB:",
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
        and build.program(PG_TEST_FSYNC_PROGRAM).is_file()
    ]
    if not fitting:
        raise RequirementMissing(
            f"{PG_TEST_FSYNC_PROGRAM} is a program of PostgreSQL, and {directory} has none that was built of a release",
            f"`{COMMAND} doctor quick --install` builds one",
        )
    newest = max(fitting, key=lambda build: release_key(build.version) or (0, 0))
    return newest.prefix, newest.version


FIO = Need("fio", "fio", "measures a disk at several depths")
DEPTHS = (1, 2, 4, 8, 16, 32)
READ, WRITE, FLUSH = "read", "write", "flush"

# How many standard deviations of the logarithm the 99th percentile lies above the median.
_DEVIATIONS = NormalDist().inv_cdf(0.99)

# Twice the requests at twice the depth are two places; a little more at twice the depth is a queue.
_STILL_GROWS = 1.1


def fio_argv(device: str, kind: str, depth: int, seconds: int) -> list[str]:
    """Random requests of 4 KiB over the whole device, past all caches; of a flush, one behind each write."""
    rw = "randread" if kind == READ else "randwrite"
    return [
        *("fio", "--name=bedplate", f"--filename={fio_path(device)}", f"--rw={rw}", "--bs=4k", "--direct=1"),
        *(f"--iodepth={depth}", f"--runtime={seconds}", "--time_based", "--randrepeat=0"),
        *("--output-format=json", "--percentile_list=50:99"),
        *(("--ioengine=psync", "--fdatasync=1") if kind == FLUSH else ("--ioengine=libaio",)),
        # fio itself then refuses to write.
        *(("--readonly",) if kind == READ else ()),
    ]


def parse_fio(text: str, kind: str, depth: int) -> AtDepth:
    """Of fio's JSON; OutputNotUnderstood quotes what is none, or has no request of this kind."""
    job = parse_fio_result(text).jobs[0]
    side = job.read if kind == READ else job.write
    times = None if side is None else job.sync if kind == FLUSH else side.clat
    p50, p99 = (None, None) if times is None else map(times.latency_ms, (50.0, 99.0))
    if side is None or times is None or p50 is None or p99 is None or not side.runtime_s:
        raise OutputNotUnderstood("fio", expected=f"figures of each {kind}", found=text)
    return AtDepth(kind, depth, p50 * 1000, p99 * 1000, times.operations / side.runtime_s)


def law_of(times: AtDepth) -> Law:
    """A lognormal law with that median and 99th percentile; a constant where they are one."""
    spread = max(1.0, times.p99_us / times.p50_us) if times.p50_us else 1.0
    factor = min(MOST_FACTOR, round(spread ** (1 / _DEVIATIONS), 2))
    median = f"{times.p50_us:.0f}us"
    return Law.parse(f"lognormal {median} {factor:g}" if factor > 1 else median)


def places_of(depths: Sequence[AtDepth]) -> int:
    """How many requests are served at once: as many as the throughput is times that of one."""
    alone = next(each.per_s for each in depths if each.depth == 1)
    return max(1, min(MOST_PLACES, round(max(each.per_s for each in depths) / alone)))


class FioMeter:
    """The role of a program that measures a disk by itself."""

    need = FIO
    reads_alone = (READ,)
    all_kinds = (READ, WRITE, FLUSH)
    measure_syncs = staticmethod(measure_syncs)

    def measure(
        self, device: str, kinds: Sequence[str], seconds: int, commands: Commands
    ) -> tuple[AtDepth, ...]:
        """Reads at every depth, and writes and flushes where they are asked for. WHAT IS ON THE DEVICE IS OVERWRITTEN by those."""
        return tuple(
            parse_fio(
                commands.run(fio_argv(device, kind, depth, seconds), timeout_s=seconds + _MORE_S).stdout,
                kind,
                depth,
            )
            for kind in kinds
            for depth in ((1,) if kind == FLUSH else DEPTHS)
        )

    def plan_line(self, depths: Sequence[AtDepth]) -> str:
        """`latency = { … }` of what was measured; a plan asks for what is missing."""
        words = []
        for kind in self.all_kinds:
            first = next((each for each in depths if (each.kind, each.depth) == (kind, 1)), None)
            if first is not None:
                words.append(f'{kind} = "{law_of(first).words}"')
        reads = [each for each in depths if each.kind == READ]
        return f"latency = {{ {', '.join([*words, f'queue_depth = {places_of(reads)}'])} }}"


MEASURED_DISK = FioMeter()
