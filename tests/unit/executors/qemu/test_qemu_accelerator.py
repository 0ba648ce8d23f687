"""The trial of KVM: what hangs is noticed, what is known is not tried again."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from bedplate.executors.qemu.guest import find_accelerator, known_accelerator, line_pair, says_version
from bedplate.executors.qemu.kernels import GuestKernel
from bedplate.host.ledger import Ledger


class Place:
    def __init__(self, base: Path, kernel: GuestKernel) -> None:
        self.cache = base / "cache"
        self.device = base / "kvm"
        self.device.touch()
        self.kernel = kernel
        self.trials = 0
        self.ledger = Ledger.open(base / "state", "test")

    def find(self, works: bool, qemu: str = "7.2") -> str:
        def trial(_: Path, __: Ledger) -> bool:
            self.trials += 1
            return works

        return find_accelerator(
            self.kernel,
            qemu=qemu,
            cache_directory=self.cache,
            ledger=self.ledger,
            path=self.device,
            trial=trial,
        )


@pytest.fixture
def place(tmp_path: Path, kernel: GuestKernel) -> Place:
    return Place(tmp_path, kernel)


@pytest.mark.parametrize(("works", "expected"), [(True, "kvm"), (False, "tcg")])
def test_the_answer_is_kept(place: Place, works: bool, expected: str) -> None:
    assert expected == place.find(works)
    assert expected == place.find(not works)
    assert 1 == place.trials


def test_another_qemu_is_tried_anew(place: Place) -> None:
    place.find(False)
    assert "kvm" == place.find(True, qemu="10.0")


def test_without_the_device_nothing_is_tried(place: Place) -> None:
    place.device.unlink()
    assert "tcg" == place.find(True)
    assert 0 == place.trials
    assert not place.cache.exists()


def test_a_damaged_answer_is_tried_anew(place: Place) -> None:
    place.find(True)
    (file,) = (place.cache / "accelerators").iterdir()
    for text in ("", "[]", json.dumps({"accelerator": "warp"})):
        file.write_text(text)
        known = known_accelerator(place.kernel, qemu="7.2", cache_directory=place.cache, path=place.device)
        assert known is None
    assert "tcg" == place.find(False)


class Clock:
    """Each look takes a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def _console(*said: bytes) -> tuple[socket.socket, socket.socket]:
    ours, theirs = line_pair()
    for data in said:
        theirs.sendall(data)
    return ours, theirs


def test_a_kernel_that_says_its_version_works() -> None:
    ours, theirs = _console(b"Booting\r\n[    0.0] Linux ver", b"sion 6.12.1 (x)")
    with ours, theirs:
        assert says_version(ours, deadline_s=60)


def test_a_kernel_that_stops_after_its_decompressor_does_not() -> None:
    ours, theirs = _console(b"Decompressing Linux... Parsing ELF... done.\r\nBooting the kernel.\r\n")
    with ours, theirs:
        assert not says_version(ours, deadline_s=0.2)


def test_a_qemu_that_ends_does_not() -> None:
    ours, theirs = _console(b"Could not access KVM")
    theirs.close()
    with ours:
        assert not says_version(ours, deadline_s=1e6, clock=Clock())
