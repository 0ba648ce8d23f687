"""What a visit stands on: device, file system, server. Taken step by step, left in reverse."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engine.postgresql.cluster import Cluster, ServerFailed, effective_settings, read_back
from bedplate.errors import VisitFailed
from bedplate.filesystem.comparison import effective_facts, verify
from bedplate.filesystem.flushes import judge, measure_fsyncs, write_back_wanted
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.account import server_account
from bedplate.host.cgroup import Group, drop_page_cache
from bedplate.host.ledger import Holding, Ledger
from bedplate.host.lock import IMAGE_FILES, device_lock
from bedplate.host.mount import unmount
from bedplate.host.scratch_device import prepare, release_device
from bedplate.host.tunables import queue_settings, restore_all
from bedplate.model import codec
from bedplate.model.cell import digest
from bedplate.model.durability import declared
from bedplate.model.levels import Levels
from bedplate.model.visit import Comparison, Outcome, RunRecord
from bedplate.probe.kernel import (
    DeviceProbe,
    GroupProbe,
    MemoryProbe,
    PressureProbe,
    ProcessorProbe,
)
from bedplate.units import MIB
from bedplate.workload.protocol import Rig
from bedplate.workload.registry import workload_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bedplate.host.command import Commands
    from bedplate.host.device import AttachedDevice
    from bedplate.model.levels import Scalar
    from bedplate.model.visit import VisitRequest
    from bedplate.visit.findings import Findings, Steps

# Where a client's log goes: memory, so that writing it is no I/O of the machine under test.
_MEMORY_DIRECTORY = Path("/dev/shm")  # noqa: S108 -- a directory of its own is made in it
# An image is written at some GiB a second; a display has use for a few events a second.
_IMAGE_EVENT_BYTES = 256 * MIB


class Stand:
    """One visit's taking and giving back; `measure` goes up, `leave` comes down."""

    def __init__(
        self,
        request: VisitRequest,
        directory: Path,
        *,
        commands: Commands,
        ledger: Ledger,
        steps: Steps,
        findings: Findings,
        emit: Callable[[Mapping[str, Scalar]], None],
    ) -> None:
        self._request = request
        self._directory = directory
        self._commands = commands
        self._ledger = ledger
        self._steps = steps
        self._findings = findings
        self._emit = emit
        self._filesystem = filesystem_for(request.cell.filesystem.type)
        self._levels = request.cell.filesystem
        self._account = server_account()
        self._undo = contextlib.ExitStack()
        self._place = ledger.directory
        self._mount_point = self._place / "mount"

    def measure(self) -> None:
        """Every step from the scratch device to the closing check."""
        self._make_places()
        with self._steps.step("scratch device"):
            device = self._take_device()
        group = self._make_group(device)
        with self._steps.step("mkfs"):
            warned = self._filesystem.mkfs(self._levels, device.path, commands=self._commands)
            self._findings.versions.update(self._filesystem.versions(commands=self._commands))
            for text in warned:
                self._findings.comparisons.append(
                    Comparison("mkfs warning", None, text, "mkfs", matches=None)
                )
        with self._steps.step("mount"):
            self._mount(device)
        with self._steps.step("read back"):
            self._read_back(device)
        cluster = self._make_cluster(group)
        with self._steps.step("load"):
            rig = self._rig(device, cluster, group)
            workload_for(self._request.dataset.workload).load(self._request.dataset, rig)
        self._run_all(rig)
        with self._steps.step("stop"):
            cluster.stop()
        with self._steps.step("collect"):
            self._measure_sizes()
        with self._steps.step("unmount"):
            unmount(self._mount_point, commands=self._commands)
        with self._steps.step("check"):
            checked = self._filesystem.check(self._levels, device.path, commands=self._commands)
            self._findings.filesystem_check = "clean" if checked.clean else checked.text
            if not checked.clean:
                raise VisitFailed("check", f"fsck found errors after a clean unmount: {checked.text[-2000:]}")

    def leave(self) -> None:
        """Give back everything in reverse order; safe at any moment, and twice."""
        self._undo.close()

    def _make_places(self) -> None:
        self._mount_point.mkdir()
        shared = _MEMORY_DIRECTORY if _MEMORY_DIRECTORY.is_dir() else self._place
        self._log_directory = shared / f"bedplate-{os.getpid()}"
        holding = Holding("log_directory", str(self._log_directory))
        self._ledger.note(holding)
        self._log_directory.mkdir(mode=0o755)
        self._undo.callback(self._ledger.settled, holding)
        self._undo.callback(shutil.rmtree, self._log_directory, ignore_errors=True)

    def _take_device(self) -> AttachedDevice:
        request = self._request
        scratch = request.scratch_device
        self._undo.enter_context(
            device_lock(
                Path(request.state_directory), scratch.device or IMAGE_FILES, study=str(self._directory)
            )
        )
        device = prepare(
            scratch,
            ledger=self._ledger,
            commands=self._commands,
            directory=Path(scratch.image_directory or self._place),
            progress=self._tell_image_progress(scratch.image_bytes),
        )
        self._undo.callback(release_device, device, ledger=self._ledger, commands=self._commands)
        device_levels = request.cell.device
        self._undo.callback(restore_all, self._ledger)
        self._findings.comparisons += queue_settings(
            device,
            read_ahead_kb=device_levels.read_ahead_kb,
            scheduler=device_levels.scheduler,
            write_back=write_back_wanted(self._levels),
            ledger=self._ledger,
        )
        self._findings.device_facts = device_facts(device)
        return device

    def _tell_image_progress(self, of_bytes: int | None) -> Callable[[int], None]:
        told_bytes = 0

        def tell(done_bytes: int) -> None:
            nonlocal told_bytes
            if done_bytes - told_bytes >= _IMAGE_EVENT_BYTES or done_bytes == of_bytes:
                told_bytes = done_bytes
                self._emit({"event": "image", "done_bytes": done_bytes, "of_bytes": of_bytes or 0})

        return tell

    def _mount(self, device: AttachedDevice) -> None:
        self._ledger.note(Holding("mount", str(self._mount_point), device.path))
        # Before it: a signal ends mount(8), which may have mounted by then.
        self._undo.callback(self._unmount)
        self._filesystem.mount(self._levels, device.path, self._mount_point, commands=self._commands)

    def _unmount(self) -> None:
        unmount(self._mount_point, commands=self._commands)
        self._ledger.settled(Holding("mount", str(self._mount_point)))

    def _read_back(self, device: AttachedDevice) -> None:
        findings = self._findings
        comparisons = self._filesystem.read_back(
            self._levels, device, self._mount_point, commands=self._commands
        )
        findings.comparisons += comparisons
        verify(comparisons)
        measured = measure_fsyncs(self._mount_point, device)
        findings.flush_counts = measured.counts
        findings.device_facts = Levels(
            {
                **findings.device_facts,
                **{f"fsync_us_median_{name}": us for name, us in measured.call_us_median.items()},
            }
        )
        reasons = judge(measured.counts, self._levels.barrier)
        if reasons:
            raise VisitFailed("read back", *reasons)

    def _make_group(self, device: AttachedDevice) -> Group:
        device_levels = self._request.cell.device
        group = Group.create(
            f"bedplate-{os.getpid()}",
            memory_bytes=device_levels.memory_bytes,
            throttle=device_levels.throttle,
            device_number=_device_number(device),
            ledger=self._ledger,
        )
        self._undo.callback(group.release)
        self._findings.comparisons += group.comparisons
        return group

    def _make_cluster(self, group: Group) -> Cluster:
        request = self._request
        data_directory = self._mount_point / "pgdata"
        socket_directory = self._place / "socket"
        for path in (data_directory, socket_directory):
            path.mkdir(mode=0o700)
            shutil.chown(path, self._account.uid, self._account.gid)
        cluster = Cluster(
            build=request.build,
            data_directory=data_directory,
            socket_directory=socket_directory,
            log=self._directory / "logs" / "server.log",
            account=self._account,
            commands=self._commands,
            ledger=self._ledger,
            enter_group=group.enter,
        )
        with self._steps.step("initdb"):
            cluster.initialise(request.cell.cluster, request.cell.build)
            # This file system only: a sync of the whole machine would wait for other people's disks.
            self._commands.run(["sync", "--file-system", str(data_directory)], timeout_s=600)
        if request.cell.device.memory_bytes is not None:
            # Pages belong to the group that first touched them; initdb ran outside.
            drop_page_cache()
        with self._steps.step("server start"):
            self._undo.callback(cluster.kill)
            cluster.start()
            cluster.create_database()
        with self._steps.step("server read back"), cluster.session() as session:
            compared = read_back(cluster, session, request.cell.cluster, request.cell.build)
            self._findings.comparisons += compared
            settings = effective_settings(session)
        verify_server(compared)
        self._findings.versions["postgresql"] = settings.get("server_version", request.build.version)
        self._findings.durability = declared(
            self._findings.flush_counts,
            settings,
            checked_by_fsck=self._filesystem.traits.checked_by_fsck(self._levels.journal),
        )
        facts = effective_facts(self._findings.comparisons)
        self._findings.effective_digest = digest({**facts, "build": request.build.digest})
        return cluster

    def _rig(self, device: AttachedDevice, cluster: Cluster, group: Group) -> Rig:
        return Rig(
            dataset=self._request.dataset,
            memory_bytes=self._request.cell.device.memory_bytes
            or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            mount_point=self._mount_point,
            account=self._account,
            commands=self._commands,
            probes=(
                DeviceProbe(device.stat),
                MemoryProbe(),
                PressureProbe(),
                ProcessorProbe(),
                GroupProbe("server", group.cpu_seconds),
            ),
            native_drivers=self._request.native_drivers,
            log_directory=self._log_directory,
            seed=self._request.seed,
            emit=self._emit,
            cluster=cluster,
        )

    def _run_all(self, rig: Rig) -> None:
        specs = self._request.runs
        for index, spec in enumerate(specs, start=1):
            directory = self._directory / "runs" / f"{index:02d}-{spec.id}"
            (directory / "logs").mkdir(parents=True)
            self._findings.runs.append(directory.name)
            self._emit({"event": "run", "run": spec.name, "index": index, "of": len(specs)})
            with self._steps.step(f"run {spec.name}"):
                try:
                    rig.cluster.check_alive()
                except ServerFailed:
                    record = RunRecord(spec, Outcome.NOT_RUN, ("the server had died before this run",))
                else:
                    record = workload_for(spec.workload).run(spec, rig, directory)
            codec.write(directory / "record.json", record)
            self._findings.run_problems += [f"{spec.name}: {reason}" for reason in record.reasons]

    def _measure_sizes(self) -> None:
        space = os.statvfs(self._mount_point)
        self._findings.sizes["filesystem_bytes"] = space.f_blocks * space.f_frsize
        self._findings.sizes["used_bytes"] = (space.f_blocks - space.f_bfree) * space.f_frsize


def verify_server(comparisons: Sequence[Comparison]) -> None:
    """VisitFailed with a reason for each setting that is not in force."""
    wrong = [item for item in comparisons if item.matches is False]
    if wrong:
        raise VisitFailed(
            "server read back",
            *(
                f"{item.name}: asked {item.asked}, in force is {item.effective} ({item.source})"
                for item in wrong
            ),
        )


def device_facts(device: AttachedDevice) -> Levels:
    """What the kernel says of the device: the context of every figure, compared with nothing."""
    facts: dict[str, Scalar] = {
        "kind": "image file on a loop device" if device.image else "block device",
        "size_bytes": device.size_bytes,
    }
    for name in (
        "rotational",
        "logical_block_size",
        "physical_block_size",
        "scheduler",
        "nr_requests",
        "read_ahead_kb",
        "write_cache",
        "fua",
        "max_sectors_kb",
        "discard_max_bytes",
    ):
        with contextlib.suppress(OSError):
            text = (device.queue / name).read_text().strip()
            facts[name] = int(text) if text.isdigit() else text
    for name in ("model", "firmware_rev", "vendor"):
        with contextlib.suppress(OSError):
            facts[name] = (device.queue.parent / "device" / name).read_text().strip()
    return Levels(facts)


def _device_number(device: AttachedDevice) -> str:
    return (Path("/sys/class/block") / device.queue_name / "dev").read_text().strip()
