"""The life of a visit, from preflight to clean-up: the order of the steps, and undoing them.

Every step that takes something of the machine leaves its undoing on a stack, so that whatever
happens, everything is given back in reverse. What even that cannot undo (SIGKILL) stands in the
ledger, and the next start gives it back.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TextIO

from bedplate import __version__
from bedplate.errors import (
    BedplateError,
    CommandFailed,
    DeviceInUse,
    DeviceRefused,
    MachineUnfit,
    RequirementMissing,
    VisitFailed,
)
from bedplate.filesystem.adapter import Site, effective_facts, fact, verify
from bedplate.filesystem.aged_image import AGED_STEP, Ballast, free_space_of, restore_aged
from bedplate.filesystem.kept_dataset import RESTORE_STEP, restore_dataset
from bedplate.filesystem.mounted import MountedDisk
from bedplate.filesystem.refusals import judge, measure_fsyncs, write_back_wanted
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.account import server_account
from bedplate.host.block_tree import BlockTree, backing_file, demand_free
from bedplate.host.cgroups import Group, drop_page_cache, memory_limit_reasons
from bedplate.host.command import MARK, Commands
from bedplate.host.files import closed_folders, closed_sentences, full_places
from bedplate.host.interruption import defer_interruptions
from bedplate.host.kernel_log import KernelLog, messages_of_ours
from bedplate.host.ledger import Holding, Ledger
from bedplate.host.lock import IMAGE_FILES, device_lock
from bedplate.host.mount import MountEntry, find_mount
from bedplate.host.pages import CachedFile, cached_files
from bedplate.host.process import marked_with
from bedplate.host.recorder import DRIVER as RECORDER
from bedplate.host.recorder import LatencyDevice, fitting_way, recorder_reasons, way_there
from bedplate.host.requirement import look
from bedplate.host.scratch_device import (
    MEMORY_DIRECTORY,
    AttachedDevice,
    device_facts,
    journal_refusal_reasons,
    note_journal,
    prepare,
    prepare_journal,
    refusal_reasons,
    release_device,
    release_journal,
)
from bedplate.host.tunables import queue_settings, restore_all
from bedplate.model import codec
from bedplate.model.cell import JOURNAL_IN_RAM, Cell, DeviceLevels, RunSpec, digest
from bedplate.model.device_cache import DISK, JOURNAL_DISK, JOURNAL_FACTS, KIND, outside
from bedplate.model.devices import Latency
from bedplate.model.durability import FSCK_FOUND_ERRORS
from bedplate.model.filesystem import AGED, FILL, age_of, fill_of
from bedplate.model.free_space import AFTER_LOAD, ENDED, MADE, FreeSpace
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import model_of
from bedplate.model.reason import Reason, because, reasons_of
from bedplate.model.visit import (
    CHECK_STEP,
    FORMAT_VERSION,
    RESTORED,
    CheckOutcome,
    Durability,
    FlushCount,
    Outcome,
    ReadBack,
    RunRecord,
    ScratchDevice,
    Timing,
    VisitRecord,
    VisitRequest,
)
from bedplate.probe.kernel import (
    DeviceProbe,
    EmulatedDeviceProbe,
    GroupProbe,
    MemoryProbe,
    PressureProbe,
    ProcessorProbe,
)
from bedplate.probe.sampler import Probe
from bedplate.units import KERNEL_SECTOR_BYTES, MIB, format_size, percent
from bedplate.visit.declaration import UntornWrites, after_run, declare, durability_of, untorn_writes
from bedplate.visit.recording import VisitContext, workload_for
from bedplate.visit.server import (
    READ_STEP,
    Server,
    ServerFailed,
    ServerSite,
    end_server,
    end_to_be_kept,
    kept_server_data,
    read_in,
    server_of,
    start_server,
)

# The server's processes, the clients and the kernel need this beside the shared buffers.
_MEMORY_FLOOR_BYTES = 256 * MIB


def unmet_needs(request: VisitRequest, commands: Commands) -> tuple[str, ...]:
    """One sentence for each thing that the machine lacks, whatever the cell; empty when the visit may begin."""
    reasons: list[str] = []
    if os.geteuid() != 0:
        reasons.append(
            "a visit formats and mounts, which needs root; start bedplate with sudo, as root, "
            'or in a guest (executor = "qemu")'
        )
    try:
        server_account()
    except RequirementMissing as error:
        reasons += error.reasons
    filesystem = filesystem_for(request.cell.filesystem.type)
    needs = (*filesystem.needs, *workload_for(request.dataset.workload).needs)
    reasons += [found.sentence for found in look(needs) if not found.found]
    reasons += _missing_files(request)
    reasons += closed_state(request)
    if RECORDER in request.native_drivers:
        reasons += recorder_reasons()
    # An emulated device stands in memory, and looks for room there when it starts.
    if request.cell.device.latency is None:
        reasons += refusal_reasons(
            request.scratch_device,
            commands,
            directory=Path(request.scratch_device.image_directory or request.state_directory),
        )
    reasons += _journal(request, commands)
    if not has_memory_of_a_guest(request):
        reasons += memory_limit_reasons(request.cell.device.memory_bytes)
    return tuple(reasons)


def has_memory_of_a_guest(request: VisitRequest) -> bool:
    """Whether this machine is a guest made as large as the cell's memory, which no limit adds to."""
    return request.provenance.get("memory") == "guest"


def closed_state(request: VisitRequest) -> list[str]:
    """What keeps a server from its own data, which is mounted below the state directory."""
    if server_of(request.cell.build.engine) is None:
        return []
    state = Path(request.state_directory)
    closed = closed_sentences(closed_folders(state), state)
    out = "set BEDPLATE_STATE to a folder that every account can reach, or open the folders with chmod o+x"
    return [*closed, out] if closed else []


def _missing_files(request: VisitRequest) -> list[str]:
    server, build = server_of(request.cell.build.engine), request.build
    programs = (
        [] if server is None or build is None else [Path(build.prefix, name) for name in server.programs]
    )
    wanted = [*programs, *(Path(path) for path in request.native_drivers.values())]
    return [
        f"{path} is not there; `bedplate doctor PLAN --install` builds it, and the nodes of a cluster must see the same cache (BEDPLATE_CACHE)"
        for path in wanted
        if not os.access(path, os.X_OK)
    ]


def _journal(request: VisitRequest, commands: Commands) -> tuple[str, ...]:
    if request.cell.filesystem.journal != "external" or request.journal_device is None:
        return ()
    return journal_refusal_reasons(
        request.journal_device, request.scratch_device, commands, directory=MEMORY_DIRECTORY
    )


def unmet_by_the_cell(request: VisitRequest) -> tuple[str, ...]:
    """What this cell asks for and does not get here, while another may get all that it asks for."""
    reasons = []
    if request.cell.filesystem.journal == "external" and request.journal_device is None:
        reasons.append("journal = 'external', but the request names no device for the journal")
    limit = request.cell.device.memory_bytes
    if limit is None:
        return tuple(reasons)
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if limit > machine and not has_memory_of_a_guest(request):
        reasons.append(f"memory = {format_size(limit)}, but the machine has {format_size(machine)}")
    if limit < _MEMORY_FLOOR_BYTES:
        reasons.append(
            f"memory = {format_size(limit)} is less than the {format_size(_MEMORY_FLOOR_BYTES)} "
            "that a server needs beside its buffers"
        )
    return tuple(reasons)


def memory_limit(request: VisitRequest, findings: Findings) -> int | None:
    """The limit of the server's group; none in a guest that is as large as the cell's memory."""
    asked = request.cell.device.memory_bytes
    if asked is None or not has_memory_of_a_guest(request):
        return asked
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    findings.comparisons.append(
        # The kernel keeps a sliver for itself: about 40 MiB, and a fiftieth.
        ReadBack("device.memory_bytes", asked, there, "sysconf", 0.8 * asked <= there <= asked)
    )
    return None


# What a file system answers whose journal or log was aborted; none of them is an answer to a question of ours.
_SHUT_DOWN = frozenset({errno.EIO, errno.EROFS, errno.ESHUTDOWN, errno.EUCLEAN})

_NO_SUCH_ATTRIBUTE = "user.bedplate-asks"


def device_troubles(device: AttachedDevice) -> tuple[str, ...]:
    """What has become of the device since it was attached, a sentence each; empty if it is as it was."""
    folder = Path("/sys/class/block") / device.name
    if device.image is not None:
        behind = backing_file(device.name)
        if behind != os.path.realpath(device.image):
            return (
                (
                    f"{device.path} is no longer attached to {device.image}"
                    f"{f', but to {behind}' if behind else ''}: something detached it during the visit"
                ),
            )
    try:
        size_bytes = int((folder / "size").read_text()) * KERNEL_SECTOR_BYTES
        protected = (folder / "ro").read_text().strip() == "1"
    except (OSError, ValueError):
        return (f"{device.path} is gone: the kernel knows no device {device.name} any more",)
    found = []
    if device.image is not None:
        with contextlib.suppress(FileNotFoundError):
            # A loop device keeps its size when its file is cut.
            size_bytes = min(size_bytes, device.image.stat().st_size)
    if size_bytes != device.size_bytes:
        found.append(
            f"{device.path} has {format_size(size_bytes)}, and had {format_size(device.size_bytes)} when the visit began"
        )
    if protected:
        found.append(
            f"{device.path} is write-protected, and was not when the visit began; "
            f"`blockdev --setrw {device.path}` if it should not be"
        )
    return tuple(found)


def filesystem_troubles(mounted: MountEntry) -> tuple[str, ...]:
    """What has become of a mount since, a sentence each; empty if it is there and takes writes as it did."""
    now = find_mount(mounted.target)
    if now is None:
        return (
            f"the file system on {mounted.target} is no longer mounted: something unmounted it during the visit",
        )
    if now.mount_id != mounted.mount_id:
        return (
            f"something else was mounted on {mounted.target} during the visit: {now.type} of {now.source}",
        )
    if now.read_only and not mounted.read_only:
        return (
            (
                f"the file system on {mounted.target} became read-only during the visit, as the kernel does after an error "
                "of the device or of the file system: logs/kernel.log may say which"
            ),
        )
    if (error := _ask(mounted.target)) is not None:
        return (
            (
                f"the file system on {mounted.target} no longer answers: {os.strerror(error)}; the kernel has shut it down, "
                "logs/kernel.log may say why"
            ),
        )
    return ()


def _ask(target: str) -> int | None:
    """The error of a file system that was shut down; None where it answers. Nothing is written by asking."""
    try:
        folder = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        return error.errno if error.errno in _SHUT_DOWN else None
    try:
        # XFS looks whether it is shut down before it reads an attribute, ext4 before it syncs.
        for question in (lambda: os.fsync(folder), lambda: os.getxattr(folder, _NO_SUCH_ATTRIBUTE)):
            try:
                question()
            except OSError as error:
                if error.errno in _SHUT_DOWN:
                    return error.errno
    finally:
        os.close(folder)
    return None


def check_filesystem(disk: MountedDisk, devices: Sequence[AttachedDevice], findings: Findings) -> None:
    """Note that it is clean; VisitFailed where it is not, or could not be looked at."""
    checked = disk.check()
    if checked.ran and checked.clean:
        findings.filesystem_check_outcome = CheckOutcome.CLEAN
        findings.filesystem_check = "clean"
        return
    # Asked after it as well: a device that went away meanwhile is no error of the file system's.
    troubles = [trouble for taken in devices for trouble in device_troubles(taken)]
    if troubles or not checked.ran:
        raise VisitFailed(
            CHECK_STEP,
            *(troubles or (f"fsck was ended before it had looked at everything: {checked.text[-2000:]}",)),
        )
    findings.filesystem_check_outcome = CheckOutcome.ERRORS
    findings.filesystem_check = checked.text
    words = f"fsck found errors after a clean unmount: {checked.text[-2000:]}"
    raise VisitFailed(CHECK_STEP, because(FSCK_FOUND_ERRORS.code, words))


class VisitAge:
    """Of the scratch device; nothing where the workload has a disk of its own, or the plan does not ask."""

    def __init__(self, request: VisitRequest) -> None:
        self._request = request
        levels = request.cell.filesystem
        here = not model_of(request.dataset.workload).has_own_disk
        self.is_aged = here and age_of(levels) is not None
        self._fill = fill_of(levels) if here else None
        # Its fresh cells are looked at as its aged ones are: looking writes back what is dirty.
        self._is_looked_at = here and not {AGED, FILL}.isdisjoint(levels.features)
        self._ballast: Ballast | None = None

    def before_load(self, site: Site, steps: Steps, findings: Findings) -> None:
        """Fill it but for what the database takes; VisitFailed where that is more than it should hold."""
        if not self._is_looked_at:
            return
        with steps.step("fill"):
            image = site.device.image
            if image is not None:
                allocated = image.stat().st_blocks * 512 >= image.stat().st_size
                findings.comparisons.append(fact("device.image_has_holes", not allocated, "st_blocks"))
            if self._fill is not None:
                self._ballast = Ballast(site.target, self._fill)
                self._ballast.before_load(self._request.needed_bytes or 0)
                findings.comparisons.append(
                    fact("filesystem.ballast", f"up to {percent(self._fill)}", "its files")
                )
            self._look(site, findings, MADE)

    def after_load(self, site: Site, steps: Steps, findings: Findings) -> None:
        """As full as was asked, with the database; VisitFailed where it is not."""
        if not self._is_looked_at:
            return
        with steps.step("fill up"):
            if self._ballast is not None:
                findings.comparisons.append(self._ballast.after_load())
            self._look(site, findings, AFTER_LOAD)

    def at_end(self, site: Site, findings: Findings) -> None:
        """After the runs."""
        if self._is_looked_at:
            self._look(site, findings, ENDED)

    def _look(self, site: Site, findings: Findings, moment: str) -> None:
        findings.free_space.append(free_space_of(site.levels.type, site.target, moment))


@dataclass
class Findings:
    """What a visit has found out so far; it becomes the record, however far the visit came.

    `tool_versions` are those of `versions` that decide a figure: of the libraries and tools that did the work.
    """

    comparisons: list[ReadBack] = field(default_factory=list)
    effective_digest: str | None = None
    flush_counts: tuple[FlushCount, ...] = ()
    durability: Durability | None = None
    device_names: list[str] = field(default_factory=list)
    device_facts: Levels = field(default_factory=Levels)
    sizes: dict[str, int] = field(default_factory=dict)
    free_space: list[FreeSpace] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    tool_versions: dict[str, str] = field(default_factory=dict)
    filesystem_check: str | None = None
    filesystem_check_outcome: CheckOutcome | None = None
    runs: list[str] = field(default_factory=list)
    run_problems: list[Reason] = field(default_factory=list)


class Steps:
    """Names the step under way, times it, and turns its error into the visit's."""

    def __init__(self, emit: Callable[[Mapping[str, Scalar]], None]) -> None:
        self.timings: list[Timing] = []
        self.current = "start"
        self._emit = emit

    @contextlib.contextmanager
    def step(self, name: str, *, of_machine: bool = False) -> Iterator[None]:
        """One step of the life; a BedplateError inside becomes VisitFailed with its name.

        `of_machine`: what the step lacks, or what a tool or the kernel refuses it, every visit would lack: MachineUnfit. A device that
        somebody else holds is the machine's at every step.
        """
        self.current = name
        self._emit({"event": "step", "step": name})
        started = time.monotonic()
        try:
            yield
        except (VisitFailed, MachineUnfit):
            raise
        except BedplateError as error:
            is_refused = isinstance(error, RequirementMissing | DeviceRefused | CommandFailed)
            if isinstance(error, DeviceInUse) or (of_machine and is_refused):
                raise MachineUnfit(*reasons_of(error)) from error
            raise VisitFailed(name, *reasons_of(error)) from error
        except OSError as error:
            what = f"{error.filename}: " if error.filename else ""
            reason = because("system-call-failed", f"{what}{error.strerror or error}", errno=error.errno)
            if of_machine:
                raise MachineUnfit(reason) from error
            raise VisitFailed(name, reason) from error
        finally:
            self.timings.append(Timing(name, time.monotonic() - started))


# An image is written at some GiB a second; a display has use for a few events a second.
_IMAGE_EVENT_BYTES = 256 * MIB


class EventStream:
    """Writes events; a reader that went away is no reason to stop a visit."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._broken = False

    def emit(self, event: Mapping[str, Scalar]) -> None:
        """Write one event and flush it."""
        if self._broken:
            return
        try:
            self._stream.write(json.dumps(event) + "\n")
            self._stream.flush()
        except (BrokenPipeError, ValueError):
            self._broken = True


def image_progress(
    emit: Callable[[Mapping[str, Scalar]], None], of_bytes: int | None
) -> Callable[[int], None]:
    """What is told while an image is written: how far it is, of how much."""
    told_bytes = 0

    def tell(done_bytes: int) -> None:
        nonlocal told_bytes
        if done_bytes - told_bytes >= _IMAGE_EVENT_BYTES or done_bytes == of_bytes:
            told_bytes = done_bytes
            emit({"event": "image", "done_bytes": done_bytes, "of_bytes": of_bytes or 0})

    return tell


EMULATED_KIND = "emulated device with latency, in memory"
MODELLED_KIND = "modelled disk, in memory"


def start_emulated(
    request: VisitRequest, latency: Latency, place: Path, *, ledger: Ledger, commands: Commands
) -> tuple[LatencyDevice, Levels]:
    """The device, and what is known of it and of the way there; `place` is a folder on a tmpfs.

    RequirementMissing where this machine cannot be such a device.
    """
    driver = request.native_drivers.get(RECORDER)
    if driver is None or request.scratch_device.image_bytes is None:
        raise RequirementMissing(
            f"latency {latency.name}: the request names no driver {RECORDER}, or no size of an image; `bedplate doctor PLAN --install` builds the driver"
        )
    folders = [place / name for name in ("way", "device")]
    for folder in folders:
        folder.mkdir()
    # Asked with room before the first visit. What is late for a neighbour now is counted.
    way = fitting_way(
        [latency],
        lambda: way_there(Path(driver), folders[0], ledger=ledger, commands=commands),
        share_max=1.0,
    )
    emulated = LatencyDevice.start(
        Path(driver),
        folders[1],
        latency,
        request.scratch_device.image_bytes,
        way,
        seed=request.seed,
        ledger=ledger,
        commands=commands,
    )
    facts = {
        **device_facts(emulated.device),
        KIND: EMULATED_KIND if latency.disk is None else MODELLED_KIND,
        **way.facts,
    }
    return emulated, Levels(facts)


def probes_of(site: Site, group: Group, emulated: LatencyDevice | None) -> tuple[Probe, ...]:
    """Of the devices, the machine, the server's group, and an emulated device where there is one."""
    return (
        DeviceProbe(site.device.stat),
        *(() if site.journal is None else (DeviceProbe(site.journal.stat, prefix="journal_device"),)),
        MemoryProbe(),
        PressureProbe(),
        ProcessorProbe(),
        GroupProbe("server", group.cpu_seconds),
        *(() if emulated is None else (EmulatedDeviceProbe(emulated.status_file),)),
    )


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
        self._disk: MountedDisk | None = None
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
        disk = self._disk = MountedDisk(site, self._ledger)
        # Before the group: a throttle of version 1 holds for everybody on the machine, and copying an image is no part of what is measured.
        is_made = self._copy_image(disk)
        with self._steps.step("control group"):
            group = self._make_group(device)
        if not is_made:
            with self._steps.step("mkfs"):
                self._mkfs(disk)
        with self._steps.step("mount"):
            self._undo.enter_context(disk)
            self._mount(disk, group)
        with self._steps.step("read back"):
            self._read_back(disk)
        self._age.before_load(site, self._steps, self._findings)
        server = self._start_server(disk, group)
        context = self._context(disk, server, group)
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
            disk.unmount()
            # Whoever else has it would make the check fail, and not for anything that it found.
            for taken in self._devices:
                demand_free(taken.path)
        with self._steps.step(CHECK_STEP):
            check_filesystem(disk, self._devices, self._findings)

    def leave(self) -> None:
        """Give back everything in reverse order; safe at any moment, and twice."""
        self._undo.close()

    def _demand_footing(self) -> None:
        """VisitFailed if a device or the file system is no longer what was taken."""
        troubles = [trouble for device in self._devices for trouble in device_troubles(device)]
        if self._disk is not None and self._disk.entry is not None:
            troubles += filesystem_troubles(self._disk.entry)
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

    def _lock(self, scratch: ScratchDevice) -> str | None:
        name, study = scratch.device or IMAGE_FILES, str(self._directory)
        is_timed = model_of(self._request.dataset.workload).has_speed
        return self._undo.enter_context(
            device_lock(Path(self._request.state_directory), name, study=study, is_timed=is_timed)
        )

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

    def _tune(self, device: AttachedDevice, device_levels: DeviceLevels, *, prefix: str) -> None:
        self._devices.append(device)
        self._findings.device_names.append(device.name)
        self._undo.callback(restore_all, self._ledger)
        self._findings.comparisons += queue_settings(
            device,
            read_ahead_kb=device_levels.read_ahead_kb,
            scheduler=device_levels.scheduler,
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

    def _copy_image(self, disk: MountedDisk) -> bool:
        """Put a kept image onto the device where the visit asks for one: of a loaded dataset, or of an aged file system."""
        if self._kept is None and not self._age.is_aged:
            return False
        site, versions = disk.site, disk.filesystem.versions(commands=self._commands)
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
        disk = MountedDisk(replace(site, levels=cell.filesystem), self._ledger)
        steps, findings = Steps(self._emit), Findings()
        with contextlib.ExitStack() as undo:
            group = Group.create(
                f"{self._own_name}-load", memory_bytes=memory_limit(request, findings), ledger=self._ledger
            )
            undo.callback(group.release)
            with steps.step("mkfs"):
                disk.make()
            with steps.step("mount"):
                undo.enter_context(disk)
                self._mount(disk, group)
                verify(disk.read_back())
            where = replace(
                self._server_site(),
                socket_directory=self._place / "loading",
                log=self._directory / "logs" / "loading.log",
                enter_group=group.enter,
            )
            server = start_server(request, where, undo=undo, steps=steps, findings=findings).server
            with steps.step("load"):
                context = replace(
                    self._context(disk, server, group), request=request, engine_settings=cell.cluster.settings
                )
                workload_for(request.dataset.workload).load(request.dataset, context)
            cached = cached_files(self._data_directory)
            with steps.step("stop"):
                end_to_be_kept(server, self._kept)
        return cached

    def _mkfs(self, disk: MountedDisk) -> None:
        warned, journal = disk.make(), disk.site.journal
        if self._request.journal_device is not None and journal is not None:
            note_journal(self._request.journal_device, journal, ledger=self._ledger, commands=self._commands)
        self._findings.versions.update(disk.filesystem.versions(commands=self._commands))
        for text in warned:
            self._findings.comparisons.append(ReadBack("mkfs warning", None, text, "mkfs", matches=None))

    def _mount(self, disk: MountedDisk, group: Group) -> None:
        disk.mount()
        # What serves a file system from user space works, caches and writes for the server.
        spared = None if self._emulated is None else self._emulated.pid
        for pid in marked_with(MARK, str(self._ledger.directory)):
            if pid == spared:
                continue  # the device, whose memory is none of the server's
            with contextlib.suppress(ProcessLookupError):
                group.add(pid)

    def _read_back(self, disk: MountedDisk) -> None:
        findings, site = self._findings, disk.site
        comparisons = disk.read_back()
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
            device_number=(Path("/sys/class/block") / device.queue_name / "dev").read_text().strip(),
            ledger=self._ledger,
        )
        self._undo.callback(group.release)
        self._findings.comparisons += group.comparisons
        return group

    def _start_server(self, disk: MountedDisk, group: Group) -> Server | None:
        """The server, read back; None where the workloads stand on the file system itself."""
        request = self._request
        counts = self._log_directory / "untorn-writes"
        untorn = self._untorn = untorn_writes(request.cell, request.native_drivers, counts, self._account)
        where = replace(self._server_site(), enter_group=group.enter)
        if untorn is not None:
            where = untorn.below(where)
        started = start_server(
            request, where, undo=self._undo, steps=self._steps, findings=self._findings, kept_data=self._kept
        )
        self._server_settings = started.in_force.settings
        engine = request.cell.build.engine
        self._findings.comparisons += durability_of(request.cell).opened(request.cell.cluster.settings)
        self._findings.durability = declare(
            request.cell,
            disk.filesystem.traits,
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

    def _context(self, disk: MountedDisk, server: Server | None, group: Group) -> VisitContext:
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
            probes=probes_of(disk.site, group, self._emulated),
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
            make_cold=lambda: self._make_cold(disk, server, group),
        )

    def _make_cold(self, disk: MountedDisk, server: Server | None, group: Group) -> None:
        """Stop the server, unmount, mount, start: what was cached of data and of metadata is gone.

        VisitFailed where the file system is not mounted as it was before.
        """
        with self._steps.step("cold"):
            if server is not None:
                server.stop()
            disk.unmount()
            self._mount(disk, group)
            verify(disk.read_back())
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


def live(
    request: VisitRequest,
    directory: Path,
    *,
    executor: str,
    emit: Callable[[Mapping[str, Scalar]], None],
) -> VisitRecord:
    """Live through one visit and return its record; raises only what must not be recorded.

    That is a signal, and MachineUnfit: what no other visit would find otherwise.
    """
    (directory / "logs").mkdir(exist_ok=True)
    (directory / "runs").mkdir(exist_ok=True)
    commands = Commands()
    steps = Steps(emit)
    findings = Findings()
    started_wall_s, started = time.time(), time.monotonic()
    kernel_log, io_before = KernelLog(), BlockTree().io_counts()
    failed_step: str | None = None
    reasons: tuple[Reason, ...] = ()
    try:
        _live(request, directory, commands=commands, steps=steps, findings=findings, emit=emit)
    except VisitFailed as error:
        _demand_room(directory, Path(request.state_directory), error)
        failed_step, reasons = error.step, reasons_of(error)
    messages = kernel_log.messages()
    kernel_log.close()
    _write_logs(directory, commands, messages)
    failed = failed_step is not None or bool(findings.run_problems)
    return VisitRecord(
        format_version=FORMAT_VERSION,
        key=request.key,
        cell=request.cell,
        dataset=request.dataset,
        outcome=Outcome.FAILED if failed else Outcome.COMPLETED,
        reasons=(*reasons, *findings.run_problems),
        failed_step=failed_step or ("runs" if findings.run_problems else None),
        started_wall_s=started_wall_s,
        seconds=time.monotonic() - started,
        boot_id=Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        executor=executor,
        comparisons=tuple(findings.comparisons),
        effective_digest=findings.effective_digest,
        flush_counts=findings.flush_counts,
        durability=findings.durability,
        device_facts=findings.device_facts,
        sizes=findings.sizes,
        free_space=tuple(findings.free_space),
        timings=tuple(steps.timings),
        versions={
            "bedplate": __version__,
            "kernel": os.uname().release,
            **findings.versions,
            **findings.tool_versions,
        },
        kernel_messages=_charged(messages or (), findings, io_before, request, directory),
        filesystem_check=findings.filesystem_check,
        filesystem_check_outcome=findings.filesystem_check_outcome,
        commands=tuple(commands.record),
        runs=tuple(findings.runs),
        build_digest=None if request.build is None else request.build.digest,
        provenance={
            **request.provenance,
            "executor": executor,
            "kernel": os.uname().release,
            "build": request.cell.build.engine if request.build is None else request.build.digest,
            "protocol": workload_for(request.dataset.workload).protocol,
            **_tools(findings),
        },
    )


def _demand_room(directory: Path, state: Path, failure: VisitFailed) -> None:
    """MachineUnfit if bedplate's own disks are full: then the visit failed for that, whatever it says."""
    full = full_places(directory, state)
    if full:
        raise MachineUnfit(*full, *(f"{failure.step}: {reason}" for reason in failure.reasons)) from failure


def _live(
    request: VisitRequest,
    directory: Path,
    *,
    commands: Commands,
    steps: Steps,
    findings: Findings,
    emit: Callable[[Mapping[str, Scalar]], None],
) -> None:
    with steps.step("preflight"):
        needs = unmet_needs(request, commands)
        of_cell = unmet_by_the_cell(request)
        if needs:
            raise MachineUnfit(*needs, *of_cell)
        if of_cell:
            raise VisitFailed("preflight", *of_cell)
    state = Path(request.state_directory)
    owner = f"{os.getpid()}-{request.key.cell[-8:]}-{request.key.repetition}.{request.key.attempt}"
    ledger: Ledger | None = None
    setup: VisitSetup | None = None
    problems: tuple[str, ...] = ()
    try:
        with defer_interruptions():
            ledger = Ledger.open(state, owner)
        setup = VisitSetup(
            request,
            directory,
            commands=commands,
            ledger=ledger,
            steps=steps,
            findings=findings,
            emit=emit,
        )
        setup.measure()
    finally:
        # Also on a signal; one that comes only now waits. First in order, then whatever the ledger still lists. It tries
        # again what could not be given back here, and has the last word on why.
        with defer_interruptions():
            if setup is not None:
                with contextlib.suppress(BedplateError, OSError):
                    setup.leave()
            if ledger is not None:
                problems = ledger.release(commands)
                ledger.close()
            # An abandoned visit has no record to say so.
            print(*problems, sep="\n", end="\n" if problems else "", file=sys.stderr)
    if problems:
        raise VisitFailed("clean-up", *problems)


def _tools(findings: Findings) -> Mapping[str, str]:
    """What did the work, for the record of what may be compared; nothing where no run came so far."""
    words = ", ".join(f"{name} {version}" for name, version in sorted(findings.tool_versions.items()))
    return {"tools": words} if words else {}


def _charged(
    messages: tuple[str, ...],
    findings: Findings,
    io_before: Mapping[str, int],
    request: VisitRequest,
    directory: Path,
) -> tuple[str, ...]:
    """The kernel's messages that this visit has to answer for."""
    tree = BlockTree()
    counts = tree.io_counts()
    places = (
        directory,
        Path(request.state_directory),
        Path(request.scratch_device.image_directory or directory),
    )
    # Its own devices, and the disks below its files and below the running system.
    ours = {tree.disk_of(name) for name in (*findings.device_names, *tree.under(*places), *tree.under_root())}
    used = {name for name, count in counts.items() if count > io_before.get(name, 0)}
    return messages_of_ours(
        messages, findings.device_names, devices=tree.names(), others_in_use=bool(used - ours)
    )


def _write_logs(directory: Path, commands: Commands, messages: tuple[str, ...] | None) -> None:
    logs = directory / "logs"
    (logs / "commands.txt").write_text(
        "".join(" ".join(argv) + "\n" for argv in commands.record), encoding="utf-8"
    )
    said = "(the kernel log may not be read)\n" if messages is None else "".join(f"{m}\n" for m in messages)
    (logs / "kernel.log").write_text(said, encoding="utf-8")
