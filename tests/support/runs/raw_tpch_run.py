"""A raw run of TPC-H as a visit leaves it, made from a few words: what `figures` is tested on."""

from __future__ import annotations

from collections.abc import Mapping
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
from bedplate.model.levels import Levels, Scalar
from bedplate.model.visit import (
    FORMAT_VERSION,
    Outcome,
    Phase,
    PhaseCounters,
    RunRecord,
    Sample,
    TimedItem,
    Timing,
    VisitKey,
    VisitRecord,
)
from bedplate.workloads.tpch.model import (
    LOAD,
    LOAD_PHASES,
    POWER,
    QUERIES,
    QUERY_NUMBERS,
    THROUGHPUT,
    query_phase,
    stream_phase,
)

WALL = 1_762_132_851.75
MONOTONIC = 5000.0
# Between two phases the counters are read.
BETWEEN_S = 0.05
DATABASE_BYTES = 200 * 2**20
TIMEOUT_S = 30.0

# Growth a second of every counter; the gauges are constant.
_GROWTH = """
device.reads 100  device.read_sectors 20480  device.writes 90  device.written_sectors 4096
device.flushes 4  device.io_ticks_ms 500  device.time_in_queue_ms 2000
cpu.user_s 0.8  cpu.system_s 0.2  cpu.idle_s 0.9  cpu.iowait_s 0.1  cpu.steal_s 0  cpu.irq_s 0
server.cpu_s 0.7  watching.cpu_s 0.01  client.cpu_s 0.02  pressure.io.some.total_us 250000
pressure.io.full.total_us 150000 pressure.cpu.some.total_us 50000
postgresql.blks_hit 9000  postgresql.blks_read 1000  postgresql.read_bytes 20971520
postgresql.temp_bytes 1048576  postgresql.wal_bytes 1024
"""
_GAUGES = {"memory.dirty_bytes": 30.0 * 2**20, "memory.writeback_bytes": 2.0 * 2**20}
_CELL = Cell(DeviceLevels(), KernelLevels(), FilesystemLevels("ext4"), BuildLevels(), ClusterLevels())


@dataclass(frozen=True)
class RawTpch:
    """A raw run. `seconds` are those of its phases by name, in their order, or of the queries of its streams.

    `state` is the pass, `cold` or `warm`. `items` replaces what was timed, `growth` what counters grow by a second.
    """

    kind: str = POWER
    state: str = "warm"
    pass_number: int = 2
    seconds: Mapping[str, float] = field(default_factory=dict)
    stopped: tuple[str, ...] = ()
    items: tuple[TimedItem, ...] | None = None
    phases: tuple[Phase, ...] | None = None
    phase_counters: tuple[PhaseCounters, ...] | None = None
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    growth: Mapping[str, float] = field(default_factory=dict)
    streams: int = 2
    scale_factor: float = 1.0
    outcome: Outcome = Outcome.COMPLETED
    kernel_messages: tuple[str, ...] = ()
    server_log: str = ""
    wall_step_s: float = 0.0

    @property
    def spec(self) -> RunSpec:
        shared: dict[str, Scalar] = {"kind": self.kind}
        if self.kind == POWER:
            shared |= {"pass": self.state, "pass_number": self.pass_number, "parameters": "validation"}
        if self.kind == THROUGHPUT:
            shared |= {"streams": self.streams, "parameters": "validation"}
        name = self.state if self.kind == POWER else self.kind
        return RunSpec(name, "tpch", Levels(shared))


def query_seconds(number: int) -> float:
    """1.5 s for query 1, 12 s for query 22."""
    return 1.0 + 0.5 * number


def phase_seconds(raw: RawTpch) -> dict[str, float]:
    """The phases in order with their seconds."""
    if raw.seconds:
        return dict(raw.seconds)
    if raw.kind == LOAD:
        return {phase: 2.0 + place for place, phase in enumerate(LOAD_PHASES)}
    if raw.kind == POWER:
        return {query_phase(query): query_seconds(query) for query in reversed(QUERY_NUMBERS)}
    return {THROUGHPUT: 2 * sum(map(query_seconds, QUERY_NUMBERS))}


def counters_at(raw: RawTpch, at_s: float) -> dict[str, float]:
    """Every counter `at_s` seconds after the first phase began."""
    words = _GROWTH.split()
    growth = dict(zip(words[::2], map(float, words[1::2]), strict=True)) | dict(raw.growth)
    return {name: each * (at_s + 100) for name, each in growth.items()} | _GAUGES


def sample(raw: RawTpch, at_s: float, phase: str) -> Sample:
    stepped = raw.wall_step_s if at_s > 5 else 0.0
    return Sample(MONOTONIC + at_s, WALL + at_s + stepped, phase, counters_at(raw, at_s))


def placed_phases(raw: RawTpch) -> tuple[Phase, ...]:
    """The phases on the clock, a little apart."""
    found, at_s = [], 0.0
    for name, seconds in phase_seconds(raw).items():
        end_s = at_s + seconds
        stepped = raw.wall_step_s if at_s > 5 else 0.0
        found.append(
            Phase(name, MONOTONIC + at_s, MONOTONIC + end_s, WALL + at_s + stepped, WALL + end_s + stepped)
        )
        at_s = end_s + BETWEEN_S
    return tuple(found)


def timed_items(raw: RawTpch) -> tuple[TimedItem, ...]:
    """What was timed in them."""
    if raw.kind == LOAD:
        return (
            TimedItem("load", "nation", 0.25),
            TimedItem("load", "lineitem", 1.5),
            TimedItem("primary keys", "lineitem_pkey", 1.0),
        )
    streams = [QUERIES] if raw.kind == POWER else [stream_phase(i + 1) for i in range(raw.streams)]
    return tuple(
        TimedItem(stream, str(query), None, TIMEOUT_S)
        if str(query) in raw.stopped
        else TimedItem(stream, str(query), query_seconds(query), facts={"rows": 4, "answer": "ab"})
        for stream in streams
        for query in reversed(QUERY_NUMBERS)
    )


def write_raw_tpch(directory: Path, raw: RawTpch) -> tuple[Path, Path]:
    """Visit and run directory with every raw input of a run."""
    run = directory / "runs" / f"01-{raw.spec.id}"
    (run / "logs").mkdir(parents=True)
    (directory / "logs").mkdir()
    dataset = Dataset("tpch", Levels(scale_factor=raw.scale_factor))
    codec.write(
        directory / "visit.json",
        VisitRecord(
            format_version=FORMAT_VERSION,
            key=VisitKey(_CELL.id, dataset.id, 1, 1),
            cell=_CELL,
            dataset=dataset,
            outcome=Outcome.COMPLETED,
            reasons=(),
            failed_step=None,
            started_wall_s=WALL - 100,
            seconds=200,
            boot_id="b",
            executor="local",
            timings=(Timing("mkfs", 0.5), Timing("initdb", 2.0), Timing("server start", 1.0)),
            kernel_messages=raw.kernel_messages,
        ),
    )
    record = raw_tpch_record(raw)
    codec.write(run / "record.json", record)
    if record.phases:
        end_s = record.phases[-1].end_monotonic_s - MONOTONIC
        with (run / "course.jsonl").open("w") as course:
            for at in np.arange(0.1, end_s, 1.0):
                course.write(codec.dumps(sample(raw, float(at), "x"), indent=None) + "\n")
    (directory / "logs/server.log").write_text(raw.server_log)
    return directory, run


def raw_tpch_record(raw: RawTpch) -> RunRecord:
    """`record.json` alone."""
    phases = placed_phases(raw) if raw.phases is None else raw.phases
    counters = tuple(
        PhaseCounters(
            phase.name,
            sample(raw, phase.start_monotonic_s - MONOTONIC, phase.name),
            sample(raw, phase.end_monotonic_s - MONOTONIC, phase.name),
        )
        for phase in phases
    )
    facts: dict[str, Scalar] = {
        "scale_factor": raw.scale_factor,
        "database_bytes": DATABASE_BYTES,
        "wal_bytes_on_disk": 64 * 2**20,
        "block_size_bytes": 8192,
        "cpu_count": 2,
    }
    if raw.kind == POWER and raw.state == "cold":
        facts["made_cold"] = True
    if raw.kind == THROUGHPUT:
        facts |= {"streams": raw.streams, "streams_s": phases[0].end_monotonic_s - MONOTONIC}
    return RunRecord(
        spec=raw.spec,
        outcome=raw.outcome,
        reasons=() if raw.outcome is Outcome.COMPLETED else planted("query 5: its answer differs"),
        phases=phases,
        before=counters[0].before if counters else None,
        after=counters[-1].after if counters else None,
        facts={**facts, **raw.facts},
        phase_counters=counters if raw.phase_counters is None else raw.phase_counters,
        items=timed_items(raw) if raw.items is None else raw.items,
    )
