"""Which visits share a guest, what a failed one leaves, what goes in: with a guest that only pretends."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.guests.pretended_guest import (
    Deed,
    Stage,
    breaks_the_kernel,
    completes,
    dies,
    fails_to_clean_up,
    fills_the_disk,
    leaves_no_record,
)

from bedplate.errors import BedplateError, MachineUnfit, RequirementMissing
from bedplate.executors.qemu import runner as module
from bedplate.executors.qemu.guest import BootCrashed, GuestExit, GuestFailed
from bedplate.host.block_tree import BlockTree
from bedplate.model import codec
from bedplate.model.visit import ScratchDevice, VisitRequest
from bedplate.units import GIB, MIB


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
    with pytest.raises(
        RequirementMissing, match=r"ZFS for kernel 6\.12\.1 is not in .*doctor --install --zfs"
    ):
        stage.visit(request_of(filesystem="zfs"))


def test_an_unknown_kernel_says_how_it_is_had(stage: Stage, request_of: Any) -> None:
    with pytest.raises(RequirementMissing, match=r"kernel 9\.9 is not in .*doctor PLAN --install"):
        stage.visit(request_of(release="9.9"))


def test_more_memory_than_the_machine_has_is_refused(stage: Stage, request_of: Any) -> None:
    with pytest.raises(RequirementMissing, match="does not fit this machine"):
        stage.visit(request_of(memory_bytes=1 << 50))


def test_a_device_that_is_not_there_is_refused(stage: Stage, request_of: Any) -> None:
    # It is not there for any visit: none of them is recorded as failed.
    with pytest.raises(MachineUnfit, match="is not there"):
        stage.visit(request_of(device="/dev/disk/by-id/none"))
    assert [] == stage.guests


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
