"""pg-fs-benchmark of Tomas Vondra (2022): `MACHINE/SET/…/SCALE/run-ro-1/pgbench.log`, with a `results.csv` for each set.

Above the scale there are layout and configuration (ZFS, Btrfs), or layout and file system (ext4, XFS on md). The type of the
former is a word of the set's name. A row of `results.csv` adds when a run began and how much WAL it wrote, and is held
against what pgbench printed.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import NamedTuple

from bedplate.imported.published import (
    MOST_TEXT_BYTES,
    UNKNOWN,
    Publication,
    PublishedMachine,
    PublishedRun,
    PublishedSource,
    SourceUnreadable,
    as_problems,
    number,
    published_cell,
    shown,
)
from bedplate.model.engines import POSTGRESQL
from bedplate.model.figure import Figure
from bedplate.model.filesystem import TRAITS
from bedplate.model.levels import Scalar
from bedplate.model.metrics import figure
from bedplate.model.reason import Reason, because
from bedplate.units import KIB, MIB
from bedplate.workloads.pgbench.model import READ_ONLY
from bedplate.workloads.pgbench.publications.report import (
    DISAGREES,
    PgbenchReport,
    left_out,
    run_spec,
    with_report,
    with_whole_specs,
)

_FOLDER = re.compile(r"run-(ro|rw)-(\d{1,4})")
_LOG = "pgbench.log"
_RESULTS = "results.csv"
_DEFAULT = "default"
_SCRIPTS = {"ro": READ_ONLY, "rw": "simple-update"}
# What stands behind start and end, with and without the file system; behind it scale, mode, tps, seconds, bytes of WAL.
_COLUMNS = (9, 10)
_SAME_TO = 1e-6


class _Place(NamedTuple):
    """What the path of a log says."""

    machine: str
    set: str
    names: tuple[str, str]
    configuration: str
    filesystem: str
    scale: int
    mode: str
    number: int


class _Row(NamedTuple):
    started_s: float
    tps: float
    wal_bytes: float | None


# A set's folder, the two names above the scale, scale, mode.
_Key = tuple[PurePosixPath, tuple[str, str], int, str]


class PgFsBenchmark:
    """The adapter."""

    name = "pg-fs-benchmark"
    words = "tvondra/pg-fs-benchmark: MACHINE/SET/LAYOUT/CONFIGURATION/SCALE/run-ro-1/pgbench.log"

    def recognises(self, source: PublishedSource) -> bool:
        """Some log stands where one would."""
        return any(_place(source, file) for file in source.files)

    def read(self, source: PublishedSource) -> Publication:
        """Every log, with its row of the set's `results.csv`; logs that stand elsewhere are named."""
        places = {file: place for file in source.files if (place := _place(source, file)) is not None}
        problems: list[Reason] = []
        sets = sorted({_set_folder(file) for file in places})
        rows = {key: found for folder in sets for key, found in _rows(source, folder, problems).items()}
        runs: list[PublishedRun] = []
        for file, place in places.items():
            with as_problems(shown(file), problems):
                runs.append(_run(source, file, place, rows))
        others = Counter(shown(file) for file in source.files if file.name == _LOG and file not in places)
        if others:
            problems.append(left_out(source.name, others))
        return Publication(with_whole_specs(runs), tuple(problems))


def _set_folder(file: PurePosixPath) -> PurePosixPath:
    return PurePosixPath(*file.parts[:-5])


def _place(source: PublishedSource, file: PurePosixPath) -> _Place | None:
    if file.name != _LOG or len(file.parts) < 5:
        return None
    above = source.above(file, 6)
    named = _FOLDER.fullmatch(file.parent.name)
    if named is None or len(above) < 6 or not re.fullmatch(r"\d{1,9}", above[4]):
        return None
    machine, set_, first, second = map(shown, above[:4])
    configuration, type_ = _DEFAULT, second
    if second not in TRAITS:
        configuration = second
        type_ = next((word for word in set_.split("-") if word in TRAITS), UNKNOWN)
    scale, mode, count = int(above[4]), named[1], int(named[2])
    return _Place(machine, set_, (first, second), configuration, type_, scale, mode, count)


def _run(
    source: PublishedSource, file: PurePosixPath, place: _Place, rows: Mapping[_Key, Sequence[_Row]]
) -> PublishedRun:
    found = rows.get((_set_folder(file), place.names, place.scale, place.mode), ())
    row = found[place.number - 1] if 0 < place.number <= len(found) else None
    features: dict[str, Scalar] = {"layout": place.names[0]}
    if place.configuration != _DEFAULT:
        features["configuration"] = place.configuration
    run, report = with_report(
        PublishedRun(
            machine=PublishedMachine(place.machine),
            cell=published_cell(POSTGRESQL, place.filesystem, features=features),
            series=place.set,
            scale=place.scale,
            spec=run_spec(_SCRIPTS[place.mode]),
            repetition=place.number,
            file=shown(file),
            text="",
            started_wall_s=None if row is None else row.started_s,
        ),
        source,
        file,
    )
    if report is None:
        return run
    version = re.match(r"pgbench \((?:PostgreSQL\) )?([^\s)]{1,40})", run.text)
    return replace(
        run,
        figures=(*run.figures, *_more_figures(source, file, report, row)),
        doubts=(*run.doubts, *_disagreements(place, report, row)),
        versions={"pgbench": version[1]} if version else {},
    )


def _more_figures(
    source: PublishedSource, file: PurePosixPath, report: PgbenchReport, row: _Row | None
) -> Iterator[Figure]:
    if row is not None and row.wal_bytes is not None and report.transactions:
        yield figure("wal_kib_per_transaction", row.wal_bytes / KIB / report.transactions)
    sizes = file.parent / "sizes.csv"
    if source.has(sizes):
        try:
            text = source.read_text(sizes, MOST_TEXT_BYTES)
        except SourceUnreadable:
            return
        after = [line.split(";") for line in text.splitlines() if line.startswith("after;")]
        size = number(after[-1][-1]) if after else None
        if size is not None:
            yield figure("database_mib", size / MIB)


def _disagreements(place: _Place, report: PgbenchReport, row: _Row | None) -> Iterator[Reason]:
    if row is not None and abs(row.tps - report.tps) > _SAME_TO * max(row.tps, report.tps):
        yield because(
            DISAGREES,
            f"{_RESULTS} has {row.tps:g} tps, and pgbench printed {report.tps:g}",
            results=row.tps,
            printed=report.tps,
        )
    if report.scale is not None and report.scale != place.scale:
        yield because(
            DISAGREES, f"by its path the scale is {place.scale}, and pgbench printed {report.scale}"
        )


def _rows(
    source: PublishedSource, folder: PurePosixPath, problems: list[Reason]
) -> Mapping[_Key, Sequence[_Row]]:
    file = folder / _RESULTS
    found: defaultdict[_Key, list[_Row]] = defaultdict(list)
    if not source.has(file):
        return found
    with as_problems(shown(file), problems):
        try:
            lines = list(csv.reader(io.StringIO(source.read_text(file)), delimiter=";"))
        except csv.Error as error:
            raise SourceUnreadable(f"{shown(file)} cannot be read: {error}") from error
        for line, values in enumerate(lines, start=1):
            if not values:
                continue
            read = _row(values)
            if read is None:
                words = f"{shown(file)}, line {line}: it is no row of results"
                problems.append(because("source-line-strange", words))
                continue
            names, scale, mode, row = read
            found[folder, names, scale, mode].append(row)
    return found


def _row(values: Sequence[str]) -> tuple[tuple[str, str], int, str, _Row] | None:
    if len(values) not in _COLUMNS:
        return None
    *names, scale, mode, tps, _, wal = values[2:]
    started, rate, size = number(values[0]), number(tps), number(wal)
    if started is None or rate is None or not re.fullmatch(r"\d{1,9}", scale) or mode not in _SCRIPTS:
        return None
    layout, configuration, *type_ = names
    return (layout, type_[0] if type_ else configuration), int(scale), mode, _Row(started, rate, size)
