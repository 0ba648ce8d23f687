"""kernel-bench of Tomas Vondra (2016): `MACHINE/KERNEL/SCALE/REPETITION/read-only-CLIENTS.log`, pgbench's own text.

The file system comes from `mount.log` of each kernel, and holds for kernels without one where all that are there agree.
Moments come from `bench.log`. A folder `KERNEL-stats` is the same kernel with `pgbench --log` and sar beside it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import NamedTuple

from bedplate.imported.published import (
    UNKNOWN,
    Publication,
    PublishedMachine,
    PublishedRun,
    PublishedSource,
    SourceUnreadable,
    as_problems,
    published_cell,
    shown,
)
from bedplate.model.engines import POSTGRESQL
from bedplate.model.reason import Reason, because, reasons_of
from bedplate.workloads.pgbench.publications.report import (
    DISAGREES,
    left_out,
    run_spec,
    with_report,
    with_whole_specs,
)

_RUN = re.compile(r"(read-only|read-write)-(\d{1,6})\.log")
_LOG, _WARM_UP = ".log", "warmup"
_NUMBER = re.compile(r"\d{1,9}")
_STATISTICS = "-stats"
_STARTED = re.compile(
    r"^(\d{9,10}) \S+ \S+ pgbench scale=(\d{1,9}) run=(\d{1,9}) clients=(\d{1,9}) : (\S+)$", re.MULTILINE
)
_MOUNTED = re.compile(r"^\S+ on (\S+) type (\S+) \(([^)]*)\)$", re.MULTILINE)
# Of several mounts the one with the more telling name.
_DATA = ("pgdata", "data")
_NO_BARRIER = frozenset({"nobarrier", "barrier=0"})


class _Place(NamedTuple):
    """What the path of a log says; `folder` is that of its kernel, within the source."""

    machine: str
    kernel: str
    scale: int
    repetition: int
    script: str
    clients: int
    folder: PurePosixPath


class KernelBench:
    """The adapter."""

    name = "kernel-bench"
    words = "tvondra/kernel-bench: MACHINE/KERNEL/SCALE/REPETITION/read-only-CLIENTS.log"

    def recognises(self, source: PublishedSource) -> bool:
        """Some log stands where one would."""
        return any(_place(source, file) for file in source.files)

    def read(self, source: PublishedSource) -> Publication:
        """Every `read-only` and `read-write` log; the warm-ups are none of the results, and other logs beside them are named."""
        places = {file: place for file in source.files if (place := _place(source, file)) is not None}
        sets = sorted({(place.machine, place.folder) for place in places.values()})
        problems: list[Reason] = []
        mounted = _filesystems(source, sets, problems)
        started = {folder: _moments(source, folder, problems) for _, folder in sets}
        runs: list[PublishedRun] = []
        for file, place in places.items():
            with as_problems(shown(file), problems):
                runs.append(_run(source, file, place, mounted[place.machine], started[place.folder]))
        beside = {file.parent for file in places}
        others = Counter(
            shown(file)
            for file in source.files
            if file.suffix == _LOG and file.stem != _WARM_UP and file not in places and file.parent in beside
        )
        if others:
            problems.append(left_out(source.name, others))
        return Publication(with_whole_specs(runs), tuple(problems))


def _place(source: PublishedSource, file: PurePosixPath) -> _Place | None:
    above, named = source.above(file, 4), _RUN.fullmatch(file.name)
    # Scale and repetition at least are within the source.
    if named is None or len(above) < 4 or len(file.parts) < 3:
        return None
    machine, kernel, scale, repetition = map(shown, above)
    if not _NUMBER.fullmatch(scale) or not _NUMBER.fullmatch(repetition):
        return None
    folder = PurePosixPath(*file.parts[:-3])
    return _Place(machine, kernel, int(scale), int(repetition), named[1], int(named[2]), folder)


def _run(
    source: PublishedSource,
    file: PurePosixPath,
    place: _Place,
    mounted: tuple[str, bool | None],
    started: Mapping[tuple[int, int, int, str], float],
) -> PublishedRun:
    kernel = place.kernel.removesuffix(_STATISTICS)
    run, report = with_report(
        PublishedRun(
            machine=PublishedMachine(place.machine),
            cell=published_cell(
                POSTGRESQL,
                mounted[0],
                kernel=kernel,
                barrier=mounted[1],
                features={} if kernel == place.kernel else {"statistics": True},
            ),
            series=place.machine,
            scale=place.scale,
            spec=run_spec(place.script, clients=place.clients),
            repetition=place.repetition,
            file=shown(file),
            text="",
            started_wall_s=started.get((place.scale, place.repetition, place.clients, place.script)),
            surroundings={"kernel": kernel},
        ),
        source,
        file,
    )
    told = (place.script, place.clients, place.scale)
    if report is None or (report.script, report.clients, report.scale) == told:
        return run
    words = (
        f"by its path it is {place.script} of {place.clients} clients at scale {place.scale}, and pgbench printed "
        f"{report.script}, {report.clients}, {report.scale}"
    )
    return replace(run, doubts=(*run.doubts, because(DISAGREES, words)))


def _filesystems(
    source: PublishedSource, sets: list[tuple[str, PurePosixPath]], problems: list[Reason]
) -> Mapping[str, tuple[str, bool | None]]:
    """Type and barriers of each machine's data, by its name."""
    told: defaultdict[str, set[tuple[str, bool | None]]] = defaultdict(set)
    for machine, folder in sets:
        text = _text(source, folder / "mount.log", problems)
        told[machine] |= set(_mounted(text))
    return {
        machine: next(iter(told[machine])) if len(told[machine]) == 1 else (UNKNOWN, None)
        for machine, _ in sets
    }


def _mounted(text: str) -> Iterator[tuple[str, bool | None]]:
    entries = _MOUNTED.findall(text)
    for name in _DATA:
        found = [each for each in entries if name in PurePosixPath(each[0]).name]
        if len(found) == 1:
            _, type_, options = found[0]
            yield type_, False if _NO_BARRIER & set(options.split(",")) else None
            return


def _moments(
    source: PublishedSource, folder: PurePosixPath, problems: list[Reason]
) -> Mapping[tuple[int, int, int, str], float]:
    """When each run began, by scale, repetition, clients and script."""
    text = _text(source, folder / "bench.log", problems)
    return {
        (int(scale), int(run), int(clients), script): float(moment)
        for moment, scale, run, clients, script in _STARTED.findall(text)
    }


def _text(source: PublishedSource, file: PurePosixPath, problems: list[Reason]) -> str:
    if not source.has(file):
        return ""
    try:
        return source.read_text(file)
    except SourceUnreadable as error:
        problems += reasons_of(error)
        return ""
