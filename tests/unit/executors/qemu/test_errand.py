"""A program in a guest without disks: what it finds there, what comes back, what becomes of the guest."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.guests.pretended_guest import Stage

from bedplate.errors import BedplateError
from bedplate.executors.qemu.guest import Guest, GuestExit, GuestFailed, GuestSpec
from bedplate.executors.qemu.kernels import GuestKernel
from bedplate.executors.qemu.slot import Errand, ErrandRunner, GuestProgram, GuestSlot
from bedplate.units import GIB

REQUEST = GuestSpec(Path("/image"), Path("/initramfs"), "tcg", 1, 1, ())


class Called:
    """A guest that notes what it was given, and ends each errand as it is told to."""

    def __init__(self, spec: GuestSpec) -> None:
        self.spec, self.alive, self.folders = spec, True, list[dict[str, str]]()
        self.ends: list[GuestExit | GuestFailed] = []

    def live(
        self, number: int, *, limit_s: float, silence_s: float, on_event: Callable[[Mapping[str, Any]], None]
    ) -> GuestExit:
        share = next(share.path for share in self.spec.shares if share.writable)
        folder = share / str(number)
        self.folders.append(
            {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
        )
        on_event({"event": "found", "limit": limit_s})
        end = self.ends.pop(0) if self.ends else GuestExit(0, "", broken=False)
        if isinstance(end, GuestFailed):
            self.alive = False
            raise end
        return end

    def is_alive(self) -> bool:
        return self.alive

    def end(self, *, gently: bool) -> None:
        self.alive = False


class Errands:
    def __init__(self, runner: ErrandRunner, kernel: GuestKernel) -> None:
        self.kernel = kernel
        self.runner, self.guests, self.events = runner, list[Called](), list[Mapping[str, Any]]()

    def boot(self, spec: GuestSpec, **_: object) -> Called:
        self.guests.append(Called(spec))
        return self.guests[-1]

    def run(self, **changes: Any) -> None:
        given: dict[str, Any] = {
            "kernel": self.kernel,
            "filesystem": "jfs",
            "memory_bytes": GIB,
            "limit_s": 60.0,
            "drivers": {},
            **changes,
        }
        self.runner.run(Errand(GuestProgram("bedplate.some.module", REQUEST), **given), self.events.append)


@pytest.fixture
def errands(stage: Stage, tmp_path: Path, kernel: GuestKernel, monkeypatch: pytest.MonkeyPatch) -> Any:
    # The stage has taken the place of what makes an initramfs and looks for an accelerator.
    assert [] == stage.guests
    slot = GuestSlot(
        tmp_path / "errands",
        cache_directory=tmp_path / "cache",
        state_directory=tmp_path / "state",
    )
    found = Errands(ErrandRunner(slot), kernel)
    monkeypatch.setattr(Guest, "boot", found.boot)
    yield found
    found.runner.close()
    found.runner.close()
    assert [] == list((tmp_path / "errands").iterdir())
    assert not any(guest.alive for guest in found.guests)


def test_a_program_is_called_with_its_request_and_a_folder(errands: Errands) -> None:
    errands.run()
    (folder,) = errands.guests[0].folders
    assert [
        *("-m", "bedplate.some.module", "--"),
        *("/run/guest/share/1/request.json", "/run/guest/share/1/visit"),
    ] == folder["arguments"].splitlines()
    assert "modprobe fs-jfs\n" == folder["load"]
    assert "" == folder["disks"]
    assert "/initramfs" == json.loads(folder["request.json"])["initramfs"]
    assert "BEDPLATE_STATE=/run/guest/state" in folder["environment"].splitlines()
    assert [{"event": "found", "limit": 60.0}] == errands.events
    share = next(share.path for share in errands.guests[0].spec.shares if share.writable)
    assert not (share / "1").exists()


def test_errands_of_one_kernel_and_memory_share_a_guest(errands: Errands) -> None:
    errands.run()
    errands.run(filesystem="ext4")
    errands.run(memory_bytes=2 * GIB)
    assert [2, 1] == [len(guest.folders) for guest in errands.guests]
    assert [False, True] == [guest.alive for guest in errands.guests]


def test_what_a_program_says_is_the_error_and_the_guest_goes_on(errands: Errands) -> None:
    errands.run()
    errands.guests[0].ends = [GuestExit(1, "the log is damaged\nat its end", broken=False)]
    with pytest.raises(BedplateError, match="ended with status 1: the log is damaged") as raised:
        errands.run()
    assert "at its end" == raised.value.reasons[1]
    errands.run()
    assert [3] == [len(guest.folders) for guest in errands.guests]


@pytest.mark.parametrize("end", [GuestExit(0, "", broken=True), GuestFailed("the guest died")])
def test_a_guest_that_broke_or_died_serves_no_other_errand(
    errands: Errands, end: GuestExit | GuestFailed
) -> None:
    errands.run()
    errands.guests[0].ends = [end]
    if isinstance(end, GuestFailed):
        with pytest.raises(GuestFailed, match="died"):
            errands.run()
    else:
        errands.run()
    errands.run()
    assert [2, 1] == [len(guest.folders) for guest in errands.guests]
