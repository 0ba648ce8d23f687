"""Small sources of published results, written by hand in the shape of the real ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

KERNELS = ("2.6.39", "4.6.0")
MOUNTS = """/dev/sda1 on / type ext2 (rw,noatime)
proc on /proc type proc (rw)
/dev/md127 on /mnt/pgdata type ext4 (rw,noatime,nobarrier,data=ordered)
"""


def until_13(script: str, *, scale: int, clients: int, tps: float, duration_s: int = 900) -> str:
    """What pgbench printed before PostgreSQL 14: two tps, the second without the time of connecting."""
    return f"""starting vacuum...end.
transaction type: <builtin: {script}>
scaling factor: {scale}
query mode: simple
number of clients: {clients}
number of threads: 1
duration: {duration_s} s
number of transactions actually processed: {round(tps * duration_s)}
latency average: 0.167 ms
tps = {tps - 0.25:.6f} (including connections establishing)
tps = {tps:.6f} (excluding connections establishing)
"""


def since_15(script: str, *, scale: int, tps: float, limited: bool = False, duration_s: int = 3600) -> str:
    """What pgbench 16devel printed, with a rate and a latency limit or without."""
    rate = """number of transactions skipped: 753 (4.651%)
number of transactions above the 7.0 ms latency limit: 67/1545 (4.387%)
"""
    lag = "rate limit schedule lag: avg 0.620 (max 7.000) ms\n"
    return f"""pgbench (16devel)
transaction type: <builtin: {script}>
scaling factor: {scale}
query mode: prepared
number of clients: 16
number of threads: 4
maximum number of tries: 1
duration: {duration_s} s
number of transactions actually processed: {round(tps * duration_s)}
number of failed transactions: 0 (0.000%)
{rate if limited else ""}latency average = 11.849 ms
{lag if limited else ""}initial connection time = 6.903 ms
tps = {tps:.6f} (without initial connection time)
"""


def kernel_bench(
    folder: Path,
    tps: Callable[[str, str, int], float],
    *,
    machine: str = "i5-2500k",
    kernels: Sequence[str] = KERNELS,
) -> Path:
    """`MACHINE/KERNEL/30/REPETITION/…`: two scripts of 4 clients, three times; tps by kernel, script, repetition."""
    for place, kernel in enumerate(kernels):
        top = folder / machine / kernel
        moments = []
        for repetition in (1, 2, 3):
            own = top / "30" / str(repetition)
            own.mkdir(parents=True)
            (own / "warmup.log").write_text(until_13("select only", scale=30, clients=4, tps=1.0))
            for number, (script, printed) in enumerate(
                (("read-only", "select only"), ("read-write", "TPC-B (sort of)"))
            ):
                rate = tps(kernel, script, repetition)
                (own / f"{script}-4.log").write_text(until_13(printed, scale=30, clients=4, tps=rate))
                moment = 1461889367 + 100_000 * place + 10_000 * repetition + 1000 * number
                moments.append(
                    f"{moment} 2016-04-29 02:22:57 pgbench scale=30 run={repetition} clients=4 : {script}\n"
                )
        (top / "mount.log").write_text(MOUNTS)
        (top / "bench.log").write_text("".join(moments))
    return folder


def pg_fs_benchmark(folder: Path, *, machine: str = "i5") -> Path:
    """A set on md with ext4 and XFS, one of ZFS, and one of ZFS with a rate; once each."""
    places = [
        *(("20220907-mdraid", ("0", type_), ("0", "default", type_), False) for type_ in ("xfs", "ext4")),
        ("20220903-zfs", ("mirror", "no-fpw"), ("mirror", "no-fpw"), False),
        ("20220912-zfs-limit", ("stripe", "default"), ("stripe", "default"), True),
    ]
    for number, (set_, names, columns, limited) in enumerate(places):
        for mode, script in (("ro", "select only"), ("rw", "simple update")):
            own = folder / machine / set_ / names[0] / names[1] / "1000" / f"run-{mode}-1"
            own.mkdir(parents=True)
            tps = 1350.270409 + 100 * number + (10_000 if mode == "ro" else 0)
            slow = limited and mode == "rw"
            (own / "pgbench.log").write_text(since_15(script, scale=1000, tps=tps, limited=slow))
            (own / "sizes.csv").write_text("before;1;2;3\nafter;13899612160;2246483968;16153596731\n")
            row = (1662249388 + 10_000 * number, 0, *columns, 1000, mode, f"{tps:.6f}", "3601.2", 21254041392)
            with (folder / machine / set_ / "results.csv").open("a") as file:
                file.write(";".join(map(str, row)) + "\n")
    return folder


def postgresbench(folder: Path, services: Sequence[str] = ("Neon", "AWS RDS")) -> Path:
    """Some services, three runs each."""
    for number, service in enumerate(services):
        rates = {run: 2000.0 + 1000 * number + run / 8 for run in (1, 2, 3)}
        runs = [
            {"run": run, "tps": tps, "transactions": round(tps * 600), "failed_transactions": 0,
             "latency_avg_ms": 118.281, "latency_p95_ms": 215.559, "latency_p99_ms": 236.412}
            for run, tps in rates.items()
        ]  # fmt: skip
        document = {
            "system": service,
            "date": "2026-03-11",
            "machine": "4vCPU, 16GB RAM",
            "instance": {"type": "Serverless", "vcpus": 4, "ram_gb": 16, "primary_storage": None},
            "postgres_version": "18.2 (e21737f)",
            "benchmark": {"tool": "pgbench", "workload": "TPC-B (built-in)", "scale_factor": 6849, "clients": 256,
                          "threads": 16, "duration": 600, "query_mode": "prepared"},
            "results": runs,
        }  # fmt: skip
        (folder / service / "results").mkdir(parents=True)
        (folder / service / "results" / "small.json").write_text(json.dumps(document))
    return folder
