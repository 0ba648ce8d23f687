"""The rate of the host's timestamp counter, by which emulated processors tell the time."""

from __future__ import annotations

import mmap
import platform
from pathlib import Path

import pytest

from bedplate.host.facts import counter_khz

HAS_STEADY_COUNTER = platform.machine() == "x86_64" and "constant_tsc" in Path("/proc/cpuinfo").read_text()


@pytest.fixture
def steady(tmp_path: Path) -> Path:
    path = tmp_path / "cpuinfo"
    path.write_text("flags\t: fpu constant_tsc sse\n")
    return path


@pytest.mark.skipif(not HAS_STEADY_COUNTER, reason="this machine has no steady counter")
def test_two_measurements_agree_within_a_hundredth() -> None:
    # A kernel takes a rate that is given to it for true, and later refines it by up to a hundredth.
    first, second = counter_khz(), counter_khz()
    assert first is not None
    assert second is not None
    assert abs(first - second) < first / 100


def test_a_counter_that_changes_its_rate_has_none(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("flags\t: fpu not_constant_tsc tsc\n")
    assert counter_khz(cpuinfo=tmp_path / "cpuinfo") is None
    assert counter_khz(cpuinfo=tmp_path / "missing") is None


def test_another_processor_has_none(steady: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert counter_khz(cpuinfo=steady) is None


def test_a_kernel_that_forbids_such_pages_has_none(steady: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(mmap, "mmap", forbidden)
    assert counter_khz(cpuinfo=steady) is None
