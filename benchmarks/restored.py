"""What does a restored dataset save, and are its figures those of a loaded one? Whole visits, in interleaved pairs.

    sudo ./benchmarks/run restored [--filesystem ext4] [--pairs 3] [--into FILE] [--pressure] [--scale 25] [--seconds 60]

A pair is two visits that differ in nothing but the way in which the dataset comes onto the file system; which comes first alternates.
The image is made by a visit before the first pair, and its time is printed apart. Each visit writes through two checkpoints,
on an emulated disk: its I/Os a second are limited, so that little but layout and page cache can make a difference. At 600 writes a second
pairs scatter by some 1 %, at 3,000 by 2.5 %: there the processors and the real disk matter. The memory holds the data and the log. With `--pressure`
it holds less than the data, and a visit reads before it writes: there loaded and restored visits are known to differ
(docs/decisions/0018-restored-under-memory-pressure.md). The figure is the ratio restored / loaded of each run's tps, on logarithms, with a 95 % t-interval
over the pairs. A pair with a suspect run does not count.

A file system passes where all intervals lie within 2 %. With `--into` pairs are added to those of earlier calls with the same
cell, dataset and runs. A pair takes three minutes, five under pressure.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bedplate.campaign.preparation import prepare_drivers
from bedplate.engines.postgresql.builds import BuildSpec, ensure_build
from bedplate.executors.local import LocalRunner
from bedplate.figures.run import make_figures
from bedplate.filesystem.kept_dataset import RESTORE_STEP
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory, state_directory
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
    Throttle,
    digest,
)
from bedplate.model.levels import Levels, Scalar
from bedplate.model.visit import (
    FORMAT_VERSION,
    LOADED,
    RESTORED,
    Outcome,
    ScratchDevice,
    Validity,
    VisitKey,
    VisitRecord,
    VisitRequest,
)
from bedplate.statistics.estimation import paired
from bedplate.units import GIB, MIB
from machine import print_machine

MARGIN = 0.02
_CONFIDENCE = 0.95
# What data sheets give for a disk at 7,200 rpm.
_BYTES_PER_S = 125_000_000
_RUNS: dict[str, dict[str, Scalar]] = {
    "read-write": {"script": "read-write", "warmup_s": 10.0, "duration_s": 60.0},
}
_RUNS_UNDER_PRESSURE: dict[str, dict[str, Scalar]] = {
    "read-only": {"script": "read-only", "warmup_s": 45.0, "duration_s": 30.0},
    "read-write": {"script": "read-write", "warmup_s": 0.0, "duration_s": 60.0},
}


@dataclass(frozen=True)
class Visited:
    """Seconds of a whole visit, of its step `restore`, and tps by run; why a run is not believed."""

    seconds: float
    restore_s: float
    tps: dict[str, float]
    doubts: tuple[str, ...]


def main() -> None:
    """Visit the pairs and print what they say."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--filesystem", default="ext4")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--into", type=Path, help="JSON file that the pairs are added to")
    parser.add_argument("--read-iops", type=int, default=9000)
    parser.add_argument("--write-iops", type=int, help="600 without it; 3000 under pressure")
    parser.add_argument("--scale", type=int, default=25)
    parser.add_argument("--seconds", type=float, help="of each run, without a warm-up")
    parser.add_argument("--pressure", action="store_true", help="a memory that holds less than the data")
    given = parser.parse_args()
    print_machine()
    known: list[dict[str, Any]] = (
        json.loads(given.into.read_text()) if given.into and given.into.exists() else []
    )
    with tempfile.TemporaryDirectory(prefix="bedplate-restored-") as name:
        base = Path(name)
        base.chmod(0o755)
        request = _request(given, base)
        # Pairs of another cell, dataset or run are others.
        key = [given.filesystem, digest([request.cell, request.dataset, request.runs])]
        earlier = sum(each["key"] == key for each in known)
        first = _visit(base, request, RESTORED, 0)
        print(
            f"the first restored visit: {first.seconds:.0f} s, {first.restore_s:.0f} s of them for the image"
        )
        for pair in range(given.pairs):
            order = (LOADED, RESTORED) if (earlier + pair) % 2 == 0 else (RESTORED, LOADED)
            found = {way: _visit(base, request, way, pair + 1) for way in order}
            print(
                "  " + "   ".join(f"{way} {found[way].seconds:.0f} s {_tps(found[way])}" for way in order),
                flush=True,
            )
            if doubts := [f"  {way}: {words}" for way in order for words in found[way].doubts]:
                print("\n".join(doubts), "  the pair does not count", sep="\n", flush=True)
                continue
            known.append({"key": key, **{way: vars(found[way]) for way in (LOADED, RESTORED)}})
            if given.into:
                given.into.write_text(json.dumps(known, indent=1))
    _report([each for each in known if each["key"] == key], given)


def _runs(given: argparse.Namespace) -> dict[str, dict[str, Scalar]]:
    runs = _RUNS_UNDER_PRESSURE if given.pressure else _RUNS
    if given.seconds is None:
        return runs
    short: dict[str, Scalar] = {"warmup_s": 0.0, "duration_s": given.seconds}
    return {name: {**levels, **short} for name, levels in runs.items()}


def _tps(visited: Visited) -> str:
    return ", ".join(f"{run} {tps:.1f} tps" for run, tps in visited.tps.items())


def _request(given: argparse.Namespace, base: Path) -> VisitRequest:
    build = ensure_build(
        BuildSpec("18"), cache_directory=cache_directory(), commands=Commands(), progress=lambda _: None
    ).for_visit
    reads, writes = given.read_iops, given.write_iops or (3000 if given.pressure else 600)
    throttle = Throttle(f"{reads} and {writes} IOPS", reads, writes, _BYTES_PER_S, _BYTES_PER_S)
    settings: dict[str, Scalar] = {
        "shared_buffers": "16MB" if given.pressure else "64MB",
        "max_wal_size": "768MB",
        "autovacuum": "off",
        "checkpoint_timeout": "30s",
        "checkpoint_completion_target": 0.5,
    }
    cell = Cell(
        DeviceLevels(
            memory_bytes=256 * MIB if given.pressure else 2 * GIB, throttle=throttle, read_ahead_kb=128
        ),
        KernelLevels(),
        FilesystemLevels(given.filesystem, mount_options=("noatime",)),
        BuildLevels(),
        ClusterLevels(settings=Levels(settings)),
    )
    runs = (
        RunSpec(name, "pgbench", Levels(clients=10, jobs=10, protocol="prepared", **levels))
        for name, levels in _runs(given).items()
    )
    return VisitRequest(
        format_version=FORMAT_VERSION,
        key=VisitKey(cell.id, "benchmark", 1, 1),
        cell=cell,
        dataset=Dataset("pgbench", Levels(scale=given.scale)),
        runs=tuple(runs),
        scratch_device=ScratchDevice(image_bytes=2 * GIB, image_directory=str(base)),
        build=build,
        native_drivers=prepare_drivers(["pgbench"]),
        state_directory=str(state_directory()),
        seed=1,
    )


def _visit(base: Path, request: VisitRequest, way: str, number: int) -> Visited:
    directory = base / f"{number:02d}-{way}"
    directory.mkdir()
    started = time.monotonic()
    LocalRunner().run_visit(replace(request, dataset_by=way), directory, lambda _: None)
    seconds = time.monotonic() - started
    record = codec.read(VisitRecord, directory / "visit.json")
    if record.outcome is not Outcome.COMPLETED:
        raise SystemExit("\n".join(map(str, record.reasons)))
    tps: dict[str, float] = {}
    doubts: tuple[str, ...] = ()
    for name in record.runs:
        figures = make_figures(directory, directory / "runs" / name)
        if figures.validity is not Validity.VALID:
            doubts += (f"{figures.run} is {figures.validity}", *map(str, figures.validity_reasons))
        (value,) = (
            row.value
            for row in figures.figures
            if row.metric == "tps" and row.phase == "measure" and not row.item
        )
        if value is None:
            raise SystemExit(f"{name} has no tps")
        tps[figures.run] = value
    restore_s = sum(timing.seconds for timing in record.timings if timing.step == RESTORE_STEP)
    return Visited(seconds, restore_s, tps, doubts)


def _report(pairs: list[dict[str, Any]], given: argparse.Namespace) -> None:
    if len(pairs) < 2:
        print(f"{given.filesystem}, {len(pairs)} pairs: two at least make an interval")
        return
    seconds = {way: [each[way]["seconds"] for each in pairs] for way in (LOADED, RESTORED)}
    means = {way: sum(each) / len(each) for way, each in seconds.items()}
    print(
        f"{given.filesystem}, {len(pairs)} pairs: a visit takes {means[LOADED]:.0f} s loaded and {means[RESTORED]:.0f} s restored"
    )
    passes = True
    for run in _runs(given):
        logs = [np.log([each[way]["tps"][run] for each in pairs]) for way in (LOADED, RESTORED)]
        found = paired(*logs)
        low, high = (math.exp(float(each)) for each in found.interval(_CONFIDENCE))
        within = low >= 1 / (1 + MARGIN) and high <= 1 + MARGIN
        passes = passes and within
        print(
            f"  {run:<12} restored / loaded {math.exp(float(found.mean)):.4f}   95 % interval {low:.4f} to {high:.4f}   "
            f"{'within' if within else 'not shown to be within'} {MARGIN:.0%}"
        )
    print(f"{given.filesystem}: {'agrees' if passes else 'not shown to agree'}")


if __name__ == "__main__":
    main()
