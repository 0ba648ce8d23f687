"""The digests of the images of a made-up log, on this kernel: `images_of_cuts.py` DIRECTORY, which is on tmpfs.

Standard library and bedplate only: it runs in a guest, too.
"""

from __future__ import annotations

import hashlib
import random
import sys
from functools import partial
from pathlib import Path

from tests.support.tools.written_log import DISCARD, FLUSH, FUA, MARK, Written, written_log

from bedplate.cuts.choice import building_order, choose_points
from bedplate.cuts.log import read_log
from bedplate.cuts.records import Profile
from bedplate.units import MIB
from bedplate.workloads.power_cut.bench import ImageBuilder, rebuild

_SIZES = (8 * MIB, 2 * MIB)
_WINDOW_BYTES = 256 * 1024


def entries() -> list[Written]:
    """Writes of all sizes on both devices, now and then a flush, FUA, a discard, a mark."""
    draw = random.Random(1)
    made: list[Written] = []
    for number in range(400):
        device = int(draw.random() < 0.3)
        sector = draw.randrange(_SIZES[device] // 512 - 64)
        flags = draw.choices([0, FLUSH, FUA, DISCARD, MARK], [80, 4, 4, 4, 8])[0]
        if flags == MARK:
            made.append(Written(flags=MARK, text=f"A 0 {number} {number}".encode()))
        elif flags == DISCARD:
            made.append(Written(device, sector, flags=DISCARD, discarded_sectors=draw.randint(1, 64)))
        else:
            data = draw.randbytes(512 * draw.randint(1, 64)) if draw.random() < 0.9 else bytes(16384)
            made.append(Written(device, sector, data, flags))
    return made


def digests(directory: Path) -> list[str]:
    """One for each point and device; a rebuilding that differs says so in its place."""
    found = []
    with read_log(written_log(directory / "made.log", entries())) as log:
        points = choose_points(
            log,
            points=10,
            profiles=list(Profile),
            seed=1,
            measured_from=50,
            window_bytes=_WINDOW_BYTES,
            controls=2,
        )
        builder_of = partial(ImageBuilder, window_bytes=_WINDOW_BYTES, measured_from=50)
        rebuilding = partial(rebuild, window_bytes=_WINDOW_BYTES, measured_from=50)
        again = directory / "again"
        again.mkdir()
        with builder_of(log, directory, _SIZES) as builder:
            for point in building_order(points):
                built = builder.build(point, directory)
                rebuilt = rebuilding(log, point, again, _SIZES)
                for one, other in zip(built.images, rebuilt.images, strict=True):
                    content = one.read_bytes()
                    same = content == other.read_bytes()
                    found.append(
                        hashlib.sha256(content).hexdigest() if same else f"{point} was rebuilt otherwise"
                    )
    return found


if __name__ == "__main__":
    print("\n".join(digests(Path(sys.argv[1]))))
