"""The emulated device with latency: the power-cut recorder without a log, in memory, under a loop device.

What a request takes there is the way through the loop device and user space, and what was drawn. So the way is measured first, on such a
device that adds nothing; what it takes is subtracted from what is drawn, and what cannot be kept within it is refused.
"""

from __future__ import annotations

import json
import math
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood, RequirementMissing, VerifyFailed
from bedplate.host.recorder import Recorder, RecorderSizes
from bedplate.host.tunables import restore, set_tunable
from bedplate.model.devices.latency import Latency, Law
from bedplate.model.visit import ReadBack
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bedplate.host.command import Commands
    from bedplate.host.devices.device import AttachedDevice
    from bedplate.host.ledger import Ledger

READ, WRITE, FLUSH = KINDS = ("read", "write", "flush")
_PROBED_BYTES = 64 * MIB
_PROBE_S = "1"
_PROBE_LIMIT_S = 30.0
_PROBED_DEPTH = 32
# Of what the way takes; the rest is for what others need of the processors meanwhile.
_BUSY_SHARE_MAX = 0.7
# The way of a busy moment is no property of the machine: a study must not end for it.
_TRIES = 3
# This share of requests may be shorter than the way here, and is then as long as the way.
_BELOW_THE_WAY = 0.1
# As much as the kernel hands to a file system in user space at once: a larger request would be two, each with its own time.
_LARGEST_REQUEST_KB = 1024


@dataclass(frozen=True)
class WayThere:
    """What the way to a device in user space and back takes on this machine, half of the time; and how many a second it takes at depth 32."""

    read_ns: float
    write_ns: float
    flush_ns: float
    reads_per_s: float
    writes_per_s: float

    def of(self, kind: str) -> float:
        """Of a read, a write or a flush, in ns."""
        return {READ: self.read_ns, WRITE: self.write_ns, FLUSH: self.flush_ns}[kind]

    @property
    def options(self) -> tuple[str, ...]:
        """What the device subtracts."""
        return tuple(word for kind in KINDS for word in (f"--{kind}-path-ns", f"{self.of(kind):.0f}"))

    @property
    def facts(self) -> dict[str, float]:
        """For the record, in microseconds and per second."""
        return {
            **{f"latency_way_us_{kind}": round(self.of(kind) / 1000, 1) for kind in KINDS},
            "latency_way_reads_per_s": round(self.reads_per_s),
            "latency_way_writes_per_s": round(self.writes_per_s),
        }


@dataclass(frozen=True)
class Probed:
    """One probe of a device: `ns_p50` and `ns_p99` from the asking to the answer of one request of 4 KiB."""

    count: int
    seconds: float
    ns_p50: float
    ns_p99: float

    @property
    def per_s(self) -> float:
        """Requests a second."""
        return self.count / self.seconds


def probe_device(driver: Path, device: str, kind: str, depth: int, commands: Commands) -> Probed:
    """One second of reads, writes (of its first 64 MiB) or flushes at this depth; needs root."""
    argv = [str(driver), "--probe", device, "--kind", kind, "--depth", str(depth), "--seconds", _PROBE_S]
    text = commands.run(argv, timeout_s=_PROBE_LIMIT_S).stdout
    try:
        found = json.loads(text)
        return Probed(
            int(found["count"]), float(found["seconds"]), float(found["ns_p50"]), float(found["ns_p99"])
        )
    except (ValueError, KeyError, TypeError) as error:
        raise OutputNotUnderstood("the probe of a device", expected="its document", found=text) from error


def way_there(driver: Path, folder: Path, *, ledger: Ledger, commands: Commands) -> WayThere:
    """Measured in some five seconds on a small device that adds nothing; `folder` is empty, on a tmpfs, and empty again afterwards."""
    sizes = RecorderSizes(disk_bytes=_PROBED_BYTES, log_limit_bytes=0)
    with ExitStack() as undo:
        recorder = undo.enter_context(
            Recorder.start(
                driver, folder, sizes, ledger=ledger, commands=commands, service=_NOTHING_ADDED.options
            )
        )
        device = _attached(recorder, undo)

        def probed(kind: str, depth: int) -> Probed:
            return probe_device(driver, device.path, kind, depth, commands)

        # Written first: a read of what was never written would be of no page.
        writes = probed(WRITE, _PROBED_DEPTH)
        return WayThere(
            read_ns=probed(READ, 1).ns_p50,
            write_ns=probed(WRITE, 1).ns_p50,
            flush_ns=probed(FLUSH, 1).ns_p50,
            reads_per_s=probed(READ, _PROBED_DEPTH).per_s,
            writes_per_s=writes.per_s,
        )


_NOTHING_ADDED = Latency("path", "0ms", "0ms", "0ms", queue_depth=64)


def refusals(latency: Latency, way: WayThere, *, share_max: float = _BUSY_SHARE_MAX) -> tuple[str, ...]:
    """Why this machine cannot be such a device; empty where it can. `share_max` of what goes through it may take."""
    if latency.is_path_alone:
        return ()
    reasons = []
    for kind in KINDS:
        words = getattr(latency, kind)
        short_ns = Law.parse(words).quantile_ns(_BELOW_THE_WAY)
        if short_ns < way.of(kind):
            reasons.append(
                f"latency {latency.name}: {kind} = {words!r} asks for answers within {short_ns / 1000:.0f} us, and the way through user "
                f"space takes {way.of(kind) / 1000:.0f} us here; ask for longer times, or measure on a real device"
            )
    for kind, most in ((READ, way.reads_per_s), (WRITE, way.writes_per_s)):
        wanted = latency.most_per_s(kind)
        if wanted > most * share_max:
            shown = "any number" if math.isinf(wanted) else f"{wanted:,.0f}"
            reasons.append(
                f"latency {latency.name}: at queue_depth = {latency.queue_depth} it would answer {shown} {kind}s a second, and user space "
                f"takes {most:,.0f} here, of which {most * share_max:,.0f} leave room to the database. Ask for a smaller "
                "queue_depth, longer times, or a limit with iops"
            )
    return tuple(reasons)


def fitting_way(
    latencies: Iterable[Latency], measure: Callable[[], WayThere], *, share_max: float = _BUSY_SHARE_MAX
) -> WayThere:
    """The way there, measured anew where it refuses one of these; RequirementMissing with every reason where it does so three times."""
    wanted, reasons = tuple(latencies), tuple[str, ...]()
    for _ in range(_TRIES):
        way = measure()
        reasons = tuple(
            reason for latency in wanted for reason in refusals(latency, way, share_max=share_max)
        )
        if not reasons:
            return way
    raise RequirementMissing(*reasons)


class LatencyDevice:
    """One that runs, attached. `folder` is on a tmpfs and empty; everything stands in the ledger."""

    def __init__(self, recorder: Recorder, latency: Latency, device: AttachedDevice, undo: ExitStack) -> None:
        self._recorder = recorder
        self._latency = latency
        self._undo = undo
        self.device = device

    @classmethod
    def start(
        cls,
        driver: Path,
        folder: Path,
        latency: Latency,
        size_bytes: int,
        way: WayThere,
        *,
        seed: int,
        ledger: Ledger,
        commands: Commands,
    ) -> LatencyDevice:
        """A blank one. RequirementMissing where this machine cannot be it, or lacks the memory."""
        # Asked with room before the first visit; a moment's neighbour is no reason to end a study. What is late then is counted.
        if reasons := refusals(latency, way, share_max=1.0):
            raise RequirementMissing(*reasons)
        service = (*latency.options, *(() if latency.is_path_alone else way.options), "--seed", str(seed))
        sizes = RecorderSizes(disk_bytes=size_bytes, log_limit_bytes=0)
        with ExitStack() as undo:
            recorder = undo.enter_context(
                Recorder.start(driver, folder, sizes, ledger=ledger, commands=commands, service=service)
            )
            device = _attached(recorder, undo)
            largest = device.queue / "max_sectors_kb"
            if int(largest.read_text()) > _LARGEST_REQUEST_KB:
                tuned = set_tunable(largest, str(_LARGEST_REQUEST_KB), ledger=ledger)
                undo.callback(restore, tuned, ledger=ledger)
            return cls(recorder, latency, device, undo.pop_all())

    @property
    def pid(self) -> int:
        """The process behind it, whose memory is the device's."""
        return self._recorder.pid

    @property
    def read_back(self) -> ReadBack:
        """What was asked, and what the running device was started with."""
        words = (Path("/proc") / str(self.pid) / "cmdline").read_text(encoding="utf-8").split("\0")
        asked = self._latency.options
        found = [words[words.index(name) + 1] if name in words else "" for name in asked[::2]]
        effective = " ".join(word for pair in zip(asked[::2], found, strict=True) for word in pair)
        wanted = " ".join(asked)
        return ReadBack("device.latency", wanted, effective, f"/proc/{self.pid}/cmdline", wanted == effective)

    @property
    def status_file(self) -> Path:
        """Where its counters are read."""
        return self._recorder.status_file

    def stop(self) -> None:
        """Detach and end it; what it held is gone. Safe to repeat."""
        self._undo.close()


def _attached(recorder: Recorder, undo: ExitStack) -> AttachedDevice:
    device = recorder.attach(recorder.disk)
    undo.callback(recorder.detach, device)
    if (device.queue.parent / "loop/dio").read_text().strip() != "1":
        raise VerifyFailed(
            f"{device.path} over {recorder.disk} does not do direct I/O, so it would hand over one request at a time; a newer kernel does"
        )
    return device
