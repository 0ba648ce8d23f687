"""One study of four engines: PostgreSQL and MariaDB under sysbench, SQLite and LMDB under the microbenchmark, on ext4 and XFS.

What is planted: PostgreSQL makes 1.5 times MariaDB's transactions, XFS 1.1 times ext4's; each library is half as fast as the one
before (`synthetic_microbenchmark`). Nothing tells a server from a library: they have no run in common.
"""

from __future__ import annotations

import math
import random
import shutil
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from tests.support.studies.known_study import Place, known_study
from tests.support.studies.synthetic_microbenchmark import synthetic_microbenchmark
from tests.support.studies.synthetic_study import Recipe, facts_of
from tests.support.studies.written import write

from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    Dataset,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
)
from bedplate.model.codec import read
from bedplate.model.levels import Levels
from bedplate.study.records import StudySchedule
from bedplate.workloads.microbenchmark.model import WORKLOAD

if TYPE_CHECKING:
    from pathlib import Path

OF_POSTGRESQL, OF_XFS = 1.5, 1.1
_FILESYSTEMS = ("ext4", "xfs")


def _cells(build: BuildLevels, settings: Levels) -> tuple[Cell, ...]:
    return tuple(
        Cell(
            DeviceLevels(),
            KernelLevels(),
            FilesystemLevels(kind, block_size_bytes=4096),
            build,
            ClusterLevels(settings=settings),
        )
        for kind in _FILESYSTEMS
    )


SERVERS = (
    *_cells(BuildLevels(), Levels(shared_buffers="32MB")),
    *_cells(BuildLevels.unbuilt("mariadb"), Levels(innodb_buffer_pool_size="32 MB")),
)
LIBRARIES = (
    *_cells(BuildLevels.unbuilt("sqlite"), Levels(journal_mode="wal", synchronous="full")),
    *_cells(BuildLevels.unbuilt("lmdb"), Levels(sync="full")),
)
_OF_SERVERS = Recipe(
    cells=SERVERS,
    runs=("oltp_read_only", "oltp_update_index"),
    dataset=Dataset("sysbench", Levels(tables=4, table_size=50_000)),
    canaries=0,
    course_s=5,
)


def _tps(place: Place) -> float:
    speed = 4000.0 if place.run == "oltp_read_only" else 800.0
    speed *= OF_POSTGRESQL if place.cell.build.engine == "postgresql" else 1.0
    speed *= OF_XFS if place.cell.filesystem.type == "xfs" else 1.0
    return speed * math.exp(random.Random(f"{place.cell.id} {place.run} {place.repetition}").gauss(0, 0.01))


def four_engines(directory: Path, *, repetitions: int = 3) -> Path:
    """Write the study into `directory`, which is made; the directory."""
    known_study(directory, _tps, replace(_OF_SERVERS, repetitions=repetitions))
    libraries = synthetic_microbenchmark(
        directory / "libraries",
        repetitions=repetitions,
        cells=LIBRARIES,
        datasets=(Dataset(WORKLOAD, Levels(entries=3000, value_bytes=100)),),
    )
    servers, others = (read(StudySchedule, folder / "schedule.json") for folder in (directory, libraries))
    for folder in (libraries / "visits").iterdir():
        folder.rename(directory / "visits" / folder.name)
    shutil.rmtree(libraries)
    numbers = count()
    schedule = replace(
        servers,
        cells={**servers.cells, **others.cells},
        datasets={**servers.datasets, **others.datasets},
        runs={**servers.runs, **others.runs},
        pruned=(),
        visits=tuple(replace(visit, index=next(numbers)) for visit in (*servers.visits, *others.visits)),
    )
    write(directory / "schedule.json", schedule)
    write(directory / "study.json", facts_of("PostgreSQL, MariaDB, SQLite and LMDB on ext4 and XFS"))
    return directory
