"""A raw run of pgbench as a visit leaves it, made from a few words: what `figures` is tested on."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tests.support.studies.planted_reasons import planted

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
from bedplate.model.figure import Figure, RunFigures
from bedplate.model.levels import Levels, Scalar
from bedplate.model.visit import (
    FORMAT_VERSION,
    Outcome,
    Phase,
    RunRecord,
    Sample,
    Timing,
    VisitKey,
    VisitRecord,
)

WALL = 1_762_132_851.25
MONOTONIC = 5000.0
STARTUP_S = 0.02
BLOCK = 8192
_KEY_OF_BOTH = {"kernel": KernelLevels(), "build": BuildLevels(), "cluster": ClusterLevels()}


def bucket_of(value: int) -> int:
    """As drivers/pgbench_log/buckets.h."""
    if value < 2048:
        return value
    octave = value.bit_length() - 1 - 11
    return 2048 + octave * 1024 + (value >> (octave + 1)) - 1024


def encoded(seconds: Mapping[int, Mapping[int, int]], *, failed: int = 0, whole: bool = True) -> bytes:
    """A latency record: transactions by second and latency in µs; the format is drivers/pgbench_log.c's."""
    parts = [struct.pack("<8sIIIIQ", b"BEDPGLOG", 1, 0, 2048, 1024, 0)]
    total = 0
    for second, latencies in sorted(seconds.items()):
        buckets: dict[int, int] = {}
        for latency, count in latencies.items():
            buckets[bucket_of(latency)] = buckets.get(bucket_of(latency), 0) + count
        transactions = sum(latencies.values())
        total += transactions
        squares = sum(latency * latency * count for latency, count in latencies.items())
        parts.append(struct.pack("<BBBBIq", ord("S"), 0, 0, 4, len(buckets), second))
        parts.append(
            struct.pack(
                "<12Q",
                transactions,
                sum(latency * count for latency, count in latencies.items()),
                squares & (2**64 - 1),
                squares >> 64,
                min(latencies),
                max(latencies),
                *(0, failed if second == min(seconds) else 0, 0, 0, 0, 0),
            )
        )
        ordered = sorted(buckets)
        parts.append(np.array(ordered, "<u2").tobytes())
        parts.append(np.array([buckets[bucket] for bucket in ordered], "<u4").tobytes())
    if whole:
        parts.append(struct.pack("<BBBBI6Q", ord("T"), 0, 0, 0, 0, total, total, 0, 0, 1, 0) + b"BEDPGEND")
    return b"".join(parts)


@dataclass(frozen=True)
class Raw:
    """A raw run: `warmup_s` seconds and then `measure_s`, with `tps` by second of measure (from −warmup)."""

    warmup_s: int = 10
    measure_s: int = 60
    tps: Callable[[int], int] = lambda _: 1000
    script: str = "read-write"
    checkpoints: tuple[tuple[str, float, float | None], ...] = (("time", 5.0, 32.0),)
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    kernel_messages: tuple[str, ...] = ()
    outcome: Outcome = Outcome.COMPLETED
    failed: int = 0
    whole: bool = True
    counters: Callable[[float], Mapping[str, float]] = lambda _: {}
    pgbench_extra: int = 0
    wall_step_s: float = 0.0
    device: DeviceLevels = field(default_factory=DeviceLevels)
    more_log: str = ""


def transactions(raw: Raw) -> tuple[dict[int, dict[int, int]], dict[int, dict[int, int]]]:
    """Transactions by wall second in warm-up and measure; edge seconds hold what they are covered."""
    found: tuple[dict[int, dict[int, int]], dict[int, dict[int, int]]] = ({}, {})
    for which, (start, length) in enumerate(((WALL - raw.warmup_s, raw.warmup_s), (WALL, raw.measure_s))):
        for second in range(int(start), int(start + length) + 1):
            covered = min(second + 1, start + length) - max(second, start)
            count = round(raw.tps(second - int(WALL)) * covered)
            if count > 0:
                slow = count // 100
                found[which][second] = {4000: count - slow, 50_000: slow} if slow else {4000: count}
    return found


# Growth a second of every counter; the gauges are constant.
_GROWTH = """
device.reads 100  device.read_sectors 1600  device.writes 900  device.written_sectors 16000
device.flushes 400  device.io_ticks_ms 500  device.time_in_queue_ms 2000
cpu.user_s 0.8  cpu.system_s 0.2  cpu.idle_s 0.9  cpu.iowait_s 0.1  cpu.steal_s 0  cpu.irq_s 0
cpu.context_switches 4000
server.cpu_s 0.7  watching.cpu_s 0.01  pressure.io.some.total_us 250000
postgresql.blks_hit 9000  postgresql.blks_read 1000  postgresql.read_bytes 8192000
postgresql.buffers_checkpointer 128  postgresql.wal_bytes 1048576
"""
_GAUGES = {
    "memory.dirty_bytes": 30.0 * 2**20,
    "memory.writeback_bytes": 2.0 * 2**20,
    "memory.available_bytes": 700.0 * 2**20,
    "memory.cached_bytes": 900.0 * 2**20,
}


def counters_at(raw: Raw, at_s: float) -> dict[str, float]:
    words = _GROWTH.split()
    growth = dict(zip(words[::2], map(float, words[1::2]), strict=True))
    grown = {name: each * (at_s + raw.warmup_s) for name, each in growth.items()}
    return {**grown, **_GAUGES, **raw.counters(at_s)}


def sample(raw: Raw, at_s: float) -> Sample:
    stepped = raw.wall_step_s if at_s > raw.measure_s / 2 else 0.0
    return Sample(MONOTONIC + at_s, WALL + at_s + stepped, "measure", counters_at(raw, at_s))


_STEPS = (("mkfs", 0.5), ("initdb", 2.0), ("server start", 1.0), ("load", 9.0))


def write_raw(directory: Path, raw: Raw) -> tuple[Path, Path]:
    """Visit and run directory with every raw input of a run."""
    run = directory / "runs" / "01-rw"
    (run / "logs").mkdir(parents=True)
    (directory / "logs").mkdir()
    cell = Cell(device=raw.device, filesystem=FilesystemLevels("ext4"), **_KEY_OF_BOTH)  # type: ignore[arg-type]
    dataset = Dataset("pgbench", Levels(scale=1))
    codec.write(
        directory / "visit.json",
        VisitRecord(
            format_version=FORMAT_VERSION,
            key=VisitKey(cell.id, dataset.id, 1, 1),
            cell=cell,
            dataset=dataset,
            outcome=Outcome.COMPLETED,
            reasons=(),
            failed_step=None,
            started_wall_s=WALL - 100,
            seconds=200,
            boot_id="b",
            executor="local",
            timings=tuple(Timing(*step) for step in _STEPS),
            kernel_messages=raw.kernel_messages,
        ),
    )
    codec.write(run / "record.json", _record(raw))
    warmup, measure = transactions(raw)
    with (run / "course.jsonl").open("w") as course:
        for at in np.arange(-raw.warmup_s + 0.1, raw.measure_s, 1.0):
            course.write(codec.dumps(sample(raw, float(at)), indent=None) + "\n")
    if raw.warmup_s:
        (run / "warmup.bin").write_bytes(encoded(warmup))
    (run / "measure.bin").write_bytes(encoded(measure, failed=raw.failed, whole=raw.whole))
    count = sum(sum(latencies.values()) for latencies in measure.values()) + raw.pgbench_extra
    (run / "logs/pgbench.out").write_text(
        f"number of transactions actually processed: {count}\n"
        "number of failed transactions: 0 (0.000%)\n"
        "latency average = 4.000 ms\n"
        f"initial connection time = {STARTUP_S * 500:.3f} ms\n"
        f"tps = {count / raw.measure_s:.6f} (without initial connection time)\n"
    )
    (run / "logs/pgbench.err").write_text("")
    (directory / "logs/server.log").write_text(_server_log(raw) + raw.more_log)
    return directory, run


def _record(raw: Raw) -> RunRecord:
    length_s = raw.measure_s + STARTUP_S
    phases = (
        Phase("warmup", MONOTONIC - raw.warmup_s, MONOTONIC, WALL - raw.warmup_s, WALL),
        Phase("measure", MONOTONIC, MONOTONIC + length_s, WALL, WALL + length_s),
    )
    return RunRecord(
        spec=RunSpec("rw", "pgbench", Levels(script=raw.script, clients=4, jobs=2)),
        outcome=raw.outcome,
        reasons=() if raw.outcome is Outcome.COMPLETED else planted("the server died"),
        phases=phases if raw.warmup_s else phases[1:],
        before=sample(raw, 0.0),
        after=sample(raw, length_s),
        facts={
            "script": raw.script,
            "clients": 4,
            "jobs": 2,
            "duration_s_asked": float(raw.measure_s),
            "cpu_count": 2,
            "block_size_bytes": BLOCK,
            "database_bytes": 100 * 2**20,
            "wal_bytes_on_disk": 64 * 2**20,
            "measure_client_cpu_s": 0.4 * raw.measure_s,
            "measure_client_sleeps": round(900 * raw.measure_s),
            **raw.facts,
        },
    )


def _server_log(raw: Raw) -> str:
    lines = []
    for cause, start, end in raw.checkpoints:
        lines.append(f"{WALL + start:.3f} 7 checkpointer LOG:  checkpoint starting: {cause}\n")
        if end is not None:
            lines.append(f"{WALL + end:.3f} 7 checkpointer LOG:  checkpoint complete: wrote 9 buffers\n")
    return "".join(lines)


def rows_of(figures: RunFigures) -> dict[str, Figure]:
    return {row.metric: row for row in figures.figures}


def values_of(figures: RunFigures) -> dict[str, float]:
    return {row.metric: row.value for row in figures.figures if row.value is not None}
