"""How fast pgbench's per-transaction log is read, beside a mawk one-liner that only counts per second.

Side by side in one run, in interleaved pairs: this machine's other work then touches both. Three
parts: reading complete logs on all cores against mawk; decoding the record; and following a log
that grows, with its space given back, for the memory that it takes.

    python benchmarks/log_reading.py [--million-lines 30] [--pairs 7] [--folder /dev/shm]
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "src"))

from bedplate.figures.courses import LatencyLog, course, percentiles_us, read_latency_log  # noqa: E402
from bedplate.host.command import Commands  # noqa: E402
from bedplate.host.native_driver import ensure_driver  # noqa: E402
from bedplate.units import format_size  # noqa: E402

FILES = 4
CLIENTS_PER_FILE = 8
LINES_PER_BLOCK = 900_000
START = 1_762_132_851
MAWK = "{n[$5]++} END{for(s in n) print s, n[s]}"


def lines_of_file(number: int, lines: int, *, tps: float, seed: int) -> bytes:
    """The text that one pgbench thread would write: its clients in turn, lognormal latencies."""
    random = np.random.default_rng([seed, number])
    completed_us = np.cumsum(random.exponential(1e6 * FILES / tps, lines)).astype(np.int64)
    client = number * CLIENTS_PER_FILE + random.integers(0, CLIENTS_PER_FILE, lines)
    table = pl.DataFrame(
        {
            "client": client,
            "transaction": np.arange(lines) // CLIENTS_PER_FILE,
            "latency": np.maximum(random.lognormal(6.5, 0.7, lines), 1).astype(np.int64),
            "script": np.zeros(lines, np.int64),
            "epoch": START + completed_us // 1_000_000,
            "us": completed_us % 1_000_000,
        }
    )
    return table.write_csv(include_header=False, separator=" ").encode()


def write_logs(folder: Path, lines: int, seed: int) -> list[Path]:
    logs = []
    for number in range(FILES):
        log = folder / f"log.4711{f'.{number}' if number else ''}"
        log.write_bytes(lines_of_file(number, lines // FILES, tps=60_000, seed=seed))
        logs.append(log)
    return logs


def timed(argv: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of one command, which must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def describe(name: str, values: list[float], unit: str) -> str:
    return f"{name}: median {statistics.median(values):.2f} {unit}, {min(values):.2f} to {max(values):.2f}"


def compare(reader: Path, logs: list[Path], record: Path, *, lines: int, pairs: int) -> None:
    paths = [str(log) for log in logs]
    commands = {
        "reader": [str(reader), "--once", "--output", str(record), *paths],
        "mawk": ["mawk", MAWK, *paths],
    }
    walls: dict[str, list[float]] = {name: [] for name in commands}
    cpus: dict[str, list[float]] = {name: [] for name in commands}
    for pair in range(pairs):
        for name in sorted(commands, reverse=bool(pair % 2)):
            wall, cpu = timed(commands[name])
            walls[name].append(wall)
            cpus[name].append(cpu)
    for name in commands:
        print(describe(f"  {name}, wall", [lines / wall / 1e6 for wall in walls[name]], "million lines/s"))
        print(
            describe(f"  {name}, per CPU second", [lines / cpu / 1e6 for cpu in cpus[name]], "million lines")
        )
    ratios = [mawk / ours for ours, mawk in zip(walls["reader"], walls["mawk"], strict=True)]
    print(describe("  speed over mawk, pairwise, wall", ratios, "times"))
    ratios = [mawk / ours for ours, mawk in zip(cpus["reader"], cpus["mawk"], strict=True)]
    print(describe("  speed over mawk, pairwise, CPU", ratios, "times"))


def demand_all(log: LatencyLog, lines: int) -> None:
    """A speed is worth nothing when lines were lost."""
    if log.trailer is None or log.trailer.transactions != lines:
        raise SystemExit(f"the record holds {log.trailer}, and not {lines} transactions")


def decode(record: Path, lines: int) -> None:
    started = time.perf_counter()
    log = read_latency_log(record)
    read_s = time.perf_counter() - started
    rows = course(log)
    percentiles_us(log, (0.5, 0.95, 0.99, 0.999))
    all_s = time.perf_counter() - started
    demand_all(log, lines)
    print(
        f"  {rows.height} seconds, {log.histogram.height} counts, {format_size(record.stat().st_size)}: "
        f"read {read_s:.3f} s, with course and percentiles {all_s:.3f} s"
    )


def peak_rss_bytes(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def follow(reader: Path, folder: Path, *, blocks: int, seed: int) -> None:
    """Appends the same block again and again, its seconds moved on, and watches memory and space."""
    path, record = folder / "grow.4711", folder / "grow-record"
    path.touch()
    # The log's seconds pass about as fast as it is written: time that is squeezed would hold more open.
    seconds = 1
    table = lines_of_file(0, LINES_PER_BLOCK, tps=FILES * LINES_PER_BLOCK, seed=seed)
    frame = pl.read_csv(table, has_header=False, separator=" ")
    epoch = frame.columns[4]
    argv = [str(reader), "--prefix", str(folder / "grow"), "--output", str(record), "--punch"]
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    started = time.perf_counter()
    quarters: list[str] = []
    allocated_most = 0
    for block in range(blocks):
        moved = frame.with_columns(pl.col(epoch) + block * seconds)
        data = moved.write_csv(include_header=False, separator=" ").encode()
        with path.open("ab", buffering=0) as file:
            for at in range(0, len(data), 1024 * 1024):
                file.write(data[at : at + 1024 * 1024])
                allocated_most = max(allocated_most, path.stat().st_blocks * 512)
        if (block + 1) % max(blocks // 4, 1) == 0:
            size, rss = path.stat().st_size, peak_rss_bytes(process.pid)
            quarters.append(f"{format_size(size)}: {format_size(rss)}")
    written_s = time.perf_counter() - started
    process.communicate(timeout=60)
    if process.returncode != 0:
        raise SystemExit(f"the reader ended with {process.returncode}")
    demand_all(read_latency_log(record), blocks * frame.height)
    left = path.stat().st_blocks * 512
    rate = blocks * frame.height / written_s / 1e6
    print(f"  written at {rate:.2f} million lines/s, {format_size(path.stat().st_size / written_s)}/s")
    print(f"  peak RSS of the reader at log sizes of {', '.join(quarters)}")
    print(
        f"  blocks allocated by the log: at most {format_size(allocated_most)}, at the end {format_size(left)}"
    )


def machine(reader: Path) -> None:
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.machine(),
    )
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    print(f"{datetime.now(tz=UTC):%Y-%m-%d %H:%M} UTC, {platform.system()} {platform.release()}")
    print(f"{len(os.sched_getaffinity(0))} cores, {model}, load {load}; reader {reader.name}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--million-lines", type=float, default=30)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--growing-blocks", type=int, default=40, help="of 900 000 lines each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"), help="on tmpfs")
    words = parser.parse_args()
    lines = round(words.million_lines * 1_000_000) // FILES * FILES
    with tempfile.TemporaryDirectory(prefix="bedplate-log-reading-", dir=words.folder) as temporary:
        folder = Path(temporary)
        reader = ensure_driver(
            "bedplate-pgbench-log",
            source=REPOSITORY / "drivers/pgbench_log.c",
            cache_directory=folder / "drivers",
            commands=Commands(),
        )
        machine(reader)
        logs = write_logs(folder, lines, words.seed)
        size = format_size(sum(log.stat().st_size for log in logs))
        print(f"reading {lines / 1e6:g} million lines, {size} in {FILES} files, {words.pairs} pairs")
        compare(reader, logs, folder / "record", lines=lines, pairs=words.pairs)
        print("decoding")
        decode(folder / "record", lines)
        for log in logs:
            log.unlink()
        print("following a log that grows, with --punch")
        follow(reader, folder, blocks=words.growing_blocks, seed=words.seed)


if __name__ == "__main__":
    main()
