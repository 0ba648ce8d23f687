from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bedplate.errors import RequirementMissing, VerifyFailed
from bedplate.host.block_tree import BlockTree
from bedplate.host.ledger import Ledger
from bedplate.host.scratch_device import AttachedDevice
from bedplate.host.tunables import queue_settings, restore_all, set_tunable, tuned

if TYPE_CHECKING:
    from collections.abc import Iterator


class Machine:
    """A /sys and /proc of the test's own: sda (sda1 EFI, sda2 array), sdb, md0 on both, LVM on it."""

    def __init__(self, base: Path) -> None:
        self.sys, self.proc, self.dev = base / "sys", base / "proc", base / "dev"
        for folder in ("class/block", "dev/block", "devices"):
            (self.sys / folder).mkdir(parents=True)
        (self.proc / "self").mkdir(parents=True)
        self.dev.mkdir()
        self.mounts("")
        self.swaps("")
        self.tree = BlockTree(self.sys, self.proc, self.dev)

    def disk(self, name: str, number: str, *, parent: str | None = None, mapped: str | None = None) -> None:
        folder = self.sys / "devices" / (f"{parent}/{name}" if parent else name)
        for child in ("holders", "slaves"):
            (folder / child).mkdir(parents=True)
        (folder / "dev").write_text(number + "\n")
        (folder / "size").write_text("2048\n")
        (folder / "ro").write_text("0\n")
        if parent:
            (folder / "partition").write_text("1\n")
        if mapped:
            (folder / "dm").mkdir()
            (folder / "dm/name").write_text(mapped + "\n")
        (self.sys / "class/block" / name).symlink_to(folder)
        (self.sys / "dev/block" / number).symlink_to(folder)

    def queue(self, name: str, **values: str) -> Path:
        queue = self.sys / "class/block" / name / "queue"
        queue.mkdir()
        for key, value in values.items():
            (queue / key).write_text(value + "\n")
        return queue

    def stack(self, upper: str, lower: str) -> None:
        (self.sys / "class/block" / lower / "holders" / upper).mkdir()
        (self.sys / "class/block" / upper / "slaves" / lower).mkdir()

    def mounts(self, *lines: str) -> None:
        text = "".join(f"{21 + i} 1 {line}\n" for i, line in enumerate(lines) if line)
        (self.proc / "self/mountinfo").write_text(text)

    def process(self, pid: str, name: str, namespace: str, *mounts: str) -> None:
        """With a table of its own, or `self`, which keeps its."""
        folder = self.proc / pid
        (folder / "ns").mkdir(parents=True)
        (folder / "ns/mnt").symlink_to(namespace)
        (folder / "comm").write_text(name + "\n")
        if pid != "self":
            (folder / "mountinfo").write_text(
                "".join(f"{21 + i} 1 {line}\n" for i, line in enumerate(mounts))
            )

    def swaps(self, *lines: str) -> None:
        rows = ["Filename Type Size Used Priority", *(line for line in lines if line)]
        (self.proc / "swaps").write_text("\n".join(rows) + "\n")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.disk("sda", "8:0")
    made.disk("sda1", "8:1", parent="sda")
    made.disk("sda2", "8:2", parent="sda")
    made.disk("sdb", "8:16")
    made.disk("md0", "9:0")
    made.disk("dm-0", "253:0", mapped="group-root")
    made.disk("dm-1", "253:1", mapped="group-scratch")
    made.stack("md0", "sda2")
    made.stack("md0", "sdb")
    made.stack("dm-0", "md0")
    made.stack("dm-1", "md0")
    made.mounts("253:0 / / rw - ext4 /dev/mapper/group-root rw", "0:5 / /proc rw - proc proc rw")
    return made


def test_root_is_followed_through_volumes_and_arrays_to_every_disk(machine: Machine) -> None:
    assert {"dm-0", "md0", "sda2", "sda", "sdb"} == machine.tree.under_root()


def test_another_volume_of_roots_group_does_not_carry_root(machine: Machine) -> None:
    assert "dm-1" not in machine.tree.under_root()
    assert () == machine.tree.users("dm-1")


def test_member_names_what_is_made_of_it(machine: Machine) -> None:
    assert ("/dev/sdb is part of /dev/md0; take that apart first",) == machine.tree.users("sdb")
    assert (
        "/dev/md0 is part of /dev/mapper/group-root; take that apart first",
        "/dev/md0 is part of /dev/mapper/group-scratch; take that apart first",
    ) == machine.tree.users("md0")


def test_partition_knows_its_disk_and_the_disk_its_partitions(machine: Machine) -> None:
    assert ("sda", ("sda1", "sda2")) == (machine.tree.disk_of("sda1"), machine.tree.partitions("sda"))
    assert ("sdb", ()) == (machine.tree.disk_of("sdb"), machine.tree.partitions("sdb"))


def test_mount_with_a_blank_in_its_target_is_seen(machine: Machine) -> None:
    machine.mounts(r"8:1 / /boot\040x rw - vfat /dev/sda1 rw")
    assert ("/dev/sda1 is mounted on /boot x",) == machine.tree.users("sda1")
    assert () == machine.tree.users("sda")


def test_second_device_of_a_mounted_btrfs_is_in_use(machine: Machine) -> None:
    member = machine.sys / "fs/btrfs/1b0e/devices/sdb"
    member.mkdir(parents=True)
    (machine.sys / "class/block/sdb/holders/md0").rmdir()
    assert ("/dev/sdb belongs to the btrfs file system 1b0e, which is mounted",) == machine.tree.users("sdb")


def test_source_that_is_a_word_is_no_file_of_the_working_directory(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path | str] = []
    monkeypatch.setattr(BlockTree, "name_at", lambda _tree, path: asked.append(path))
    machine.mounts("0:40 / / rw - tmpfs tmpfs rw", "0:41 / /usr rw - btrfs /dev/sdz rw")
    assert frozenset() == machine.tree.under_root()
    assert ["/dev/sdz"] == asked


def _attached(name: str, queue_name: str, image: Path | None = None) -> AttachedDevice:
    return AttachedDevice(f"/dev/{name}", name, queue_name, 1 << 20, image)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "state", "queue") as opened:
        yield opened
        for holding in opened.holdings():
            opened.settled(holding)


def test_queue_of_a_shared_disk_is_not_changed_and_every_other_user_is_named(
    machine: Machine, ledger: Ledger
) -> None:
    queue = machine.queue(
        "sda", read_ahead_kb="128", scheduler="[none] mq-deadline", write_cache="write back"
    )
    machine.mounts("8:1 / /boot rw - vfat /dev/sda1 rw")
    with pytest.raises(RequirementMissing) as raised:
        queue_settings(
            _attached("sda2", "sda"),
            read_ahead_kb=4096,
            scheduler="mq-deadline",
            write_back=False,
            ledger=ledger,
            tree=machine.tree,
        )
    assert 3 == len(raised.value.reasons)
    assert all("/dev/sda1 is mounted on /boot" in reason for reason in raised.value.reasons)
    assert "128\n" == (queue / "read_ahead_kb").read_text()
    assert () == ledger.holdings()


def test_queue_of_a_disk_is_not_changed_under_a_mount_that_the_visit_s_own_namespace_has_let_go_of(
    machine: Machine, ledger: Ledger
) -> None:
    """Without flushes a power cut would cost what was written to /data meanwhile."""
    queue = machine.queue("sda", read_ahead_kb="128", scheduler="[none]", write_cache="write back")
    others = ("253:0 / / rw - ext4 /dev/mapper/group-root rw", "8:1 / /data rw - ext4 /dev/sda1 rw")
    machine.process("1", "systemd", "mnt:[1]", *others)
    machine.process("7", "sshd", "mnt:[1]", *others)
    machine.process("self", "bedplate", "mnt:[2]")
    with pytest.raises(RequirementMissing) as raised:
        queue_settings(
            _attached("sda2", "sda"),
            read_ahead_kb=None,
            scheduler=None,
            write_back=False,
            ledger=ledger,
            tree=machine.tree,
        )
    (reason,) = raised.value.reasons
    where = "/data in the mount namespace of process 1 (systemd), process 7 (sshd)"
    assert reason.endswith(f"but /dev/sda1 is mounted on {where}")
    assert "write back\n" == (queue / "write_cache").read_text()
    assert () == ledger.holdings()


def test_what_is_mounted_here_too_is_named_once(machine: Machine) -> None:
    machine.mounts("8:1 / /data rw - ext4 /dev/sda1 rw")
    machine.process("self", "bedplate", "mnt:[1]")
    for pid in ("2", "3"):
        machine.process(pid, "daemon", f"mnt:[{pid}]", "8:1 / /data rw - ext4 /dev/sda1 rw")
    assert ("/dev/sda1 is mounted on /data",) == machine.tree.users_of_queue(
        "sdb"
    ) + machine.tree.users_of_queue("sda2")


def test_queue_of_a_shared_disk_may_stay_as_it_is(machine: Machine, ledger: Ledger) -> None:
    machine.queue("sda", read_ahead_kb="128", scheduler="[none] mq-deadline", write_cache="write back")
    machine.mounts("8:1 / /boot rw - vfat /dev/sda1 rw")
    found = queue_settings(
        _attached("sda2", "sda"),
        read_ahead_kb=128,
        scheduler=None,
        write_back=True,
        ledger=ledger,
        tree=machine.tree,
    )
    facts = {item.name: (item.asked, item.effective, item.matches) for item in found}
    assert (128, 128, True) == facts["device.read_ahead_kb"]
    assert (None, "none", None) == facts["device.scheduler"]
    assert ("write back", "write back", True) == facts["device.write_cache"]


def test_every_setting_that_does_not_read_back_is_told(machine: Machine, ledger: Ledger) -> None:
    queue = machine.queue("sdb", read_ahead_kb="128", scheduler="[none]", write_cache="write back")
    (machine.sys / "class/block/sdb/holders/md0").rmdir()
    queue.joinpath("scheduler").unlink()
    queue.joinpath("scheduler").symlink_to("/dev/null")
    with pytest.raises(VerifyFailed) as raised:
        queue_settings(
            _attached("sdb", "sdb"),
            read_ahead_kb=64,
            scheduler="kyber",
            write_back=False,
            ledger=ledger,
            tree=machine.tree,
        )
    assert 1 == len(raised.value.reasons)
    assert "asked for 'kyber', effective is ''" in raised.value.reasons[0]


def test_dirty_bytes_come_back_as_the_ratio_that_was_in_force(tmp_path: Path, ledger: Ledger) -> None:
    """Zero cannot be written to dirty_bytes: writing dirty_ratio is the way back."""
    (tmp_path / "dirty_bytes").write_text("0\n")
    (tmp_path / "dirty_ratio").write_text("20\n")
    set_tunable(tmp_path / "dirty_bytes", "1000000", ledger=ledger)
    (tmp_path / "dirty_ratio").write_text("0\n")  # what the kernel does
    set_tunable(tmp_path / "dirty_bytes", "2000000", ledger=ledger)
    assert () == restore_all(ledger)
    assert "20" == (tmp_path / "dirty_ratio").read_text().strip()


def test_tuned_values_end_with_the_block_even_by_an_error(tmp_path: Path, ledger: Ledger) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("1\n")
    two.write_text("[a] b\n")

    def inside() -> None:
        with tuned(ledger, {one: "5", two: "b"}) as done:
            assert [("1", "5", "5"), ("a", "b", "b")] == [(t.before, t.asked, t.effective) for t in done]
            assert 2 == len(ledger.holdings())
            raise KeyError

    with pytest.raises(KeyError):
        inside()
    assert ("1", "a") == (one.read_text(), two.read_text())
    assert () == ledger.holdings()


def test_setting_that_the_kernel_lacks_is_a_requirement(tmp_path: Path, ledger: Ledger) -> None:
    with pytest.raises(RequirementMissing, match="this kernel lacks it"):
        set_tunable(tmp_path / "absent", "1", ledger=ledger)
    assert () == ledger.holdings()


def test_sectors_are_those_of_the_disk_under_a_file_whatever_the_loop_device_says(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    number = tmp_path.stat().st_dev
    machine.disk("sda", f"{os.major(number)}:{os.minor(number)}")
    machine.queue("sda", physical_block_size="4096")
    machine.disk("loop3", "7:3")
    machine.queue("loop3", physical_block_size="512")
    backing = machine.sys / "class/block/loop3/loop"
    backing.mkdir()
    (backing / "backing_file").write_text(f"{tmp_path / 'sys'}\n")
    assert (4096, 4096) == (machine.tree.sectors_under("sda"), machine.tree.sectors_under("loop3"))
    assert 4096 == machine.tree.sectors_at(tmp_path / "sys")
    assert machine.tree.sectors_at(Path("/nowhere/disk.img")) is None


@pytest.mark.parametrize(
    ("mounted", "expected"), [("8:0 / {} rw - btrfs", 4096), ("0:77 / {} rw - tmpfs", None)]
)
def test_a_file_with_a_number_of_its_own_lies_on_what_is_mounted_nearest(
    tmp_path: Path, mounted: str, expected: int | None
) -> None:
    machine = Machine(tmp_path)
    machine.disk("sda", "8:0")
    machine.queue("sda", physical_block_size="4096")
    machine.disk("loop3", "7:3")
    folder = machine.sys / "class/block/loop3/loop"
    folder.mkdir()
    (folder / "backing_file").write_text(f"{tmp_path / 'sys'}\n")
    machine.mounts("0:1 / / rw - tmpfs none rw", f"{mounted.format(tmp_path)} none rw")
    assert expected == machine.tree.sectors_under("loop3")


def test_a_loop_device_whose_file_is_gone_has_no_known_sectors(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.disk("loop3", "7:3")
    machine.queue("loop3", physical_block_size="512")
    folder = machine.sys / "class/block/loop3/loop"
    folder.mkdir()
    (folder / "backing_file").write_text("/nowhere/disk.img (deleted)\n")
    assert machine.tree.sectors_under("loop3") is None
