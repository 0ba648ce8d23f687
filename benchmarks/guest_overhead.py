"""What does a guest cost? Seconds per visit with one and with eight visits per boot.

    ./benchmarks/run guest_overhead [--rounds 2] [--visits 8] [--kernel 6.12]

Needs no root. The visits are handed over whole (image, boot, request, Python in the guest, record), make and mount
ext4, and have no database and no run. The seconds that they take themselves are subtracted: what is left is what a guest adds to every
visit. Both arrangements alternate. Printed per visit: writing the image, the boot's share, and the hand-over, which
is the wall time of all that is neither of these nor the visit's own.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bedplate.executors.qemu.kernels import ensure_kernel
from bedplate.executors.qemu.runner import GuestRunner
from bedplate.executors.qemu.slot import GuestSlot
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory
from bedplate.model import codec
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    Dataset,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
)
from bedplate.model.engines import NO_ENGINE
from bedplate.model.levels import Levels
from bedplate.model.visit import (
    FORMAT_VERSION,
    Outcome,
    ScratchDevice,
    VisitKey,
    VisitRecord,
    VisitRequest,
)
from bedplate.units import MIB, format_size
from machine import print_machine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.model.levels import Scalar

IMAGE_BYTES = 512 * MIB


@dataclass(frozen=True)
class Cost:
    """Seconds of one visit, by what they went into."""

    image_s: float
    boot_s: float
    hand_over_s: float
    own_s: float


class Clock:
    """Notes when each step of a visit began."""

    def __init__(self) -> None:
        self.began = {"": time.monotonic()}

    def hear(self, event: Mapping[str, Scalar]) -> None:
        """Keep the first moment of each step."""
        if event["event"] == "step":
            self.began.setdefault(str(event["step"]), time.monotonic())

    def cost(self, own_s: float) -> Cost:
        """What the visit cost that ends now, `own_s` of it by itself."""
        end = time.monotonic()
        disks, hand_over = self.began["disks"], self.began["hand-over"]
        # A guest that is there already was not booted for this visit.
        boot = self.began.get("boot", hand_over)
        return Cost(boot - disks, hand_over - boot, disks - self.began[""] + end - hand_over - own_s, own_s)


def main() -> None:
    """Run both arrangements in turn and print their medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--visits", type=int, default=8)
    parser.add_argument("--kernel")
    given = parser.parse_args()
    print_machine()
    kernel = ensure_kernel(
        given.kernel, cache_directory=cache_directory(), commands=Commands(), progress=print
    )
    base = Path(tempfile.mkdtemp(prefix="bedplate-guest-overhead-"))
    executor = GuestRunner(GuestSlot(base / "place", state_directory=base / "state"))
    costs: dict[str, list[Cost]] = {}
    accelerator = ""
    try:
        for number in range(given.rounds):
            for name, boot in (("one visit per boot", None), (f"{given.visits} visits per boot", number)):
                for _ in range(given.visits):
                    cost, accelerator = _visit(executor, base, given.kernel, boot)
                    costs.setdefault(name, []).append(cost)
    finally:
        executor.close()
        shutil.rmtree(base)
    print(f"guest kernel {kernel.release}, {accelerator}, image of {format_size(IMAGE_BYTES)}")
    _report(costs)


def _report(costs: Mapping[str, list[Cost]]) -> None:
    print(f"{'':<24} {'visits':>6} {'image':>7} {'boot':>7} {'hand-over':>10} {'together':>9}   s per visit")
    for name, found in costs.items():
        boot_s = sum(cost.boot_s for cost in found) / len(found)
        image_s = median(cost.image_s for cost in found)
        hand_over_s = median(cost.hand_over_s for cost in found)
        together = image_s + boot_s + hand_over_s
        print(
            f"{name:<24} {len(found):>6} {image_s:>7.1f} {boot_s:>7.1f} {hand_over_s:>10.1f} {together:>9.1f}"
        )
    visits = [cost for found in costs.values() for cost in found]
    booted = [cost.boot_s for cost in visits if cost.boot_s > 0]
    print(
        f"a boot alone: {min(booted):.1f} to {max(booted):.1f} s, median {median(booted):.1f} s of {len(booted)}"
    )
    first = [cost.hand_over_s for cost in visits if cost.boot_s > 0]
    later = [cost.hand_over_s for cost in visits if cost.boot_s == 0]
    print(f"a hand-over:  median {median(first):.1f} s right after a boot", end="")
    print(f", {median(later):.1f} s to a guest that has served one" if later else "")


def _visit(executor: GuestRunner, base: Path, release: str | None, boot: int | None) -> tuple[Cost, str]:
    directory = Path(tempfile.mkdtemp(prefix="visit-", dir=base))
    clock = Clock()
    executor.run_visit(_request(base, release), directory, clock.hear, boot=boot)
    record = codec.read(VisitRecord, directory / "visit.json")
    if record.outcome is not Outcome.COMPLETED:
        raise SystemExit("\n".join(map(str, record.reasons)))
    return clock.cost(record.seconds), record.provenance["accelerator"]


def _request(base: Path, release: str | None) -> VisitRequest:
    cell = Cell(
        DeviceLevels(),
        KernelLevels(release),
        FilesystemLevels("ext4"),
        BuildLevels.unbuilt(NO_ENGINE),
        ClusterLevels(),
    )
    return VisitRequest(
        format_version=FORMAT_VERSION,
        key=VisitKey(cell.id, "benchmark", 1, 1),
        cell=cell,
        dataset=Dataset("fio", Levels()),
        runs=(),
        scratch_device=ScratchDevice(image_bytes=IMAGE_BYTES, image_directory=str(base)),
        build=None,
        native_drivers={},
        state_directory=str(base / "state"),
        seed=1,
    )


if __name__ == "__main__":
    main()
