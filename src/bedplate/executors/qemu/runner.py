"""The QEMU executor: the same visit, in a guest with another kernel. Needs no root.

The visits of one boot share a guest. A guest that failed, or whose kernel did, is never used again:
the next visit of the same boot gets a new one.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import secrets
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import (
    EXIT_DONE,
    EXIT_REQUIREMENT_MISSING,
    BedplateError,
    DeviceRefused,
    MachineUnfit,
    RequirementMissing,
)
from bedplate.executors.qemu.accelerator import find_accelerator
from bedplate.executors.qemu.command_line import TCG, GuestSpec, qemu_version
from bedplate.executors.qemu.disks import demand_same, disks_of, inside, renew, said_of
from bedplate.executors.qemu.guest import BootCrashed, Deadlines, Guest
from bedplate.executors.qemu.guest_tools import find_modprobe
from bedplate.executors.qemu.initramfs import make_initramfs
from bedplate.executors.qemu.kernels import find_kernel
from bedplate.executors.qemu.share import GUEST_STATE, ResultShare, visit_environment
from bedplate.executors.qemu.surroundings import surroundings_of
from bedplate.host.cache import cache_directory as default_cache_directory
from bedplate.host.command import Commands, environment
from bedplate.host.devices.signature import erase_signatures
from bedplate.host.ledger import Holding, Ledger
from bedplate.host.lock import IMAGE_FILES, device_lock
from bedplate.host.room import full_places
from bedplate.host.state import state_directory as default_state_directory
from bedplate.host.timestamp_counter import counter_khz
from bedplate.host.undo import remove_tree
from bedplate.units import GIB, MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bedplate.executors.qemu.command_line import GuestDisk
    from bedplate.executors.qemu.guest import GuestExit
    from bedplate.executors.qemu.kernels import GuestKernel
    from bedplate.executors.qemu.surroundings import GuestTools
    from bedplate.host.apt.package_tree import PackageTree
    from bedplate.model.levels import Scalar
    from bedplate.model.visit import ScratchDevice, VisitRequest

DEFAULT_MEMORY_BYTES = 2 * GIB
# How `memory` is limited, in the record's provenance: by the size of the guest, unless the request says
# `group`, which limits the server in a guest of the default size as on a machine of one's own.
_IN_GUEST = "guest"
_BOOT_ATTEMPTS = 3
_SHOWN_SAID_CHARACTERS = 2000


class GuestRunner:
    """`place` is a folder on the study's disk for images and for results under way; it is made.

    A cell without `memory` gets a guest of `memory_bytes`. The programs and libraries of `trees` are
    found by visits before the system's own. `journal` is the device of a plan's external journals: every
    guest has it, so that visits with and without such a journal share boots. `interpreter` is the host's Python that visits run under,
    by default this one. Kernels are looked for in the cache and never fetched.
    One at a time in a process, and only from a thread that lives as long as the executor.
    """

    name = "qemu"

    def __init__(
        self,
        *,
        place: Path,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        trees: Sequence[PackageTree] = (),
        journal: ScratchDevice | None = None,
        deadlines: Deadlines | None = None,
        interpreter: Path = Path(sys.executable),
        cache_directory: Path | None = None,
        state_directory: Path | None = None,
        find: Callable[..., GuestKernel | None] = find_kernel,
    ) -> None:
        self._place = place
        self._memory_bytes = memory_bytes
        self._trees = tuple(trees)
        self._journal_of_plan = journal
        self._deadlines = deadlines or Deadlines()
        self._cache = cache_directory or default_cache_directory()
        self._state = state_directory or default_state_directory()
        self._interpreter = interpreter
        self._find = find
        self._commands = Commands()
        self._ledger: Ledger | None = None
        self._qemu = ""
        self._guest: Guest | None = None
        self._boot: int | None = None
        self._share: ResultShare | None = None
        self._directory: Path | None = None
        # A device that the visit under way may leave an unlabelled journal on.
        self._journal: GuestDisk | None = None
        self._number = 0

    def run_visit(
        self,
        request: VisitRequest,
        directory: Path,
        on_event: Callable[[Mapping[str, Scalar]], None],
        *,
        boot: int | None = None,
    ) -> None:
        """Live through one visit in the guest of this boot, started now if there is none.

        BedplateError if the guest died, hung or left no record: with the console's last lines, its log
        in `logs/`; the next visit gets a new guest. MachineUnfit if no visit could run: the study's disk is full.
        """
        ledger = self._open()
        fit_for_more = False
        with contextlib.ExitStack() as hold:
            try:
                disks = self._take_disks(request, directory, hold)
            except (RequirementMissing, DeviceRefused) as error:
                # Of every visit's disks.
                raise MachineUnfit(*error.reasons) from error
            try:
                fit_for_more = self._visit(
                    request, directory, on_event, boot=boot, ledger=ledger, disks=disks
                )
            finally:
                if boot is None or not fit_for_more:
                    self._end_guest(gently=fit_for_more)
                self._leave_journal(wiped=fit_for_more)

    def close(self) -> None:
        """End the guest, delete its images; safe to repeat."""
        self._end_guest(gently=True)
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None
        if self._ledger is not None:
            self._ledger.release(self._commands)
            self._ledger.close()
            self._ledger = None

    def _open(self) -> Ledger:
        """The ledger, and the folder of this executor; once."""
        if self._ledger is None:
            self._qemu = qemu_version(self._commands)
            self._ledger = Ledger.open(self._state, f"{os.getpid()}-guest")
        if self._directory is None:
            self._place.mkdir(parents=True, exist_ok=True)
            directory = self._place / f"bedplate-guest-{secrets.token_hex(4)}"
            self._ledger.note(Holding("log_directory", str(directory)))
            directory.mkdir()
            self._directory = directory
        return self._ledger

    def _take_disks(
        self, request: VisitRequest, directory: Path, hold: contextlib.ExitStack
    ) -> tuple[GuestDisk, ...]:
        """The disks of a visit, locked and kept open until `hold` ends: what is looked at is what the guest gets, and what is wiped behind it."""
        equipped = self._with_journal(request)
        names = [request.scratch_device.device or IMAGE_FILES]
        if equipped.journal_device is not None and equipped.journal_device.device is not None:
            names.append(equipped.journal_device.device)
        locked = {
            name: hold.enter_context(device_lock(self._state, name, study=str(directory))) for name in names
        }
        return disks_of(equipped, place=self._place, hold=hold, locked=locked)

    def _visit(
        self,
        request: VisitRequest,
        directory: Path,
        on_event: Callable[[Mapping[str, Scalar]], None],
        *,
        boot: int | None,
        ledger: Ledger,
        disks: tuple[GuestDisk, ...],
    ) -> bool:
        """Whether the guest is fit for another visit afterwards."""
        assert self._directory is not None  # noqa: S101 -- made by _open
        kernel = self._kernel(request)
        surroundings = surroundings_of(
            request.cell.filesystem.type,
            kernel,
            trees=self._trees,
            cache_directory=self._cache,
            drivers=request.native_drivers,
        )
        if self._guest is not None and (boot is None or boot != self._boot or not self._guest.is_alive()):
            self._end_guest(gently=True)
        spec = self._spec(request, kernel, disks, ledger)
        if self._guest is not None and self._guest.spec != spec:
            self._end_guest(gently=True)

        def tell(total: int, done: int) -> None:
            if done % (256 * MIB) == 0 or done == total:
                on_event({"event": "image", "done_bytes": done, "of_bytes": total})

        on_event({"event": "step", "step": "disks"})
        try:
            renew(
                self._with_journal(request),
                disks,
                ledger=ledger,
                commands=self._commands,
                progress=tell,
                spared=() if self._guest is None else (self._guest.pid,),
            )
        except (RequirementMissing, DeviceRefused) as error:
            # Of every visit's disks.
            raise MachineUnfit(*error.reasons) from error
        # From here on: what is on it was looked at, and may go.
        with_device = request.journal_device is not None and request.journal_device.device is not None
        self._journal = disks[1] if with_device else None
        (directory / "logs").mkdir(exist_ok=True)
        guest = self._guest
        try:
            if guest is None:
                on_event({"event": "step", "step": "boot"})
                guest = self._guest = self._boot_guest(spec, kernel, ledger, directory, on_event)
                self._boot = boot
            on_event({"event": "step", "step": "hand-over"})
            return self._live(
                guest,
                request,
                directory,
                on_event,
                disks=disks,
                surroundings=surroundings,
                kernel_digest=kernel.digest,
            )
        finally:
            if guest is None or not guest.is_alive():
                _keep_console(self._directory, directory)

    def _with_journal(self, request: VisitRequest) -> VisitRequest:
        """The request with the devices that its guest has, whether the visit uses them or not."""
        return replace(request, journal_device=request.journal_device or self._journal_of_plan)

    def _live(
        self,
        guest: Guest,
        request: VisitRequest,
        directory: Path,
        on_event: Callable[[Mapping[str, Scalar]], None],
        *,
        disks: tuple[GuestDisk, ...],
        surroundings: GuestTools,
        kernel_digest: str,
    ) -> bool:
        assert self._share is not None  # noqa: S101 -- comes with the guest
        self._number += 1
        number = self._number
        for disk, attached in zip(disks, guest.spec.disks, strict=True):
            if disk.size_bytes != attached.size_bytes:
                guest.resize(disk)
        guest.spec = replace(guest.spec, disks=disks)
        asked = self._asked_inside(request, disks, guest.spec.accelerator, kernel_digest)
        self._share.put(
            number,
            replace(asked, provenance={**asked.provenance, **surroundings.versions}),
            disks=disks,
            load=surroundings.load,
            environment=visit_environment(
                environment(), path=surroundings.path, library_path=surroundings.library_path
            ),
        )
        try:
            ended = guest.live(
                number,
                limit_s=self._deadlines.of_visit(request),
                silence_s=self._deadlines.silence_s,
                on_event=on_event,
            )
        finally:
            # Before the results leave the share, which gives its disk room again.
            full = full_places(directory, self._place)
            self._share.collect(number, directory)
        self._judge(ended, directory, full)
        return not ended.broken and _gave_everything_back(directory)

    def _judge(self, ended: GuestExit, directory: Path, full: Sequence[str]) -> None:
        """BedplateError if there is no record; MachineUnfit where no other visit would leave one.

        `full` names the disks that were full when the visit ended.
        """
        if ended.said:
            (directory / "logs" / "run-visit.err").write_text(f"{ended.said}\n", encoding="utf-8")
        if ended.status == EXIT_DONE and (directory / "visit.json").exists():
            return
        if ended.status == EXIT_REQUIREMENT_MISSING or full:
            raise MachineUnfit(*(full or ended.said.splitlines() or ("the guest did not say why",)))
        said = ended.said[-_SHOWN_SAID_CHARACTERS:] or "(it printed nothing)"
        raise BedplateError(
            f"the visit ended in the guest with status {ended.status} and left no record: {said}"
        )

    def _kernel(self, request: VisitRequest) -> GuestKernel:
        asked = request.cell.kernel.release
        kernel = self._find(asked, cache_directory=self._cache)
        if kernel is None:
            if request.cell.kernel.is_built:
                raise RequirementMissing(f"kernel {asked} was not built; the start says why")
            raise RequirementMissing(
                f"kernel {asked or 'for guests'} is not in {self._cache}; `bedplate setup` fetches it"
            )
        return kernel

    def _spec(
        self, request: VisitRequest, kernel: GuestKernel, disks: tuple[GuestDisk, ...], ledger: Ledger
    ) -> GuestSpec:
        assert self._directory is not None  # noqa: S101 -- made by _open
        memory_bytes = self._memory_bytes
        if request.provenance.get("memory", _IN_GUEST) == _IN_GUEST:
            memory_bytes = request.cell.device.memory_bytes or memory_bytes
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if memory_bytes > there:
            raise RequirementMissing(
                f"a guest with memory = {format_size(memory_bytes)} does not fit this machine of "
                f"{format_size(there)}"
            )
        initramfs = self._directory / f"initramfs-{kernel.digest}"
        if not initramfs.exists():
            make_initramfs(kernel, target=initramfs)
        accelerator = find_accelerator(kernel, qemu=self._qemu, cache_directory=self._cache, ledger=ledger)
        return GuestSpec(
            image=kernel.image,
            initramfs=initramfs,
            accelerator=accelerator,
            memory_bytes=memory_bytes,
            cpu_count=len(os.sched_getaffinity(0)),
            disks=disks,
            counter_khz=counter_khz() if accelerator == TCG else None,
        )

    def _boot_guest(
        self,
        spec: GuestSpec,
        kernel: GuestKernel,
        ledger: Ledger,
        directory: Path,
        on_event: Callable[[Mapping[str, Scalar]], None],
    ) -> Guest:
        """A guest that is ready; one whose kernel or emulator crashes on its way there is booted again.

        On a loaded host an emulated kernel now and then dies of an interrupt that comes before its
        handler stands, and QEMU was seen to die of SIGSEGV. No visit has begun then, so nothing is
        measured twice or hidden: the console of a boot that failed is kept with the visit.
        """
        assert self._directory is not None  # noqa: S101 -- made by _open
        for attempt in range(1, _BOOT_ATTEMPTS):
            try:
                return self._start(spec, kernel, ledger)
            except BootCrashed:
                _keep_console(self._directory, directory, name=f"console-boot-{attempt}.log")
                on_event({"event": "step", "step": "boot again"})
        return self._start(spec, kernel, ledger)

    def _start(self, spec: GuestSpec, kernel: GuestKernel, ledger: Ledger) -> Guest:
        assert self._directory is not None  # noqa: S101 -- made by _open
        try:
            demand_same(spec.disks)
        except DeviceRefused as error:
            raise MachineUnfit(*error.reasons) from error
        if self._share is not None:
            remove_tree(self._share.directory)
        self._share = ResultShare(
            self._directory / f"share-{secrets.token_hex(4)}",
            kernel,
            self._interpreter,
            modprobe=find_modprobe(self._cache),
        )
        return Guest.boot(
            replace(spec, shares=self._share.shares()),
            console=self._directory / "console.log",
            ledger=ledger,
            boot_s=self._deadlines.boot_s,
        )

    def _asked_inside(
        self, request: VisitRequest, disks: tuple[GuestDisk, ...], accelerator: str, kernel_digest: str
    ) -> VisitRequest:
        """The request as the guest gets it: its own disks, and what this machine is to the record."""
        return replace(
            request,
            scratch_device=inside(disks[0]),
            journal_device=None if request.journal_device is None else inside(disks[1]),
            state_directory=GUEST_STATE,
            provenance={
                # The guest is as large as the cell's memory: no limit inside comes on top of it.
                "memory": _IN_GUEST,
                **request.provenance,
                "accelerator": accelerator,
                "qemu": self._qemu,
                "kernel_digest": kernel_digest,
                "host_kernel": platform.release(),
                **said_of(request, disks),
            },
        )

    def _leave_journal(self, *, wiped: bool) -> None:
        """Wipe a device's journal where the guest did not: the next visit would take it for a stranger's.

        What cannot be wiped, or is another device by now, is named by that visit.
        """
        disk, self._journal = self._journal, None
        if disk is not None and not wiped and disk.is_what_it_was:
            with contextlib.suppress(BedplateError):
                erase_signatures(str(disk.path), self._commands)

    def _end_guest(self, *, gently: bool) -> None:
        guest, self._guest, self._boot = self._guest, None, None
        if guest is not None:
            guest.end(gently=gently)
        if self._share is not None:
            remove_tree(self._share.directory)
            self._share = None
        if self._ledger is not None:
            for holding in self._ledger.held():
                if holding.kind == "image":
                    Path(holding.name).unlink(missing_ok=True)
                    self._ledger.settled(holding)


def _gave_everything_back(directory: Path) -> bool:
    """Whether the visit left the guest as it found it."""
    try:
        record = json.loads((directory / "visit.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(record, dict) and record.get("failed_step") != "clean-up"


def _keep_console(source: Path, directory: Path, *, name: str = "console.log") -> None:
    """A full disk may take it, which is no reason to hide what happened."""
    with contextlib.suppress(OSError):
        shutil.copyfile(source / "console.log", directory / "logs" / name)
