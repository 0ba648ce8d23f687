"""One guest: its boot, the visits that it serves one after the other, and its end.

A guest is a QEMU process of ours. Whatever becomes of it, it is ended by its own pid; it dies with
bedplate (PR_SET_PDEATHSIG), and stands in the ledger for the instant in which it could not.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import socket
import stat
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from bedplate.errors import BedplateError, CommandFailed, OutputNotUnderstood
from bedplate.executors.qemu.own_kernel import lacking_by_console
from bedplate.host import process
from bedplate.host.block_tree import DeviceNode
from bedplate.host.command import Commands, environment
from bedplate.host.interruption import defer_interruptions
from bedplate.host.ledger import Holding, Ledger
from bedplate.host.process import boot_id
from bedplate.host.requirement import Need
from bedplate.model.cell import digest
from bedplate.model.levels import Scalar
from bedplate.model.visit import VisitRequest
from bedplate.units import MIB, format_duration

if TYPE_CHECKING:
    from bedplate.executors.qemu.kernels import GuestKernel

# A line that is longer is none of ours; what came of it is dropped.
_LINE_BYTES_MAX = 1 << 20

_READ_BYTES = 1 << 16

# poll(2) counts milliseconds in an int.
_POLL_S_MAX = 3600.0

Message: TypeAlias = "dict[str, Scalar] | str"


class GuestGone(Exception):
    """The other end was closed: QEMU has ended."""


def parse(line: bytes) -> Message:
    """A message of the agent's or of the visit's as a flat object, anything else as text."""
    text = line.decode("utf-8", errors="replace").rstrip("\r\n")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(value, dict) or not {"agent", "event"} & value.keys():
        return text
    return {name: item for name, item in value.items() if isinstance(item, (str, int, float, bool))}


class Channel:
    """Our end of the line; `clock` is monotonic."""

    def __init__(self, connection: socket.socket, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._end = connection
        self._clock = clock
        self._rest = bytearray()
        self._lines: deque[bytes] = deque()
        self._poller = select.poll()
        self._poller.register(connection, select.POLLIN)

    def send(self, line: str) -> None:
        """Send one line; GuestGone if nobody can read it any more."""
        try:
            self._end.sendall(line.encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError) as error:
            raise GuestGone from error

    def receive(self, *, until: float) -> Message | None:
        """The next message, None if none has come when the clock says `until`; GuestGone at the end."""
        while not self._lines:
            wait_s = until - self._clock()
            if wait_s <= 0:
                return None
            if self._poller.poll(min(wait_s, _POLL_S_MAX) * 1000):
                self._read()
        return parse(self._lines.popleft())

    def close(self) -> None:
        """Close our end."""
        self._end.close()

    def _read(self) -> None:
        try:
            data = self._end.recv(_READ_BYTES)
        except ConnectionResetError:
            data = b""
        if not data:
            raise GuestGone
        *lines, rest = (bytes(self._rest) + data).split(b"\n")
        self._lines.extend(line for line in lines if line.strip())
        self._rest = bytearray(rest if len(rest) <= _LINE_BYTES_MAX else b"")


def line_pair() -> tuple[socket.socket, socket.socket]:
    """Two connected ends: one to keep, one for QEMU. No path that could be too long or left behind."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)


_ANSWER_S = 30.0


class ControlFailed(BedplateError):
    """QEMU refused a command, or answered nothing."""

    code = "qemu-control-failed"


class Control:
    """The control line of one guest; commands are only taken once QEMU has greeted."""

    def __init__(self, connection: socket.socket, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._end = connection
        self._clock = clock
        self._rest = b""
        self._greeted = False

    def resize(self, node: str, size_bytes: int) -> None:
        """Tell QEMU, and through it the guest, what size the image of `node` has."""
        self._call("block_resize", {"node-name": node, "size": size_bytes})

    def close(self) -> None:
        """Close our end."""
        self._end.close()

    def _call(self, command: str, arguments: Mapping[str, Any] | None = None) -> None:
        if not self._greeted:
            self._greeted = True
            self._call("qmp_capabilities")
        self._end.sendall(json.dumps({"execute": command, "arguments": arguments or {}}).encode() + b"\n")
        give_up = self._clock() + _ANSWER_S
        while True:
            answer = self._next(command, give_up)
            if "return" in answer:
                return
            if "error" in answer:
                raise ControlFailed(f"QEMU refuses {command}: {answer['error'].get('desc', answer['error'])}")

    def _next(self, command: str, give_up: float) -> dict[str, Any]:
        """The next object that QEMU says: its greeting, an event, an answer."""
        while b"\n" not in self._rest:
            self._end.settimeout(max(0.001, give_up - self._clock()))
            try:
                data = self._end.recv(65536)
            except TimeoutError:
                raise ControlFailed(f"QEMU did not answer {command} within {_ANSWER_S:g} s") from None
            if not data:
                raise ControlFailed(f"QEMU ended before it answered {command}")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        value = json.loads(line)
        if not isinstance(value, dict):
            raise ControlFailed(f"QEMU answered {command} with {line[:200]!r}")
        return value


_LEAVING_S = 10.0


class QemuProcess:
    """Start `argv`; `sockets` are handed over under their own numbers, and closed here.

    CommandFailed if it cannot be started. Must be called by a thread that lives as long as the guest
    should: the kernel ends the guest with the thread that started it.
    """

    def __init__(
        self, argv: Sequence[str], *, sockets: Sequence[socket.socket], errors: Path, ledger: Ledger
    ) -> None:
        self._ledger = ledger
        self._errors = errors
        try:
            # An interruption waits until the process is known and written down.
            with errors.open("wb") as said, defer_interruptions():
                self._process = subprocess.Popen(
                    # setpriv(1) becomes QEMU, under the same pid; PR_SET_PDEATHSIG outlives the exec.
                    ["setpriv", "--pdeathsig", "KILL", *argv],
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    # A core of QEMU's, where the machine keeps them, goes with this folder.
                    cwd=errors.parent,
                    env=environment(),
                    pass_fds=[end.fileno() for end in sockets],
                    start_new_session=True,
                )
                self._holding = Holding("process", str(self.pid), process.start_time(self.pid) or "")
                ledger.note(self._holding)
        except (FileNotFoundError, PermissionError) as error:
            raise CommandFailed(
                f"setpriv cannot be started: {error.strerror}; it is part of util-linux",
                argv=argv,
                status=None,
                output="",
            ) from error
        finally:
            # Only QEMU holds them now, so that its end is the end of the line.
            for end in sockets:
                end.close()

    @property
    def pid(self) -> int:
        """The process id of QEMU."""
        return self._process.pid

    @property
    def output(self) -> str:
        """What QEMU itself printed."""
        with contextlib.suppress(OSError):
            return self._errors.read_text(encoding="utf-8", errors="replace").strip()
        return ""

    def is_running(self) -> bool:
        """Whether it lives."""
        return self._process.poll() is None

    def end(self, *, gently: bool) -> int:
        """End it, `gently` with SIGTERM first, and give its exit status; safe to repeat."""
        if gently and self.is_running():
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_LEAVING_S)
        if self.is_running():
            self._process.kill()
        status = self._process.wait()
        self._ledger.settled(self._holding)
        return status

    def wait(self) -> int:
        """Its exit status, for one that is ending by itself; it is killed if that takes too long."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_LEAVING_S)
        return self.end(gently=False)


PROGRAM = "qemu-system-x86_64"

NEEDS = (
    Need(PROGRAM, "qemu-system-x86", "runs the guest that visits run in"),
    Need("setpriv", "util-linux", "lets a guest die with bedplate"),
)

KVM = "kvm"
TCG = "tcg"
VISITS_PORT = "bedplate.visits"

_TRIAL_MEMORY_BYTES = 256 * MIB
_VERSION = re.compile(r"QEMU emulator version (\S+)")


@dataclass(frozen=True)
class SharedFolder:
    """A folder of the host's that the guest mounts by its tag."""

    tag: str
    path: Path
    writable: bool


@dataclass(frozen=True)
class GuestDisk:
    """A disk of the guest: `/dev/disk/by-id/virtio-<serial>` in it, an image or a device on the host.

    Two that are equal can stand in for each other in a running guest: a size can be changed there. `hold` keeps a device
    of the host open while a visit has it, so that `path` stays the device that was looked at.
    """

    serial: str
    path: Path
    size_bytes: int = field(compare=False)
    in_memory: bool = False
    hold: DeviceNode | None = field(default=None, compare=False, repr=False)

    @property
    def is_what_it_was(self) -> bool:
        """Whether its path leads to the device that was looked at; always of an image."""
        return self.hold is None or self.hold.is_at(self.path)

    @property
    def device(self) -> str:
        """The stable name in the guest."""
        return f"/dev/disk/by-id/virtio-{self.serial}"


@dataclass(frozen=True)
class GuestSpec:
    """What a guest is made of; visits whose specs are equal may share a boot.

    The shares are made for one boot, so they do not count; nor does `counter_khz`, the rate of the host's timestamp counter, which is
    measured anew for each and None where it cannot be.
    """

    image: Path
    initramfs: Path
    accelerator: str
    memory_bytes: int
    cpu_count: int
    disks: tuple[GuestDisk, ...]
    shares: tuple[SharedFolder, ...] = field(compare=False, default=())
    counter_khz: int | None = field(compare=False, default=None)


def qemu_version(commands: Commands) -> str:
    """`7.2.22`; OutputNotUnderstood if QEMU says none, CommandFailed if it is not there."""
    said = commands.run([PROGRAM, "--version"]).stdout
    found = _VERSION.search(said)
    if found is None:
        raise OutputNotUnderstood(PROGRAM, expected="a version", found=said)
    return found[1]


def guest_command(spec: GuestSpec, *, console: Path, visits_socket: int, control: int) -> tuple[str, ...]:
    """The whole command; `visits_socket` and `control` are file descriptors of connected sockets."""
    words = [
        PROGRAM,
        *_machine(spec.accelerator, spec.memory_bytes),
        *("-smp", str(spec.cpu_count)),
        *("-kernel", str(spec.image)),
        *("-initrd", str(spec.initramfs)),
        *("-append", _kernel_words(spec.accelerator, spec.counter_khz)),
        *("-chardev", f"file,id=console,path={_escaped(console)}"),
        *("-serial", "chardev:console"),
        *("-chardev", f"socket,id=control,fd={control}"),
        *("-mon", "chardev=control,mode=control"),
        *("-device", "virtio-serial-pci"),
        *("-chardev", f"socket,id=visits,fd={visits_socket}"),
        *("-device", f"virtserialport,chardev=visits,name={VISITS_PORT}"),
    ]
    for share in spec.shares:
        access = "" if share.writable else ",readonly=on"
        words += [
            *(
                "-fsdev",
                f"local,id={share.tag},path={_escaped(share.path)},security_model=none,multidevs=remap{access}",
            ),
            *("-device", f"virtio-9p-pci,fsdev={share.tag},mount_tag={share.tag}"),
        ]
    for disk in spec.disks:
        words += ["-blockdev", json.dumps(_node(disk)), "-device", _device(disk)]
    return tuple(words)


def trial_command(image: Path, *, console: int) -> tuple[str, ...]:
    """A kernel under KVM with nothing else, that says its version on the socket `console` early."""
    return (
        PROGRAM,
        *_machine(KVM, _TRIAL_MEMORY_BYTES),
        *("-kernel", str(image)),
        *("-append", "console=ttyS0 earlyprintk=ttyS0 panic=-1"),
        *("-chardev", f"socket,id=console,fd={console}"),
        *("-serial", "chardev:console"),
    )


def _machine(accelerator: str, memory_bytes: int) -> tuple[str, ...]:
    # q35: under TCG a microvm finds no clock to calibrate its own by, now and then.
    cpu = "host" if accelerator == KVM else "max"
    threads = "" if accelerator == KVM else ",thread=multi"
    return (
        *("-machine", "q35"),
        *("-accel", f"{accelerator}{threads}"),
        *("-cpu", cpu),
        *("-m", f"{memory_bytes // MIB}M"),
        *("-nodefaults", "-no-user-config"),
        *("-display", "none"),
        # With panic=-1 a panic ends QEMU at once.
        "-no-reboot",
    )


def _kernel_words(accelerator: str, counter_khz: int | None) -> str:
    words = ["console=ttyS0", "quiet", "panic=-1", "oops=panic"]
    # Since 6.8 a kernel may be built to mount nothing that is open for writing, and nobody writes to what is mounted (block/bdev.c). What
    # looks at a file system's device meanwhile would be taken for damage of it.
    words += ["bdev_allow_write_mounted=1"]
    if accelerator == TCG:
        # An emulated processor leaks nothing, and its watchdogs bark at the host's load.
        words += ["mitigations=off", "nokaslr", "nowatchdog", "tsc=reliable"]
        # On a busy host ten ticks do not come when they are counted, and the kernel would panic at its
        # boot ("IO-APIC + timer doesn't work"); QEMU's timer is known to be connected.
        words += ["no_timer_check"]
        if counter_khz is not None:
            # What the kernel measures itself on a busy host may be many times too low, and its clock runs so much too fast.
            words += [f"tsc_early_khz={counter_khz}"]
    return " ".join(words)


def _node(guest_disk: GuestDisk) -> dict[str, object]:
    """Direct I/O, so that the host's page cache is not measured; tmpfs has none to be had."""
    return {
        "driver": "raw",
        "node-name": guest_disk.serial,
        "cache": {"direct": not guest_disk.in_memory, "no-flush": False},
        "file": {
            "driver": "host_device" if _is_block_device(guest_disk.path) else "file",
            "filename": str(guest_disk.path),
            # Another guest on the same image is refused; without locks it would not be.
            "locking": "on",
            "cache": {"direct": not guest_disk.in_memory, "no-flush": False},
        },
    }


def _device(guest_disk: GuestDisk) -> str:
    # A discard would punch holes into the image, and filling them would be measured.
    return (
        f"virtio-blk-pci,id={guest_disk.serial},drive={guest_disk.serial},serial={guest_disk.serial},"
        "write-cache=on,discard=off,write-zeroes=off"
    )


def _is_block_device(path: Path) -> bool:
    try:
        return stat.S_ISBLK(path.stat().st_mode)
    except OSError:
        return False


def _escaped(path: Path) -> str:
    """A comma would end QEMU's option, two stand for one."""
    return str(path).replace(",", ",,")


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
            spec, console=console, visits_socket=their_visits.fileno(), control=their_control.fileno()
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

    def resize(self, guest_disk: GuestDisk) -> None:
        """Make the guest see the size that the image of a disk has now."""
        try:
            self._control.resize(guest_disk.serial, guest_disk.size_bytes)
        except (ControlFailed, OSError) as error:
            raise self._failure(f"the size of {guest_disk.serial} could not be changed: {error}") from error

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

    def _failure(self, symptom: str, *, booting: bool = False) -> GuestFailed:
        """The error that says it; the guest is ended first, so that its console is complete.

        Of one that ended by itself while `booting`, with the option that its kernel lacks.
        """
        self._process.end(gently=False)
        text = read_console(self.console)
        fatal = _FATAL.search(text)
        reasons = [f"the guest {symptom}{f': {fatal[0].strip()}' if fatal else ''}"]
        if booting:
            reasons += lacking_by_console(text)
        if self._process.output:
            reasons.append(f"QEMU said: {self._process.output[-2000:]}")
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


DEVICE = Path("/dev/kvm")

_TRIAL_S = 6.0
_SIGN = b"Linux version"


def known_accelerator(
    kernel: GuestKernel, *, qemu: str, cache_directory: Path, path: Path = DEVICE
) -> str | None:
    """`kvm` or `tcg` where that is known without a trial, else None. Starts nothing."""
    if not os.access(path, os.R_OK | os.W_OK):
        return TCG
    try:
        answer = json.loads(_answer_file(kernel, qemu, cache_directory).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    found = answer.get("accelerator") if isinstance(answer, dict) else None
    return found if found in {KVM, TCG} else None


def find_accelerator(
    kernel: GuestKernel,
    *,
    qemu: str,
    cache_directory: Path,
    ledger: Ledger,
    path: Path = DEVICE,
    trial: Callable[[Path, Ledger], bool] | None = None,
) -> str:
    """`kvm` or `tcg`, tried now where it is not known: six seconds if KVM hangs."""
    known = known_accelerator(kernel, qemu=qemu, cache_directory=cache_directory, path=path)
    if known is not None:
        return known
    found = KVM if (trial or kvm_works)(kernel.image, ledger) else TCG
    file = _answer_file(kernel, qemu, cache_directory)
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    temporary.write_text(json.dumps({"accelerator": found, "kernel": kernel.release, "qemu": qemu}))
    temporary.replace(file)
    return found


def kvm_works(image: Path, ledger: Ledger) -> bool:
    """Whether a kernel under KVM says its version within six seconds; its guest is gone afterwards."""
    ours, theirs = line_pair()
    with ours:
        qemu = QemuProcess(
            trial_command(image, console=theirs.fileno()),
            sockets=(theirs,),
            errors=ledger.directory / "kvm-trial.err",
            ledger=ledger,
        )
        try:
            return says_version(ours, deadline_s=_TRIAL_S)
        finally:
            qemu.end(gently=False)


def says_version(
    connection: socket.socket, *, deadline_s: float, clock: Callable[[], float] = time.monotonic
) -> bool:
    """Whether `Linux version` comes out of a console before its end and before the deadline."""
    give_up = clock() + deadline_s
    poller = select.poll()
    poller.register(connection, select.POLLIN)
    said = b""
    while (wait_s := give_up - clock()) > 0:
        if not poller.poll(wait_s * 1000):
            continue
        try:
            data = connection.recv(65536)
        except ConnectionResetError:
            return False
        if not data:
            return False
        said += data
        if _SIGN in said:
            return True
    return False


def _answer_file(kernel: GuestKernel, qemu: str, cache_directory: Path) -> Path:
    key = digest({"boot": boot_id(), "qemu": qemu, "kernel": kernel.digest})
    return cache_directory / "accelerators" / f"{key}.json"
