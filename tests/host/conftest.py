"""A small real visit, for the tests that live through one, or do not."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.support.guests.guest_lab import GuestLab, guest_lab
from tests.support.studies.study_lab import Lab, study_lab
from tests.support.tools.inner_process import outer_pid
from tests.support.tools.left_in_memory import left_in_memory, loops_below
from tests.support.tools.patience import AT_MOST_S
from tests.support.tools.processes import processes_naming

from bedplate.engines.postgresql.builds import BuildSpec, ensure_build
from bedplate.executors.qemu.runner import GuestRunner
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory
from bedplate.host.ledger import SHARED_MEMORY, release_orphans
from bedplate.host.mount import enter_own_namespaces, read_mount_table
from bedplate.host.native_driver import ensure_driver
from bedplate.host.process import wait_until
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
    EngineBuild,
    ScratchDevice,
    VisitKey,
    VisitRecord,
    VisitRequest,
)
from bedplate.units import MIB

SOURCES = Path(__file__).resolve().parents[2]


def built(block_size_bytes: int = 8192) -> EngineBuild:
    """A real build of PostgreSQL 18, from the cache where it is warm."""
    return ensure_build(
        BuildSpec("18", block_size_bytes),
        cache_directory=cache_directory(),
        commands=Commands(),
        progress=lambda _: None,
    ).for_visit


@pytest.fixture(scope="session", autouse=True)
def own_mounts() -> None:
    """Mounts and memory of these tests are seen by nobody else.

    A visit of another lane would take a copy of a mount, and so keep it alive. Segments of servers have no name of who began them:
    in a /dev/shm that others use too, one lane would sweep what a server of another is about to map.
    """
    if os.geteuid() == 0:
        enter_own_namespaces()
        memory = ["mount", "-t", "tmpfs", "-o", "mode=1777,size=100%", "tmpfs", str(SHARED_MEMORY)]
        subprocess.run(memory, check=True)


@pytest.fixture
def listening() -> Iterator[list[str]]:
    """Sockets of another program, that anybody may speak to: where they are made, elsewhere, and without a file."""
    with contextlib.ExitStack() as stack:
        addresses = [f"@bedplate-test-{os.getpid()}"]
        for place in ("/run", "/tmp", "/var/tmp", "/opt"):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bedplate-test-", dir=place))
            Path(folder).chmod(0o755)
            addresses.append(f"{folder}/socket")
        for address in addresses:
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(address.replace("@", "\0"))
            server.listen()
            if address.startswith("/"):
                Path(address).chmod(0o777)
        yield addresses


@dataclass
class Bench:
    """A place for visits: its own state directory, so that nothing else of the machine is touched."""

    base: Path
    build: EngineBuild
    drivers: dict[str, str]
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def state(self) -> Path:
        return self.base / "state"

    def postmaster(self) -> int:
        """The process id here of the server of the visit under way."""
        file = next(self.state_inside.glob("*/mount/data/postmaster.pid"))
        return outer_pid(int(file.read_text().split()[0]), self.started[-1].pid)

    @property
    def state_inside(self) -> Path:
        """The state directory as the visit under way sees it, which mounts where nobody else does."""
        return Path(f"/proc/{self.started[-1].pid}/root{self.state}")

    @property
    def directory(self) -> Path:
        return self.base / "visit"

    def request(self, filesystem: FilesystemLevels | None = None, **changes: Any) -> VisitRequest:
        build: EngineBuild = changes.pop("build", self.build)
        cell = Cell(
            device=changes.pop("device", DeviceLevels()),
            kernel=KernelLevels(),
            filesystem=filesystem or FilesystemLevels("ext4"),
            build=BuildLevels(block_size_bytes=build.block_size_bytes),
            cluster=ClusterLevels(
                data_checksums=changes.pop("data_checksums", None),
                settings=Levels({"shared_buffers": "16MB", **changes.pop("settings", {})}),
                configuration=changes.pop("configuration", None),
            ),
        )
        runs = changes.pop("runs", None) or (
            run("read-only", script="read-only"),
            run("read-write", script="read-write"),
        )
        request = VisitRequest(
            format_version=FORMAT_VERSION,
            key=VisitKey(cell.id, "pgbench-1", 1, 1),
            cell=cell,
            dataset=Dataset("pgbench", Levels(scale=changes.pop("scale", 1))),
            runs=runs,
            scratch_device=ScratchDevice(
                image_bytes=changes.pop("image_bytes", 512 * MIB), image_directory=str(self.base)
            ),
            build=build,
            native_drivers=self.drivers,
            state_directory=str(self.state),
            seed=7,
            journal_device=changes.pop("journal_device", None),
            needed_bytes=changes.pop("needed_bytes", None),
        )
        assert not changes, f"unknown: {changes}"
        return request

    def start(self, request: VisitRequest) -> subprocess.Popen[str]:
        """The visit as a process, its events to be read from stdout."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir()
        codec.write(self.base / "request.json", request)
        with (self.base / "errors").open("w") as errors:
            visit = subprocess.Popen(
                [
                    sys.executable,
                    *("-S", "-m", "bedplate.visit.command"),
                    *(str(self.base / "request.json"), str(self.directory)),
                ],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYTHONPATH": str(SOURCES / "src")},
                start_new_session=True,
            )
        self.started.append(visit)
        return visit

    def live(self, request: VisitRequest, on_line: Callable[[str], None] = lambda _: None) -> VisitRecord:
        """Live through the visit and give its record."""
        visit = self.start(request)
        assert visit.stdout is not None
        for line in visit.stdout:
            on_line(line)
        status = visit.wait(AT_MOST_S)
        assert 0 == status, (self.base / "errors").read_text()
        return codec.read(VisitRecord, self.directory / "visit.json")

    def left_behind(self) -> list[str]:
        """Everything of ours that the machine still holds, in words."""
        found = [f"mount {entry.target}" for entry in read_mount_table() if str(self.base) in entry.target]
        found += loops_below(self.base)
        found += [f"image {path}" for path in self.base.glob("*.img")]
        found += [f"state {path}" for path in self.state.glob("[0-9]*")]
        pids = {visit.pid for visit in self.started}
        shared = [path for pid in pids for path in Path("/dev/shm").glob(f"bedplate-{pid}-*")]
        found += [f"log directory {path}" for path in shared]
        for root in (Path("/sys/fs/cgroup"),):
            found += [f"group {path}" for pid in pids for path in root.glob(f"*/bedplate-{pid}*")]
        found += [f"process {process.pid} {process.line:.80}" for process in processes_naming(str(self.base))]
        return found


def run(name: str, *, rate_tps: float | None = 1000, **levels: Any) -> RunSpec:
    """A run of two seconds, which leaves the processors to others: at full speed it is with `rate_tps=None`.

    pgbench keeps 4 KiB of its log to itself: at a rate much lower no second is seen before the run's end.
    """
    asked = {"clients": 2, "jobs": 1, "warmup_s": 0, "duration_s": 2, **levels}
    return RunSpec(name, "pgbench", Levels(asked if rate_tps is None else {**asked, "rate_tps": rate_tps}))


@pytest.fixture(autouse=True)
def _nothing_stays_in_memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Of these tests alone: what another program leaves meanwhile is no fault of theirs. `Lab` and `Bench` look below their own places."""
    place = tmp_path_factory.getbasetemp()
    before = left_in_memory(place)
    yield
    # Of a killed process the kernel gives back a moment later.
    assert wait_until(lambda: left_in_memory(place) <= before, deadline_s=AT_MOST_S), (
        left_in_memory(place) - before
    )


@pytest.fixture
def make_run() -> Callable[..., RunSpec]:
    return run


@pytest.fixture
def build_of() -> Callable[[int], EngineBuild]:
    return built


@pytest.fixture
def bench() -> Iterator[Bench]:
    """A bench that is swept afterwards, even if the test failed."""
    drivers = {
        "pgbench_log": str(
            ensure_driver(
                "pgbench_log",
                source=SOURCES / "drivers" / "pgbench_log.c",
                cache_directory=cache_directory() / "drivers",
                commands=Commands(),
            )
        )
    }
    # Not tmp_path: the server's account must be able to reach the mount point.
    base = Path(tempfile.mkdtemp(prefix="bedplate-test-visit-"))
    base.chmod(0o755)
    place = Bench(base, built(), drivers)
    try:
        yield place
    finally:
        for visit in place.started:
            if visit.poll() is None:
                visit.kill()
            visit.wait()
            if visit.stdout is not None:
                visit.stdout.close()
        release_orphans(place.state, Commands())
        shutil.rmtree(base, ignore_errors=True)
        assert wait_until(lambda: not loops_below(base), deadline_s=AT_MOST_S), loops_below(base)


@pytest.fixture
def lab() -> Iterator[Lab]:
    """A place for whole studies that is swept afterwards."""
    with study_lab() as place:
        yield place


@pytest.fixture(scope="session")
def finished() -> Iterator[Path]:
    """A study of one visit that is complete, to be copied."""
    with study_lab() as place:
        place.run(place.plan())
        yield place.study


@pytest.fixture(scope="session")
def shared_guest() -> Iterator[tuple[GuestLab, GuestRunner]]:
    """One guest for every script that leaves it as it was: to boot takes an emulated one half a minute of CPU."""
    with guest_lab() as place:
        journal = ScratchDevice(image_bytes=72 * MIB)
        yield place, place.executor(memory_bytes=1536 * MIB, journal=journal)
