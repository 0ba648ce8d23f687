"""A device with latency as a plan asks for it, and what cannot be."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bedplate.errors import PlanError
from bedplate.model.devices import Disk, Latency
from bedplate.model.plan import Plan
from bedplate.plan.expand import expand
from bedplate.plan.rules import QEMU, Platform
from bedplate.plan.values import LATENCIES
from bedplate.units import MIB

LoadText = Callable[[str], Plan]
Edited = Callable[[str, str], str]


def test_named_and_explicit_latencies_are_levels(load_text: LoadText, edited: Edited) -> None:
    own = '{ read = "lognormal 0.5 ms 1.3", write = "1ms", flush = "2ms", queue_depth = 8, stall = "200ms every 30s", bandwidth = "1 MB" }'
    plan = load_text(edited(f'latency = {{ vary = ["gp3", {own}] }}', "scratch_device"))
    name = (
        "custom read lognormal 0.5ms 1.3, write 1ms, flush 2ms, queue_depth 8, bandwidth 1048576, "
        "stall 200ms every 30s"
    )
    expected = Latency(
        name, "lognormal 0.5ms 1.3", "1ms", "2ms", 8, bytes_per_s=2**20, stall="200ms every 30s"
    )
    assert [LATENCIES["gp3"], expected] == [device.latency for device in plan.devices]
    levels = next(iter(plan.cells())).levels
    assert ("gp3", 3000) == (levels["device.latency"], levels["device.latency.iops"])


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('latency = "floppy"', "gp3"),
        ("latency = {}", "gp3"),
        ('latency = { read = "1ms" }', "write: missing"),
        ('latency = { read = "1", write = "1ms", flush = "1ms" }', "is no time"),
        ('latency = { read = "1ms", write = "1ms", flush = 2 }', "write a text with a unit"),
        ('latency = { read = "1ms", write = "1ms", flush = "1ms", queue_depth = 65 }', "from 1 to 64"),
        ('latency = { read = "1ms", write = "1ms", flush = "1ms", jitter = "1ms" }', "unknown key"),
    ],
)
def test_what_no_device_has_is_refused_by_name(
    load_text: LoadText, edited: Edited, line: str, told: str
) -> None:
    with pytest.raises(PlanError, match=r"scratch_device\.latency") as caught:
        load_text(edited(line, "scratch_device"))
    assert told in str(caught.value)


def test_a_real_device_has_its_own_latency(load_text: LoadText, minimal: str) -> None:
    text = minimal.replace('image_size = "4 GB"', 'device = "/dev/disk/by-id/ata-x"\nlatency = "gp3"')
    with pytest.raises(PlanError, match="data is in memory"):
        load_text(text)


def test_guests_have_none(load_text: LoadText, edited: Edited) -> None:
    plan = load_text(edited('latency = "gp3"', "scratch_device"))
    assert not expand(plan, None).pruned
    found = expand(plan, None, platform=Platform(QEMU))
    assert not found.cells
    assert {"latency-impossible"} == {reason.code for cell in found.pruned for reason in cell.reasons}


def test_a_workload_with_a_disk_of_its_own_is_not_reached(load_text: LoadText) -> None:
    text = """
[scratch_device]
image_size = "4 GB"
latency = "gp3"
[[filesystem]]
type = "ext4"
[[workload]]
type = "power_cut"
"""
    (pruned,) = expand(load_text(text), None).pruned
    assert any("disk of its own" in str(reason) for reason in pruned.reasons)


def test_disks_are_named_or_made_of_their_keys(load_text: LoadText, edited: Edited) -> None:
    words = (
        'latency = { vary = ["hdd-7200-2011", { disk = { rpm = 5400, cache = "8 MB", seek_average = "9 ms", seek_full = "18ms" } }, '
        '{ disk = "hdd-15k", speed = 4 }] }'
    )
    plan = load_text(edited(words, "scratch_device"))
    plain, own, fast = [device.latency for device in plan.devices]
    assert plain == LATENCIES["hdd-7200-2011"]
    assert own is not None
    assert Disk(rpm=5400, cache_bytes=8 * MIB, seek_average_ms=9.0, seek_full_ms=18.0) == own.disk
    assert "custom disk rpm 5400, seek_average 9ms, seek_full 18ms, cache 8388608 (modelled)" == own.label
    assert fast is not None
    assert fast.disk is not None
    assert ("hdd-15k at 4 times its speed", 4) == (fast.name, fast.disk.speed)
    levels = next(iter(plan.cells())).levels
    assert ("hdd-7200-2011", 7200) == (levels["device.latency"], levels["device.latency.disk.rpm"])


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('latency = { disk = "gp3" }', "hdd-7200-2011"),
        ("latency = { disk = {}, speed = 2 }", "rpm"),
        ('latency = { disk = "hdd-15k", speed = 0 }', "from 1 to 64"),
        ('latency = { disk = "hdd-15k", stall = "1ms every 1s" }', "only speed"),
        ("latency = { disk = { rpm = 7200, heads = 4 } }", "unknown key"),
        ('latency = { disk = { seek_average = "uniform 1ms 2ms" } }', "one time"),
        ('latency = { disk = { seek_average = "3ms" } }', "no arm moves otherwise"),
        ('latency = { disk = { outer = "10 MB" } }', "faster outside"),
    ],
)
def test_what_no_disk_has_is_refused_by_name(
    load_text: LoadText, edited: Edited, line: str, shown: str
) -> None:
    with pytest.raises(PlanError, match=r"scratch_device\.latency") as caught:
        load_text(edited(line, "scratch_device"))
    assert shown in str(caught.value)
