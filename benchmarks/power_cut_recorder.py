"""What recording costs: a loop device above the power-cut recorder beside one above a plain file, both on tmpfs.

Synchronous writes to ext4 (4 KiB and fsync(2)), and direct writes to the device itself, small and large, in
interleaved rounds. The recorder's processor time for each entry, and the memory that it takes, are its own counters.

    benchmarks/run power_cut_recorder [--rounds 5] [--seconds 2] [--folder /dev/shm]
"""

from __future__ import annotations

import argparse
import mmap
import os
import statistics
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.host.command import Commands
from bedplate.host.ledger import Ledger
from bedplate.host.native_driver import LIBFUSE3, ensure_driver
from bedplate.host.recorder import DRIVER, Recorder, RecorderSizes
from bedplate.host.scratch_device import attach_loop, detach_loop
from bedplate.units import GIB, KIB, MIB
from machine import print_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPOSITORY = Path(__file__).resolve().parent.parent
DISK_BYTES = 512 * MIB
LARGE_BYTES = 1 * MIB
SMALL_BYTES = 4 * KIB
# Room for what is logged in a round: large writes are as fast as memory.
LOG_BYTES = 4 * GIB
PLAIN, RECORDED = "plain loop", "recorded"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Place:
    """Where a round works: a device, the ext4 on it, and who records it."""

    device: str
    mount: Path
    recorder: Recorder | None


@dataclass(frozen=True)
class Cost:
    """What the recorder itself took in one round."""

    cpu_us_per_entry: float
    resident_bytes_max: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"))
    given = parser.parse_args()
    print_machine()
    driver = ensure_driver(
        DRIVER,
        source=REPOSITORY / "drivers" / f"{DRIVER}.c",
        cache_directory=Path(tempfile.gettempdir()) / "bedplate-benchmark-drivers",
        commands=Commands(),
        libraries=(LIBFUSE3,),
    )
    measures: dict[str, Callable[[Place, float], float]] = {
        "fsync(2) on ext4, per s": fsyncs_per_s,
        "direct 4 KiB writes, per s": lambda place, seconds: writes_per_s(place, seconds, SMALL_BYTES),
        "direct 1 MiB writes, per s": lambda place, seconds: writes_per_s(place, seconds, LARGE_BYTES),
    }
    found: dict[str, dict[str, list[float]]] = {name: {PLAIN: [], RECORDED: []} for name in measures}
    costs: dict[str, list[Cost]] = {name: [] for name in measures}
    for _ in range(given.rounds):
        for name, measure in measures.items():
            # Large writes fill a log of this size in a second or two.
            seconds = given.seconds if "1 MiB" not in name else min(given.seconds, 0.5)
            for how, place_of in ((PLAIN, plain), (RECORDED, recorded)):
                with place_of(given.folder, driver) as place:
                    found[name][how].append(measure(place, seconds))
                    if place.recorder is not None:
                        costs[name].append(cost_of(place.recorder))
    for name, rates in found.items():
        show(name, rates, costs[name])


def show(name: str, rates: dict[str, list[float]], costs: list[Cost]) -> None:
    """Medians of the rounds, their range, and the recorder's share."""
    for how, values in rates.items():
        print(
            f"{name:28} {how:11} {statistics.median(values):10,.0f}  ({min(values):,.0f}-{max(values):,.0f})"
        )
    share = statistics.median(rates[RECORDED]) / statistics.median(rates[PLAIN])
    cpu_us = statistics.median(cost.cpu_us_per_entry for cost in costs)
    resident = max(cost.resident_bytes_max for cost in costs)
    print(
        f"{'':28} {share:.2f} of plain; {cpu_us:.1f} us of CPU per entry, {resident / MIB:.1f} MiB resident at most"
    )


@contextmanager
def plain(folder: Path, _driver: Path) -> Iterator[Place]:
    """A loop device above a sparse file."""
    with ExitStack() as undo:
        base, ledger, commands = _place(folder, undo)
        image = base / "image"
        with image.open("xb") as file:
            file.truncate(DISK_BYTES)
        device = attach_loop(image, ledger=ledger, commands=commands, in_memory=True)
        undo.callback(detach_loop, device, ledger=ledger, commands=commands)
        yield Place(device.path, _mounted(device.path, base, commands, undo), None)


@contextmanager
def recorded(folder: Path, driver: Path) -> Iterator[Place]:
    """A loop device above the recorder."""
    with ExitStack() as undo:
        base, ledger, commands = _place(folder, undo)
        (base / "recording").mkdir()
        sizes = RecorderSizes(DISK_BYTES, LOG_BYTES)
        recorder = undo.enter_context(
            Recorder.start(driver, base / "recording", sizes, ledger=ledger, commands=commands)
        )
        device = recorder.attach(recorder.disk)
        undo.callback(recorder.detach, device)
        yield Place(device.path, _mounted(device.path, base, commands, undo), recorder)


def _place(folder: Path, undo: ExitStack) -> tuple[Path, Ledger, Commands]:
    base = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="bedplate-recorder-", dir=folder)))
    return base, undo.enter_context(Ledger.open(base / "state", "benchmark")), Commands()


def _mounted(device: str, base: Path, commands: Commands, undo: ExitStack) -> Path:
    target = base / "mount"
    target.mkdir()
    lazy = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
    commands.run(["mkfs.ext4", "-q", "-E", lazy, device])
    commands.run(["mount", device, str(target)])
    undo.callback(commands.run, ["umount", str(target)])
    return target


def fsyncs_per_s(place: Place, seconds: float) -> float:
    """4 KiB appended and brought to the medium, one after the other."""
    file = os.open(place.mount / "file", os.O_WRONLY | os.O_CREAT)
    try:
        block, count = os.urandom(SMALL_BYTES), 0
        begun = time.monotonic()
        while (elapsed := time.monotonic() - begun) < seconds:
            os.write(file, block)
            os.fsync(file)
            count += 1
        return count / elapsed
    finally:
        os.close(file)


def writes_per_s(place: Place, seconds: float, size: int) -> float:
    """Past the page cache, one after the other, into a file that has its blocks."""
    path = place.mount / "blocks"
    with path.open("xb") as file:
        os.posix_fallocate(file.fileno(), 0, 64 * MIB)
        file.write(bytes(64 * MIB))
        os.fsync(file.fileno())
    file_number = os.open(path, os.O_WRONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, size) as block:
            block[:] = os.urandom(size)
            count, begun = 0, time.monotonic()
            while (elapsed := time.monotonic() - begun) < seconds:
                os.pwritev(file_number, [block], count * size % (64 * MIB))
                count += 1
            return count / elapsed
    finally:
        os.close(file_number)


def cost_of(recorder: Recorder) -> Cost:
    """From the kernel's counters of its process."""
    proc = Path("/proc") / str(recorder.pid)
    fields = (proc / "stat").read_text().rpartition(")")[2].split()
    cpu_s = (int(fields[11]) + int(fields[12])) / TICKS_PER_S
    lines = (proc / "status").read_text().splitlines()
    peak_kib = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return Cost(cpu_s * 1e6 / recorder.status().entries, peak_kib * KIB)


if __name__ == "__main__":
    main()
