"""The kernel's counters, read by name; what a kernel lacks is absent, not zero."""

from __future__ import annotations

import os
from pathlib import Path

from bedplate.probe.kernel import (
    DeviceProbe,
    MemoryProbe,
    PressureProbe,
    ProcessorProbe,
    ProcessProbe,
    process_cpu_s,
)

STAT = "8 0 64 3 20 0 4096 17 2 25 30 1 0 8 0 5 9\n"


def test_a_devices_fields_come_by_name(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text(STAT)
    values = DeviceProbe(stat).read()
    assert (8, 64, 20, 4096, 2, 25, 30, 5) == tuple(
        values[f"device.{name}"]
        for name in (
            "reads",
            "read_sectors",
            "writes",
            "written_sectors",
            "inflight",
            "io_ticks_ms",
            "time_in_queue_ms",
            "flushes",
        )
    )


def test_an_old_kernel_has_no_flushes_rather_than_none(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text(" ".join(STAT.split()[:11]))
    assert "device.flushes" not in DeviceProbe(stat).read()


def test_flushes_that_are_counted_for_another_device_are_absent_not_none(tmp_path: Path) -> None:
    """Measured: 50 fsyncs on a partition left 0 in its own `stat`, 100 in its disk's."""
    for name in ("sda", "sda1", "dm-0"):
        (tmp_path / name / "slaves").mkdir(parents=True)
        (tmp_path / name / "stat").write_text(STAT)
    (tmp_path / "sda1/partition").write_text("1\n")
    (tmp_path / "dm-0/slaves/sda").mkdir()
    found = {name: DeviceProbe(tmp_path / name / "stat").read() for name in ("sda", "sda1", "dm-0")}
    assert ["sda"] == [name for name, values in found.items() if "device.flushes" in values]
    assert all(20 == values["device.writes"] for values in found.values())


def test_memory_is_in_bytes(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 1 kB\nDirty:    12 kB\nWriteback:  3 kB\nDirtyFoo: 9 kB\n")
    vmstat = tmp_path / "vmstat"
    vmstat.write_text("drop_pagecache_x 3\ndrop_pagecache 7\ndrop_slab 8\n")
    expected = {"memory.dirty_bytes": 12288.0, "memory.writeback_bytes": 3072.0, "memory.cache_drops": 7.0}
    assert expected == MemoryProbe(meminfo, vmstat).read()


def test_pressure_that_the_kernel_does_not_have_is_absent(tmp_path: Path) -> None:
    assert {} == PressureProbe(tmp_path / "nothing").read()
    (tmp_path / "io").write_text(
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=42\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
    )
    assert {"pressure.io.some.total_us": 42.0, "pressure.io.full.total_us": 7.0} == PressureProbe(
        tmp_path
    ).read()


def test_processors_are_in_seconds(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    lines = (
        "cpu  100 100 300 400 500 10 20 60 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\nintr 7 0 1\nctxt 4711\nbtime 9\n"
    )
    stat.write_text(lines)
    tick = 1 / os.sysconf("SC_CLK_TCK")
    values = ProcessorProbe(stat).read()
    assert (200 * tick, 300 * tick, 30 * tick, 60 * tick) == (
        values["cpu.user_s"],
        values["cpu.system_s"],
        values["cpu.irq_s"],
        values["cpu.steal_s"],
    )
    assert 4711.0 == values["cpu.context_switches"]


def test_a_process_whose_name_is_hostile_is_still_counted(tmp_path: Path) -> None:
    folder = tmp_path / "77"
    folder.mkdir()
    fields = " ".join(str(number) for number in range(3, 53))
    (folder / "stat").write_text(f"77 (a) b ) (c)) {fields}\n")
    # utime and stime are fields 14 and 15 of proc_pid_stat(5).
    assert (14 + 15) / os.sysconf("SC_CLK_TCK") == process_cpu_s(77, tmp_path)


def test_a_process_that_is_gone_keeps_what_it_used() -> None:
    alive = [os.getpid()]
    probe = ProcessProbe("client", lambda: tuple(alive))
    before = probe.read()["client.cpu_s"]
    alive[:] = [2**22 + 1]
    assert before == probe.read()["client.cpu_s"]
