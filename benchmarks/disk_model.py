"""Whether the modelled disk is what its model says: fio on the device beside the same load in virtual time, and published figures.

Random 4 KiB at depths 1 and 32 with and without the write cache, sequential 128 KiB outside and inside, and appended writes of 4 KiB
with a flush behind each. About 2 minutes.

    benchmarks/run disk_model [--disk hdd-7200-2011] [--seconds 8] [--size-mb 1024] [--speed 1]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from bedplate.host.command import Commands
from bedplate.host.ledger import Ledger
from bedplate.host.native_driver import LIBFUSE3, ensure_driver
from bedplate.host.recorder import DRIVER, LatencyDevice, parse_status, refusals, way_there
from bedplate.model.devices import Latency
from bedplate.plan.values import LATENCIES, faster
from bedplate.units import GIB, KIB, MIB
from machine import print_machine

REPOSITORY = Path(__file__).resolve().parent.parent
WITHIN = 0.1
# What a published figure is of: a disk that is used from end to end.
WHOLE_BYTES = 1000 * GIB
RUNS_IN = 1 / 3


@dataclass(frozen=True)
class Row:
    """`published` are figures a second of the desktop's disk, where there are some."""

    name: str
    words: str
    depth: int = 1
    block_bytes: int = 4096
    is_cached: bool = True
    part: tuple[float, float] = (0.0, 1.0)
    flush: int = 0
    published: str = ""


ROWS = (
    Row("random read", "read random", published="75 to 80"),
    Row("random read, depth 32", "read random", 32, published="160 to 200"),
    Row("random write, no cache", "write random", is_cached=False, published="73"),
    Row("random write, no cache, depth 32", "write random", 32, is_cached=False),
    Row("random write, cache", "write random", published="143"),
    Row("sequential read outside", "read sequential", block_bytes=128 * KIB, part=(0, 1 / 16), published="992"),
    Row("sequential read inside", "read sequential", block_bytes=128 * KIB, part=(15 / 16, 1), published="496"),
    Row("sequential write outside", "write sequential", block_bytes=128 * KIB, part=(0, 1 / 16), published="992"),
    Row("sequential write inside", "write sequential", block_bytes=128 * KIB, part=(15 / 16, 1), published="496"),
    Row("append and flush", "write sequential", flush=1, published="120"),
    Row("append, no flush", "write sequential"),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    modelled = [name for name, latency in LATENCIES.items() if latency.disk is not None]
    parser.add_argument("--disk", choices=modelled, default=modelled[0])
    parser.add_argument("--seconds", type=int, default=8, help="of each job; a third more before")
    parser.add_argument("--size-mb", type=int, default=1024)
    parser.add_argument("--speed", type=int, default=1)
    given = parser.parse_args()
    print_machine()
    size, latency = given.size_mb * MIB, faster(LATENCIES[given.disk], given.speed)
    with ExitStack() as undo:
        base = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="bedplate-disk-", dir="/dev/shm")))
        ledger, commands = undo.enter_context(Ledger.open(base / "state", "benchmark")), Commands()
        driver = ensure_driver(
            DRIVER,
            source=REPOSITORY / "drivers" / f"{DRIVER}.c",
            cache_directory=Path(tempfile.gettempdir()) / "bedplate-benchmark-drivers",
            commands=commands,
            libraries=(LIBFUSE3,),
        )
        (base / "way").mkdir()
        way = way_there(driver, base / "way", ledger=ledger, commands=commands)
        print(", ".join(f"{name} {value:g}" for name, value in way.facts.items()))
        if reasons := refusals(latency, way):
            print(*reasons, sep="\n")
            return
        print(
            f"{latency.label}, {given.size_mb} MiB; a second: of 1 TB modelled (published), then here modelled, by fio, ratio"
        )
        met, late = [], []
        for is_cached in (True, False):
            with ExitStack() as one:
                folder = base / ("cached" if is_cached else "uncached")
                folder.mkdir()
                level = latency if is_cached else without_cache(latency)
                device = LatencyDevice.start(
                    driver, folder, level, size, way, seed=1, ledger=ledger, commands=commands
                )
                one.callback(device.stop)
                place = Place(level, size, driver, device.device.path, given.seconds, commands)
                met += [place.show(row) for row in ROWS if row.is_cached == is_cached]
                status = parse_status(device.status_file.read_text())
                late.append(status.late_ns / max(1, status.due_ns))
        print(
            f"{sum(met)} of {len(met)} rows within {WITHIN:.0%}; answers {max(late):.1%} late in all; "
            f"load {' '.join(map('{:.1f}'.format, os.getloadavg()))}"
        )


def without_cache(latency: Latency) -> Latency:
    """As with its write cache switched off."""
    if latency.disk is None:
        raise ValueError(f"{latency.name} is no modelled disk")
    return replace(latency, disk=replace(latency.disk, cache_bytes=0))


@dataclass(frozen=True)
class Place:
    """A disk, and what measures it."""

    latency: Latency
    size: int
    driver: Path
    path: str
    seconds: int
    commands: Commands

    def show(self, row: Row) -> bool:
        """Whether the device is within a tenth of its model."""
        whole = self._rehearsed(row, WHOLE_BYTES, 20_000)
        seen = self._by_fio(row)
        # As many as fio had, and those that filled the cache before.
        here = self._rehearsed(row, self.size, max(100, int(seen * self.seconds)))
        ratio, of = seen / here, f" ({row.published})" if row.published else ""
        is_met = abs(ratio - 1) <= WITHIN
        mark = "" if is_met else " !"
        print(f"{row.name:34} {whole:9,.1f}{of:14} {here:9,.1f} {seen:9,.1f} {ratio:6.3f}{mark}", flush=True)
        return is_met

    def _rehearsed(self, row: Row, size: int, count: int) -> float:
        first, last = span(row, size)
        skip = int(count * RUNS_IN)
        if row.is_cached and row.words == "write random" and self.latency.disk is not None:
            skip += 2 * self.latency.disk.cache_bytes // row.block_bytes
        load = (
            f"{row.words} depth={row.depth} bytes={row.block_bytes} count={count + skip} skip={skip} disk={size} from={first} "
            f"until={last} flush={row.flush} think_ns=30000"
        )
        argv = [str(self.driver), "--rehearse", load, *self.latency.options]
        return float(json.loads(self.commands.run(argv, timeout_s=600).stdout)["per_s"])

    def _by_fio(self, row: Row) -> float:
        """Before other programs, as what it waits for a processor is no time of the device's."""
        work, _, order = row.words.partition(" ")
        first, last = span(row, self.size)
        # Nothing of the row before is left in the disk's cache.
        with Path(self.path).open("r+b") as disk_file:
            os.fsync(disk_file.fileno())
        argv = [
            *("chrt", "--fifo", "1", "fio", "--name=bedplate", f"--filename={self.path}", "--direct=1", "--output-format=json"),
            *(f"--rw={'rand' if order == 'random' else ''}{work}", f"--bs={row.block_bytes}", f"--iodepth={row.depth}"),
            *(f"--offset={first}", f"--size={last - first}", "--time_based", f"--runtime={self.seconds}"),
            *("--randrepeat=0", f"--ramp_time={max(1, int(self.seconds * RUNS_IN))}", "--norandommap", "--ioengine=libaio"),
            *((f"--fdatasync={row.flush}",) if row.flush else ()),
            *(("--readonly",) if work == "read" else ()),
        ]  # fmt: skip
        job = json.loads(self.commands.run(argv, timeout_s=2 * self.seconds + 60).stdout)["jobs"][0]
        return float(job[work]["iops"])


def span(row: Row, size: int) -> tuple[int, int]:
    """Where it begins and ends."""
    first, last = (int(share * size) // MIB * MIB for share in row.part)
    return first, last


if __name__ == "__main__":
    main()
