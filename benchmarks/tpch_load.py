"""From an empty cluster to the first TPC-H query: bedplate against a plain shell script with psql.

    sudo ./benchmarks/run tpch_load [--scale-factor 1] [--pairs 3]

Both make ext4 on an image file, a cluster with the same settings, and then load the same CSV files, add the
same keys and indexes, ANALYZE with the same target and CHECKPOINT. Timed is what lies between the empty
database and the first query; bedplate's counting of the rows before the load and its probes beside it are
in its time. Printed: seconds of both, and their ratio pair by pair, every second pair in the other order.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.builds import BuildSpec, ensure_build
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory
from bedplate.model import codec
from bedplate.model.plan import WARM
from bedplate.model.visit import RunRecord, VisitRecord
from bedplate.workloads.tpch.model import LOAD
from bedplate.workloads.tpch.prepare import ensure_tpch_data
from bedplate.workloads.tpch.queries import (
    STATISTICS_TARGET,
    TABLES,
    create_tables,
    foreign_keys,
    indexes,
    load_statements,
    primary_keys,
    query_order,
    validation_query,
)
from bedplate.workloads.tpch.visit import copy_command
from machine import print_machine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bedplate.workloads.tpch.queries import Statement

HERE = Path(__file__).resolve().parent
SETTINGS = {"shared_buffers": "256MB", "max_wal_size": "2GB", "max_parallel_workers_per_gather": "0"}
PLAN = """
title = "time to the first query"
repetitions = 1
[scratch_device]
image_size = "5 GB"
[canary]
enabled = false
[[filesystem]]
type = "ext4"
mount_options = ["noatime"]
[postgresql.settings]
{settings}
[[workload]]
type = "tpch"
scale_factor = {scale_factor:g}
passes = ["warm"]
"""


def main() -> None:
    """Run the pairs and print the ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale-factor", type=float, default=1.0)
    parser.add_argument("--pairs", type=int, default=3)
    given = parser.parse_args()
    print_machine()
    build = ensure_build(
        BuildSpec("18"), cache_directory=cache_directory(), commands=Commands(), progress=lambda _: None
    )
    data = ensure_tpch_data(
        given.scale_factor, cache_directory=cache_directory(), commands=Commands()
    ).directory
    ratios = []
    for pair in range(given.pairs):
        if pair % 2 == 0:
            ours_s, plain_s = _study(given.scale_factor), _script(build.prefix, data, given.scale_factor)
        else:
            plain_s, ours_s = _script(build.prefix, data, given.scale_factor), _study(given.scale_factor)
        ratios.append(ours_s / plain_s)
        print(
            f"pair {pair + 1}: bedplate {ours_s:.1f} s, shell script {plain_s:.1f} s, ratio {ratios[-1]:.2f}",
            flush=True,
        )
    print(f"median ratio {median(ratios):.2f} over {len(ratios)} pairs")


def _study(scale_factor: float) -> float:
    base = Path(tempfile.mkdtemp(prefix="bedplate-tpch-load-"))
    try:
        settings = "\n".join(f'{name} = "{value}"' for name, value in SETTINGS.items())
        plan = base / "plan.toml"
        plan.write_text(PLAN.format(settings=settings, scale_factor=scale_factor), encoding="utf-8")
        subprocess.run(
            [
                *(sys.executable, "-P", "-m", "bedplate"),
                *("run", str(plan), "--study", str(base / "study")),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        (visit,) = (base / "study" / "visits").glob("*/*/*/visit.json")
        return _seconds_to_first_query(visit)
    finally:
        shutil.rmtree(base)


def _seconds_to_first_query(visit: Path) -> float:
    """The whole run of the load, what comes before its first phase too, and the way to the first query."""
    steps = {timing.step: timing.seconds for timing in codec.read(VisitRecord, visit).timings}
    runs = {
        record.spec.name: record
        for path in visit.parent.glob("runs/*/record.json")
        for record in (codec.read(RunRecord, path),)
    }
    loaded = runs[LOAD].phases[-1].end_monotonic_s
    return steps[f"run {LOAD}"] + runs[WARM].phases[0].start_monotonic_s - loaded


def _script(prefix: Path, data: Path, scale_factor: float) -> float:
    base = Path(tempfile.mkdtemp(prefix="bedplate-tpch-script-"))
    base.chmod(0o755)
    try:
        _write_sql(base, data, scale_factor)
        settings = "\n".join(f"{name} = '{value}'" for name, value in SETTINGS.items())
        said = subprocess.run(
            [str(HERE / "tpch_load.sh"), str(prefix), str(base), str(base), settings],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        return int(said.split()[-1]) / 1000
    finally:
        shutil.rmtree(base)


def _write_sql(folder: Path, data: Path, scale_factor: float) -> None:
    _write(folder / "create.sql", create_tables(scale_factor))
    for number, statement in enumerate(load_statements()):
        text = (
            f"begin;\ntruncate {statement.name};\n"
            f"{copy_command(statement, data / f'{statement.name}.csv')}\ncommit;\n"
        )
        (folder / f"load-{number}-{statement.name}.sql").write_text(text, encoding="utf-8")
    _write(folder / "keys.sql", (*primary_keys(), *foreign_keys(), *indexes()))
    target = f"set default_statistics_target = {STATISTICS_TARGET};\n"
    (folder / "analyze.sql").write_text(f"{target}analyze {', '.join(TABLES)};\n", encoding="utf-8")
    first = validation_query(query_order(0)[0], scale_factor)
    (folder / "first-query.sql").write_text(f"{first};\n", encoding="utf-8")


def _write(path: Path, statements: Iterable[Statement]) -> None:
    path.write_text("".join(f"{statement.sql};\n" for statement in statements), encoding="utf-8")


if __name__ == "__main__":
    main()
