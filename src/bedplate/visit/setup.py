"""What a visit stands on: device, file system, server. Taken step by step, left in reverse."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, VisitFailed
from bedplate.filesystem.aged_image import AGED_STEP, restore_aged
from bedplate.filesystem.comparison import effective_facts, verify
from bedplate.filesystem.flushes import judge, measure_fsyncs, write_back_wanted
from bedplate.filesystem.kept_dataset import RESTORE_STEP, restore_dataset
from bedplate.filesystem.registry import filesystem_for
from bedplate.filesystem.site import Site
from bedplate.host.account import server_account
from bedplate.host.cgroups.group import Group, drop_page_cache
from bedplate.host.command import MARK
from bedplate.host.devices.device import device_facts
from bedplate.host.devices.device_holders import demand_free
from bedplate.host.devices.journal_device import (
    MEMORY_DIRECTORY,
    note_journal,
    prepare_journal,
    release_journal,
)
from bedplate.host.devices.scratch_device import prepare, release_device
from bedplate.host.ledger import Holding, Ledger
from bedplate.host.lock import IMAGE_FILES, device_lock
from bedplate.host.pages.page_cache import cached_files
from bedplate.host.process import marked_with
from bedplate.host.tunables import queue_settings, restore_all
from bedplate.model import codec
from bedplate.model.cell import JOURNAL_IN_RAM, DeviceLevels, digest
from bedplate.model.device_cache import DISK, JOURNAL_DISK, JOURNAL_FACTS, outside
from bedplate.model.levels import Levels
from bedplate.model.reason import Reason, because, reasons_of
from bedplate.model.visit import CHECK_STEP, RESTORED, CheckOutcome, Outcome, ReadBack, RunRecord
from bedplate.model.workload import model_of
from bedplate.visit.age import VisitAge
from bedplate.visit.declaration import after_run, declare, durability_of
from bedplate.visit.devices.emulated import start_emulated
from bedplate.visit.devices.probes import probes_of
from bedplate.visit.engine_server import ServerFailed, ServerSite, kept_server_data
from bedplate.visit.events import image_progress
from bedplate.visit.findings import Findings, Steps
from bedplate.visit.footing import check_filesystem, device_troubles, filesystem_troubles
from bedplate.visit.preflight import memory_limit
from bedplate.visit.server import READ_STEP, end_server, end_to_be_kept, read_in, start_server
from bedplate.visit.untorn_writes import UntornWrites, untorn_writes
from bedplate.visit.workload import VisitContext, workload_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bedplate.host.command import Commands
    from bedplate.host.devices.device import AttachedDevice
    from bedplate.host.devices.latency_device import LatencyDevice
    from bedplate.host.mount import MountEntry
    from bedplate.host.pages.page_cache import CachedFile
    from bedplate.model.cell import Cell, RunSpec
    from bedplate.model.devices.latency import Latency
    from bedplate.model.levels import Scalar
    from bedplate.model.visit import ScratchDevice, VisitRequest
    from bedplate.visit.engine_server import Server

_SERVER_HAD_DIED = because("server-had-died", "the server had died before this run")


class VisitSetup:
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
        self._age = VisitAge(request)
        restores = request.dataset_by == RESTORED
        self._kept = kept_server_data(request.cell.build.engine) if restores else None
        self._account = server_account()
        self._undo = contextlib.ExitStack()
        self._place = ledger.directory
        self._own_name = f"{os.getpid()}-{os.urandom(4).hex()}"  # containers have equal pids
        self._mount_point = self._place / "mount"
        self._data_directory = self._mount_point / "data"
        self._journal: AttachedDevice | None = None
        self._server_settings: Mapping[str, str] = {}
        self._untorn: UntornWrites | None = None
        self._mounted: MountEntry | None = None
        self._devices: list[AttachedDevice] = []
        self._emulated: LatencyDevice | None = None
        self._cached: tuple[CachedFile, ...] = ()

    def measure(self) -> None:
        """Every step from the scratch device to the closing check."""
        with self._steps.step("scratch device", of_machine=True):
            self._make_places()
            device = self._take_device()
        if self._levels.journal == "external":
            with self._steps.step("journal device", of_machine=True):
                self._take_journal()
        site = Site(self._levels, device, self._mount_point, self._commands, self._journal)
        # Before the group: a throttle of version 1 holds for everybody on the machine, and copying an image is no part of what is measured.
        is_made = self._copy_image(site)
        with self._steps.step("control group"):
            group = self._make_group(device)
        if not is_made:
            with self._steps.step("mkfs"):
                self._mkfs(site)
        with self._steps.step("mount"):
            # Before it: a signal ends mount(8), which may have mounted by then.
            self._undo.callback(self._unmount, site)
            self._mount(site, group)
        with self._steps.step("read back"):
            self._read_back(site)
        self._age.before_load(site, self._steps, self._findings)
        server = self._start_server(group)
        context = self._context(site, server, group)
        if self._kept is None:
            with self._steps.step("load"):
                workload_for(self._request.dataset.workload).load(self._request.dataset, context)
        else:
            with self._steps.step(READ_STEP):
                read_in(self._data_directory, self._cached, group)
        self._age.after_load(site, self._steps, self._findings)
        self._run_all(context)
        with self._steps.step("stop"):
            end_server(server, self._findings, self._untorn)
        self._findings.filesystem_check_outcome = CheckOutcome.COULD_NOT_RUN
        with self._steps.step("collect"):
            self._demand_footing()
            self._measure_sizes()
            self._age.at_end(site, self._findings)
        with self._steps.step("unmount"):
            self._unmount(site)
            # Whoever else has it would make the check fail, and not for anything that it found.
            for taken in self._devices:
                demand_free(taken.path)
        with self._steps.step(CHECK_STEP):
            check_filesystem(self._filesystem, site, self._devices, self._findings)

    def leave(self) -> None:
        """Give back everything in reverse order; safe at any moment, and twice."""
        self._undo.close()

    def _demand_footing(self) -> None:
        """VisitFailed if a device or the file system is no longer what was taken."""
        troubles = [trouble for device in self._devices for trouble in device_troubles(device)]
        if self._mounted is not None:
            troubles += filesystem_troubles(self._mounted)
        if troubles:
            raise VisitFailed(self._steps.current, *troubles)

    def _make_places(self) -> None:
        self._mount_point.mkdir()
        # A client's log goes to memory, so that writing it is no I/O of the machine under test.
        shared = MEMORY_DIRECTORY if MEMORY_DIRECTORY.is_dir() else self._place
        self._log_directory = shared / f"bedplate-{self._own_name}"
        holding = Holding("log_directory", str(self._log_directory))
        # Before it is taken: a signal between them would leave it to the ledger, and no error to this.
        self._undo.callback(self._leave_log_directory, holding)
        self._ledger.note(holding)
        self._log_directory.mkdir(mode=0o755)

    def _leave_log_directory(self, holding: Holding) -> None:
        """Remove it; one that somebody still writes to, or whose removal is interrupted, stays in the ledger."""
        shutil.rmtree(self._log_directory, ignore_errors=True)
        if not self._log_directory.exists():
            self._ledger.settled(holding)

    def _lock(self, device: ScratchDevice) -> str | None:
        name, study = device.device or IMAGE_FILES, str(self._directory)
        return self._undo.enter_context(device_lock(Path(self._request.state_directory), name, study=study))

    def _take_device(self) -> AttachedDevice:
        request = self._request
        scratch = request.scratch_device
        locked = self._lock(scratch)
        if request.cell.device.latency is not None:
            device = self._emulate(request.cell.device.latency)
        else:
            device = prepare(
                scratch,
                ledger=self._ledger,
                commands=self._commands,
                directory=Path(scratch.image_directory or self._place),
                progress=image_progress(self._emit, scratch.image_bytes),
                expected=locked,
            )
            self._undo.callback(release_device, device, ledger=self._ledger, commands=self._commands)
            self._findings.device_facts = Levels(
                {**device_facts(device), **outside(request.provenance, DISK)}
            )
        self._tune(device, request.cell.device, prefix="device")
        return device

    def _tune(self, device: AttachedDevice, levels: DeviceLevels, *, prefix: str) -> None:
        self._devices.append(device)
        self._findings.device_names.append(device.name)
        self._undo.callback(restore_all, self._ledger)
        self._findings.comparisons += queue_settings(
            device,
            read_ahead_kb=levels.read_ahead_kb,
            scheduler=levels.scheduler,
            write_back=write_back_wanted(self._levels),
            ledger=self._ledger,
            prefix=prefix,
        )

    def _emulate(self, latency: Latency) -> AttachedDevice:
        emulated, self._findings.device_facts = start_emulated(
            self._request, latency, self._log_directory, ledger=self._ledger, commands=self._commands
        )
        self._undo.callback(emulated.stop)
        self._findings.comparisons.append(emulated.read_back)
        self._emulated = emulated
        return emulated.device

    def _take_journal(self) -> None:
        request = self._request
        journal = request.journal_device
        if journal is None:
            raise VisitFailed("journal device", "the request names no device for the external journal")
        locked = None if journal.is_image else self._lock(journal)
        device = prepare_journal(
            journal,
            self._devices[0],
            ledger=self._ledger,
            commands=self._commands,
            directory=self._log_directory,
            expected=locked,
        )
        self._undo.callback(release_journal, journal, device, ledger=self._ledger, commands=self._commands)
        self._tune(device, DeviceLevels(), prefix="journal_device")
        facts = {**device_facts(device), **outside(request.provenance, JOURNAL_DISK)}
        if device.image is not None:
            facts["kind"] = "memory behind a loop device"
        own = {f"{JOURNAL_FACTS}{name}": value for name, value in facts.items()}
        self._findings.device_facts = Levels({**self._findings.device_facts, **own})
        self._journal = device

    def _copy_image(self, site: Site) -> bool:
        """Put a kept image onto the device where the visit asks for one: of a loaded dataset, or of an aged file system."""
        if self._kept is None and not self._age.is_aged:
            return False
        versions = self._filesystem.versions(commands=self._commands)
        self._findings.versions.update(versions)
        if self._kept is None:
            with self._steps.step(AGED_STEP, of_machine=True):
                self._findings.comparisons += restore_aged(site, ledger=self._ledger).facts()
            return True
        protocol = workload_for(self._request.dataset.workload).protocol
        with self._steps.step(RESTORE_STEP, of_machine=True):
            restored = restore_dataset(
                site, self._request, versions=versions, protocol=protocol, load=self._load_for_image
            )
        self._cached = restored.cached
        self._findings.comparisons += restored.facts()
        return True

    def _load_for_image(self, site: Site, cell: Cell) -> tuple[CachedFile, ...]:
        """Load as for every visit that shares the image, in their common cell: with its memory, and without a throttle. What is cached then."""
        request = replace(self._request, cell=cell)
        made = replace(site, levels=cell.filesystem)
        steps, findings = Steps(self._emit), Findings()
        with contextlib.ExitStack() as undo:
            group = Group.create(
                f"{self._own_name}-load", memory_bytes=memory_limit(request, findings), ledger=self._ledger
            )
            undo.callback(group.release)
            with steps.step("mkfs"):
                self._filesystem.mkfs(made)
            with steps.step("mount"):
                undo.callback(self._unmount, made)
                self._mount(made, group)
                verify(self._filesystem.read_back(made))
            where = replace(
                self._server_site(),
                socket_directory=self._place / "loading",
                log=self._directory / "logs" / "loading.log",
                enter_group=group.enter,
            )
            server = start_server(request, where, undo=undo, steps=steps, findings=findings).server
            with steps.step("load"):
                context = replace(
                    self._context(made, server, group), request=request, engine_settings=cell.cluster.settings
                )
                workload_for(request.dataset.workload).load(request.dataset, context)
            cached = cached_files(self._data_directory)
            with steps.step("stop"):
                end_to_be_kept(server, self._kept)
        return cached

    def _mkfs(self, site: Site) -> None:
        warned = self._filesystem.mkfs(site)
        if self._request.journal_device is not None and site.journal is not None:
            note_journal(
                self._request.journal_device, site.journal, ledger=self._ledger, commands=self._commands
            )
        self._findings.versions.update(self._filesystem.versions(commands=self._commands))
        for text in warned:
            self._findings.comparisons.append(ReadBack("mkfs warning", None, text, "mkfs", matches=None))

    def _mount(self, site: Site, group: Group) -> None:
        self._ledger.note(Holding("mount", str(site.target), site.device.path))
        self._mounted = self._filesystem.mount(site)
        # What serves a file system from user space works, caches and writes for the server.
        spared = None if self._emulated is None else self._emulated.pid
        for pid in marked_with(MARK, str(self._ledger.directory)):
            if pid == spared:
                continue  # the device, whose memory is none of the server's
            with contextlib.suppress(ProcessLookupError):
                group.add(pid)

    def _unmount(self, site: Site) -> None:
        self._mounted = None
        self._filesystem.unmount(site)
        self._ledger.settled(Holding("mount", str(site.target)))

    def _read_back(self, site: Site) -> None:
        findings = self._findings
        comparisons = self._filesystem.read_back(site)
        findings.comparisons += comparisons
        verify(comparisons)
        measured = measure_fsyncs(site.target, site.device, site.journal)
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
            self._own_name,
            memory_bytes=memory_limit(self._request, self._findings),
            throttle=device_levels.throttle,
            device_number=_device_number(device),
            ledger=self._ledger,
        )
        self._undo.callback(group.release)
        self._findings.comparisons += group.comparisons
        return group

    def _start_server(self, group: Group) -> Server | None:
        """The server, read back; None where the workloads stand on the file system itself."""
        request = self._request
        counts = self._log_directory / "untorn-writes"
        untorn = self._untorn = untorn_writes(request.cell, request.native_drivers, counts, self._account)
        where = replace(self._server_site(), enter_group=group.enter)
        if untorn is not None:
            where = untorn.below(where)
        started = start_server(
            request, where, undo=self._undo, steps=self._steps, findings=self._findings, kept=self._kept
        )
        self._server_settings = started.in_force.settings
        engine = request.cell.build.engine
        self._findings.comparisons += durability_of(request.cell).opened(request.cell.cluster.settings)
        self._findings.durability = declare(
            request.cell,
            self._filesystem.traits,
            self._findings.comparisons,
            self._findings.flush_counts,
            self._server_settings,
            journal_in_memory=self._journal is not None and self._levels.journal_device == JOURNAL_IN_RAM,
        )
        facts = effective_facts(self._findings.comparisons)
        build = engine if request.build is None else request.build.digest
        self._findings.effective_digest = digest({**facts, "build": build})
        return started.server

    def _server_site(self) -> ServerSite:
        """With a data directory, which a restored file system has already."""
        self._data_directory.mkdir(mode=0o700, exist_ok=True)
        shutil.chown(self._data_directory, self._account.uid, self._account.gid)
        return ServerSite(
            build=self._request.build,
            data_directory=self._data_directory,
            socket_directory=self._place / "socket",
            log=self._directory / "logs" / "server.log",
            account=self._account,
            commands=self._commands,
            ledger=self._ledger,
        )

    def _context(self, site: Site, server: Server | None, group: Group) -> VisitContext:
        return VisitContext(
            request=self._request,
            ledger=self._ledger,
            place=self._place,
            dataset=self._request.dataset,
            memory_bytes=self._request.cell.device.memory_bytes
            or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            mount_point=self._mount_point,
            data_directory=self._data_directory,
            account=self._account,
            commands=self._commands,
            probes=probes_of(site, group, self._emulated),
            native_drivers=self._request.native_drivers,
            log_directory=self._log_directory,
            seed=self._request.seed,
            emit=self._emit,
            server=server,
            engine_settings=self._request.cell.cluster.settings,
            tool_versions=self._findings.tool_versions,
            enter_group=group.enter,
            inputs=self._request.inputs,
            expected_answers=dict(self._request.expected_answers),
            answer_sources=dict(self._request.answer_sources),
            make_cold=lambda: self._make_cold(site, server, group),
        )

    def _make_cold(self, site: Site, server: Server | None, group: Group) -> None:
        """Stop the server, unmount, mount, start: what was cached of data and of metadata is gone.

        VisitFailed where the file system is not mounted as it was before.
        """
        with self._steps.step("cold"):
            if server is not None:
                server.stop()
            self._unmount(site)
            self._mount(site, group)
            verify(self._filesystem.read_back(site))
            drop_page_cache()
            if server is not None:
                server.start()

    def _run_all(self, context: VisitContext) -> None:
        specs = self._request.runs
        without_load: Reason | None = None
        for index, spec in enumerate(specs, start=1):
            directory = self._directory / "runs" / f"{index:02d}-{spec.id}"
            (directory / "logs").mkdir(parents=True)
            self._findings.runs.append(directory.name)
            self._emit({"event": "run", "run": spec.name, "index": index, "of": len(specs)})
            loads = model_of(spec.workload).fills(spec)
            if loads:
                without_load = None
            with self._steps.step(f"run {spec.name}"):
                try:
                    if context.server is not None:
                        context.server.check_alive()
                except ServerFailed:
                    record = RunRecord(spec, Outcome.NOT_RUN, (_SERVER_HAD_DIED,))
                else:
                    if without_load is not None:
                        record = RunRecord(spec, Outcome.NOT_RUN, (without_load,))
                    else:
                        record = self._run(spec, context, directory)
            if loads and record.outcome is not Outcome.COMPLETED:
                words = f"the run before it that loads ({spec.name}) did not complete"
                without_load = because("load-not-completed", words, run=spec.name)
            codec.write(directory / "record.json", record)
            self._findings.durability = after_run(self._findings, record, self._server_settings)
            self._findings.run_problems += [reason.about(spec.name) for reason in record.reasons]

    def _run(self, spec: RunSpec, context: VisitContext, directory: Path) -> RunRecord:
        """One run. Where the stand itself fell under it, the error goes on, but no run is without a record."""
        record = RunRecord(spec, Outcome.FAILED)
        try:
            record = workload_for(spec.workload).run(spec, context, directory)
            self._demand_footing()
        except BedplateError as error:
            reasons = (*reasons_of(error), *record.reasons)
            codec.write(directory / "record.json", replace(record, outcome=Outcome.FAILED, reasons=reasons))
            raise
        return record

    def _measure_sizes(self) -> None:
        space = os.statvfs(self._mount_point)
        self._findings.sizes["filesystem_bytes"] = space.f_blocks * space.f_frsize
        self._findings.sizes["used_bytes"] = (space.f_blocks - space.f_bfree) * space.f_frsize


def _device_number(device: AttachedDevice) -> str:
    return (Path("/sys/class/block") / device.queue_name / "dev").read_text().strip()
