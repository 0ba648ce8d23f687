"""The one guest that an executor has at a time: its boot, what it shares with the host, and its end."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import DeviceRefused, MachineUnfit, RequirementMissing
from bedplate.executors.qemu.accelerator import find_accelerator
from bedplate.executors.qemu.command_line import TCG, GuestSpec, qemu_version
from bedplate.executors.qemu.disks import demand_same
from bedplate.executors.qemu.guest import BootCrashed, Deadlines, Guest
from bedplate.executors.qemu.guest_tools import find_modprobe
from bedplate.executors.qemu.initramfs import make_initramfs
from bedplate.executors.qemu.kernels import find_kernel
from bedplate.executors.qemu.share import ResultShare
from bedplate.host.cache import cache_directory as default_cache_directory
from bedplate.host.command import Commands
from bedplate.host.ledger import Holding, Ledger
from bedplate.host.state import state_directory as default_state_directory
from bedplate.host.timestamp_counter import counter_khz
from bedplate.host.undo import remove_tree
from bedplate.units import format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bedplate.executors.qemu.command_line import GuestDisk
    from bedplate.executors.qemu.kernels import GuestKernel
    from bedplate.model.cell import KernelLevels
    from bedplate.model.levels import Scalar

_BOOT_ATTEMPTS = 3


class GuestSlot:
    """`place` is a folder for what the guest and the host share; it is made. `interpreter` is the host's Python that programs in the guest run under.

    Kernels are looked for in the cache and never fetched. One at a time in a process, and only from a thread that lives as long as it.
    """

    def __init__(
        self,
        place: Path,
        *,
        deadlines: Deadlines | None = None,
        interpreter: Path = Path(sys.executable),
        cache_directory: Path | None = None,
        state_directory: Path | None = None,
        find: Callable[..., GuestKernel | None] = find_kernel,
    ) -> None:
        self.place = place
        self.deadlines = deadlines or Deadlines()
        self.cache = cache_directory or default_cache_directory()
        self.state = state_directory or default_state_directory()
        self.qemu = ""
        self.guest: Guest | None = None
        self._interpreter = interpreter
        self._find = find
        self._ledger: Ledger | None = None
        self._directory: Path | None = None
        self._share: ResultShare | None = None

    @property
    def ledger(self) -> Ledger:
        """What is held; there from `open` on."""
        assert self._ledger is not None  # noqa: S101 -- made by `open`
        return self._ledger

    @property
    def share(self) -> ResultShare:
        """Of the guest that runs."""
        assert self._share is not None  # noqa: S101 -- comes with the guest
        return self._share

    @property
    def _folder(self) -> Path:
        assert self._directory is not None  # noqa: S101 -- made by `open`
        return self._directory

    def open(self) -> None:
        """Make the ledger and the folder; once."""
        if self._ledger is None:
            self.qemu = qemu_version(Commands())
            self._ledger = Ledger.open(self.state, f"{os.getpid()}-guest")
        if self._directory is None:
            self.place.mkdir(parents=True, exist_ok=True)
            directory = self.place / f"bedplate-guest-{secrets.token_hex(4)}"
            self._ledger.note(Holding("log_directory", str(directory)))
            directory.mkdir()
            self._directory = directory

    def kernel(self, levels: KernelLevels) -> GuestKernel:
        """The kernel of a cell; RequirementMissing where the cache lacks it."""
        kernel = self._find(levels.release, cache_directory=self.cache)
        if kernel is not None:
            return kernel
        if levels.is_built:
            raise RequirementMissing(f"kernel {levels.release} was not built; the start says why")
        raise RequirementMissing(
            f"kernel {levels.release or 'for guests'} is not in {self.cache}; `bedplate setup` fetches it"
        )

    def spec(self, kernel: GuestKernel, *, memory_bytes: int, disks: tuple[GuestDisk, ...] = ()) -> GuestSpec:
        """What a guest is made of; RequirementMissing where this machine has less memory."""
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if memory_bytes > there:
            raise RequirementMissing(
                f"a guest with memory = {format_size(memory_bytes)} does not fit this machine of "
                f"{format_size(there)}"
            )
        initramfs = self._folder / f"initramfs-{kernel.digest}"
        if not initramfs.exists():
            make_initramfs(kernel, target=initramfs)
        accelerator = find_accelerator(kernel, qemu=self.qemu, cache_directory=self.cache, ledger=self.ledger)
        return GuestSpec(
            image=kernel.image,
            initramfs=initramfs,
            accelerator=accelerator,
            memory_bytes=memory_bytes,
            cpu_count=len(os.sched_getaffinity(0)),
            disks=disks,
            counter_khz=counter_khz() if accelerator == TCG else None,
        )

    def boot(
        self,
        spec: GuestSpec,
        kernel: GuestKernel,
        logs: Path | None,
        on_event: Callable[[Mapping[str, Scalar]], None],
    ) -> Guest:
        """A guest that is ready; one whose kernel or emulator crashes on its way there is booted again.

        On a loaded host an emulated kernel now and then dies of an interrupt that comes before its
        handler stands, and QEMU was seen to die of SIGSEGV. Nothing was asked of it then, so nothing is
        measured twice or hidden: the console of a boot that failed is kept in `logs`.
        """
        for attempt in range(1, _BOOT_ATTEMPTS):
            try:
                return self._start(spec, kernel)
            except BootCrashed:
                if logs is not None:
                    self.keep_console(logs, name=f"console-boot-{attempt}.log")
                on_event({"event": "step", "step": "boot again"})
        return self._start(spec, kernel)

    def _start(self, spec: GuestSpec, kernel: GuestKernel) -> Guest:
        try:
            demand_same(spec.disks)
        except DeviceRefused as error:
            raise MachineUnfit(*error.reasons) from error
        if self._share is not None:
            remove_tree(self._share.directory)
        self._share = ResultShare(
            self._folder / f"share-{secrets.token_hex(4)}",
            kernel,
            self._interpreter,
            modprobe=find_modprobe(self.cache),
        )
        self.guest = Guest.boot(
            replace(spec, shares=self._share.shares()),
            console=self._folder / "console.log",
            ledger=self.ledger,
            boot_s=self.deadlines.boot_s,
        )
        return self.guest

    def keep_console(self, logs: Path, *, name: str = "console.log") -> None:
        """A full disk may take it, which is no reason to hide what happened."""
        with contextlib.suppress(OSError):
            shutil.copyfile(self._folder / "console.log", logs / name)

    def end(self, *, gently: bool) -> None:
        """End the guest, delete its images; safe to repeat."""
        guest, self.guest = self.guest, None
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

    def close(self) -> None:
        """End the guest, and give back all that is held; safe to repeat."""
        self.end(gently=True)
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None
        if self._ledger is not None:
            self._ledger.release(Commands())
            self._ledger.close()
            self._ledger = None
