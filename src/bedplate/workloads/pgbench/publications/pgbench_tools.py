"""The results database of pgbench-tools (Greg Smith): its tables `tests`, `testset` and `server`.

It is a PostgreSQL database; what is read is `pg_dump --data-only`, the tables as CSV with a line of names, or a copy in SQLite.
The disk of a server is a text of its owner's, so the file system is unknown; a set is a cell, by its `info`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from bedplate.imported.published import (
    UNKNOWN,
    Publication,
    PublishedMachine,
    PublishedRun,
    PublishedSource,
    as_problems,
    gibibytes,
    moment,
    number,
    published_cell,
    shown,
    whole,
)
from bedplate.model.engines import POSTGRESQL
from bedplate.model.figure import Figure
from bedplate.model.metrics import figure
from bedplate.model.reason import Reason, because
from bedplate.units import KIB, MIB
from bedplate.workloads.pgbench.publications.report import left_out, run_spec, script_name
from bedplate.workloads.pgbench.publications.rows import tables_of

_TABLES = ("tests", "testset", "server")
_NEEDED = ("server", "set", "script", "tps")
_METRICS = {"avg_latency": "latency_ms_mean", "max_latency": "latency_ms_max", "trans": "transactions"}
_SIZES = ("dbsize", "wal_written")
# What makes a run another one; of its rate and its multiplier 0 is none.
_LEVELS = ("scale", "clients", "workers", "rate_limit", "multi")
# It keeps loads of pgbench's tables and osm2pgsql's imports too (`util/pgbench-init-parse`).
_INITIALISATION = re.compile(r":(?:.* )?(?:-[qn]*i\S*|--init\S*)(?: .*)?")
_OTHER_PROGRAM = re.compile(r"osm", re.IGNORECASE)
# Of its ways to connect.
_USUAL = "host"
_LONGEST_WORD = 40


class PgbenchTools:
    """The adapter."""

    name = "pgbench-tools"
    words = "pgbench-tools: its database as results.sql (pg_dump), tests.csv, or SQLite"

    def recognises(self, source: PublishedSource) -> bool:
        """There is a table `tests` with its columns."""
        _, rows = tables_of(source, ("tests",), []).get("tests", (None, []))
        return any(all(name in row for name in _NEEDED) for row in rows[:100])

    def read(self, source: PublishedSource) -> Publication:
        """Every row of `tests` that is a run of pgbench; the others are a problem, by their names."""
        problems: list[Reason] = []
        tables = tables_of(source, _TABLES, problems)
        if "tests" not in tables:
            return Publication((), tuple(problems))
        file, rows = tables["tests"]
        sets = {
            (row.get("server"), row.get("set")): row.get("info")
            for row in tables.get("testset", (None, []))[1]
        }
        servers = {row.get("server"): row for row in tables.get("server", (None, []))[1]}
        runs = []
        others: Counter[str] = Counter()
        counts = any(number(row.get("trans")) for row in rows)
        for place, row in enumerate(rows, start=1):
            strange = [f"has no {name}" for name in _NEEDED if not row.get(name)] + [
                f"has {name} = {shown(row[name])[:_LONGEST_WORD]!r}, which is no number"
                for name in ("tps", *_LEVELS, *_METRICS, *_SIZES)
                if row.get(name) and number(row[name]) is None
            ]
            if strange:
                problems.append(
                    because("source-line-strange", f"{shown(file)}: test {place} {' and '.join(strange)}")
                )
                continue
            if _is_other(row, counts=counts):
                others[shown(row["script"])[:_LONGEST_WORD]] += 1
                continue
            info = sets.get((row["server"], row["set"]))
            with as_problems(f"{shown(file)}: test {place}", problems):
                runs.append(_run(shown(file), row, info, servers.get(row["server"], {})))
        if others:
            problems.append(left_out(shown(file), others))
        return Publication(tuple(runs), tuple(problems))


def _is_other(row: Mapping[str, str], *, counts: bool) -> bool:
    """Whether a row is no run of pgbench: by its script, or as its tps are of no transaction. `counts` where the table counts them."""
    script = row["script"]
    if _INITIALISATION.fullmatch(script) or _OTHER_PROGRAM.match(script):
        return True
    return counts and bool(number(row["tps"])) and not number(row.get("trans"))


def _run(file: str, row: Mapping[str, str], info: str | None, server: Mapping[str, str]) -> PublishedRun:
    connection = shown(row.get("conn_method", ""))[:_LONGEST_WORD]
    tps = number(row["tps"])
    version = _version(row.get("server_version", ""))
    started, ended = moment(row.get("start_time")), moment(row.get("end_time"))
    # A test that did not end keeps the 0 with which its row was made.
    failure = None
    if not tps:
        failure = because("run-did-not-end", f"{file}: test {row.get('test', '')} has no tps: it did not end")
    return PublishedRun(
        machine=PublishedMachine(
            name=shown(row["server"]),
            cpu_model=shown(row.get("server_cpu") or server.get("server_cpu") or UNKNOWN),
            cpu_count=whole(server.get("server_num_proc")),
            memory_bytes=gibibytes(row.get("server_mem_gb") or server.get("server_mem_gb")),
            distribution=shown(row.get("server_os_release") or UNKNOWN),
            disk=shown(row.get("server_disk") or server.get("server_disk") or "") or None,
        ),
        cell=published_cell(
            POSTGRESQL,
            features={"set": shown(info or row["set"])[:120]},
            version=version.split(".")[0] if version else UNKNOWN,
        ),
        series=shown(row["set"]),
        scale=whole(row.get("scale")),
        spec=run_spec(
            # Its older sets have the name of the file.
            script_name(row["script"].removesuffix(".sql")),
            clients=whole(row.get("clients")),
            jobs=whole(row.get("workers")),
            rate=number(row.get("rate_limit")) or None,
            # What its scripts read of more pages at once, and whether by a socket and prepared.
            multiplier=number(row.get("multi")) or None,
            connection=None if connection == _USUAL else connection or None,
        ),
        repetition=None,
        file=f"{file}, test {shown(row.get('test', ''))}",
        text="\n".join(f"{name} = {shown(value)}" for name, value in row.items()),
        figures=() if failure or tps is None else (figure("tps", tps), *_figures(row)),
        duration_s=ended - started if started and ended and ended > started else None,
        started_wall_s=started,
        failure=failure,
        surroundings={"build": version} if version else {},
        versions={"postgresql": version} if version else {},
    )


def _figures(row: Mapping[str, str]) -> Iterator[Figure]:
    known = {metric: number(row.get(name)) for name, metric in _METRICS.items()}
    yield from (figure(metric, value) for metric, value in known.items() if value is not None)
    size, wal, count = (number(row.get(name)) for name in (*_SIZES, "trans"))
    if size:
        yield figure("database_mib", size / MIB)
    if wal and count:
        yield figure("wal_kib_per_transaction", wal / KIB / count)


def _version(told: str) -> str:
    """`16.1` of `PostgreSQL 16.1 on x86_64-pc-linux-gnu, …`."""
    words = told.split()
    return shown(words[1][:20]) if len(words) > 1 and words[0] == "PostgreSQL" else ""
