"""The QEMU command: what is measured depends on these words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bedplate.errors import OutputNotUnderstood
from bedplate.executors.qemu.guest import (
    KVM,
    TCG,
    GuestDisk,
    GuestSpec,
    SharedFolder,
    guest_command,
    qemu_version,
    trial_command,
)
from bedplate.host.command import Commands, Completed
from bedplate.units import GIB, MIB

DATA = GuestDisk("bedplate-data", Path("/srv/data.img"), GIB)
RAM = GuestDisk("bedplate-journal", Path("/dev/shm/journal.img"), 64 * MIB, in_memory=True)


def spec(accelerator: str = TCG, **changes: object) -> GuestSpec:
    values: dict[str, object] = {
        "image": Path("/cache/vmlinuz"),
        "initramfs": Path("/cache/initramfs"),
        "accelerator": accelerator,
        "memory_bytes": 2 * GIB,
        "cpu_count": 2,
        "disks": (DATA,),
        "shares": (
            SharedFolder("share", Path("/srv/a,b"), writable=True),
            SharedFolder("root", Path("/"), writable=False),
        ),
    }
    return GuestSpec(**{**values, **changes})  # type: ignore[arg-type]


def command(asked: GuestSpec) -> tuple[str, ...]:
    return guest_command(asked, console=Path("/srv/con,sole"), visits_socket=7, control=9)


def after(words: tuple[str, ...], option: str) -> list[str]:
    return [words[index + 1] for index, word in enumerate(words) if word == option]


def test_an_image_is_read_and_written_past_the_hosts_page_cache_and_locked() -> None:
    (node,) = map(json.loads, after(command(spec()), "-blockdev"))
    assert {"direct": True, "no-flush": False} == node["cache"] == node["file"]["cache"]
    assert ("file", "/srv/data.img", "on") == (
        node["file"]["driver"],
        node["file"]["filename"],
        node["file"]["locking"],
    )


def test_an_image_in_memory_asks_for_no_direct_io_but_still_for_flushes() -> None:
    node = json.loads(after(command(spec(disks=(DATA, RAM))), "-blockdev")[1])
    assert {"direct": False, "no-flush": False} == node["cache"] == node["file"]["cache"]


def test_disks_have_serials_a_write_cache_and_no_discard() -> None:
    devices = [word for word in after(command(spec(disks=(DATA, RAM))), "-device") if "virtio-blk" in word]
    for disk, device in zip((DATA, RAM), devices, strict=True):
        words = device.split(",")
        assert {f"serial={disk.serial}", "write-cache=on", "discard=off", "write-zeroes=off"} <= set(words)
        assert len(disk.serial) <= 20, "virtio-blk cuts longer serials"


def test_the_hosts_root_is_read_only_and_a_comma_does_not_end_an_option() -> None:
    words = command(spec())
    assert after(words, "-fsdev") == [
        "local,id=share,path=/srv/a,,b,security_model=none,multidevs=remap",
        "local,id=root,path=/,security_model=none,multidevs=remap,readonly=on",
    ]
    assert "file,id=console,path=/srv/con,,sole" in after(words, "-chardev")


@pytest.mark.parametrize("accelerator", [KVM, TCG])
def test_a_panic_ends_qemu(accelerator: str) -> None:
    words = command(spec(accelerator))
    assert "-no-reboot" in words
    said = set(after(words, "-append")[0].split())
    assert {"panic=-1", "oops=panic", "bdev_allow_write_mounted=1"} <= said


def test_a_real_processor_keeps_its_mitigations() -> None:
    assert "mitigations" not in after(command(spec(KVM)), "-append")[0]
    assert "no_timer_check" in after(command(spec(TCG)), "-append")[0].split()
    assert "no_timer_check" not in after(command(spec(KVM)), "-append")[0]
    assert ["host"] == after(command(spec(KVM)), "-cpu")
    assert ["kvm"] == after(command(spec(KVM)), "-accel")
    assert ["tcg,thread=multi"] == after(command(spec(TCG)), "-accel")


def test_an_emulated_processor_is_told_how_fast_its_counter_runs_where_that_is_known() -> None:
    told = after(command(spec(TCG, counter_khz=2_596_122)), "-append")[0].split()
    assert "tsc_early_khz=2596122" in told
    for unknown in (spec(TCG), spec(KVM, counter_khz=2_596_122)):
        assert "tsc_early_khz" not in after(command(unknown), "-append")[0]
    # Measured anew, it differs a little: no reason for another boot.
    assert spec(TCG, counter_khz=2_596_122) == spec(TCG, counter_khz=2_596_121)


def test_memory_is_the_cells_in_whole_mebibytes() -> None:
    assert ["511M"] == after(command(spec(memory_bytes=512 * MIB - 1)), "-m")


def test_sockets_are_handed_over_by_number() -> None:
    chardevs = after(command(spec()), "-chardev")
    assert "socket,id=visits,fd=7" in chardevs
    assert "socket,id=control,fd=9" in chardevs


def test_a_disk_of_another_size_can_stand_in_and_one_elsewhere_cannot() -> None:
    larger = GuestDisk(DATA.serial, DATA.path, 2 * GIB)
    elsewhere = GuestDisk(DATA.serial, Path("/srv/other.img"), GIB)
    assert spec() == spec(disks=(larger,), shares=())
    assert spec() != spec(disks=(elsewhere,))
    assert spec() != spec(disks=(DATA, RAM))
    assert spec() != spec(memory_bytes=GIB)


def test_the_trial_of_kvm_never_falls_back_to_emulation() -> None:
    words = trial_command(Path("/cache/vmlinuz"), console=5)
    assert ["kvm"] == after(words, "-accel")
    assert "earlyprintk=ttyS0" in after(words, "-append")[0]


class Saying(Commands):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def run(self, argv: object, **_: object) -> Completed:
        return Completed(("qemu",), 0, self.text, "", 0.0)


def test_the_version_is_read_and_never_guessed() -> None:
    said = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)\nCopyright (c) 2003-2022 …\n"
    assert "7.2.22" == qemu_version(Saying(said))
    with pytest.raises(OutputNotUnderstood, match="expected a version"):
        qemu_version(Saying("qemu: what?"))
