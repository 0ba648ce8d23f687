"""What this machine cannot be is refused with the numbers that say so."""

from __future__ import annotations

from bedplate.host.recorder import WayThere, refusals
from bedplate.model.devices import Latency
from bedplate.plan.values import LATENCIES, faster

WAY = WayThere(read_ns=100_000, write_ns=90_000, flush_ns=80_000, reads_per_s=30_000, writes_per_s=20_000)


def test_what_the_way_there_allows_is_not_refused() -> None:
    assert () == refusals(Latency("slow", "1ms", "1ms", "2ms", queue_depth=8), WAY)
    assert () == refusals(LATENCIES["gp3"], WAY)
    assert () == refusals(LATENCIES["hdd-7200"], WAY)
    assert () == refusals(LATENCIES["path"], WAY)
    assert () == refusals(LATENCIES["hdd-7200-2011"], WAY)


def test_a_time_below_the_way_there_is_refused() -> None:
    (reason,) = refusals(Latency("fast", "0.05ms", "1ms", "2ms", queue_depth=1), WAY)
    assert "read = '0.05ms' asks for answers within 50 us" in reason
    assert "takes 100 us here" in reason
    # The median is above it, a tenth of all is not.
    (reason,) = refusals(Latency("wide", "1ms", "lognormal 0.2ms 2", "2ms", queue_depth=1), WAY)
    assert "write = 'lognormal 0.2ms 2'" in reason


def test_more_a_second_than_the_way_there_takes_is_refused() -> None:
    reads, writes = refusals(Latency("deep", "1ms", "1ms", "2ms", queue_depth=32), WAY)
    assert "32,000 reads a second" in reads
    assert "takes 30,000 here, of which 21,000" in reads
    assert "32,000 writes a second" in writes
    assert () == refusals(Latency("limited", "1ms", "1ms", "2ms", queue_depth=32, iops=3000), WAY)


def test_a_disk_whose_heads_are_faster_than_the_way_there_is_refused() -> None:
    assert () == refusals(faster(LATENCIES["hdd-7200-2011"], 8), WAY)
    (reason,) = refusals(faster(LATENCIES["hdd-7200-2011"], 10), WAY)
    assert "shortest seek takes 80 us" in reason
    assert "speed = 8 is the most" in reason


def test_the_way_there_is_what_the_device_subtracts() -> None:
    assert (
        *("--read-path-ns", "100000", "--write-path-ns", "90000"),
        *("--flush-path-ns", "80000"),
    ) == WAY.options
    assert 100.0 == WAY.facts["latency_way_us_read"]
