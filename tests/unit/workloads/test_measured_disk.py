"""A real disk as the line of a plan: from fio's document to what a plan takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bedplate.errors import OutputNotUnderstood
from bedplate.model.devices import AtDepth, Law
from bedplate.plan.values import latency
from bedplate.workloads.fio.prepare import (
    DEPTHS,
    MEASURED_DISK,
    fio_argv,
    law_of,
    parse_fio,
    places_of,
)


@pytest.mark.parametrize(("kind", "depth"), [("read", 4), ("write", 4), ("flush", 1)])
def test_figures_of_fio_are_read_with_their_units(repository: Path, kind: str, depth: int) -> None:
    text = (repository / "tests/golden/fio" / f"measured-{kind}.json").read_text()
    (job,) = json.loads(text)["jobs"]
    times = job["sync"]["lat_ns"] if kind == "flush" else job[kind]["clat_ns"]
    found = parse_fio(text, kind, depth)
    assert (kind, depth) == (found.kind, found.depth)
    assert times["percentile"]["50.000000"] == pytest.approx(found.p50_us * 1000)
    assert times["percentile"]["99.000000"] == pytest.approx(found.p99_us * 1000)
    # A second of it; fio's own count of flushes is always zero.
    assert times["N"] == pytest.approx(found.per_s, rel=0.05)
    assert found.per_s > 0


@pytest.mark.parametrize("text", ["", "{}", '{"jobs": []}', "fio: no such device"])
def test_what_is_no_document_is_quoted(text: str) -> None:
    with pytest.raises(OutputNotUnderstood, match="fio"):
        parse_fio(text, "read", 1)


def test_a_document_without_such_requests_is_refused(repository: Path) -> None:
    text = (repository / "tests/golden/fio/measured-read.json").read_text()
    with pytest.raises(OutputNotUnderstood, match="figures of each flush"):
        parse_fio(text, "flush", 1)


def test_only_reads_are_read_only_and_only_flushes_flush() -> None:
    assert "--readonly" in fio_argv("/dev/x", "read", 8, 3)
    for kind in ("write", "flush"):
        assert "--rw=randwrite" in fio_argv("/dev/x", kind, 1, 3)
        assert "--readonly" not in fio_argv("/dev/x", kind, 1, 3)
    assert "--fdatasync=1" in fio_argv("/dev/x", "flush", 1, 3)
    assert {"--iodepth=8", "--runtime=3", "--filename=/dev/x"} <= set(fio_argv("/dev/x", "read", 8, 3))


def test_a_name_with_colons_is_one_device_to_fio() -> None:
    argv = fio_argv("/dev/disk/by-path/pci-0000:00:1f.2-ata-1", "read", 8, 3)
    assert r"--filename=/dev/disk/by-path/pci-0000\:00\:1f.2-ata-1" in argv


def test_a_law_has_the_median_and_the_percentile_that_were_measured() -> None:
    law = law_of(AtDepth("read", 1, 500.0, 921.0, 1900.0))
    assert 500_000 == law.quantile_ns(0.5)
    assert 921_000 == pytest.approx(law.quantile_ns(0.99), rel=0.02)
    assert Law.parse("0.5ms") == law_of(AtDepth("read", 1, 500.0, 500.0, 2000.0))


def test_places_are_what_the_throughput_grows_by() -> None:
    reads = [AtDepth("read", depth, 500.0, 600.0, 2000.0 * min(depth, 6)) for depth in DEPTHS]
    assert 6 == places_of(reads)
    assert 1 == places_of(reads[:1])


def test_the_line_is_one_that_a_plan_takes_and_lacks_what_was_not_measured() -> None:
    reads = [AtDepth("read", depth, 500.0, 921.0, 2000.0 * min(depth, 6)) for depth in DEPTHS]
    rest = [AtDepth("write", 1, 700.0, 900.0, 1400.0), AtDepth("flush", 1, 2000.0, 2000.0, 500.0)]
    line = MEASURED_DISK.plan_line([*reads, *rest])
    assert 'flush = "2ms", queue_depth = 6 }' in line
    import tomllib  # noqa: PLC0415

    found = latency(tomllib.loads(line)["latency"])
    assert ("2ms", 6) == (found.flush, found.queue_depth)
    with pytest.raises(ValueError, match="write: missing"):
        latency(tomllib.loads(MEASURED_DISK.plan_line(reads))["latency"])
