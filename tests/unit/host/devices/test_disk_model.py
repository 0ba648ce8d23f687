"""The model of a disk in virtual time: published figures of such disks, and what follows exactly from its parameters."""

from __future__ import annotations

import ctypes
import json
import math
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

from bedplate.host.native_driver import COMPILER, FLAGS
from bedplate.model.devices import Disk
from bedplate.plan.values import LATENCIES
from bedplate.units import GIB, KIB, MIB

pytestmark = pytest.mark.skipif(shutil.which(COMPILER) is None, reason="needs a C compiler: package gcc")

SOURCES = Path(__file__).resolve().parents[4] / "drivers" / "power_cut_recorder"
DESKTOP = LATENCIES["hdd-7200-2011"].disk or Disk()
SERVER = LATENCIES["hdd-15k"].disk or Disk()
# Ten per cent, as published figures of disks of one kind differ by more.
WITHIN = 0.1
TERABYTE = 1000 * GIB
USUAL = {"depth": 1, "bytes": 4096, "count": 10_000, "skip": 0}

Rehearse: TypeAlias = Callable[..., dict[str, float]]


@pytest.fixture(scope="module")
def rehearse(tmp_path_factory: pytest.TempPathFactory) -> Rehearse:
    shared = tmp_path_factory.mktemp("disk") / "disk.so"
    texts = [str(SOURCES / name) for name in ("disk.c", "rehearsal.c")]
    subprocess.run(
        [COMPILER, *FLAGS, "-Werror", "-fPIC", "-shared", "-o", str(shared), *texts, "-lm"], check=True
    )
    run = ctypes.CDLL(str(shared)).rehearse
    run.restype = ctypes.c_bool

    def rehearsal(model: Disk | str, words: str, /, **changes: int) -> dict[str, float]:
        size = changes.get("disk", TERABYTE)
        load = USUAL | {"disk": size, "from": 0, "until": size, "flush": 0, "think_ns": 0} | changes
        parameters = model if isinstance(model, str) else model.words(32)
        text = ctypes.create_string_buffer(512)
        line = f"{words} {' '.join(f'{name}={number}' for name, number in load.items())}"
        if not run(parameters.encode(), line.encode(), text):
            raise ValueError(text.value.decode())
        figures: dict[str, float] = json.loads(text.value)
        return figures

    return rehearsal


def outside(disk_bytes: int) -> dict[str, int]:
    return {"bytes": 128 * KIB, "until": disk_bytes // 32}


def inside(disk_bytes: int) -> dict[str, int]:
    return {"bytes": 128 * KIB, "from": disk_bytes - disk_bytes // 32}


@pytest.mark.parametrize(
    ("words", "load", "model", "published"),
    [
        # A seek of 8.5 ms and half a turn of 4.17; 9.5 before a write.
        ("read random", {}, DESKTOP, (75, 80)),
        ("write random", {}, replace(DESKTOP, cache_bytes=0), (73.2, 73.2)),
        # With a queue (NCQ), as reviews of 2009 to 2013 have them.
        ("read random", {"depth": 32}, DESKTOP, (160, 200)),
        # Its data sheet: 130 MB/s outside, half of it inside.
        ("read sequential", outside(TERABYTE), DESKTOP, (992, 992)),
        ("read sequential", inside(TERABYTE), DESKTOP, (496, 496)),
        ("write sequential", outside(TERABYTE), DESKTOP, (992, 992)),
        ("write sequential", inside(TERABYTE), DESKTOP, (496, 496)),
        # Who appends and flushes waits for a turn.
        ("write sequential", {"flush": 1, "think_ns": 50_000}, DESKTOP, (120, 120)),
        # The cache takes the writes of who does not flush.
        ("write random", {"count": 40_000, "skip": 20_000}, DESKTOP, (150, 180)),
        # 3.4 ms of seek and 2 of rotation.
        ("read random", {}, SERVER, (185, 185)),
        ("write sequential", {"flush": 1, "think_ns": 50_000}, SERVER, (250, 250)),
    ],
)
def test_published_figures_are_met(
    rehearse: Rehearse, words: str, load: dict[str, int], model: Disk, published: tuple[float, float]
) -> None:
    least, most = published
    per_s = rehearse(model, words, **load)["per_s"]
    assert least * (1 - WITHIN) <= per_s <= most * (1 + WITHIN)


def test_a_random_read_takes_a_seek_and_half_a_turn(rehearse: Rehearse) -> None:
    expected_ns = 1e6 * (DESKTOP.seek_average_ms + DESKTOP.turn_ms / 2 + DESKTOP.overhead_ms)
    assert expected_ns == pytest.approx(rehearse(DESKTOP, "read random", count=100_000)["ns_mean"], rel=0.01)
    assert expected_ns == pytest.approx(DESKTOP.mean_ns("read", 4096), rel=0.01)


def test_every_time_is_divided_by_the_speed(rehearse: Rehearse) -> None:
    for words, depth in (("read random", 32), ("write random", 4), ("read sequential", 1)):
        plain = rehearse(DESKTOP, words, depth=depth, count=20_000)
        fast = rehearse(replace(DESKTOP, speed=8), words, depth=depth, count=20_000)
        assert 8 * plain["per_s"] == pytest.approx(fast["per_s"], rel=0.001)


def test_a_short_seek_is_shorter(rehearse: Rehearse) -> None:
    near = rehearse(DESKTOP, "read random", until=TERABYTE // 100)["ns_mean"]
    assert near < 0.6 * rehearse(DESKTOP, "read random")["ns_mean"]
    of_more = replace(DESKTOP, capacity_bytes=TERABYTE)
    assert near == pytest.approx(rehearse(of_more, "read random", disk=TERABYTE // 100)["ns_mean"], rel=0.02)


def test_the_cache_answers_at_once_as_far_as_it_goes(rehearse: Rehearse) -> None:
    for cache_bytes in (8 * MIB, 64 * MIB):
        disk, pages = replace(DESKTOP, cache_bytes=cache_bytes), cache_bytes // 4096
        held = rehearse(disk, "write random", count=pages)
        assert held["ns_p99"] < 0.2e6
        beyond = rehearse(disk, "write random", count=3 * pages, skip=2 * pages)
        assert beyond["ns_p50"] > 3e6


def test_a_flush_empties_the_cache(rehearse: Rehearse) -> None:
    often = rehearse(DESKTOP, "write random", flush=1, count=2000)["seconds"]
    seldom = rehearse(DESKTOP, "write random", flush=100, count=2000)["seconds"]
    never = rehearse(DESKTOP, "write random", count=2000)["seconds"]
    # A seek and half a turn for each; then in the order of the addresses; then later than anybody asks.
    assert 2000 / 80 < often < 2000 / 60
    assert often / 2.2 < seldom < often / 1.3
    assert never < seldom / 20


def test_a_slow_writer_is_not_written_out_while_it_asks(rehearse: Rehearse) -> None:
    # Half of the cache is filled within the time; what is answered never waits for the heads.
    often = rehearse(DESKTOP, "write random", count=3000, think_ns=5_000_000)
    assert often["ns_p99"] < 0.2e6


def test_without_read_ahead_a_turn_is_lost(rehearse: Rehearse) -> None:
    reader = {"bytes": 16 * KIB, "count": 2000}
    lost = rehearse(replace(DESKTOP, read_ahead_bytes=0), "read sequential", **reader)["per_s"]
    assert 110 < lost < 125
    assert rehearse(DESKTOP, "read sequential", **reader)["per_s"] > 20 * lost


def test_who_is_passed_over_is_served_in_the_end(rehearse: Rehearse) -> None:
    longest_ns = 1e6 * DESKTOP.turn_ms * 120
    found = rehearse(DESKTOP, "read random", depth=32, count=50_000)
    assert found["ns_p99"] < longest_ns * 1.2


def test_what_no_disk_is_is_refused(rehearse: Rehearse) -> None:
    sound = DESKTOP.words(32)
    for wrong in (
        "",
        sound.replace("rpm=7200", "rpm=nan"),
        sound.replace("depth=32", "depth=0"),
        f"{sound},more=1",
    ):
        with pytest.raises(ValueError, match="no disk"):
            rehearse(wrong, "read random")
    with pytest.raises(ValueError, match="no load"):
        rehearse(DESKTOP, "read random", bytes=100)


def test_an_arm_that_cannot_be_is_named() -> None:
    assert DESKTOP.reason is None
    assert SERVER.reason is None
    assert "from 5.87ms to 8.91ms" in (replace(DESKTOP, seek_average_ms=5).reason or "")
    assert "faster outside" in (replace(DESKTOP, inner_bytes_per_s=10**9).reason or "")
    assert math.isclose(DESKTOP.turn_ms, 8.3333, rel_tol=1e-4)
