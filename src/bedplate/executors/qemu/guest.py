"""One guest: its boot, the visits that it serves one after the other, and its end.

A guest is a QEMU process of ours. Whatever becomes of it, it is ended by its own pid; it dies with
bedplate (PR_SET_PDEATHSIG), and stands in the ledger for the instant in which it could not.
"""

from __future__ import annotations

import re
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.executors.qemu.channel import Channel, GuestGone, line_pair
from bedplate.executors.qemu.command_line import guest_command
from bedplate.executors.qemu.control import Control, ControlFailed
from bedplate.executors.qemu.own_kernel.console import lacking_by_console
from bedplate.executors.qemu.qemu_process import QemuProcess
from bedplate.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from bedplate.executors.qemu.command_line import GuestDisk, GuestSpec
    from bedplate.host.ledger import Ledger
    from bedplate.model.levels import Scalar
    from bedplate.model.visit import VisitRequest

# Bits of /proc/sys/kernel/tainted (Documentation/admin-guide/tainted-kernels.rst) after which a
# kernel is not the one that was booted: it died somewhere, warned, or locked up.
_BROKEN_KERNEL = 1 << 7 | 1 << 9 | 1 << 14
_SHOWN_CONSOLE_LINES = 12
_SHOWN_CONSOLE_BYTES = 16384
_SHOWN_LINES_SAID = 200
_BOOTING = "while it booted"
_PANIC = re.compile(r"Kernel panic - ")
# What a fault of QEMU's own ends it with; SIGSEGV was seen once, on a loaded host.
_CRASHES = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL})
_FATAL = re.compile(r"Kernel panic - .*|Out of memory: .*|BUG: .*|bedplate: .*")
# Escape sequences and carriage returns: SeaBIOS and the kernel write to a terminal.
_TERMINAL = re.compile(r"\x1b(?:\[[0-9;?=]*[A-Za-z]|c)|[\r\x00-\x08\x0b-\x1f]")


class GuestFailed(BedplateError):
    """The guest did not boot, died, or hung; it is gone."""

    code = "guest-failed"


class BootCrashed(GuestFailed):
    """The guest's kernel panicked, or QEMU crashed, before the guest was ready: nothing had been asked of it yet."""

    code = "guest-boot-crashed"


@dataclass(frozen=True)
class Deadlines:
    """How long is too long, in seconds.

    `silence_s` is for a guest that says nothing at all: its agent speaks every ten seconds while a
    visit lives. `visit_s` comes on top of what the plan's own durations and scale account for.
    """

    boot_s: float = 300.0
    silence_s: float = 300.0
    visit_s: float = 3600.0
    load_s_per_scale: float = 60.0

    def of_visit(self, request: VisitRequest) -> float:
        """The seconds after which a visit is given up.

        Twice the asked durations, as an emulated machine comes late to everything.
        """
        asked = sum(
            run.levels.number(name) or 0.0 for run in request.runs for name in ("warmup_s", "duration_s")
        )
        scale = request.dataset.levels.get("scale", 0)
        loads = float(scale) if isinstance(scale, (int, float)) else 0.0
        return self.visit_s + 2 * asked + self.load_s_per_scale * loads


@dataclass(frozen=True)
class GuestExit:
    """How a visit ended in the guest: the exit status of `run-visit`, and what it said beside events.

    `broken` is true where the kernel is no longer fit for another visit.
    """

    status: int
    said: str
    broken: bool


class Guest:
    """A guest that is ready for visits."""

    def __init__(
        self,
        spec: GuestSpec,
        *,
        process: QemuProcess,
        channel: Channel,
        control: Control,
        console: Path,
        clock: Callable[[], float],
    ) -> None:
        self.spec = spec
        self.console = console
        self.boot_seconds = 0.0
        self._process = process
        self._channel = channel
        self._control = control
        self._clock = clock
        self._taint = 0

    @classmethod
    def boot(
        cls,
        spec: GuestSpec,
        *,
        console: Path,
        ledger: Ledger,
        boot_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> Guest:
        """Start QEMU and wait until the agent is ready, `boot_s` at most.

        GuestFailed with the console's last lines, BootCrashed where its kernel or a fault of QEMU ended it.
        """
        visits, their_visits = line_pair()
        control, their_control = line_pair()
        command = guest_command(
            spec, console=console, visits=their_visits.fileno(), control=their_control.fileno()
        )
        try:
            process = QemuProcess(
                command,
                sockets=(their_visits, their_control),
                errors=console.with_suffix(".qemu"),
                ledger=ledger,
            )
        except BaseException:
            visits.close()
            control.close()
            raise
        guest = cls(
            spec,
            process=process,
            channel=Channel(visits, clock=clock),
            control=Control(control, clock=clock),
            console=console,
            clock=clock,
        )
        try:
            guest.wait_until_ready(boot_s)
        except BaseException:
            guest.end(gently=False)
            raise
        return guest

    @property
    def pid(self) -> int:
        """That of QEMU, which has the disks open for writing."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Whether QEMU runs; a guest that hangs inside is found by its next visit."""
        return self._process.is_running()

    def resize(self, disk: GuestDisk) -> None:
        """Make the guest see the size that the image of a disk has now."""
        try:
            self._control.resize(disk.serial, disk.size_bytes)
        except (ControlFailed, OSError) as error:
            raise self._failure(f"the size of {disk.serial} could not be changed: {error}") from error

    def live(
        self,
        number: int,
        *,
        limit_s: float,
        silence_s: float,
        on_event: Callable[[Mapping[str, Scalar]], None],
    ) -> GuestExit:
        """Live through visit `number` of the share; GuestFailed, and the guest is gone, if it cannot.

        `limit_s` is for the whole visit, `silence_s` for the time between two signs of life.

        Any other exception ends the guest too: a visit that nobody follows must not go on.
        """
        try:
            return self._follow(number, limit_s, silence_s, on_event)
        except BaseException:
            self.end(gently=False)
            raise

    def end(self, *, gently: bool = True) -> None:
        """End QEMU; safe to repeat."""
        self._process.end(gently=gently)
        self._channel.close()
        self._control.close()

    def wait_until_ready(self, boot_s: float) -> None:
        """Until the agent says so, `boot_s` at most; GuestFailed and BootCrashed as `boot` raises them."""
        started = self._clock()
        give_up = started + boot_s
        while True:
            message = self._receive(give_up, during=_BOOTING)
            if message is None:
                raise self._failure(f"was not ready after {format_duration(boot_s)}", booting=True)
            if isinstance(message, dict) and message.get("agent") == "ready":
                self._taint = _integer(message, "tainted")
                self.boot_seconds = self._clock() - started
                return

    def _follow(
        self,
        number: int,
        limit_s: float,
        silence_s: float,
        on_event: Callable[[Mapping[str, Scalar]], None],
    ) -> GuestExit:
        said: list[str] = []
        try:
            self._channel.send(f"visit {number}")
        except GuestGone:
            raise self._death("before its work began") from None
        give_up = self._clock() + limit_s
        while True:
            message = self._receive(min(give_up, self._clock() + silence_s), during="while it worked")
            if message is None:
                late = self._clock() >= give_up
                what = (
                    f"was not done within {format_duration(limit_s)}"
                    if late
                    else f"hangs: it said nothing for {format_duration(silence_s)}"
                )
                raise self._failure(f"{what}, and was killed")
            if isinstance(message, str):
                said = [*said[-_SHOWN_LINES_SAID:], message]
            elif "event" in message:
                on_event(message)
            elif message["agent"] == "ended":
                new_taint = _integer(message, "tainted") & ~self._taint
                return GuestExit(
                    _integer(message, "status"), "\n".join(said), bool(new_taint & _BROKEN_KERNEL)
                )

    def _receive(self, until: float, *, during: str) -> dict[str, Scalar] | str | None:
        try:
            return self._channel.receive(until=until)
        except GuestGone:
            raise self._death(during) from None

    def _death(self, during: str) -> GuestFailed:
        status = self._process.wait()
        how = f"killed by signal {-status}" if status < 0 else f"QEMU ended with status {status}"
        failure = self._failure(f"died {during} ({how})", booting=during == _BOOTING and status >= 0)
        if during == _BOOTING and (-status in _CRASHES or _PANIC.search(read_console(self.console))):
            return BootCrashed(*failure.reasons)
        return failure

    def _failure(self, what: str, *, booting: bool = False) -> GuestFailed:
        """The error that says it; the guest is ended first, so that its console is complete.

        Of one that ended by itself while `booting`, with the option that its kernel lacks.
        """
        self._process.end(gently=False)
        text = read_console(self.console)
        fatal = _FATAL.search(text)
        reasons = [f"the guest {what}{f': {fatal[0].strip()}' if fatal else ''}"]
        if booting:
            reasons += lacking_by_console(text)
        if self._process.said:
            reasons.append(f"QEMU said: {self._process.said[-2000:]}")
        lines = [line for line in text.splitlines() if line.strip()][-_SHOWN_CONSOLE_LINES:]
        reasons.append(f"its console's last lines: {' | '.join(lines) or '(it is empty)'}")
        return GuestFailed(*reasons)


def read_console(path: Path) -> str:
    """The end of a console's log without what only a terminal understands; empty where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _SHOWN_CONSOLE_BYTES))
            data = file.read()
    except OSError:
        return ""
    return _TERMINAL.sub("", data.decode("utf-8", errors="replace"))


def _integer(message: Mapping[str, Scalar], name: str) -> int:
    value = message.get(name)
    return value if isinstance(value, int) else 0
