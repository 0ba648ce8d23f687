"""What records say of the datasets and runs of TPC-H, and the names that plans, records and figures share."""

from __future__ import annotations

from math import log10
from typing import NamedTuple

from bedplate.model.cell import RunSpec
from bedplate.model.engines import POSTGRESQL
from bedplate.model.plan import RecordWords, WorkloadModel
from bedplate.units import KIB

WORKLOAD = "tpch"

# Level `kind` of a run.
LOAD = "load"

POWER = "power"
THROUGHPUT = "throughput"

# Level `parameters`: the specification's validation parameters, or drawn from the plan's seed.
VALIDATION = "validation"

DRAWN = "drawn"

# The phases of the load run, in order. The last one writes what the others left dirty.
LOAD_PHASES = ("load", "primary keys", "foreign keys", "indexes", "analyze", "checkpoint")

# The one phase of a power run. Each query is a phase of the course and of the counters (`query_phase`).
QUERIES = "queries"

STREAM = "stream "
QUERY_NUMBERS = tuple(range(1, 23))


class TpchModel(WorkloadModel):
    """The runs after it read what one run made."""

    def fills(self, spec: RunSpec) -> bool:
        """The load."""
        return spec.levels.text("kind") == LOAD


def query_phase(query: int) -> str:
    """The name of a query's phase in the course and among the counters of a power run."""
    return f"query {query}"


def stream_phase(stream: int) -> str:
    """The phase of one stream's items in a throughput run; streams count from 1 (clause 5.3.4)."""
    return f"{STREAM}{stream}"


MODEL = TpchModel(
    POSTGRESQL,
    plan_keys={
        "scale_factor": "scale_factor",
        "query_timeout_s": "query_timeout",
        "streams": "streams",
        "parameters": "parameters",
    },
    words=RecordWords(
        dataset="`scale_factor`",
        run="`kind` (`load`, `power`, `throughput`), `pass` (`cold`, `warm`), `pass_number`, `streams`, `parameters` "
        "(`validation`, `drawn`), `parameter_seed`, `query_timeout_s`",
        phases="`load`, `primary keys`, `foreign keys`, `indexes`, `analyze`, `checkpoint`; `query 1` to `query 22`, whose "
        "figures are of phase `queries`; `throughput`, whose figures are of `stream 1` and so on",
        items="a query (`14`), a table, a key or an index that was loaded",
        facts="`scale_factor`, `database_bytes`, `wal_bytes_on_disk`, `made_cold`, `streams`, `streams_s`, …",
        files="`plans.json`: the plans of its queries",
    ),
)

_CSV_BYTES = 1.112e9
_CSV_BYTES_PER_POWER_OF_TEN = 26e6
_PAGE_HEADER = 24
_LINE_POINTER = 4

# 7.4 MB of 18.6's template database, and at least a page or two for each relation and its maps.
_CATALOGUES_BYTES = 10_000_000

_INDEX_REFERENCE_BYTES = 8 * KIB
_INDEX_GROWTH = 0.024

# Free space and visibility maps, and what the averages leave out.
_MARGIN = 1.01

# Above it identifiers take eight bytes (clause 1.3.1).
_INTEGER_IDENTIFIERS_UP_TO = 300

_WIDER_IDENTIFIER_BYTES = 4

# Validating the foreign key of lineitem to orders, with maintenance_work_mem at its default of 64 MB, wrote
# 439 MB of temporary files; each index on lineitem 120 MB; no query with 4 MB of work_mem more than 66 MB.
_TEMPORARY_BYTES = 440e6


class _Table(NamedTuple):
    """Rows at scale factor 1, the mean row and its share of the indexes in bytes, its identifier columns."""

    rows: int
    row_bytes: float
    index_bytes: float
    identifiers: int


_TABLES = (
    _Table(200_000, 161.9, 22.6, 1),  # part
    _Table(10_000, 175.6, 33.6, 2),  # supplier
    _Table(800_000, 173.1, 29.4, 2),  # partsupp
    _Table(150_000, 190.0, 29.8, 2),  # customer
    _Table(1_500_000, 137.1, 38.2, 2),  # orders
    _Table(6_001_215, 147.9, 68.6, 3),  # lineitem
)


def tpch_data_bytes(scale_factor: float) -> int:
    """Bytes of the eight CSV files; about 1.1 GB per unit of scale. ValueError unless it is positive."""
    _require_positive(scale_factor)
    growth = _CSV_BYTES_PER_POWER_OF_TEN * max(0.0, log10(scale_factor))
    return int(scale_factor * (_CSV_BYTES + growth))


def database_bytes(scale_factor: float, block_size_bytes: int) -> int:
    """Bytes of the loaded database: tables, keys, indexes and catalogues, without WAL and temporary files.

    ValueError unless the scale factor is positive.
    """
    _require_positive(scale_factor)
    wider = _WIDER_IDENTIFIER_BYTES if scale_factor > _INTEGER_IDENTIFIERS_UP_TO else 0
    smaller_pages = _INDEX_REFERENCE_BYTES / block_size_bytes - 1
    index_factor = 1 + _INDEX_GROWTH * smaller_pages
    size = 0.0
    for table in _TABLES:
        row = table.row_bytes + wider * table.identifiers
        rows_per_page = (block_size_bytes - _PAGE_HEADER - row / 2) / (row + _LINE_POINTER)
        index = (table.index_bytes + 2 * wider * table.identifiers) * index_factor
        size += table.rows * (block_size_bytes / rows_per_page + index)
    return int(scale_factor * size * _MARGIN) + _CATALOGUES_BYTES


def temporary_bytes(scale_factor: float) -> int:
    """Room for the largest temporary files of one session: keys, indexes or a query, whichever takes most.

    An upper bound, as it counts what was written and not what lay there at once. Streams of a throughput
    test need the queries' part each, a seventh of it. ValueError unless the scale factor is positive.
    """
    _require_positive(scale_factor)
    return int(scale_factor * _TEMPORARY_BYTES)


def _require_positive(scale_factor: float) -> None:
    if not 0 < scale_factor < float("inf"):
        raise ValueError(f"scale factor {scale_factor} is not a positive number; take 0.1, 1, 10 or the like")
