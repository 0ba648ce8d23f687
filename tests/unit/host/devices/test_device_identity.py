"""A study erases the disk that it began with, whatever its name leads to later, and none that a program writes to."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.host.devices.test_block_tree import Machine

from bedplate.errors import DeviceRefused
from bedplate.host import scratch_device
from bedplate.host.block_tree import DeviceNode
from bedplate.host.command import Commands, Completed
from bedplate.host.ledger import Ledger
from bedplate.host.scratch_device import identity_of, prepare, refusal_reasons
from bedplate.model.devices import DeviceIdentity
from bedplate.model.visit import ScratchDevice

NAME = "by-path/port-1"
OTHER_DISK = "is another device than the one that this study began with"


class Looking(Commands):
    """Remembers what was called."""

    def __init__(self) -> None:
        super().__init__()
        self.called: list[str] = []

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        self.called.append(" ".join(argv))
        return Completed(tuple(argv), 0, "", "", 0.0)


class Port:
    """A machine with a stable name that leads to whatever disk is plugged in there."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.tree, self.commands = machine, machine.tree, Looking()
        self.name = str(machine.dev / "disk" / NAME)
        self.leads_to = ""
        (machine.sys / "block").mkdir()
        self.boot("first")

    def boot(self, name: str) -> None:
        place = self.machine.proc / "sys/kernel/random"
        place.mkdir(parents=True, exist_ok=True)
        (place / "boot_id").write_text(name)

    def write(self, disk: str, **files: str) -> None:
        for name, text in files.items():
            file = self.machine.sys / "class/block" / disk / name.replace("__", "/")
            file.parent.mkdir(exist_ok=True)
            file.write_text(text + "\n")

    def identity(self, disk: str) -> DeviceIdentity:
        return identity_of(disk, self.tree)

    def scratch(self, recorded: DeviceIdentity | None) -> ScratchDevice:
        """With every permission."""
        return ScratchDevice(device=self.name, erase=(self.name,), erase_foreign=True, recorded=recorded)

    def reasons(self, disk: str, recorded: DeviceIdentity | None) -> tuple[str, ...]:
        self.leads_to = disk
        return refusal_reasons(self.scratch(recorded), self.commands, tree=self.tree)

    def node(self) -> DeviceNode:
        file = os.open("/dev/null", os.O_PATH | os.O_CLOEXEC)
        return DeviceNode(file, self.leads_to, self.tree.st_rdev(self.leads_to))


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Port:
    machine = Machine(tmp_path)
    machine.disk("sdb", "8:16")
    machine.disk("sdb1", "8:17", parent="sdb")
    machine.disk("sdc", "8:32")
    found = Port(machine)
    monkeypatch.setattr(DeviceNode, "find", lambda *_: found.node())
    monkeypatch.setattr(scratch_device, "_is_stable", lambda *_: True)
    monkeypatch.setattr(scratch_device, "read_signatures", lambda *_: ())
    return found


def test_another_disk_of_the_same_model_is_refused_with_every_permission(port: Port) -> None:
    port.write("sdb", device__wwid="naa.5000", diskseq="1")
    port.write("sdc", device__wwid="naa.6000", diskseq="2")
    recorded = port.identity("sdb")
    assert () == port.reasons("sdb", recorded)
    (reason,) = port.reasons("sdc", recorded)
    assert reason.startswith(
        f"{port.name} {OTHER_DISK}: it leads to /dev/sdc, wwid naa.6000 (recorded: naa.5000); "
    )
    assert reason.endswith("in a study of its own (--study)")
    assert () == port.reasons("sdc", None), "nothing was recorded: a study of before"


def test_another_disk_is_refused_before_anything_is_erased(port: Port, tmp_path: Path) -> None:
    port.write("sdb", serial="A")
    port.write("sdc", serial="B")
    recorded, port.leads_to = port.identity("sdb"), "sdc"
    with Ledger.open(tmp_path / "state", "other") as ledger, pytest.raises(DeviceRefused, match=OTHER_DISK):
        prepare(
            port.scratch(recorded),
            ledger=ledger,
            commands=port.commands,
            directory=tmp_path,
            tree=port.tree,
        )
    assert [] == port.commands.called


def test_the_same_disk_is_known_after_a_boot_under_another_kernel_name(port: Port) -> None:
    port.write("sdb", serial="A", diskseq="1")
    recorded = port.identity("sdb")
    port.boot("second")
    port.write("sdb", serial="none here", diskseq="2")
    port.write("sdc", serial="A", diskseq="7")
    assert () == port.reasons("sdc", recorded)


def test_a_disk_without_a_serial_is_known_within_a_boot_by_the_kernels_count(port: Port) -> None:
    # A maker who writes zeros gives no disk a name of its own.
    port.write("sdb", serial="0000", diskseq="1")
    recorded = port.identity("sdb")
    assert recorded.serial is None
    port.write("sdb", serial="0000", diskseq="2")
    (reason,) = port.reasons("sdb", recorded)
    assert "disk sequence number 2 (recorded: 1)" in reason
    port.boot("second")
    assert () == port.reasons("sdb", recorded)


DISKS: dict[str, Callable[[DeviceIdentity], DeviceIdentity]] = {
    "size 1 MiB, 1048576 bytes (recorded: 2 MiB, 2097152 bytes)": lambda it: replace(it, size_bytes=2 << 20),
    "model none (recorded: WDC Red)": lambda it: replace(it, model="WDC Red"),
    "serial none (recorded: A)": lambda it: replace(it, serial="A"),
    "partition 1 (recorded: 2)": lambda it: replace(it, partition=2),
    "partition start 2048 (recorded: 4096)": lambda it: replace(it, partition_start=4096),
    "partition UUID abcd-01 (recorded: abcd-02)": lambda it: replace(it, partition_uuid="abcd-02"),
    "volume UUID none (recorded: LVM-x)": lambda it: replace(it, volume_uuid="LVM-x"),
    "inode of its file none (recorded: 7)": lambda it: replace(it, file_inode=7),
}


@pytest.mark.parametrize("told", DISKS)
def test_what_was_found_is_said_beside_what_was_recorded(port: Port, told: str) -> None:
    port.write("sdb1", start="2048", uevent="DEVTYPE=partition\nPARTUUID=ABCD-01")
    recorded = DISKS[told](port.identity("sdb1"))
    (reason,) = port.reasons("sdb1", recorded)
    assert f"/dev/sdb1, {told}; " in reason


def test_what_only_newer_kernels_tell_makes_no_other_device(port: Port) -> None:
    port.write("sdb1", start="2048")
    recorded = port.identity("sdb1")
    port.write("sdb1", uevent="PARTUUID=abcd-01")
    assert () == port.reasons("sdb1", recorded)
    recorded = port.identity("sdb1")
    port.write("sdb1", uevent="")
    (reason,) = port.reasons("sdb1", recorded)
    assert "partition UUID none (recorded: abcd-01)" in reason
    # Its disk is known by more than that.
    port.write("sdb", serial="A")
    assert () == port.reasons("sdb1", replace(recorded, serial="A"))


def test_a_loop_device_is_known_by_its_file(port: Port, tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).touch()
    folder = port.machine.sys / "block"
    port.machine.disk("loop3", "7:3")
    (folder / "loop3").symlink_to(port.machine.sys / "class/block/loop3")
    port.write("loop3", loop__backing_file=str(tmp_path / "one"), diskseq="1")
    recorded = port.identity("loop3")
    # Detached and attached again.
    port.write("loop3", diskseq="2")
    assert () == port.reasons("loop3", recorded)
    port.write("loop3", loop__backing_file=str(tmp_path / "other"))
    (reason,) = port.reasons("loop3", recorded)
    assert "inode of its file" in reason


@pytest.mark.parametrize(
    ("asked", "opened"), [("sdb1", "8:16"), ("sdb1", "8:17"), ("sdb", "8:17"), ("sdc", "8:32")]
)
def test_a_device_that_a_program_writes_to_is_refused(
    port: Port, monkeypatch: pytest.MonkeyPatch, asked: str, opened: str
) -> None:
    major, _, minor = opened.partition(":")
    wanted = os.makedev(int(major), int(minor))

    def writers(numbers: set[int], *, spared: Sequence[int], proc: Path) -> tuple[str, ...]:
        assert port.machine.proc == proc
        is_seen = wanted in numbers and 4711 not in spared
        return ("process 4711 (qemu) has /dev/vm open for writing",) if is_seen else ()

    monkeypatch.setattr(scratch_device, "writers_of", writers)
    (reason,) = port.reasons(asked, None)
    assert "process 4711 (qemu) has /dev/vm open for writing; end it, or choose another device" in reason
    scratch = port.scratch(None)
    assert () == refusal_reasons(scratch, port.commands, tree=port.tree, spared=(4711,))
