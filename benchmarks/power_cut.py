"""How many cuts are replayed in a minute, and where their time goes.

Whole visits of power cuts, as a study has them, one after the other: the recording, then every point from image to
oracle. A point's stages are those of its record; the rest is building the image, taking it down, and waiting for a
processor. Memory is the most that stood on the tmpfs at the end of any point: the log, and the images of all workers.

    benchmarks/run power_cut [--points 160] [--duration 20] [--engines postgresql,lmdb] [--filesystems ext4,xfs,btrfs]
        [--profile] [--trees TREE …] [--pairs 2] [--study STUDY]

With `--profile` what each stage of a cut takes, with one worker. With `--trees`, checkouts, each log is replayed by the code of each by
turns, and what they say is compared but for times; a difference is the exit code. `--study` takes the logs that a study of power cuts kept
(`keep_logs = "all"`), of any engine, in place of recordings of its own.

The aim, on two idle cores and ext4: 100 points a minute of PostgreSQL, 400 of LMDB.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bedplate.campaign.preparation import prepare_drivers
from bedplate.cuts.records import (
    DEFAULT_PROFILES,
    DURATION_S,
    IMAGE_BYTES,
    LOG_FILE,
    POINTS_DEFAULT,
    POINTS_FILE,
    RECORDING_FILE,
    WORKLOAD,
    PointRecord,
    RecordingFacts,
)
from bedplate.engines.postgresql.builds import BuildSpec, ensure_build
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory
from bedplate.host.ledger import release_orphans
from bedplate.host.scratch_device import MEMORY_DIRECTORY
from bedplate.model import codec
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    Dataset,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
    RunSpec,
)
from bedplate.model.engines import ENGINE
from bedplate.model.levels import Levels
from bedplate.model.visit import (
    FORMAT_VERSION,
    EngineBuild,
    RunRecord,
    ScratchDevice,
    VisitKey,
    VisitRecord,
    VisitRequest,
)
from bedplate.study.power_cut_stories import run_names
from bedplate.units import KERNEL_SECTOR_BYTES, MIB
from bedplate.workloads.power_cut.visit import POINTS
from machine import print_machine
from power_cut_trees import STAGES, Tree, compare, stages_of

REPOSITORY = Path(__file__).resolve().parent.parent
AIMS = {"postgresql": 100, "lmdb": 400}
RECORDED = ("mount_s", "fsck_s", "engine_start_s", "oracle_s")


@dataclass(frozen=True)
class Replayed:
    """What one visit came to."""

    facts: RecordingFacts
    points: tuple[PointRecord, ...]
    seconds: float
    memory_bytes_max: int

    @property
    def per_minute(self) -> float:
        """Points a minute, from the start of the workers to the end of the last one."""
        return 60 * len(self.points) / self.seconds

    def stage_ms(self, name: str) -> str:
        """The median of a stage over the points that had it; a dash where none had."""
        found = [seconds for record in self.points if (seconds := getattr(record, name)) is not None]
        return f"{1000 * statistics.median(found):.0f}" if found else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--points", type=int, default=POINTS_DEFAULT)
    parser.add_argument("--duration", type=float, default=DURATION_S, help="seconds that are recorded")
    parser.add_argument("--engines", default=",".join(AIMS))
    parser.add_argument("--filesystems", default="ext4,xfs,btrfs")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--trees", type=Path, nargs="*", help="without any: this one, beside itself")
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--study", type=Path)
    given = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("a visit mounts, which needs root; start the benchmark as root")
    print_machine()
    if given.study is not None:
        different = [
            sentence
            for name, folder in run_names(given.study).items()
            if (folder / LOG_FILE).exists()
            for sentence in look_closer(f"{name} {folder.parents[3].name}", folder, given)
        ]
        sys.exit(1 if different else 0)
    print(
        "| engine | file system | transactions/s | log | points | points/min | mount ms | fsck ms | engine ms | oracle ms | memory |"
    )
    print("|" + " --- |" * 11)
    missed = []
    for engine in given.engines.split(","):
        for filesystem in given.filesystems.split(","):
            with kept_place() as base:
                asked = request(base, engine, filesystem, points=given.points, duration_s=given.duration)
                found = live(asked, base)
                print(row(engine, filesystem, found), flush=True)
                (folder,) = (base / "visit" / "runs").iterdir()
                missed += look_closer(f"{engine} {filesystem}", folder, given)
            if filesystem == "ext4" and found.per_minute < AIMS[engine]:
                missed.append(f"{engine}: {found.per_minute:.0f} points a minute, the aim is {AIMS[engine]}")
    for sentence in missed:
        print(sentence)
    sys.exit(1 if missed else 0)


def look_closer(name: str, folder: Path, given: argparse.Namespace) -> list[str]:
    """Print what a kept log is asked for; in what its replays differ."""
    if given.profile:
        print(f"| {' | '.join(('run', 'points', *STAGES, 'between', 'a cut, ms', 'of it processor'))} |")
        print("|" + " --- |" * (5 + len(STAGES)))
        print(f"| {name} | {stages_of(folder, REPOSITORY, points=given.points)} |", flush=True)
    if given.trees is None:
        return []
    trees = [Tree(path.resolve()) for path in given.trees or [REPOSITORY]]
    points, different = compare(folder, trees, pairs=given.pairs, points=given.points)
    for tree in trees:
        print(
            f"{name}, {tree.path}: {points} points, {60 * points / statistics.median(tree.wall_s):.0f} a minute, "
            f"{1000 * statistics.median(tree.processor_s) / points:.0f} ms of processor time each",
            flush=True,
        )
    for sentence in different:
        print(f"    {sentence}", flush=True)
    return different


def row(engine: str, filesystem: str, found: Replayed) -> str:
    facts = found.facts
    cells = (
        engine,
        filesystem,
        f"{facts.acknowledged / facts.seconds:.0f}",
        f"{facts.write_bytes / MIB:.0f} MiB",
        str(len(found.points)),
        f"{found.per_minute:.0f}",
        *(found.stage_ms(stage) for stage in RECORDED),
        f"{found.memory_bytes_max / MIB:.0f} MiB",
    )
    return f"| {' | '.join(cells)} |"


@contextmanager
def kept_place() -> Iterator[Path]:
    """A folder for one visit, which is gone afterwards."""
    # The server's account must be able to reach the mount point.
    base = Path(tempfile.mkdtemp(prefix="bedplate-power-cut-"))
    base.chmod(0o755)
    try:
        yield base
    finally:
        release_orphans(base / "state", Commands())
        shutil.rmtree(base)


def request(base: Path, engine: str, filesystem: str, *, points: int, duration_s: float) -> VisitRequest:
    is_lmdb = engine == "lmdb"
    build: EngineBuild | None = None
    if not is_lmdb:
        build = ensure_build(
            BuildSpec("18", 8192),
            cache_directory=cache_directory(),
            commands=Commands(),
            progress=lambda _: None,
        ).for_visit
    cell = Cell(
        DeviceLevels(),
        KernelLevels(),
        FilesystemLevels(filesystem),
        BuildLevels.unbuilt("lmdb") if is_lmdb else BuildLevels(),
        ClusterLevels(),
    )
    profiles = ",".join(profile.value for profile in DEFAULT_PROFILES)
    levels = Levels(points=points, profiles=profiles, cache_bytes=8 * MIB, seed=1, keep_logs="all")
    dataset = Dataset(
        WORKLOAD, Levels({ENGINE: engine, "image_bytes": IMAGE_BYTES, "clients": 2, "duration_s": duration_s})
    )
    return VisitRequest(
        format_version=FORMAT_VERSION,
        key=VisitKey(cell.id, dataset.id, 1, 1),
        cell=cell,
        dataset=dataset,
        runs=(RunSpec("power-cut", WORKLOAD, levels),),
        scratch_device=ScratchDevice(image_bytes=512 * MIB, image_directory=str(base)),
        build=build,
        native_drivers=dict(prepare_drivers(["power_cut"], [engine])),
        state_directory=str(base / "state"),
        seed=1,
    )


def live(asked: VisitRequest, base: Path) -> Replayed:
    directory = base / "visit"
    directory.mkdir()
    codec.write(base / "request.json", asked)
    argv = [sys.executable, "-S", "-m", "bedplate.visit.command", str(base / "request.json"), str(directory)]
    most = 0
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as visit:
        assert visit.stdout is not None  # noqa: S101 -- Popen was given a pipe
        for line in visit.stdout:
            if json.loads(line).get("phase") == POINTS:
                most = max(most, memory_bytes(visit.pid))
    record = codec.read(VisitRecord, directory / "visit.json")
    if record.reasons:
        sys.exit("\n".join(map(str, record.reasons)))
    (folder,) = (directory / "runs").iterdir()
    (item,) = codec.read(RunRecord, folder / "record.json").items
    lines = (folder / POINTS_FILE).read_text(encoding="utf-8").splitlines()
    return Replayed(
        codec.read(RecordingFacts, folder / RECORDING_FILE),
        tuple(codec.loads(PointRecord, line) for line in lines),
        item.seconds or 0.0,
        most,
    )


def memory_bytes(pid: int) -> int:
    """What the files of a visit take of the tmpfs."""
    found = 0
    for path in MEMORY_DIRECTORY.glob(f"bedplate-{pid}-*/**/*"):
        # Workers make and unlink images meanwhile.
        with suppress(OSError):
            found += path.lstat().st_blocks * KERNEL_SECTOR_BYTES
    return found


if __name__ == "__main__":
    main()
