"""What does shutting in cost? pgbench on a server, both restricted as in a visit, against both as they would be otherwise, in interleaved pairs.

    sudo ./benchmarks/run shut_in_cost [--pairs 32] [--seconds 5] [--script read-only] [--clients 2]

Two servers with equal data in memory, so that nothing but processors is waited for: a filter of system calls costs something for each call,
and a client in memory makes the most of them. One server and its client have lost nothing but root's rights, the other ones are restricted
(`host/shut_in.py`). Both run all the while, the order within a pair alternates. The figure is the ratio of pgbench's own tps,
on logarithms, with a 95 % t-interval over the pairs. On a machine that others use too it is wide; so what a restriction adds to one system
call is measured as well, which with the calls of a transaction (`strace -c`) gives the cost by a count.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.builds import BuildSpec, ensure_build
from bedplate.engines.postgresql.visit import Cluster
from bedplate.host.account import server_account
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory
from bedplate.host.mount import enter_own_namespaces
from bedplate.host.shut_in import Restriction
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, DeviceLevels, FilesystemLevels, KernelLevels
from bedplate.model.levels import Levels
from bedplate.visit.server import ServerSite
from machine import print_machine
from watching_cost import ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bedplate.host.ledger import Holding

_TPS = re.compile(r"^tps = ([0-9.]+)", re.MULTILINE)
# The shortest of five rounds is the one that nobody interrupted.
_CALLS = """
import os, time
ask, best = os.getppid, float("inf")
for _ in range(5):
    began = time.perf_counter_ns()
    for _ in range(200_000):
        ask()
    best = min(best, (time.perf_counter_ns() - began) / 200_000)
print(best)
"""
_SCRIPTS = {"read-only": "select-only", "read-write": "tpcb-like"}


class _NothingHeld:
    """In place of a ledger: what is taken here ends with the namespaces."""

    def note(self, holding: Holding) -> None:
        """Nothing to write down."""

    def settled(self, holding: Holding) -> None:
        """Nothing to write down."""


@contextlib.contextmanager
def _without_rights(restriction: Restriction) -> Iterator[Callable[[], None]]:
    """In place of `Restriction.child`."""

    def become() -> None:
        os.setgroups([])
        os.setgid(restriction.account.gid)
        os.setuid(restriction.account.uid)

    yield become


@dataclass
class Side:
    """A server and its client, restricted or not."""

    cluster: Cluster
    is_restricted: bool

    @contextlib.contextmanager
    def begun(self) -> Iterator[None]:
        """What is started within is of this side."""
        own = Restriction.child
        if not self.is_restricted:
            Restriction.child = _without_rights  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            Restriction.child = own  # type: ignore[method-assign]

    def pgbench(self, *options: str) -> str:
        """What it prints."""
        connection = self.cluster.connection
        argv = [str(connection.program("pgbench")), *options, *connection.options()]
        with self.begun():
            return Commands().run(argv, timeout_s=3600, confinement=connection.restriction()).stdout

    def tps(self, given: argparse.Namespace, seconds: float) -> float:
        """Of one run."""
        clients, script = given.clients, _SCRIPTS[given.script]
        printed = self.pgbench(
            *("--no-vacuum", "--protocol=prepared", f"--client={clients}", f"--jobs={clients}"),
            *(f"--time={max(1, round(seconds))}", f"--builtin={script}"),
        )
        found = _TPS.search(printed)
        if found is None:
            raise SystemExit(printed)
        return float(found[1])


def main() -> None:
    """Run the pairs and print the ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--script", choices=sorted(_SCRIPTS), default="read-only")
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--scale", type=int, default=1)
    given = parser.parse_args()
    print_machine()
    enter_own_namespaces()
    base = Path(tempfile.mkdtemp(prefix="bedplate-shut-in-", dir="/dev/shm"))
    base.chmod(0o755)
    with contextlib.ExitStack() as undo:
        undo.callback(shutil.rmtree, base)
        sides = []
        for is_restricted in (True, False):
            side = Side(_cluster(base / str(is_restricted)), is_restricted)
            undo.callback(side.cluster.kill)
            with side.begun():
                _start(side.cluster)
            side.pgbench("--initialize", "--quiet", f"--scale={given.scale}")
            side.tps(given, 1)
            sides.append(side)
        rates: dict[bool, list[float]] = {True: [], False: []}
        for pair in range(given.pairs):
            for side in sides if pair % 2 == 0 else reversed(sides):
                rates[side.is_restricted].append(side.tps(given, given.seconds))
            own, bare = rates[True][-1], rates[False][-1]
            print(f"  restricted {own:>10.0f}   as it was {bare:>10.0f}   ratio {own / bare:.3f}", flush=True)
    print(f"{given.pairs} pairs of {given.seconds:g} s, {given.script}, {given.clients} clients")
    print(f"tps, restricted / as it was      {ratio(rates[True], rates[False])}")
    restriction = Restriction(server_account())
    calls = [
        [_call_ns(restriction, is_restricted=is_restricted) for is_restricted in (True, False)]
        for _ in range(min(given.pairs, 20))
    ]
    own, bare = (statistics.median(side) for side in zip(*calls, strict=True))
    print(
        f"a system call and its loop       {own:.0f} ns restricted, {bare:.0f} ns as it was, {own - bare:.0f} ns more"
    )


def _call_ns(restriction: Restriction, *, is_restricted: bool) -> float:
    """Nanoseconds of one system call and the loop about it."""
    child = restriction.child() if is_restricted else _without_rights(restriction)
    with child as become:
        argv = ["python3", "-I", "-c", _CALLS]
        done = subprocess.run(argv, preexec_fn=become, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


def _cluster(folder: Path) -> Cluster:
    build = ensure_build(
        BuildSpec("18"), cache_directory=cache_directory(), commands=Commands(), progress=lambda _: None
    ).for_visit
    account = server_account()
    for place in (folder, folder / "data", folder / "socket"):
        place.mkdir(mode=0o755)
        os.chown(place, account.uid, account.gid)
    site = ServerSite(
        build=build,
        data_directory=folder / "data",
        socket_directory=folder / "socket",
        log=folder / "server.log",
        account=account,
        commands=Commands(),
        ledger=_NothingHeld(),
    )
    return Cluster(site)


def _start(cluster: Cluster) -> None:
    settings = Levels(
        shared_buffers="256MB", checkpoint_timeout="1h", max_wal_size="8GB", synchronous_commit="off"
    )
    cell = Cell(
        DeviceLevels(),
        KernelLevels(),
        FilesystemLevels("none"),
        BuildLevels(),
        ClusterLevels(settings=settings),
    )
    cluster.initialise(cell)
    cluster.start()
    cluster.create_database()


if __name__ == "__main__":
    main()
