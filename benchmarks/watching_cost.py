"""What does watching cost? pgbench inside bedplate against the same pgbench bare, in interleaved pairs.

    sudo ./benchmarks/run watching_cost [--pairs 32] [--seconds 10] [--script read-only] [--clients 4] [--jobs 4]

One visit: one file system, one server, one dataset. Its runs alternate between bedplate's own pgbench
workload (probes once a second, per-transaction log, log reader) and the bare tool with the same
options and nothing beside it; the order within a pair alternates too. The figure is the ratio of
pgbench's own tps, on logarithms, with a 95 % t-interval over the pairs. Beside each stands how often pgbench's
threads slept for each transaction: where that differs, the scheduler ran the two in different ways.
"""

from __future__ import annotations

import argparse
import math
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
from scipy import stats

from bedplate import registry
from bedplate.campaign.preparation import prepare_drivers
from bedplate.engines.postgresql.builds import BuildSpec, ensure_build
from bedplate.engines.postgresql.visit import cluster_of
from bedplate.host.command import Commands, environment
from bedplate.host.files import cache_directory, state_directory
from bedplate.host.mount import enter_own_namespaces
from bedplate.model import codec
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    Dataset,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
    RunSpec,
)
from bedplate.model.levels import Levels
from bedplate.model.visit import (
    FORMAT_VERSION,
    Outcome,
    RunRecord,
    ScratchDevice,
    VisitKey,
    VisitRequest,
)
from bedplate.probe.sampler import read_all
from bedplate.units import GIB
from bedplate.visit import life
from bedplate.workloads.pgbench.model import MODEL
from bedplate.workloads.pgbench.visit import pgbench_options
from machine import print_machine

if TYPE_CHECKING:
    from bedplate.host.requirement import Need
    from bedplate.visit.recording import Driver, VisitContext

BARE = "bare pgbench"


class BarePgbench:
    """The same pgbench, warmed up alike, with no probe and no log."""

    name = BARE
    protocol = "bare"
    needs: tuple[Need, ...] = ()
    drivers: tuple[Driver, ...] = ()

    def load(self, dataset: Dataset, context: VisitContext) -> None:
        """Never called: the dataset is the other workload's."""
        raise NotImplementedError

    def run(self, spec: RunSpec, context: VisitContext, directory: Path) -> RunRecord:
        """CHECKPOINT, warm-up, measurement: what bedplate does, without watching."""
        with cluster_of(context).session() as session:
            session.execute("CHECKPOINT")
        before = after = read_all(context.probes, phase="warmup")
        client_s, sleeps = 0.0, 0
        for phase, seconds in (("warmup", spec.levels["warmup_s"]), ("pgbench", spec.levels["duration_s"])):
            argv = pgbench_options(spec, context, duration_s=float(seconds), seed=context.seed)
            before, used_s, slept = after, _children_cpu_s(), _children_sleeps()
            with (directory / "logs" / f"{phase}.out").open("wb") as out:
                subprocess.run(
                    argv,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    check=True,
                    env=environment(),
                    cwd="/",
                    user=context.account.uid,
                    group=context.account.gid,
                    extra_groups=[],
                    # As bedplate starts it: sessions are groups of the scheduler (sched(7), autogrouping).
                    start_new_session=True,
                )
            after, client_s = read_all(context.probes, phase=phase), _children_cpu_s() - used_s
            sleeps = _children_sleeps() - slept
        facts = {"measure_client_cpu_s": client_s, "measure_client_sleeps": sleeps}
        return RunRecord(spec, Outcome.COMPLETED, before=before, after=after, facts=facts)


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _children_sleeps() -> int:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw


def main() -> None:
    """Run the pairs and print the ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--script", default="read-only")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--jobs", type=int, help="threads of pgbench; one for each client without it")
    parser.add_argument("--scale", type=int, default=10)
    given = parser.parse_args()
    print_machine()
    # As a study's visit does: a copy of the mount in another program's namespace would keep the device busy.
    enter_own_namespaces()
    with tempfile.TemporaryDirectory(prefix="bedplate-watching-") as name:
        base = Path(name)
        base.chmod(0o755)
        # A workload is a folder that names a file for each role: this one stands in no file of its own.
        roles = {"visit": ("model", "run")}
        visit = SimpleNamespace(RUN=BarePgbench(), MODEL=MODEL)
        sys.modules["bare_pgbench"] = cast("ModuleType", SimpleNamespace(ROLES=roles))
        sys.modules["bare_pgbench.visit"] = cast("ModuleType", visit)
        registry.WORKLOADS = {**registry.WORKLOADS, BARE: "bare_pgbench"}
        request = _request(given, base)
        record = life.live(request, base, executor="benchmark", emit=_show)
        if record.outcome is not Outcome.COMPLETED:
            raise SystemExit("\n".join(map(str, record.reasons)))
        _report([base / "runs" / name for name in record.runs], given.seconds)


def _request(given: argparse.Namespace, base: Path) -> VisitRequest:
    build = ensure_build(
        BuildSpec("18"), cache_directory=cache_directory(), commands=Commands(), progress=lambda _: None
    ).for_visit
    cell = Cell(
        DeviceLevels(),
        KernelLevels(),
        FilesystemLevels("ext4", mount_options=("noatime",)),
        BuildLevels(),
        ClusterLevels(settings=Levels(shared_buffers="256MB", checkpoint_timeout="1h")),
    )
    levels = Levels(
        script=given.script,
        clients=given.clients,
        jobs=given.jobs or given.clients,
        warmup_s=2.0,
        duration_s=given.seconds,
        protocol="prepared",
    )
    runs = []
    for pair in range(given.pairs):
        order = ("pgbench", BARE) if pair % 2 == 0 else (BARE, "pgbench")
        runs += [RunSpec(f"{pair:02d} {workload}", workload, levels) for workload in order]
    return VisitRequest(
        format_version=FORMAT_VERSION,
        key=VisitKey(cell.id, "benchmark", 1, 1),
        cell=cell,
        dataset=Dataset("pgbench", Levels(scale=given.scale)),
        runs=tuple(runs),
        scratch_device=ScratchDevice(image_bytes=2 * GIB, image_directory=str(base)),
        build=build,
        native_drivers=prepare_drivers(["pgbench"]),
        state_directory=str(state_directory()),
        seed=1,
    )


def _show(event: object) -> None:
    if isinstance(event, dict) and event.get("event") == "run":
        print(f"  {event['index']}/{event['of']} {event['run']}", flush=True)


def _report(directories: list[Path], seconds: float) -> None:
    tps: dict[str, list[float]] = {"pgbench": [], BARE: []}
    cpu_us: dict[str, list[float]] = {"pgbench": [], BARE: []}
    slept: dict[str, list[float]] = {"pgbench": [], BARE: []}
    cores: list[float] = []
    for directory in directories:
        record = codec.read(RunRecord, directory / "record.json")
        found = re.search(r"^tps = ([0-9.]+)", (directory / "logs" / "pgbench.out").read_text(), re.MULTILINE)
        if found is None or record.before is None or record.after is None:
            raise SystemExit(f"{directory}: no tps, or no counters")
        name, rate = record.spec.workload, float(found[1])
        before, after = record.before.values, record.after.values
        cpu_s = after["server.cpu_s"] - before["server.cpu_s"] + float(record.facts["measure_client_cpu_s"])
        tps[name].append(rate)
        slept[name].append(float(record.facts["measure_client_sleeps"]) / (rate * seconds))
        cpu_us[name].append(cpu_s / (rate * seconds) * 1e6)
        if "watching.cpu_s" in after:
            used = after["watching.cpu_s"] - before["watching.cpu_s"]
            cores.append(used / (record.after.monotonic_s - record.before.monotonic_s))
    print()
    for watched, bare, ours, theirs in zip(
        tps["pgbench"], tps[BARE], slept["pgbench"], slept[BARE], strict=True
    ):
        print(
            f"  watched {watched:>10.0f}   bare {bare:>10.0f}   ratio {watched / bare:.3f}   sleeps each {ours:.2f} {theirs:.2f}"
        )
    print(f"{len(tps[BARE])} pairs of {seconds:g} s")
    print(f"tps, watched / bare              {ratio(tps['pgbench'], tps[BARE])}")
    for name, rates in tps.items():
        cv = float(np.std(rates, ddof=1) / np.mean(rates)) if len(rates) > 1 else float("nan")
        print(
            f"{len(rates)} equal runs, {name:<12} coefficient of variation {cv:.1%}, {min(rates):.0f} to {max(rates):.0f} tps"
        )
    # A neighbour takes time from a run, not CPU seconds: the companion that noise leaves alone.
    print(f"CPU per transaction, the same    {ratio(cpu_us['pgbench'], cpu_us[BARE])}  (server and client)")
    print(
        f"CPU of watching itself           median {np.median(cores):.2%} of one core, largest {max(cores):.2%}"
    )


def ratio(watched: list[float], bare: list[float]) -> str:
    """Of the one to the other, pair by pair, with its 95 % interval."""
    logs = np.log(np.array(watched) / np.array(bare))
    mean, error = float(logs.mean()), float(stats.sem(logs))
    low, high = stats.t.interval(0.95, len(logs) - 1, loc=mean, scale=error)
    return f"{math.exp(mean):.4f}   95 % interval {math.exp(low):.4f} to {math.exp(high):.4f}"


if __name__ == "__main__":
    main()
