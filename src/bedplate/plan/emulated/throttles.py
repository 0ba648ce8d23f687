"""Named slower devices: what each limits, and where its figures come from.

All of them are emulated: the kernel's block throttling limits I/Os and bytes per second, and
neither the latency of a single I/O nor that of a flush. A flush counts as one write I/O.
"""

from __future__ import annotations

from collections.abc import Mapping

from bedplate.model.cell import Throttle
from bedplate.units import MIB

_MEGABYTE = 1_000_000  # data sheets count in powers of ten

THROTTLES: Mapping[str, Throttle] = {
    throttle.name: throttle
    for throttle in (
        # A 3.5-inch disk at 7200 rpm: 4.16 ms of rotation and 8.5 ms of seek are 79 random I/Os a
        # second one at a time, about 150 when the drive reorders ten of them (NCQ); data sheets of
        # 2009 to 2013 (Barracuda 7200.12 to 7200.14) give 125 to 156 MB/s.
        Throttle("hdd-7200", 150, 150, 125 * _MEGABYTE, 125 * _MEGABYTE),
        # The data sheet of a Samsung 870 EVO: 98 000 and 88 000 IOPS at queue depth 32, 560 and
        # 530 MB/s. Within its cache; sustained writes of a full drive are slower.
        Throttle("sata-ssd", 98_000, 88_000, 560 * _MEGABYTE, 530 * _MEGABYTE),
        # An Amazon EBS gp3 volume as it comes: 3000 IOPS and 125 MiB/s. The volume counts reads and
        # writes together, the kernel's limits apart: a mixed load gets up to twice as much here.
        Throttle("cloud-volume", 3000, 3000, 125 * MIB, 125 * MIB),
    )
}
