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


COMPOSITE = """<?xml version="1.0"?>
<PhoronixTestSuite>
  <Generated><Title>File systems</Title></Generated>
  {systems}
  <Result>
    <Identifier>pts/pgbench-1.14.0</Identifier>
    <Title>PostgreSQL</Title>
    <Description>Scaling Factor: 100 - Clients: 50 - Mode: Read Write</Description>
    <Scale>TPS</Scale>
    <Data>{tps}</Data>
  </Result>
  <Result>
    <Identifier>pts/pgbench-1.14.0</Identifier>
    <Description>Scaling Factor: 100 - Clients: 50 - Mode: Read Write - Average Latency</Description>
    <Scale>ms</Scale>
    <Data><Entry><Identifier>ext4</Identifier><Value>4.1</Value><RawString>4.0:4.1:4.2</RawString></Entry></Data>
  </Result>
  <Result>
    <Identifier>pts/fio-1.15.0</Identifier><Scale>MB/s</Scale>
    <Data><Entry><Identifier>ext4</Identifier><Value>500</Value></Entry></Data>
  </Result>
</PhoronixTestSuite>
"""


def composite(
    rates: str = "12000.5:12100.25:12050", *, types: Sequence[str] = ("ext4", "xfs"), head: str = ""
) -> str:
    """A `composite.xml` of the suite, with these runs for the first system."""
    systems = "".join(
        f"<System><Identifier>{type_}</Identifier><Hardware>Processor: Core i5 @ 3.30GHz (4 Cores), Memory: 8GB, "
        f"Disk: 100GB SSDSC2BA10</Hardware><Software>OS: Debian 12, Kernel: 6.1.0-13-amd64 (x86_64), File-System: "
        f"{type_}</Software><TimeStamp>2023-10-01 10:00:00</TimeStamp></System>"
        for type_ in types
    )
    entries = "".join(
        f"<Entry><Identifier>{type_}</Identifier><Value>12050.25</Value><RawString>{rates}</RawString></Entry>"
        for type_ in types
    )
    text = COMPOSITE.format(systems=systems, tps=entries)
    return text.replace('<?xml version="1.0"?>', f'<?xml version="1.0"?>{head}')


TESTS_COLUMNS = ("server", "test", "set", "scale", "start_time", "end_time", "tps", "script", "clients", "workers",
                 "trans", "avg_latency", "rate_limit", "server_version")  # fmt: skip


def rows_of_tests() -> list[tuple[str | None, ...]]:
    """Rows of pgbench-tools' table `tests`: three repetitions in each of two sets, and one that did not end."""
    rows: list[tuple[str | None, ...]] = []
    for number in range(6):
        set_ = str(1 + number // 3)
        rows.append(
            ("rising", str(number + 1), set_, "100", f"2024-05-0{number + 1} 10:00:00", f"2024-05-0{number + 1} 10:10:00",
             f"{5000 + 1000 * (number // 3) + number}.125", "select", "16", "4", "3000000", "3.1", None,
             "PostgreSQL 16.1 on x86_64-pc-linux-gnu, compiled by gcc")
        )  # fmt: skip
    rows.append(
        (
            "rising",
            "7",
            "1",
            "100",
            "2024-05-09 10:00:00",
            None,
            "0",
            "select",
            "16",
            "4",
            None,
            None,
            None,
            "",
        )
    )
    return rows
