"""Programs of bedplate's that need another kernel and no disk of the host's: in a guest, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import EXIT_DONE, BedplateError
from bedplate.executors.qemu.share import guest_environment
from bedplate.executors.qemu.surroundings import surroundings_of
from bedplate.host.command import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from bedplate.executors.qemu.guest import GuestExit
    from bedplate.executors.qemu.guest_kernel import GuestKernel
    from bedplate.executors.qemu.guest_slot import GuestSlot
    from bedplate.executors.qemu.share import GuestProgram
    from bedplate.host.apt.package_tree import PackageTree
    from bedplate.model.levels import Scalar

_QUOTED = 2000


@dataclass(frozen=True)
class Errand:
    """A program, and what its guest must have: the kernel, tools of the file system, `drivers` by name, and `memory_bytes`.

    `needed` are files of the host that an account without rights must reach. The programs and libraries of `trees` are found before the
    system's own. It is given up after `limit_s`.
    """

    program: GuestProgram
    kernel: GuestKernel
    filesystem: str
    memory_bytes: int
    limit_s: float
    drivers: Mapping[str, Path]
    needed: Sequence[Path] = ()
    trees: Sequence[PackageTree] = ()


class ErrandRunner:
    """Errands with the same kernel and memory share a guest."""

    def __init__(self, slot: GuestSlot) -> None:
        self._slot = slot
        self._number = 0

    def run(self, errand: Errand, on_event: Callable[[Mapping[str, Scalar]], None]) -> None:
        """Until the program has ended well; BedplateError with what it said where it did not, GuestFailed where its guest died or hung."""
        slot = self._slot
        slot.open()
        tools = surroundings_of(
            errand.filesystem,
            errand.kernel,
            trees=errand.trees,
            cache_directory=slot.cache,
            drivers=tuple(errand.drivers),
        )
        spec = slot.spec(errand.kernel, memory_bytes=errand.memory_bytes)
        if slot.guest is not None and (slot.guest.spec != spec or not slot.guest.is_alive()):
            slot.end(gently=True)
        guest = slot.guest or slot.boot(spec, errand.kernel, None, on_event)
        self._number += 1
        slot.share.lay(
            self._number,
            errand.program,
            needed=(*errand.needed, *errand.drivers.values()),
            disks=(),
            load=tools.load,
            environment=guest_environment(environment(), tools),
        )
        ended = guest.live(
            self._number, limit_s=errand.limit_s, silence_s=slot.deadlines.silence_s, on_event=on_event
        )
        slot.share.forget(self._number)
        if ended.broken:
            slot.end(gently=True)
        _require_done(ended)

    def close(self) -> None:
        """End the guest; safe to repeat."""
        self._slot.close()


def _require_done(ended: GuestExit) -> None:
    if ended.status == EXIT_DONE:
        return
    said = ended.said[-_QUOTED:].splitlines() or ["(it printed nothing)"]
    raise BedplateError(f"in the guest it ended with status {ended.status}: {said[0]}", *said[1:])
