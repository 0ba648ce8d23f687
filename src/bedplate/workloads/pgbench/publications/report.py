"""pgbench's printed report of any version, as figures of a study: the tps is the number that pgbench printed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import PurePosixPath

from bedplate.errors import BedplateError
from bedplate.imported.published import MOST_TEXT_BYTES, PublishedRun, PublishedSource, number, shown, whole
from bedplate.model.cell import RunSpec
from bedplate.model.figure import Figure
from bedplate.model.levels import Levels, Scalar
from bedplate.model.metrics import figure
from bedplate.model.reason import Reason, because, joined, reasons_of
from bedplate.workloads.pgbench.figures import parse_summary
from bedplate.workloads.pgbench.model import READ_ONLY, READ_WRITE

PGBENCH = "pgbench"
# What two places of one source say of one run.
DISAGREES = "source-disagrees-with-itself"
# Scripts by their whole names, as versions 9.3 to 18 print `transaction type` and as `pgbench -b` takes them. A name that only
# holds such a word is another script.
_SCRIPTS = {
    "select only": READ_ONLY,
    "select-only": READ_ONLY,
    "simple update": "simple-update",
    "update only pgbench_accounts": "simple-update",
    "tpc-b (sort of)": READ_WRITE,
    "tpc-b (built-in)": READ_WRITE,
    "tpcb-like": READ_WRITE,
}
_NUMBER = r"(\d+(?:\.\d+)?)"
_LINES: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.MULTILINE)
    for name, pattern in {
        "script": r"^transaction type: (.+?) *$",
        "scale": r"^scaling factor: (\d+)$",
        "protocol": r"^query mode: (\w+)$",
        "clients": r"^number of clients: (\d+)$",
        "jobs": r"^number of threads: (\d+)$",
        "duration": rf"^duration: {_NUMBER} s$",
        "latency_ms_mean": rf"^latency average *[=:] {_NUMBER} ms$",
        "latency_ms_stddev": rf"^latency stddev *[=:] {_NUMBER} ms$",
        "transactions_failed": r"^number of failed transactions: (\d+)\b",
        "transactions_skipped": r"^number of transactions skipped: (\d+)\b",
        "schedule_lag_ms_mean": rf"^rate limit schedule lag: avg {_NUMBER} ",
        "latency_limit_ms": rf"^number of transactions above the {_NUMBER} ms latency limit",
    }.items()
}
_FIGURES = (
    "latency_ms_mean",
    "latency_ms_stddev",
    "transactions_failed",
    "transactions_skipped",
    "schedule_lag_ms_mean",
)
# A run ends with its last transactions; of a second each, in 900 s, they are 0.1 %.
_APART_MOST = 0.02
# As long as a plan's own names may be.
_LONGEST_NAME = 60


@dataclass(frozen=True)
class PgbenchReport:
    """One report. `rate_limited`: it ran under `--rate`, whose value pgbench does not print."""

    tps: float
    transactions: int
    values: Mapping[str, float]
    script: str
    scale: int | None
    clients: int | None
    jobs: int | None
    protocol: str | None
    duration_s: float | None

    @property
    def rate_limited(self) -> bool:
        """Whether transactions were offered at a rate."""
        return "schedule_lag_ms_mean" in self.values

    def figures(self) -> Iterator[Figure]:
        """A figure for each number that is a metric of bedplate."""
        yield figure("tps", self.tps)
        yield figure("transactions", self.transactions)
        yield from (figure(name, self.values[name]) for name in _FIGURES if name in self.values)

    def spec(self) -> RunSpec:
        """The run as a study asks for one."""
        return run_spec(
            self.script,
            clients=self.clients,
            jobs=self.jobs,
            protocol=self.protocol,
            duration_s=self.duration_s,
            rate_limited=True if self.rate_limited else None,
            latency_limit_ms=self.values.get("latency_limit_ms"),
        )


def read_report(text: str) -> PgbenchReport:
    """The report in what pgbench printed. OutputNotUnderstood where there is none, or no tps."""
    summary = parse_summary(text)
    found = {name: match[1] for name, pattern in _LINES.items() if (match := pattern.search(text))}
    told = {name: number(found.get(name)) for name in (*_FIGURES, "latency_limit_ms")}
    return PgbenchReport(
        tps=summary.tps or 0.0,
        transactions=summary.transactions,
        values={name: value for name, value in told.items() if value is not None},
        script=script_name(found.get("script", "")),
        scale=whole(found.get("scale")),
        clients=whole(found.get("clients")),
        jobs=whole(found.get("jobs")),
        protocol=found.get("protocol"),
        duration_s=number(found.get("duration")),
    )


def doubts_of(
    tps: float, transactions: float | None, duration_s: float | None, failed: float | None
) -> Iterator[Reason]:
    """What in the numbers that pgbench printed of a run does not fit together; what is None was not said."""
    if transactions is not None and duration_s and tps > 0:
        counted = transactions / duration_s
        if abs(counted / tps - 1) > _APART_MOST:
            yield because(
                "tps-is-not-transactions-over-time",
                f"pgbench printed {tps:g} tps, and {transactions:.0f} transactions in {duration_s:g} s are {counted:g}",
                tps=tps,
                counted=counted,
            )
    if failed:
        yield because("transactions-failed", f"{failed:g} transactions failed", failed=failed)


def with_report(
    run: PublishedRun, source: PublishedSource, file: PurePosixPath
) -> tuple[PublishedRun, PgbenchReport | None]:
    """The run with what pgbench printed into a file, or failed with the reason and without a report."""
    text = ""
    try:
        text = source.read_text(file, MOST_TEXT_BYTES)
        report = read_report(text)
    except BedplateError as error:
        failure = joined(each.about(shown(file)) for each in reasons_of(error))
        return replace(run, text=text, failure=failure), None
    read = replace(
        run,
        text=text,
        spec=report.spec(),
        figures=tuple(report.figures()),
        duration_s=report.duration_s,
        doubts=tuple(
            doubts_of(
                report.tps, report.transactions, report.duration_s, report.values.get("transactions_failed")
            )
        ),
    )
    return read, report


def left_out(file: str, tests: Counter[str]) -> Reason:
    """What of a file is no run of pgbench, by the names that it has there: its figures are of other units."""
    shown_most = 8
    names = ", ".join(f"{name} ({count})" for name, count in tests.most_common(shown_most))
    more = f" and {len(tests) - shown_most} more" if len(tests) > shown_most else ""
    return because("source-result-left-out", f"{file}: results of other tests are left out: {names}{more}")


def with_whole_specs(runs: Sequence[PublishedRun]) -> tuple[PublishedRun, ...]:
    """Failed runs as their siblings were asked for: jobs, protocol and duration are said by a log alone.

    With less a failed run would be of another kind, and what else its repetition measured would leave the comparison.
    """
    made = Counter((run.scale, run.series, run.spec) for run in runs if run.failure is None)

    def whole_spec(run: PublishedRun) -> RunSpec:
        fitting = [
            ((series == run.series, count), spec)
            for (scale, series, spec), count in made.items()
            if scale == run.scale and run.spec.levels.items() <= spec.levels.items()
        ]
        return max(fitting, key=lambda each: each[0])[1] if fitting else run.spec

    return tuple(run if run.failure is None else replace(run, spec=whole_spec(run)) for run in runs)


def script_name(name: str) -> str:
    """A built-in script by bedplate's name for it, else what it is called."""
    own = shown(name.strip("<> ").removeprefix("builtin: "))
    if len(own) > _LONGEST_NAME:
        # Two paths that begin alike are two scripts.
        own = f"{own[: _LONGEST_NAME - 9]}~{sha256(own.encode()).hexdigest()[:8]}"
    return _SCRIPTS.get(own.casefold(), own or "unknown")


def run_spec(script: str, **levels: Scalar | None) -> RunSpec:
    """A run of pgbench, named by its script, its clients and what else makes it another one; what is None is left out."""
    known = {name: level for name, level in levels.items() if level is not None}
    words = [script]
    if "clients" in known:
        words.append(f"clients={known['clients']}")
    if known.get("rate_limited"):
        words.append("rate-limited")
    return RunSpec(" ".join(words), PGBENCH, Levels({"script": script, **known}))
