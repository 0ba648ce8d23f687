"""Whether the emulated device is what a plan asks for: fio's median, 99th percentile and throughput beside the profile.

Random reads of 4 KiB, then random writes, at depths 1 to 32, and a flush behind each write at depth 1. Expected are the quantiles of
the drawn times and depth / mean; the way through user space is measured and subtracted as in a visit. About 4 minutes on a quiet machine.

    benchmarks/run latency_device [--law "lognormal 4ms 1.3"] [--flush "4ms"] [--requests 2000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bedplate.host.command import Commands
from bedplate.host.ledger import Ledger
from bedplate.host.native_driver import LIBFUSE3, ensure_driver
from bedplate.host.recorder import (
    DRIVER,
    FLUSH,
    READ,
    WRITE,
    LatencyDevice,
    parse_status,
    refusals,
    way_there,
)
from bedplate.model.devices import AtDepth, Latency, Law
from bedplate.units import MIB
from bedplate.workloads.fio.prepare import DEPTHS, fio_argv, parse_fio
from machine import print_machine

REPOSITORY = Path(__file__).resolve().parent.parent
DISK_BYTES = 256 * MIB
WITHIN = 0.05
# Long enough that what a job takes to begin is no part of its rate.
LEAST_S = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--law", default="lognormal 4ms 1.3")
    parser.add_argument("--flush", default="4ms")
    # Of 2,000 the 99th percentile scatters by 2.2 % (one standard error, at a spread of 1.3), its median over three rounds by 1.5 %.
    parser.add_argument("--requests", type=int, default=2000, help="of each job at least")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    print_machine()
    law, flush = Law.parse(given.law), Law.parse(given.flush)
    latency = Latency("benchmark", law.words, law.words, flush.words, queue_depth=max(DEPTHS))
    with ExitStack() as undo:
        base = Path(
            undo.enter_context(tempfile.TemporaryDirectory(prefix="bedplate-latency-", dir="/dev/shm"))
        )
        ledger, commands = undo.enter_context(Ledger.open(base / "state", "benchmark")), Commands()
        driver = ensure_driver(
            DRIVER,
            source=REPOSITORY / "drivers" / f"{DRIVER}.c",
            cache_directory=Path(tempfile.gettempdir()) / "bedplate-benchmark-drivers",
            commands=commands,
            libraries=(LIBFUSE3,),
        )
        for name in ("way", "device"):
            (base / name).mkdir()
        way = way_there(driver, base / "way", ledger=ledger, commands=commands)
        print(", ".join(f"{name} {value:g}" for name, value in way.facts.items()))
        if reasons := refusals(latency, way):
            print(*reasons, sep="\n")
            return
        device = LatencyDevice.start(
            driver, base / "device", latency, DISK_BYTES, way, seed=1, ledger=ledger, commands=commands
        )
        undo.callback(device.stop)
        path, met = device.device.path, []
        for kind in (READ, WRITE):
            for depth in DEPTHS:
                seconds = max(LEAST_S, math.ceil(given.requests * law.mean_ns / depth / 1e9))
                seen = [job(path, kind, depth, seconds, commands) for _ in range(given.rounds)]
                met.append(show(kind, depth, law, seen))
        seconds = math.ceil(given.requests * (law.mean_ns + flush.mean_ns) / 1e9)
        syncs = [job(path, FLUSH, 1, seconds, commands) for _ in range(given.rounds)]
        met.append(show(FLUSH, 1, flush, syncs))
        print(
            f"{sum(met)} of {len(met)} rows within {WITHIN:.0%}; load {' '.join(map('{:.1f}'.format, os.getloadavg()))}"
        )
        status = parse_status(device.status_file.read_text())
        print(f"{status.late:,} of {status.served:,} answers late by a twentieth of their time or more")


def job(device: str, kind: str, depth: int, seconds: int, commands: Commands) -> AtDepth:
    """As `bedplate doctor DEVICE --measure` does, before other programs: what it waits for a processor is no time of the device's."""
    argv = ["chrt", "--fifo", "1", *fio_argv(device, kind, depth, seconds)]
    return parse_fio(commands.run(argv, timeout_s=seconds + 60).stdout, kind, depth)


def show(kind: str, depth: int, law: Law, seen: list[AtDepth]) -> bool:
    """Expected, the median of the rounds, and their ratio; a mark where it is off by more than 5 %. Whether none is."""
    columns = {
        "p50 ms": (law.quantile_ns(0.5) / 1e6, [each.p50_us / 1000 for each in seen]),
        "p99 ms": (law.quantile_ns(0.99) / 1e6, [each.p99_us / 1000 for each in seen]),
        # A flush of fio's stands behind a write of its own.
        **({} if kind == FLUSH else {"per s": (depth * 1e9 / law.mean_ns, [each.per_s for each in seen])}),
    }
    told, met = [], True
    for name, (expected, values) in columns.items():
        ratio = statistics.median(values) / expected
        is_met = abs(ratio - 1) <= WITHIN
        met, mark = met and is_met, "" if is_met else " !"
        told.append(f"{name} {expected:9,.3f} {statistics.median(values):9,.3f} {ratio:6.3f}{mark:2}")
    print(f"{kind:5} depth {depth:2}  {'   '.join(told)}", flush=True)
    return met


if __name__ == "__main__":
    main()
