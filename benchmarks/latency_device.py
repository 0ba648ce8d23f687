"""Whether the emulated device is what a plan asks for: fio's median, 99th percentile and throughput beside the profile.

Random reads of 4 KiB, then random writes, at depths 1 to 32, and a flush behind each write at depth 1. Expected are the quantiles of
the drawn times and depth / mean; the way through user space is measured and subtracted as in a visit.

    benchmarks/run latency_device [--law "lognormal 4ms 1.3"] [--flush "4ms"] [--seconds 4] [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bedplate.host.command import Commands
from bedplate.host.devices.latency_device import FLUSH, READ, WRITE, LatencyDevice, refusals, way_there
from bedplate.host.ledger import Ledger
from bedplate.host.native_driver import LIBFUSE3, ensure_driver
from bedplate.host.recorder import DRIVER, parse_status
from bedplate.model.devices.latency import Latency, Law
from bedplate.units import MIB
from machine import print_machine

REPOSITORY = Path(__file__).resolve().parent.parent
DEPTHS = (1, 2, 4, 8, 16, 32)
DISK_BYTES = 256 * MIB
WITHIN = 0.05


@dataclass(frozen=True)
class Seen:
    """One job of fio."""

    p50_ms: float
    p99_ms: float
    per_s: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--law", default="lognormal 4ms 1.3")
    parser.add_argument("--flush", default="4ms")
    parser.add_argument("--seconds", type=int, default=4)
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
        for kind in (READ, WRITE):
            for depth in DEPTHS:
                seen = [
                    job(device.device.path, f"rand{kind}", depth, given.seconds, commands)
                    for _ in range(given.rounds)
                ]
                show(kind, depth, law, seen)
        syncs = [
            job(device.device.path, "randwrite", 1, given.seconds, commands, flushes=True)
            for _ in range(given.rounds)
        ]
        show(FLUSH, 1, flush, syncs)
        status = parse_status(device.status_file.read_text())
        print(f"{status.late:,} of {status.served:,} answers late by a twentieth of their time or more")


def job(device: str, rw: str, depth: int, seconds: int, commands: Commands, *, flushes: bool = False) -> Seen:
    """Fio's own figures; of the flushes where there are some."""
    argv = [
        *(
            "chrt",
            "--fifo",
            "1",
            "fio",
            "--name=bedplate",
            f"--filename={device}",
            f"--rw={rw}",
            "--bs=4k",
            "--direct=1",
        ),
        *(
            f"--ioengine={'psync' if flushes else 'libaio'}",
            f"--iodepth={depth}",
            f"--runtime={seconds}",
            "--time_based",
        ),
        *("--output-format=json", "--percentile_list=50:99"),
        *(("--fdatasync=1",) if flushes else ()),
    ]
    found = json.loads(commands.run(argv, timeout_s=seconds + 60).stdout)["jobs"][0]
    of = found["sync"] if flushes else found["read" if rw == "randread" else "write"]
    times = of["lat_ns" if flushes else "clat_ns"]["percentile"]
    per_s = of["total_ios"] / (found["job_runtime"] / 1000)
    return Seen(times["50.000000"] / 1e6, times["99.000000"] / 1e6, per_s)


def show(kind: str, depth: int, law: Law, seen: list[Seen]) -> None:
    """Expected, the median of the rounds, and their ratio; a mark where it is off by more than 5 %."""
    columns = {
        "p50 ms": (law.quantile_ns(0.5) / 1e6, [each.p50_ms for each in seen]),
        "p99 ms": (law.quantile_ns(0.99) / 1e6, [each.p99_ms for each in seen]),
        # A flush of fio's stands behind a write of its own.
        **({} if kind == FLUSH else {"per s": (depth * 1e9 / law.mean_ns, [each.per_s for each in seen])}),
    }
    told = []
    for name, (expected, values) in columns.items():
        ratio = statistics.median(values) / expected
        mark = "" if abs(ratio - 1) <= WITHIN else " !"
        told.append(f"{name} {expected:9,.3f} {statistics.median(values):9,.3f} {ratio:6.3f}{mark:2}")
    print(f"{kind:5} depth {depth:2}  {'   '.join(told)}")


if __name__ == "__main__":
    main()
