"""The QEMU executor: the same visit, in a guest with another kernel. Needs no root.

The visits of one boot share a guest. A guest that failed, or whose kernel did, is never used again:
the next visit of the same boot gets a new one.
"""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bedplate.errors import (
    EXIT_DONE,
    EXIT_REQUIREMENT_MISSING,
    BedplateError,
    DeviceRefused,
    MachineUnfit,
    RequirementMissing,
    StudyError,
)
from bedplate.executors.qemu.guest import Guest, GuestDisk, GuestExit
from bedplate.executors.qemu.slot import (
    GUEST_STATE,
    GuestSlot,
    GuestTools,
    disks_of,
    guest_environment,
    inside,
    renew,
    said_of,
    surroundings_of,
)
from bedplate.host.apt import PackageTree
from bedplate.host.block_tree import erase_signatures
from bedplate.host.command import Commands, environment
from bedplate.host.files import full_places
from bedplate.host.lock import IMAGE_FILES, device_lock
from bedplate.model import codec
from bedplate.model.levels import Scalar
from bedplate.model.plan import model_of
from bedplate.model.visit import ScratchDevice, VisitRequest
from bedplate.units import GIB, MIB

DEFAULT_MEMORY_BYTES = 2 * GIB

# How `memory` is limited, in the record's provenance: by the size of the guest, unless the request says
# `group`, which limits the server in a guest of the default size as on a machine of one's own.
_IN_GUEST = "guest"

_SHOWN_SAID_CHARACTERS = 2000


class GuestRunner:
    """Visits in the guest of a `slot`, whose place is a folder on the study's disk for images and for results under way.

    A cell without `memory` gets a guest of `memory_bytes`. The programs and libraries of `trees` are
    found by visits before the system's own. `journal` is the device of a plan's external journals: every
    guest has it, so that visits with and without such a journal share boots.
    """

    name = "qemu"

    def __init__(
        self,
        slot: GuestSlot,
        *,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        trees: Sequence[PackageTree] = (),
        journal: ScratchDevice | None = None,
    ) -> None:
        self._slot = slot
        self._memory_bytes = memory_bytes
        self._trees = tuple(trees)
        self._journal_of_plan = journal
        self._commands = Commands()
        self._boot: int | None = None
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
        self._slot.open()
        fit_for_more = False
        with contextlib.ExitStack() as hold:
            try:
                disks = self._take_disks(request, directory, hold)
            except (RequirementMissing, DeviceRefused) as error:
                # Of every visit's disks.
                raise MachineUnfit(*error.reasons) from error
            try:
                fit_for_more = self._visit(request, directory, on_event, boot=boot, disks=disks)
            finally:
                if boot is None or not fit_for_more:
                    self._end_guest(gently=fit_for_more)
                self._leave_journal(wiped=fit_for_more)

    def close(self) -> None:
        """End the guest, delete its images; safe to repeat."""
        self._slot.close()

    def _take_disks(
        self, request: VisitRequest, directory: Path, stack: contextlib.ExitStack
    ) -> tuple[GuestDisk, ...]:
        """The disks of a visit, locked and kept open until `stack` ends: what is looked at is what the guest gets, and what is wiped behind it."""
        equipped = self._with_journal(request)
        names = [request.scratch_device.device or IMAGE_FILES]
        if equipped.journal_device is not None and equipped.journal_device.device is not None:
            names.append(equipped.journal_device.device)
        locked = {
            name: stack.enter_context(
                device_lock(
                    self._slot.state,
                    name,
                    study=str(directory),
                    is_timed=model_of(request.dataset.workload).has_speed,
                )
            )
            for name in names
        }
        return disks_of(equipped, place=self._slot.place, stack=stack, locked=locked)

    def _visit(
        self,
        request: VisitRequest,
        directory: Path,
        on_event: Callable[[Mapping[str, Scalar]], None],
        *,
        boot: int | None,
        disks: tuple[GuestDisk, ...],
    ) -> bool:
        """Whether the guest is fit for another visit afterwards."""
        slot = self._slot
        kernel = slot.kernel(request.cell.kernel)
        surroundings = surroundings_of(
            request.cell.filesystem.type,
            kernel,
            trees=self._trees,
            cache_directory=slot.cache,
            drivers=request.native_drivers,
        )
        if slot.guest is not None and (boot is None or boot != self._boot or not slot.guest.is_alive()):
            self._end_guest(gently=True)
        spec = slot.spec(kernel, memory_bytes=self._memory_of(request), disks=disks)
        if slot.guest is not None and slot.guest.spec != spec:
            self._end_guest(gently=True)

        def tell(total: int, count: int) -> None:
            if count % (256 * MIB) == 0 or count == total:
                on_event({"event": "image", "done_bytes": count, "of_bytes": total})

        on_event({"event": "step", "step": "disks"})
        try:
            renew(
                self._with_journal(request),
                disks,
                ledger=slot.ledger,
                commands=self._commands,
                progress=tell,
                spared=() if slot.guest is None else (slot.guest.pid,),
            )
        except (RequirementMissing, DeviceRefused) as error:
            # Of every visit's disks.
            raise MachineUnfit(*error.reasons) from error
        # From here on: what is on it was looked at, and may go.
        with_device = request.journal_device is not None and request.journal_device.device is not None
        self._journal = disks[1] if with_device else None
        (directory / "logs").mkdir(exist_ok=True)
        guest = slot.guest
        try:
            if guest is None:
                on_event({"event": "step", "step": "boot"})
                guest = slot.boot(spec, kernel, directory / "logs", on_event)
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
                slot.keep_console(directory / "logs")

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
        share = self._slot.share
        self._number += 1
        number = self._number
        for disk, attached in zip(disks, guest.spec.disks, strict=True):
            if disk.size_bytes != attached.size_bytes:
                guest.resize(disk)
        guest.spec = replace(guest.spec, disks=disks)
        asked = self._asked_inside(request, disks, guest.spec.accelerator, kernel_digest)
        share.lay_visit(
            number,
            replace(asked, provenance={**asked.provenance, **surroundings.versions}),
            disks=disks,
            load=surroundings.load,
            environment=guest_environment(environment(), surroundings),
        )
        try:
            ended = guest.live(
                number,
                limit_s=self._slot.deadlines.of_visit(request),
                silence_s=self._slot.deadlines.silence_s,
                on_event=on_event,
            )
        finally:
            # Before the results leave the share, which gives its disk room again.
            full = full_places(directory, self._slot.place)
            share.collect(number, directory)
        self._judge(ended, directory, full)
        return not ended.broken and _gave_everything_back(directory)

    def _judge(self, guest_exit: GuestExit, directory: Path, full: Sequence[str]) -> None:
        """BedplateError if there is no record; MachineUnfit where no other visit would leave one.

        `full` names the disks that were full when the visit ended.
        """
        if guest_exit.said:
            (directory / "logs" / "run-visit.err").write_text(f"{guest_exit.said}\n", encoding="utf-8")
        if guest_exit.status == EXIT_DONE and (directory / "visit.json").exists():
            return
        if guest_exit.status == EXIT_REQUIREMENT_MISSING or full:
            raise MachineUnfit(*(full or guest_exit.said.splitlines() or ("the guest did not say why",)))
        said = guest_exit.said[-_SHOWN_SAID_CHARACTERS:] or "(it printed nothing)"
        raise BedplateError(
            f"the visit ended in the guest with status {guest_exit.status} and left no record: {said}"
        )

    def _memory_of(self, request: VisitRequest) -> int:
        if request.provenance.get("memory", _IN_GUEST) != _IN_GUEST:
            return self._memory_bytes
        return request.cell.device.memory_bytes or self._memory_bytes

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
                "qemu": self._slot.qemu,
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
        self._boot = None
        self._slot.end(gently=gently)


def _gave_everything_back(directory: Path) -> bool:
    """Whether the visit left the guest as it found it."""
    try:
        path = directory / "visit.json"
        record = codec.parse(codec.read_text(path), source=str(path))
    except StudyError:
        return False
    return isinstance(record, dict) and record.get("failed_step") != "clean-up"
