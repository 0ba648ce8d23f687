"""Which visits share a guest, what a failed one leaves, what goes in: with a guest that only pretends."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bedplate.errors import BedplateError, DeviceInUse, DeviceRefused, MachineUnfit, RequirementMissing
from bedplate.executors.qemu import runner as module
from bedplate.executors.qemu.command_line import TCG, GuestDisk, GuestSpec
from bedplate.executors.qemu.guest import BootCrashed, Guest, GuestExit, GuestFailed
from bedplate.executors.qemu.kernels import GuestKernel
from bedplate.executors.qemu.runner import GuestRunner
from bedplate.host.devices.block_tree import BlockTree
from bedplate.host.lock import device_lock
from bedplate.model import codec
from bedplate.model.visit import ScratchDevice, VisitRequest
from bedplate.units import GIB, MIB

Deed = Callable[[Path], GuestExit]


def completes(folder: Path) -> GuestExit:
    (folder / "visit/visit.json").write_text('{"failed_step": null}')
    (folder / "visit/logs").mkdir()
    (folder / "visit/logs/server.log").write_text("x")
    return GuestExit(0, "", broken=False)


def fails_to_clean_up(folder: Path) -> GuestExit:
    (folder / "visit/visit.json").write_text('{"failed_step": "clean-up"}')
    return GuestExit(0, "", broken=False)


def breaks_the_kernel(folder: Path) -> GuestExit:
    return GuestExit(completes(folder).status, "", broken=True)


def dies(folder: Path) -> GuestExit:
    (folder / "visit/half").write_text("x")
    raise GuestFailed("the guest died: Kernel panic - not syncing", "its console's last lines: …")


def leaves_no_record(_: Path) -> GuestExit:
    return GuestExit(1, "Traceback\nValueError: what", broken=False)


def fills_the_disk(_: Path) -> GuestExit:
    return GuestExit(1, "OSError: [Errno 28] No space left on device", broken=False)


class Pretender:
    """A guest that does the next deed for each visit."""

    def __init__(self, spec: GuestSpec, stage: Stage) -> None:
        self.spec = spec
        self.stage = stage
        self.alive = True
        self.sizes: list[tuple[str, int]] = []
        self.lived: list[VisitRequest] = []

    def live(
        self, number: int, *, limit_s: float, silence_s: float, on_event: Callable[[Mapping[str, Any]], None]
    ) -> GuestExit:
        share = next(share.path for share in self.spec.shares if share.writable)
        folder = share / str(number)
        for disk in self.spec.disks:
            assert disk.size_bytes == disk.path.stat().st_size
        self.lived.append(codec.read(VisitRequest, folder / "request.json"))
        self.stage.folders.append(
            {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}
        )
        try:
            return (self.stage.deeds.pop(0) if self.stage.deeds else completes)(folder)
        except GuestFailed:
            self.alive = False
            raise

    def resize(self, disk: GuestDisk) -> None:
        self.sizes.append((disk.serial, disk.size_bytes))

    def is_alive(self) -> bool:
        return self.alive

    def end(self, *, gently: bool) -> None:
        self.alive = False


class Stage:
    def __init__(self, base: Path) -> None:
        self.base = base
        self.deeds: list[Deed] = []
        self.guests: list[Pretender] = []
        self.folders: list[dict[str, str]] = []
        self.visits = 0
        self.panics = 0
        self.executor: GuestRunner

    def boot(self, spec: GuestSpec, *, console: Path, ledger: object, boot_s: float) -> Pretender:
        console.write_text("the console")
        if self.panics:
            self.panics -= 1
            console.write_text(f"a panic, {self.panics} to come")
            raise BootCrashed("the guest died while it booted: Kernel panic - not syncing")
        self.guests.append(Pretender(spec, self))
        return self.guests[-1]

    def visit(self, request: VisitRequest, boot: int | None = 1) -> Path:
        self.visits += 1
        directory = self.base / f"visit-{self.visits}"
        directory.mkdir()
        self.executor.run_visit(request, directory, lambda _: None, boot=boot)
        return directory

    def left(self) -> list[Path]:
        return [*self.base.glob("*.img"), *self.base.glob("place/*"), *self.base.glob("state/[0-9]*")]


@pytest.fixture
def stage(tmp_path: Path, kernel: GuestKernel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    found = Stage(tmp_path)
    monkeypatch.setattr(Guest, "boot", found.boot)
    monkeypatch.setattr(module, "find_accelerator", lambda *_, **__: TCG)
    monkeypatch.setattr(module, "make_initramfs", lambda _, target: target.write_bytes(b""))
    monkeypatch.setattr(module, "qemu_version", lambda _: "7.2.22")
    found.executor = GuestRunner(
        place=tmp_path / "place",
        cache_directory=tmp_path / "cache",
        state_directory=tmp_path / "state",
        find=lambda asked, cache_directory: None if asked == "9.9" else kernel,
    )
    yield found
    found.executor.close()
    found.executor.close()
    assert [] == found.left()


def test_visits_of_one_boot_share_a_guest_and_others_do_not(stage: Stage, request_of: Any) -> None:
    for boot in (1, 1, 1, 2, 2):
        stage.visit(request_of(), boot)
    assert [3, 2] == [len(guest.lived) for guest in stage.guests]
    assert [False, True] == [guest.alive for guest in stage.guests]


def test_a_visit_of_no_boot_has_a_guest_of_its_own(stage: Stage, request_of: Any) -> None:
    stage.visit(request_of(), None)
    stage.visit(request_of(), None)
    assert 2 == len(stage.guests)
    assert not any(guest.alive for guest in stage.guests)


def test_an_image_is_written_anew_for_each_visit(stage: Stage, request_of: Any, tmp_path: Path) -> None:
    image = tmp_path / "bedplate-scratch.img"

    def dirties(folder: Path) -> GuestExit:
        assert image.read_bytes() == bytes(2 * MIB)
        image.write_bytes(b"x" * 2 * MIB)
        return completes(folder)

    stage.deeds = [dirties, dirties]
    stage.visit(request_of())
    stage.visit(request_of())
    assert 1 == len(stage.guests)


def test_a_disk_of_another_size_is_told_to_the_running_guest(stage: Stage, request_of: Any) -> None:
    stage.visit(request_of())
    stage.visit(request_of(image_bytes=4 * MIB))
    stage.visit(request_of(image_bytes=4 * MIB))
    stage.visit(request_of(image_bytes=2 * MIB))
    assert [("bedplate-data", 4 * MIB), ("bedplate-data", 2 * MIB)] == stage.guests[0].sizes
    assert 1 == len(stage.guests)


def test_visits_with_and_without_an_external_journal_share_a_boot(stage: Stage, request_of: Any) -> None:
    """Else a plan's few cells with one would stand first in a fresh guest more often than the others."""
    journal = ScratchDevice(image_bytes=MIB, image_directory=str(stage.base))
    stage.executor._journal_of_plan = journal
    for with_one in (False, True, False):
        stage.visit(request_of(journal=journal if with_one else None))
    assert [3] == [len(guest.lived) for guest in stage.guests]
    assert [False, True, False] == [asked.journal_device is not None for asked in stage.guests[0].lived]


def test_another_memory_or_another_disk_needs_another_guest(stage: Stage, request_of: Any) -> None:
    journal = ScratchDevice(image_bytes=MIB, image_directory=str(stage.base))
    stage.visit(request_of())
    stage.visit(request_of(memory_bytes=GIB))
    stage.visit(request_of(memory_bytes=GIB, journal=journal))
    assert [2 * GIB, GIB, GIB] == [guest.spec.memory_bytes for guest in stage.guests]
    assert [False, True] == [disk.in_memory for disk in stage.guests[2].spec.disks]


@pytest.mark.parametrize("deed", [fails_to_clean_up, breaks_the_kernel])
def test_a_guest_that_is_not_as_it_was_serves_no_other_visit(
    stage: Stage, request_of: Any, deed: Deed
) -> None:
    stage.deeds = [deed]
    stage.visit(request_of())
    assert not stage.guests[0].alive
    stage.visit(request_of())
    assert 2 == len(stage.guests)


def test_a_dead_guest_fails_its_visit_alone_and_leaves_its_console(stage: Stage, request_of: Any) -> None:
    stage.deeds = [completes, dies]
    first = stage.visit(request_of())
    with pytest.raises(GuestFailed, match="Kernel panic"):
        stage.visit(request_of())
    assert "the console" == (stage.base / "visit-2/logs/console.log").read_text()
    assert (stage.base / "visit-2/half").exists(), "what there is of the visit is kept"
    third = stage.visit(request_of())
    for directory in (first, third):
        assert (directory / "visit.json").exists()
        assert not (directory / "logs/console.log").exists()
        assert (directory / "logs/server.log").exists()


def test_a_kernel_that_panics_at_its_boot_is_booted_again(stage: Stage, request_of: Any) -> None:
    stage.panics = 2
    directory = stage.visit(request_of())
    assert (directory / "visit.json").exists()
    kept = {path.name: path.read_text() for path in (directory / "logs").glob("console*")}
    assert {
        "console-boot-1.log": "a panic, 1 to come",
        "console-boot-2.log": "a panic, 0 to come",
    } == kept
    assert 1 == len(stage.guests)


def test_a_kernel_that_panics_at_every_boot_fails_its_visit(stage: Stage, request_of: Any) -> None:
    stage.panics = 3
    with pytest.raises(BootCrashed, match="while it booted"):
        stage.visit(request_of())
    assert "a panic, 0 to come" == (stage.base / "visit-1/logs/console.log").read_text()
    assert not list((stage.base / "place").glob("*/share-*")), "the shares of failed boots are gone"
    assert (stage.visit(request_of()) / "visit.json").exists()


def test_a_visit_without_a_record_says_what_it_said(stage: Stage, request_of: Any) -> None:
    stage.deeds = [leaves_no_record]
    with pytest.raises(BedplateError, match="with status 1 and left no record: Traceback"):
        stage.visit(request_of())
    assert "ValueError: what\n" in (stage.base / "visit-1/logs/run-visit.err").read_text()
    assert not stage.guests[0].alive


def test_a_full_disk_is_the_machines_and_no_visits_failure(
    stage: Stage, request_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.deeds = [fills_the_disk]
    monkeypatch.setattr(module, "full_places", lambda *places: (f"{places[0]} has no room left",))
    with pytest.raises(MachineUnfit, match="visit-1 has no room left"):
        stage.visit(request_of())


def test_the_guest_is_told_its_own_disks_and_what_it_is(
    stage: Stage, request_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of a file in memory nothing tells.
    monkeypatch.setattr(BlockTree, "sectors_at", lambda _, path: 4096 if "scratch" in path.name else None)
    journal = ScratchDevice(image_bytes=MIB, image_directory=str(stage.base))
    directory = stage.visit(request_of(memory_bytes=GIB, journal=journal))
    (inside,) = stage.guests[0].lived
    assert inside == codec.read(VisitRequest, directory / "request.json")
    for device, serial in ((inside.scratch_device, "data"), (inside.journal_device, "journal")):
        assert device is not None
        assert f"/dev/disk/by-id/virtio-bedplate-{serial}" == device.device
        assert (device.device,) == device.erase
        assert device.erase_foreign
    assert GIB == inside.cell.device.memory_bytes
    assert {
        "machine": "m",
        "accelerator": "tcg",
        "qemu": "7.2.22",
        "kernel_digest": "0123456789ab",
        "host_kernel": os.uname().release,
        "disk": "image file on a virtio disk",
        "disk_sector_bytes": "4096",
        "journal_disk": "memory on a virtio disk",
        "memory": "guest",
    } == inside.provenance
    assert inside.state_directory.startswith("/run/"), "memory of the guest, not a folder of the host's"
    assert f"bedplate-data {2 * MIB}\nbedplate-journal {MIB}\n" == stage.folders[0]["disks"]


def test_the_drivers_of_the_file_system_are_loaded_before(stage: Stage, request_of: Any) -> None:
    stage.visit(request_of(filesystem="ext3"))
    stage.visit(request_of(filesystem="jfs"))
    assert ["modprobe fs-ext3\nmodprobe fs-ext4\n", "modprobe fs-jfs\n"] == [
        folder["load"] for folder in stage.folders
    ]


def test_zfs_that_was_not_built_says_how_it_is(stage: Stage, request_of: Any) -> None:
    with pytest.raises(RequirementMissing, match=r"ZFS for kernel 6\.12\.1 is not in .*setup --zfs"):
        stage.visit(request_of(filesystem="zfs"))


def test_an_unknown_kernel_says_how_it_is_had(stage: Stage, request_of: Any) -> None:
    with pytest.raises(RequirementMissing, match=r"kernel 9\.9 is not in .*setup"):
        stage.visit(request_of(release="9.9"))


def test_more_memory_than_the_machine_has_is_refused(stage: Stage, request_of: Any) -> None:
    with pytest.raises(RequirementMissing, match="does not fit this machine"):
        stage.visit(request_of(memory_bytes=1 << 50))


def test_a_device_that_is_not_there_is_refused(stage: Stage, request_of: Any) -> None:
    with pytest.raises(DeviceRefused, match="is not there"):
        stage.visit(request_of(device="/dev/disk/by-id/none"))
    assert [] == stage.guests


class TestARealJournalDevice:
    """The guest wipes it at the end of a visit; a guest that died cannot."""

    NAME = "/dev/disk/by-id/journal"
    NODE = "/dev/zero"  # what the name led to

    @pytest.fixture
    def wiped(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        found: list[str] = []
        monkeypatch.setattr(module, "erase_signatures", lambda device, _: found.append(device))
        monkeypatch.setattr(module, "renew", lambda *_, **__: None)
        disks = tuple(GuestDisk(name, Path(name), 0) for name in ("/dev/null", self.NODE))
        monkeypatch.setattr(module, "disks_of", lambda *_, **__: disks)
        monkeypatch.setattr(module, "inside", lambda _: ScratchDevice())
        monkeypatch.setattr(
            GuestRunner, "_asked_inside", lambda _self, request, *_rest: replace(request, provenance={})
        )
        return found

    def journal(self, request_of: Any) -> VisitRequest:
        return request_of(journal=ScratchDevice(device=self.NAME, erase=(self.NAME,)))  # type: ignore[no-any-return]

    def test_is_wiped_after_a_guest_died_and_not_otherwise(
        self, stage: Stage, request_of: Any, wiped: list[str]
    ) -> None:
        stage.deeds = [completes, dies]
        stage.visit(self.journal(request_of))
        assert [] == wiped
        with pytest.raises(GuestFailed):
            stage.visit(self.journal(request_of))
        assert [self.NODE] == wiped

    def test_that_was_refused_is_not_touched(
        self, stage: Stage, request_of: Any, wiped: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: Any, **__: Any) -> None:
            raise DeviceRefused(f"{self.NAME} holds ext4 that bedplate did not make")

        stage.deeds = [completes]
        stage.visit(self.journal(request_of))
        monkeypatch.setattr(module, "renew", refuse)
        with pytest.raises(MachineUnfit, match="holds ext4 that bedplate did not make"):
            stage.visit(self.journal(request_of))
        assert [] == wiped

    def test_is_locked_like_the_scratch_device(
        self, stage: Stage, request_of: Any, wiped: list[str], tmp_path: Path
    ) -> None:
        with (
            device_lock(tmp_path / "state", self.NAME),
            pytest.raises(DeviceInUse, match="journal is in use by"),
        ):
            stage.visit(self.journal(request_of))
        assert [] == stage.guests
        assert [] == wiped


def test_an_interruption_leaves_nothing(stage: Stage, request_of: Any) -> None:
    def interrupted(_: Path) -> GuestExit:
        raise KeyboardInterrupt

    stage.deeds = [completes, interrupted]
    stage.visit(request_of())
    with pytest.raises(KeyboardInterrupt):
        stage.visit(request_of())
    assert not stage.guests[0].alive
    assert [] == list(stage.base.glob("*.img"))


def test_what_is_held_is_written_down_before_it_is_taken(stage: Stage, request_of: Any) -> None:
    held: list[str] = []

    def looks(folder: Path) -> GuestExit:
        (ledger,) = stage.base.glob("state/*-guest/ledger.jsonl")
        held.extend(json.loads(line)[1] for line in ledger.read_text().splitlines()[1:])
        return completes(folder)

    stage.deeds = [looks]
    stage.visit(request_of())
    assert {"image", "log_directory"} <= set(held)
