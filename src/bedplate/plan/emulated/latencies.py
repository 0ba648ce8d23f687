"""Named devices with latency: what each takes, and where its figures come from.

All of them are emulated, and none was measured by bedplate. `bedplate device measure` makes such a line of a real disk.
"""

from __future__ import annotations

from collections.abc import Mapping

from bedplate.model.devices.latency import Latency
from bedplate.units import MIB

_MEGABYTE = 1_000_000  # data sheets count in powers of ten

LATENCIES: Mapping[str, Latency] = {
    latency.name: latency
    for latency in (
        # Nothing is added: the way through user space alone, as what the others are compared with.
        Latency("path", "0ms", "0ms", "0ms", queue_depth=64),
        # An Amazon EBS gp3 volume as it comes: 3000 IOPS and 125 MiB/s, reads and writes together, "single-digit
        # millisecond latency" (Amazon EBS User Guide). The times are a convention of bedplate within that.
        Latency(
            "gp3",
            "lognormal 0.6ms 1.3",
            "lognormal 0.8ms 1.3",
            "lognormal 0.8ms 1.3",
            queue_depth=32,
            iops=3000,
            bytes_per_s=125 * MIB,
        ),
        # A 3.5-inch disk at 7200 rpm: 8.5 ms of seek and 4.16 ms of rotation are 12.7 ms on average; a flush waits for
        # half a turn to a whole one. Two at once are the 150 random I/Os a second that reordering ten makes (NCQ).
        Latency(
            "hdd-7200",
            "uniform 4.3ms 21ms",
            "uniform 4.3ms 21ms",
            "uniform 4.2ms 12.5ms",
            queue_depth=2,
            sequential="0.3ms",
            bytes_per_s=125 * _MEGABYTE,
        ),
        # A SATA SSD at work: a convention of bedplate. One at rest reads 4 KiB in 0.08 ms, which no device in user
        # space can do; IOPS and bandwidth are the lower ones of the data sheet of a Samsung 870 EVO.
        Latency(
            "sata-ssd",
            "lognormal 0.3ms 1.4",
            "lognormal 0.3ms 1.4",
            "lognormal 2ms 1.5",
            queue_depth=32,
            iops=88_000,
            bytes_per_s=530 * _MEGABYTE,
        ),
    )
}
