"""How fast the image of a power cut is built: a 512 MiB disk with 100 MB on it, in memory.

    ./benchmarks/run power_cut_images [--folder /dev/shm] [--points 60] [--data-mb 100]

The log is made up: as much as an initdb leaves, then clients whose transactions write a block of WAL and a few
pages, with a flush after each, or with none at all. Each profile's points are built in the builder's order, one over the other
as a worker does. Beside them: reading the log, choosing points.
"""

from __future__ import annotations

import argparse
import random
import statistics
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "src"))

from bedplate.cuts.choice import building_order, choose_points  # noqa: E402
from bedplate.cuts.log import FLUSH, MARK, read_log  # noqa: E402
from bedplate.cuts.records import Profile  # noqa: E402
from bedplate.units import MIB  # noqa: E402
from bedplate.workloads.power_cut.bench import ImageBuilder  # noqa: E402

if TYPE_CHECKING:
    from bedplate.cuts.log import Log

SIZE = 512 * MIB
WINDOW = 8 * MIB
EXTENT = 256 * 1024
TRANSACTIONS = 8000


def write_log(path: Path, data_bytes: int, *, flushes: bool) -> int:
    """A log as described; the entry at which the clients begin."""
    draw = random.Random(1)  # noqa: S311
    extents = draw.sample(range(0, SIZE, EXTENT), data_bytes // EXTENT)
    block = draw.randbytes(EXTENT)
    count = 0

    with path.open("wb") as log:

        def entry(offset: int = 0, data: bytes = b"", flags: int = 0, text: bytes = b"") -> None:
            nonlocal count
            count += 1
            head = struct.pack("<QQQQ", offset // 512, len(data) // 512, flags, len(text))
            log.write((head + (text or struct.pack("<QI", count * 1000, 0))).ljust(512, b"\0") + data)

        log.write(bytes(512))
        for offset in extents:
            entry(offset, block)
        entry(flags=FLUSH)
        begins = count
        for number in range(TRANSACTIONS):
            entry(extents[0] + number % 32 * 8192, block[:8192])
            if flushes:
                entry(flags=FLUSH)
            for _ in range(2):
                entry(draw.choice(extents) + draw.randrange(32) * 8192, block[:8192])
            entry(flags=MARK, text=f"A {number % 2} {number // 2} {count}".encode())
        log.seek(0)
        log.write(struct.pack("<QQQI", 0x6A736677736872, 1, count, 512))
    return begins


def build_all(
    log: Log, folder: Path, profile: Profile, points: int, begins: int
) -> tuple[list[float], list[float]]:
    """Milliseconds by the clock and of this processor for each point but the first, which also brings the durable image up to the clients."""
    chosen = choose_points(
        log,
        points=points + 1,
        profiles=[profile],
        seed=1,
        measured_from=begins,
        window_bytes=WINDOW,
        controls=0,
    )
    took, worked = [], []
    with ImageBuilder(log, folder, [SIZE], window_bytes=WINDOW, measured_from=begins) as builder:
        for point in building_order(chosen):
            start, start_cpu = time.perf_counter(), time.process_time()
            builder.build(point, folder)
            took.append(1000 * (time.perf_counter() - start))
            worked.append(1000 * (time.process_time() - start_cpu))
    (folder / "disk").unlink()
    return took[1:], worked[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"))
    parser.add_argument("--points", type=int, default=60)
    parser.add_argument("--data-mb", type=int, default=100)
    options = parser.parse_args()
    print(f"{options.points} points each, {options.data_mb} MB of data, window {WINDOW // MIB} MiB\n")
    with tempfile.TemporaryDirectory(dir=options.folder) as made:
        folder = Path(made)
        for flushes in (True, False):
            path = folder / "log"
            begins = write_log(path, options.data_mb * 10**6, flushes=flushes)
            start = time.perf_counter()
            with read_log(path) as log:
                read_s = time.perf_counter() - start
                start = time.perf_counter()
                choose_points(
                    log,
                    points=200,
                    profiles=list(Profile),
                    seed=1,
                    measured_from=begins,
                    window_bytes=WINDOW,
                    controls=6,
                )
                choose_s = time.perf_counter() - start
                print(
                    f"{'a flush for each transaction' if flushes else 'no flush at all'}: {len(log)} entries, "
                    f"{path.stat().st_size / 1e6:.0f} MB; read in {read_s:.2f} s, chosen in {choose_s:.2f} s"
                )
                for profile in Profile:
                    took, worked = build_all(log, folder, profile, options.points, begins)
                    print(
                        f"  {profile.value:<10} median {statistics.median(took):6.1f} ms "
                        f"(processor {statistics.median(worked):6.1f}), "
                        f"90 % {statistics.quantiles(took, n=10)[-1]:6.1f} ms, most {max(took):6.1f} ms"
                    )


if __name__ == "__main__":
    main()
