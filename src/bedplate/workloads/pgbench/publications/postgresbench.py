"""PostgresBench of ClickHouse: a JSON document for each service, size and scale, with its runs of pgbench.

A service is no file system: its cells are told apart by `service` and `size`, and its machine is both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from bedplate.imported.published import (
    MOST_TEXT_BYTES,
    UNKNOWN,
    Publication,
    PublishedMachine,
    PublishedRun,
    PublishedSource,
    SourceUnreadable,
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
from bedplate.model.reason import Reason, because, reasons_of
from bedplate.workloads.pgbench.publications.report import PGBENCH, doubts_of, run_spec, script_name

_METRICS = {
    "latency_avg_ms": "latency_ms_mean",
    "latency_stddev_ms": "latency_ms_stddev",
    "latency_p95_ms": "latency_ms_p95",
    "latency_p99_ms": "latency_ms_p99",
    "transactions": "transactions",
    "failed_transactions": "transactions_failed",
}

_UNTUNED = "no"


class PostgresBench:
    """The adapter."""

    name = "postgresbench"
    words = "ClickHouse/PostgresBench: SERVICE/results/*.json"

    def recognises(self, source: PublishedSource) -> bool:
        """Some file is such a document."""
        return any(_document(source, file, []) is not None for file in _files(source))

    def read(self, source: PublishedSource) -> Publication:
        """Every run of every document; one that is no such document is a problem."""
        problems: list[Reason] = []
        runs: list[PublishedRun] = []
        for file in _files(source):
            with as_problems(shown(file), problems):
                document = _document(source, file, problems)
                if document is not None:
                    runs += _runs(document, source, file)
        return Publication(tuple(runs), tuple(problems))


def _files(source: PublishedSource) -> tuple[PurePosixPath, ...]:
    return tuple(file for file in source.files if file.suffix == ".json")


def _document(
    source: PublishedSource, file: PurePosixPath, problems: list[Reason]
) -> Mapping[str, Any] | None:
    try:
        document = _json(source, file)
    except SourceUnreadable as error:
        problems += reasons_of(error)
        return None
    if not isinstance(document, Mapping) or not (
        isinstance(document.get("benchmark"), Mapping)
        and isinstance(document.get("results"), list)
        and isinstance(document.get("system"), str)
    ):
        problems.append(
            because("source-strange", f"{shown(file)} has no `system`, `benchmark` and `results`")
        )
        return None
    tool = _text(document["benchmark"].get("tool")) or PGBENCH
    if tool != PGBENCH:
        problems.append(
            because("source-result-left-out", f"{shown(file)}: runs of another program are left out: {tool}")
        )
        return None
    return document


def _json(source: PublishedSource, file: PurePosixPath) -> object:
    try:
        return json.loads(source.read_text(file, MOST_TEXT_BYTES))
    except (ValueError, RecursionError):
        raise source.refusal(file, "is no JSON") from None


def _runs(
    document: Mapping[str, Any], source: PublishedSource, file: PurePosixPath
) -> Iterator[PublishedRun]:
    benchmark = document["benchmark"]
    machine = _machine(document)
    version = _text(document.get("postgres_version")) or UNKNOWN
    cell = published_cell(
        POSTGRESQL,
        features={
            "service": _text(document["system"]) or UNKNOWN,
            "size": _size(document),
            **dict(_differences(document)),
        },
        version=version.split(".")[0],
    )
    spec = run_spec(
        script_name(_text(benchmark.get("workload")) or UNKNOWN),
        clients=whole(benchmark.get("clients")),
        jobs=whole(benchmark.get("threads")),
        protocol=_text(benchmark.get("query_mode")),
        duration_s=_duration_s(benchmark),
    )
    for place, told in enumerate(document["results"], start=1):
        tps = number(told.get("tps")) if isinstance(told, Mapping) else None
        failure = None
        if tps is None:
            failure = because("source-strange", f"{shown(file)}: run {place} has no tps")
        yield PublishedRun(
            machine=machine,
            cell=cell,
            series=source.name,
            scale=whole(benchmark.get("scale_factor")),
            spec=spec,
            repetition=place,
            file=shown(file),
            # Not indented: of what lies deep the indents grow by its square.
            text=json.dumps(told),
            figures=() if tps is None else (figure("tps", tps), *_figures(told)),
            duration_s=spec.levels.number("duration_s"),
            started_wall_s=moment(document.get("date")),
            failure=failure,
            doubts=() if tps is None else tuple(_doubts(tps, told, benchmark)),
            surroundings={"build": version},
            versions={"postgresql": version},
        )


def _doubts(tps: float, result: Mapping[str, Any], benchmark: Mapping[str, Any]) -> Iterator[Reason]:
    transactions, failed = number(result.get("transactions")), number(result.get("failed_transactions"))
    return doubts_of(tps, transactions, _duration_s(benchmark), failed)


def _duration_s(benchmark: Mapping[str, Any]) -> float | None:
    """Its documents until spring 2026 have the other name."""
    return number(benchmark.get("duration", benchmark.get("duration_seconds")))


def _differences(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What else makes a server another one: a commit that waits for a standby is no commit without one."""
    instance, standby = document.get("instance"), document.get("ha")
    for name, value in (
        ("storage", instance.get("primary_storage") if isinstance(instance, Mapping) else None),
        ("standby", standby.get("label") if isinstance(standby, Mapping) else standby),
        ("region", document.get("region")),
        ("comment", document.get("comment")),
    ):
        if words := _text(value):
            yield name, words
    if (words := _text(document.get("tuned"))) and words != _UNTUNED:
        yield "tuned", words
    count = whole(document.get("cluster_size"))
    if count is not None and count != 1:
        yield "cluster_size", str(count)


def _figures(result: Mapping[str, Any]) -> Iterator[Figure]:
    for name, metric in _METRICS.items():
        value = number(result.get(name))
        if value is not None:
            yield figure(metric, value)


def _machine(document: Mapping[str, Any]) -> PublishedMachine:
    instance = document.get("instance")
    told = instance if isinstance(instance, Mapping) else {}
    return PublishedMachine(
        name=f"{_text(document['system']) or UNKNOWN}, {_text(told.get('type')) or UNKNOWN}, {_size(document)}",
        cpu_count=whole(told.get("vcpus")),
        memory_bytes=gibibytes(told.get("ram_gb")),
        disk=_text(told.get("primary_storage")) or _text(told.get("instance_storage")),
    )


def _size(document: Mapping[str, Any]) -> str:
    return _text(document.get("machine")) or UNKNOWN


def _text(value: Any) -> str | None:
    return shown(value.strip()[:120]) if isinstance(value, str) and value.strip() else None
