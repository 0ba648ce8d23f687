"""A real disk as a profile of a device with latency: what fio finds at depths 1 to 32, and the line of a plan that comes of it.

Reads need no more than the device's name. Writes and flushes are measured where the device may be erased, and left out where not: absent
is not zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood
from bedplate.host.requirement import Need
from bedplate.model.devices.latency import MOST_FACTOR, MOST_PLACES, Law
from bedplate.workloads.fio.command import fio_path
from bedplate.workloads.fio.measured_syncs import measure_syncs
from bedplate.workloads.fio.output import parse_fio_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.host.command import Commands

FIO = Need("fio", "fio", "measures a disk at several depths")
DEPTHS = (1, 2, 4, 8, 16, 32)
READ, WRITE, FLUSH = "read", "write", "flush"
_MORE_S = 60.0
# How many standard deviations of the logarithm the 99th percentile lies above the median.
_DEVIATIONS = NormalDist().inv_cdf(0.99)
# Twice the requests at twice the depth are two places; a little more at twice the depth is a queue.
_STILL_GROWS = 1.1


@dataclass(frozen=True)
class AtDepth:
    """What requests of 4 KiB took at one depth; `per_s` are those of all places together."""

    kind: str
    depth: int
    p50_us: float
    p99_us: float
    per_s: float


def fio_argv(device: str, kind: str, depth: int, seconds: int) -> list[str]:
    """Random requests of 4 KiB over the whole device, past all caches; of a flush, one behind each write."""
    rw = "randread" if kind == READ else "randwrite"
    return [
        *("fio", "--name=bedplate", f"--filename={fio_path(device)}", f"--rw={rw}", "--bs=4k", "--direct=1"),
        *(f"--iodepth={depth}", f"--runtime={seconds}", "--time_based", "--randrepeat=0"),
        *("--output-format=json", "--percentile_list=50:99"),
        *(("--ioengine=psync", "--fdatasync=1") if kind == FLUSH else ("--ioengine=libaio",)),
        # fio itself then refuses to write.
        *(("--readonly",) if kind == READ else ()),
    ]


def parse_fio(text: str, kind: str, depth: int) -> AtDepth:
    """Of fio's JSON; OutputNotUnderstood quotes what is none, or has no request of this kind."""
    job = parse_fio_result(text).jobs[0]
    side = job.read if kind == READ else job.write
    times = None if side is None else job.sync if kind == FLUSH else side.clat
    p50, p99 = (None, None) if times is None else map(times.latency_ms, (50.0, 99.0))
    if side is None or times is None or p50 is None or p99 is None or not side.runtime_s:
        raise OutputNotUnderstood("fio", expected=f"figures of each {kind}", found=text)
    return AtDepth(kind, depth, p50 * 1000, p99 * 1000, times.operations / side.runtime_s)


def law_of(found: AtDepth) -> Law:
    """A lognormal law with that median and 99th percentile; a constant where they are one."""
    spread = max(1.0, found.p99_us / found.p50_us) if found.p50_us else 1.0
    factor = min(MOST_FACTOR, round(spread ** (1 / _DEVIATIONS), 2))
    median = f"{found.p50_us:.0f}us"
    return Law.parse(f"lognormal {median} {factor:g}" if factor > 1 else median)


def places_of(found: Sequence[AtDepth]) -> int:
    """How many requests are served at once: as many as the throughput is times that of one."""
    alone = next(each.per_s for each in found if each.depth == 1)
    return max(1, min(MOST_PLACES, round(max(each.per_s for each in found) / alone)))


class FioMeter:
    """The role of a program that measures a disk by itself."""

    need = FIO
    reads_alone = (READ,)
    all_kinds = (READ, WRITE, FLUSH)
    measure_syncs = staticmethod(measure_syncs)

    def measure(
        self, device: str, kinds: Sequence[str], seconds: int, commands: Commands
    ) -> tuple[AtDepth, ...]:
        """Reads at every depth, and writes and flushes where they are asked for. WHAT IS ON THE DEVICE IS OVERWRITTEN by those."""
        return tuple(
            parse_fio(
                commands.run(fio_argv(device, kind, depth, seconds), timeout_s=seconds + _MORE_S).stdout,
                kind,
                depth,
            )
            for kind in kinds
            for depth in ((1,) if kind == FLUSH else DEPTHS)
        )

    def plan_line(self, found: Sequence[AtDepth]) -> str:
        """`latency = { … }` of what was measured; a plan asks for what is missing."""
        words = []
        for kind in self.all_kinds:
            first = next((each for each in found if (each.kind, each.depth) == (kind, 1)), None)
            if first is not None:
                words.append(f'{kind} = "{law_of(first).words}"')
        reads = [each for each in found if each.kind == READ]
        return f"latency = {{ {', '.join([*words, f'queue_depth = {places_of(reads)}'])} }}"


MEASURED_DISK = FioMeter()
