"""The `[[workload]]` tables of a plan to its workloads: their datasets, and the runs on each."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from math import prod

from bedplate.model.engines import ENGINE_OF, POSTGRESQL
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import DEFAULTS_VERSION, Workload
from bedplate.model.raw import PG_TEST_FSYNC
from bedplate.plan import runs
from bedplate.plan.chosen_cells import Departures
from bedplate.plan.lmdb_runs import lmdb_runs
from bedplate.plan.power_cut_runs import power_cut_datasets, power_cut_factors, power_cut_run
from bedplate.plan.raw_runs import bonnie_runs, fio_run_specs
from bedplate.plan.tpch_runs import tpch_run_count, tpch_runs
from bedplate.plan.workload_tables import (
    AnyWorkload,
    BonnieTable,
    FioTable,
    LmdbWorkloadTable,
    PgbenchTable,
    PowerCutTable,
    TpchTable,
)

# What tells two datasets of a type apart.
_DATASET_KEYS = {
    "pgbench": ".scale",
    "tpch": ".scale_factor",
    "lmdb": ".entries",
    "bonnie": ".file_size",
    "power_cut": ".engine",
}


def run_count(table: AnyWorkload) -> int:
    """How many runs a visit of this workload makes; only pgbench's multiply, and so are not made for it."""
    if isinstance(table, PgbenchTable):
        return sum(map(runs.run_count, table.run))
    if isinstance(table, TpchTable):
        return tpch_run_count(table)
    if isinstance(table, LmdbWorkloadTable):
        return 2 * (1 + len(table.reads))
    if isinstance(table, PowerCutTable):
        return 1
    if isinstance(table, BonnieTable):
        return len(table.direct) * len(table.chunk_size)
    return sum(map(len, table.job)) + table.pg_test_fsync


def dataset_count(table: AnyWorkload) -> int:
    """How many datasets a workload loads, each in a visit of its own."""
    if isinstance(table, PgbenchTable):
        return len(table.scale)
    if isinstance(table, TpchTable):
        return len(table.scale_factor)
    if isinstance(table, LmdbWorkloadTable):
        return prod(map(len, _lmdb_factors(table).values()))
    if isinstance(table, PowerCutTable):
        return prod(map(len, power_cut_factors(table).values()))
    return len(table.file_size) if isinstance(table, BonnieTable) else 1


def engines(table: AnyWorkload) -> tuple[str, ...]:
    """The engines that a workload runs on, in the order of the plan."""
    return table.engine if isinstance(table, PowerCutTable) else (ENGINE_OF[table.type],)


def workloads(
    tables: Iterable[AnyWorkload], seed: int, reasons: list[str], *, defaults: int = DEFAULTS_VERSION
) -> tuple[Workload, ...]:
    """All of them, in the order of the plan; what speaks against one is added to `reasons`."""
    found: list[Workload] = []
    tables = tuple(tables)
    has_postgresql = any(POSTGRESQL in engines(table) for table in tables)
    for index, table in enumerate(tables):
        if isinstance(table, FioTable) and table.pg_test_fsync and not has_postgresql:
            reasons.append(
                f"workload[{index}].pg_test_fsync: it is a program of PostgreSQL, and nothing here builds one; add a "
                "workload of type pgbench or tpch, or take the key out"
            )
        try:
            workload = _workload(table, seed, defaults)
        except ValueError as error:
            reasons.append(f"workload[{index}].{'job' if table.type == 'fio' else 'run'}: {error}")
            continue
        for earlier, other in enumerate(found):
            # Workloads that name their cells are held against each other where those are known.
            named = bool(_cells(table) and _cells(tables[earlier]))
            if workload.type != other.type or not _loaded(workload) & _loaded(other):
                continue
            if named and workload.runs != other.runs:
                reasons.append(
                    f"workload[{index}]: has the dataset of workload[{earlier}], which decides the run; profiles, "
                    "cache_bytes and seed must be the same there, or clients, duration or points another"
                )
            elif not named:
                reasons.append(
                    f"workload[{index}]{_DATASET_KEYS.get(workload.type, '')}: loads the same dataset as workload[{earlier}]; "
                    "put its runs there, so that it is loaded once"
                )
        found.append(workload)
    return tuple(found)


def cells_named(tables: Iterable[AnyWorkload]) -> dict[int, tuple[Departures, ...]]:
    """What workloads say of the cells that they run in, by their place in the plan."""
    return {index: cells for index, table in enumerate(tables) if (cells := _cells(table))}


def _cells(table: AnyWorkload) -> tuple[Departures, ...]:
    return table.cells if isinstance(table, PowerCutTable) else ()


def _workload(table: AnyWorkload, seed: int, defaults: int) -> Workload:
    if isinstance(table, PgbenchTable):
        return Workload(table.type, table.scale, runs.run_specs(table.run, table.type, defaults=defaults))
    if isinstance(table, TpchTable):
        return Workload(table.type, (), tpch_runs(table, seed), _datasets(scale_factor=table.scale_factor))
    if isinstance(table, LmdbWorkloadTable):
        specs = lmdb_runs(table.tests, table.reads, batch=table.batch, threads=table.threads)
        return Workload(table.type, (), specs, _datasets(**_lmdb_factors(table)))
    if isinstance(table, PowerCutTable):
        return Workload(table.type, (), (power_cut_run(table, seed),), power_cut_datasets(table))
    if isinstance(table, BonnieTable):
        specs = bonnie_runs(
            table.direct, table.chunk_size, per_character=table.per_character, files=table.files
        )
        # A multiple of the memory becomes bytes where the memory of a cell is known.
        return Workload(table.type, (), specs, _datasets(file_size=table.file_size))
    specs = fio_run_specs(table.job, pg_test_fsync=table.pg_test_fsync)
    # Its build is made ready for a dataset, before the visit.
    return Workload(table.type, (), specs, (Levels({PG_TEST_FSYNC: True} if table.pg_test_fsync else {}),))


def _lmdb_factors(table: LmdbWorkloadTable) -> dict[str, tuple[Scalar, ...]]:
    factors: dict[str, tuple[Scalar, ...]] = {"entries": table.entries, "value_bytes": table.value_size}
    return {**factors, "map_bytes": table.map_size} if table.map_size else factors


def _datasets(**factors: tuple[Scalar, ...]) -> tuple[Levels, ...]:
    return tuple(Levels(dict(zip(factors, levels, strict=True))) for levels in product(*factors.values()))


def _loaded(workload: Workload) -> set[object]:
    return {*workload.scales, *workload.datasets}
