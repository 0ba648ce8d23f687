"""One made-up run of TPC-H, written as `figures` would: its `run.json`, its course, its plans."""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import polars as pl
from tests.support.studies.planted_reasons import planted
from tests.support.studies.synthetic_study import (
    HOSTILE,
    START_WALL_S,
)
from tests.support.studies.written import write

from bedplate.model.cell import (
    Cell,
    RunSpec,
)
from bedplate.model.course import COURSE_COLUMNS, COURSE_FILE
from bedplate.model.figure import Figure, RunFigures, Window
from bedplate.model.metrics import censored, figure
from bedplate.model.plan import COLD, ScheduledVisit
from bedplate.model.reason import Reason, joined
from bedplate.model.visit import FORMAT_VERSION, Outcome, Validity
from bedplate.workloads.tpch.figures import power, throughput
from bedplate.workloads.tpch.model import (
    LOAD,
    LOAD_PHASES,
    POWER,
    QUERIES,
    QUERY_NUMBERS,
    THROUGHPUT,
    WORKLOAD,
    query_phase,
    stream_phase,
)
from bedplate.workloads.tpch.queries import TABLES, foreign_keys, indexes, primary_keys, query_order
from bedplate.workloads.tpch.query_plan import PLANS_FILE, QueryPlan, QueryPlans, plan_hash

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.support.studies.synthetic_tpch import TpchRecipe

# How far apart visits begin.
VISIT_S = 1000.0
_SPEED = {"ext4": 1.0, "xfs": 0.92, "btrfs": 1.45}
_LOAD_S = {
    "load": 9.0,
    "primary keys": 2.5,
    "foreign keys": 3.5,
    "indexes": 4.0,
    "analyze": 3.0,
    "checkpoint": 1.5,
}
_STATEMENTS = {
    "load": tuple(TABLES),
    "primary keys": tuple(statement.name for statement in primary_keys()),
    "foreign keys": tuple(statement.name for statement in foreign_keys()),
    "indexes": tuple(statement.name for statement in indexes()),
}
_WITHIN = ("device_read_mib", "device_written_mib", "device_flushes", "server_cpu_s", "temporary_mib")
_MACHINE_SHARES = (
    "device_busy_share",
    "machine_cpu_share",
    "others_cpu_share",
    "steal_share",
    "watching_cpu_share",
    "pressure_cpu_some_share",
    "pressure_io_some_share",
    "pressure_io_full_share",
)


def query_s(cell: Cell, query: int, *, cold: bool, scale_factor: float = 0.1) -> float:
    """The seconds around which every run of a query lies: from 0.2 s for query 1 to 4.4 s for query 22."""
    base = 2.0 * query * scale_factor * _SPEED[cell.filesystem.type]
    return base * (1.6 if cold else 1.0) / (1 + 0.1 * math.log2(cell.build.block_size_bytes / 8192))


@cache
def explained(query: int, *, other: bool = False, block_size_bytes: int = 8192, name: str = "") -> str:
    """What EXPLAIN (FORMAT JSON) says of a query; `other` joins in another way, the block size moves costs."""
    cost = 1000.0 * query * 8192 / block_size_bytes

    def scan(relation: str, part: float, **more: Any) -> dict[str, Any]:
        kind = {"Node Type": "Seq Scan", "Parallel Aware": False, **more}
        return {
            **kind,
            "Relation Name": relation,
            "Alias": name or relation,
            "Startup Cost": 0.0,
            "Total Cost": cost * part,
            "Plan Rows": 60 * query,
            "Plan Width": 24,
        }

    join = {"Node Type": "Nested Loop"} if other else {"Node Type": "Hash Join"}
    inner = (
        scan("orders", 0.2, **{"Node Type": "Index Scan", "Index Name": "orders_pkey"})
        if other
        else {"Node Type": "Hash", "Plans": [scan("orders", 0.3, **{"Parent Relationship": "Outer"})]}
    )
    plan = {
        "Node Type": "Sort" if query % 2 else "Aggregate",
        "Startup Cost": cost * 0.9,
        "Total Cost": cost,
        "Plan Rows": query,
        "Plan Width": 40,
        "Plans": [
            {
                **join,
                "Parent Relationship": "Outer",
                "Join Type": "Inner",
                "Startup Cost": cost * 0.3,
                "Total Cost": cost * 0.8,
                "Plan Rows": 40 * query,
                "Plan Width": 32,
                "Plans": [
                    scan("lineitem", 0.5, **{"Parent Relationship": "Outer"}),
                    {**inner, "Parent Relationship": "Inner"},
                ],
            }
        ],
    }
    return json.dumps([{"Plan": plan}], indent=2)


@dataclass(frozen=True)
class TpchRun:
    """One run: which phases it had, for how long, and what was timed in them."""

    recipe: TpchRecipe
    cell: Cell
    number: int
    scheduled: ScheduledVisit
    spec: RunSpec
    index: int
    outcome: Outcome

    @property
    def kind(self) -> str | None:
        return self.spec.levels.text("kind")

    @property
    def cold(self) -> bool:
        return self.spec.levels.text("pass") == COLD

    @property
    def reasons(self) -> tuple[Reason, ...]:
        if self.outcome is Outcome.COMPLETED:
            return ()
        if self.outcome is Outcome.NOT_RUN:
            return planted("the run before it that loads (load) did not complete")
        if self.kind == LOAD:
            return planted("lineitem has 599999 rows, expected are 600572")
        what = HOSTILE if self.recipe.hostile else "its answer differs from that of the first visit"
        return planted(f"query 5: {what} (5 rows, expected digest 0123456789abcdef)")

    def write(self, place: Path) -> None:
        place.mkdir(parents=True)
        phases = self._phases()
        length_s = sum(seconds for _, seconds in phases)
        done = self.outcome is Outcome.COMPLETED
        suspect = (self.number, self.scheduled.repetition, self.spec.name) in self.recipe.suspect and done
        validity = Validity.SUSPECT if suspect else Validity.VALID if done else Validity.UNKNOWN
        reason = (
            "a hypervisor took 9.1 % of the processors' time (limit 5 %)"
            if suspect
            else "the run did not complete"
        )
        started = START_WALL_S + self.scheduled.index * VISIT_S + 20 + self.index * 200
        ran = self.outcome is not Outcome.NOT_RUN
        write(
            place / "run.json",
            RunFigures(
                format_version=FORMAT_VERSION,
                run=self.spec.name,
                run_id=self.spec.id,
                workload=WORKLOAD,
                outcome=self.outcome,
                reasons=self.reasons,
                validity=validity,
                validity_reasons=() if validity is Validity.VALID else planted(reason),
                measure_start_wall_s=started if ran else None,
                warmup_s=None,
                duration_s=length_s if ran else None,
                figures=tuple(self._figures(phases)) if done else (),
                windows=(Window("requested", length_s * 0.8, None),) if ran and self.kind == LOAD else (),
            ),
        )
        if ran:
            self._course(phases).write_parquet(place / COURSE_FILE)
        if self.kind in (POWER, THROUGHPUT) and done:
            write(place / PLANS_FILE, self._plans())

    def _phases(self) -> tuple[tuple[str, float], ...]:
        if self.kind == LOAD:
            slow = _SPEED[self.cell.filesystem.type] * self.recipe.scale_factor * 10
            chance = self._chance("load")
            return tuple((phase, _LOAD_S[phase] * slow * _noise(chance)) for phase in LOAD_PHASES)
        if self.kind == POWER:
            return tuple(
                (query_phase(query), self._limit(query) or self._query_s(query)) for query in query_order(0)
            )
        longest = max(
            sum(self._limit(query) or self._query_s(query, stream) for query in QUERY_NUMBERS)
            for stream in self._streams
        )
        return ((THROUGHPUT, longest),)

    @property
    def _streams(self) -> range:
        return range(1, self.recipe.streams + 1)

    def _limit(self, query: int) -> float | None:
        """Where a query was stopped, None where it ended."""
        return self.recipe.query_timeout_s if (self.number, query) in self.recipe.timeouts else None

    def _query_s(self, query: int, stream: int = 0) -> float:
        found = query_s(self.cell, query, cold=self.cold, scale_factor=self.recipe.scale_factor)
        return found * (1.5 if stream else 1.0) * _noise(self._chance(f"{query} {stream}"))

    def _chance(self, what: str) -> random.Random:
        return random.Random(f"{self.recipe.seed} {self.scheduled.index} {self.spec.name} {what}")

    def _figures(self, phases: tuple[tuple[str, float], ...]) -> Iterator[Figure]:
        number = self.spec.levels.integer("pass_number") or 1
        if self.kind == LOAD:
            yield from self._load_figures(phases)
        elif self.kind == POWER:
            yield from self._power_figures(number)
        else:
            yield from self._throughput_figures(phases[0][1])
        length_s = sum(seconds for _, seconds in phases)
        for name in _WITHIN:
            yield figure(name, self._within(name, length_s), pass_=number)
        yield figure("shared_buffers_hit_ratio", 0.4 if self.cold else 0.8, pass_=number)
        yield figure("page_cache_hit_ratio", 0.1 if self.cold else 0.9, pass_=number)
        for name in _MACHINE_SHARES:
            yield figure(name, 0.1, pass_=number)
        yield figure(
            "pressure_memory_some_share", None, pass_=number, reason=_absent("pressure.memory.some.total_us")
        )
        for name, value in (
            ("device_queue_depth_mean", 1.4),
            ("dirty_mib_mean", 80.0),
            ("dirty_mib_max", 220.0),
        ):
            yield figure(name, value, pass_=number)

    def _within(self, name: str, seconds: float) -> float:
        reading = self.kind != LOAD
        cold = 60.0 if self.cold else 8.0
        rates = {
            "device_read_mib": cold if reading else 2.0,
            "device_written_mib": 0.0 if reading else 45.0,
            "device_flushes": 0.0 if reading else 6.0,
            "server_cpu_s": 0.6 if self.cold else 0.95,
            "temporary_mib": 3.0 if reading else 0.0,
        }
        value = rates[name] * seconds
        return float(round(value)) if name == "device_flushes" else value

    def _load_figures(self, phases: tuple[tuple[str, float], ...]) -> Iterator[Figure]:
        for phase, seconds in phases:
            yield figure("phase_s", seconds, phase=phase)
            for name in _WITHIN:
                yield figure(name, self._within(name, seconds), phase=phase)
            statements = _STATEMENTS.get(phase, ())
            # The last named is the largest: half of what is left for each, from the end.
            share = seconds
            for item in reversed(statements):
                share /= 2
                yield figure("table_load_s", share, phase=phase, item=item)
        yield figure("load_total_s", sum(seconds for _, seconds in phases))
        known = {"database_mib": 1700.0, "wal_mib": 512.0, "mkfs_s": 0.4, "cluster_s": 2.5}
        for name, value in known.items():
            sized = value * self.recipe.scale_factor if name == "database_mib" else value
            yield figure(name, sized)

    def _power_figures(self, number: int) -> Iterator[Figure]:
        times = {}
        for query in query_order(0):
            limit = self._limit(query)
            item = str(query)
            if limit is None:
                times[query] = self._query_s(query)
                yield figure("query_s", times[query], phase=QUERIES, item=item, pass_=number)
            else:
                yield censored("query_s", limit, phase=QUERIES, item=item, pass_=number)
            for name in _WITHIN:
                value = self._within(name, limit or times[query])
                yield figure(name, value, phase=QUERIES, item=item, pass_=number)
        limits = [limit for query in QUERY_NUMBERS if (limit := self._limit(query)) is not None]
        if limits:
            yield censored("queries_total_s", sum(times.values()) + sum(limits), pass_=number)
        else:
            yield figure("queries_total_s", sum(times.values()), pass_=number)
        yield figure("queries_completed", len(times), pass_=number)
        found = power(
            times,
            self.recipe.scale_factor,
            stopped_s={q: limit for q in QUERY_NUMBERS if (limit := self._limit(q)) is not None},
        )
        why = joined(found.reasons) if found.reasons else None
        yield figure("tpch_power", found.value, pass_=number, reason=why)

    def _throughput_figures(self, length_s: float) -> Iterator[Figure]:
        completed = 0
        for stream in self._streams:
            for query in query_order(stream):
                limit = self._limit(query)
                phase, item = stream_phase(stream), str(query)
                if limit is None:
                    completed += 1
                    yield figure("query_s", self._query_s(query, stream), phase=phase, item=item)
                else:
                    yield censored("query_s", limit, phase=phase, item=item)
        yield figure("streams_s", length_s)
        yield figure("queries_completed", completed)
        reasons = [
            f"query {query} of stream {stream} was stopped at its limit of {self._limit(query):g} s"
            for stream in self._streams
            for query in QUERY_NUMBERS
            if self._limit(query) is not None
        ]
        value = None if reasons else throughput(self.recipe.streams, length_s, self.recipe.scale_factor).value
        yield figure("tpch_throughput", value, reason=planted("; ".join(reasons))[0])

    def _plans(self) -> QueryPlans:
        settings = dict(_SETTINGS)
        name = HOSTILE if self.recipe.hostile else ""
        if self.recipe.hostile:
            settings["work_mem"] = HOSTILE
        plans = []
        streams = self._streams if self.kind == THROUGHPUT else (0,)
        for stream, query in [(number, query) for number in streams for query in query_order(number)]:
            key = (self.number, query)
            wavers = key in self.recipe.wavering_plans and self.scheduled.repetition == 2
            text = explained(
                query,
                other=key in self.recipe.other_plans or wavers,
                block_size_bytes=self.cell.build.block_size_bytes,
                name=name,
            )
            phase = stream_phase(stream) if stream else QUERIES
            plans.append(QueryPlan(str(query), _hash(text), text, phase))
        return QueryPlans(tuple(plans), settings)

    def _course(self, phases: Sequence[tuple[str, float]]) -> pl.DataFrame:
        """A row a second; a second in which one phase ends and the next begins is the next one's."""
        chance = self._chance("course")
        begun: list[tuple[str, float]] = []
        at_s = 0.0
        for phase, seconds in phases:
            begun.append((phase, at_s))
            at_s += seconds
        seconds_of_run = range(max(1, math.ceil(at_s)))
        rows = {
            "second": list(seconds_of_run),
            "phase": [[phase for phase, start in begun if int(start) <= at][-1] for at in seconds_of_run],
        }
        level = {
            "device_read_mib_per_s": self._within("device_read_mib", 1.0),
            "device_written_mib_per_s": self._within("device_written_mib", 1.0),
            "queue_depth": 1.4,
            "dirty_mib": 80.0,
            "pressure_io_some": 0.3,
            "server_cpu": 0.9,
        }
        numbers = {
            name: [
                None if name not in level else level[name] * chance.uniform(0.7, 1.3) for _ in seconds_of_run
            ]
            for name in COURSE_COLUMNS
            if name not in rows
        }
        return pl.DataFrame({**rows, **numbers}, schema_overrides=dict.fromkeys(numbers, pl.Float64))


_SETTINGS = {
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "work_mem": "128MB",
    "shared_buffers": "512MB",
    "effective_cache_size": "1GB",
    "random_page_cost": "4",
    "seq_page_cost": "1",
    "default_statistics_target": "100",
    "server_version": "18.1",
}


_hash = cache(plan_hash)


def _noise(chance: random.Random) -> float:
    return max(chance.gauss(1.0, 0.02), 0.8)


def _absent(counter: str) -> Reason:
    return planted(f"the counter {counter} is not there on this machine or engine")[0]
