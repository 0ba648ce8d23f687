"""A visit that is killed at every step of its life leaves nothing that the next start does not free."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.tools.patience import AT_MOST_S

from bedplate.errors import EXIT_INTERRUPTED
from bedplate.host.command import Commands
from bedplate.host.ledger import release_orphans
from bedplate.model.cell import DeviceLevels, FilesystemLevels
from bedplate.units import MIB

if TYPE_CHECKING:
    Bench = Any

pytestmark = pytest.mark.host

STEPS = (
    "preflight",
    "scratch device",
    "mkfs",
    "mount",
    "read back",
    "initdb",
    "server start",
    "server read back",
    "load",
    "run read-only",
    "second of read-write",
    "stop",
    "unmount",
    "check",
)


def _wait_for(visit: subprocess.Popen[str], step: str) -> None:
    assert visit.stdout is not None
    for line in visit.stdout:
        event = json.loads(line)
        if event["event"] == "step" and event["step"] == step:
            return
        if event["event"] == "second" and f"second of {event['run']}" == step:
            return
    raise AssertionError(f"the visit never came to {step!r}")


@pytest.mark.parametrize("step", STEPS)
def test_what_sigkill_leaves_is_freed_by_the_next_start(bench: Bench, step: str) -> None:
    # Every kind of thing is held: a switched write cache, a memory group, a mount, a server.
    request = bench.request(
        FilesystemLevels("xfs", barrier=False), device=DeviceLevels(memory_bytes=512 * MIB, read_ahead_kb=64)
    )
    visit = bench.start(request)
    _wait_for(visit, step)
    visit.kill()
    visit.wait()
    report = release_orphans(bench.state, Commands())
    assert () == report.problems
    assert [] == bench.left_behind()
    assert not (bench.directory / "visit.json").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("step", ["scratch device", "mount", "load", "second of read-write", "check"])
def test_a_signal_ends_a_visit_cleanly(bench: Bench, step: str, number: signal.Signals) -> None:
    visit = bench.start(bench.request())
    _wait_for(visit, step)
    visit.send_signal(number)
    visit.communicate(timeout=AT_MOST_S)
    assert (EXIT_INTERRUPTED, "") == (visit.returncode, (bench.base / "errors").read_text())
    assert [] == bench.left_behind()
    assert not (bench.directory / "visit.json").exists()


def test_no_shared_memory_is_left_of_a_server_that_was_killed_with_its_visit(bench: Bench) -> None:
    visit = bench.start(bench.request())
    _wait_for(visit, "second of read-write")
    postmaster = bench.postmaster()
    maps = Path(f"/proc/{postmaster}/maps").read_text()
    segments = {Path(line[line.index("/") :]) for line in maps.splitlines() if "/dev/shm/PostgreSQL" in line}
    assert segments
    # They are in a memory of its own, as the System V segment of its interlock is, and go with it.
    assert [] == [path for path in segments if path.exists()]
    assert Path(f"/proc/{postmaster}/ns/ipc").readlink() != Path("/proc/self/ns/ipc").readlink()
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    for pid in (visit.pid, postmaster, *map(int, children)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    visit.wait()
    report = release_orphans(bench.state, Commands())
    assert () == report.problems
    assert [] == [path for path in segments if path.exists()]
    assert [] == bench.left_behind()
