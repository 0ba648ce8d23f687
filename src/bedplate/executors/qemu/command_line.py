"""The QEMU command of a guest and of a trial of KVM: argument lists made of records."""

from __future__ import annotations

import json
import re
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood
from bedplate.host.requirement import Need
from bedplate.units import MIB

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.host.command import Commands
    from bedplate.host.devices.device_node import DeviceNode

PROGRAM = "qemu-system-x86_64"
NEEDS = (
    Need(PROGRAM, "qemu-system-x86", "runs the guest that visits run in"),
    Need("setpriv", "util-linux", "lets a guest die with bedplate"),
)
KVM = "kvm"
TCG = "tcg"
VISITS_PORT = "bedplate.visits"
_TRIAL_MEMORY_BYTES = 256 * MIB
_VERSION = re.compile(r"QEMU emulator version (\S+)")


@dataclass(frozen=True)
class SharedFolder:
    """A folder of the host's that the guest mounts by its tag."""

    tag: str
    path: Path
    writable: bool


@dataclass(frozen=True)
class GuestDisk:
    """A disk of the guest: `/dev/disk/by-id/virtio-<serial>` in it, an image or a device on the host.

    Two that are equal can stand in for each other in a running guest: a size can be changed there. `hold` keeps a device
    of the host open while a visit has it, so that `path` stays the device that was looked at.
    """

    serial: str
    path: Path
    size_bytes: int = field(compare=False)
    in_memory: bool = False
    hold: DeviceNode | None = field(default=None, compare=False, repr=False)

    @property
    def is_what_it_was(self) -> bool:
        """Whether its path leads to the device that was looked at; always of an image."""
        return self.hold is None or self.hold.is_at(self.path)

    @property
    def device(self) -> str:
        """The stable name in the guest."""
        return f"/dev/disk/by-id/virtio-{self.serial}"


@dataclass(frozen=True)
class GuestSpec:
    """What a guest is made of; visits whose specs are equal may share a boot.

    The shares are made for one boot, so they do not count; nor does `counter_khz`, the rate of the host's timestamp counter, which is
    measured anew for each and None where it cannot be.
    """

    image: Path
    initramfs: Path
    accelerator: str
    memory_bytes: int
    cpu_count: int
    disks: tuple[GuestDisk, ...]
    shares: tuple[SharedFolder, ...] = field(compare=False, default=())
    counter_khz: int | None = field(compare=False, default=None)


def qemu_version(commands: Commands) -> str:
    """`7.2.22`; OutputNotUnderstood if QEMU says none, CommandFailed if it is not there."""
    said = commands.run([PROGRAM, "--version"]).stdout
    found = _VERSION.search(said)
    if found is None:
        raise OutputNotUnderstood(PROGRAM, expected="a version", found=said)
    return found[1]


def guest_command(spec: GuestSpec, *, console: Path, visits: int, control: int) -> tuple[str, ...]:
    """The whole command; `visits` and `control` are file descriptors of connected sockets."""
    words = [
        PROGRAM,
        *_machine(spec.accelerator, spec.memory_bytes),
        *("-smp", str(spec.cpu_count)),
        *("-kernel", str(spec.image)),
        *("-initrd", str(spec.initramfs)),
        *("-append", _kernel_words(spec.accelerator, spec.counter_khz)),
        *("-chardev", f"file,id=console,path={_escaped(console)}"),
        *("-serial", "chardev:console"),
        *("-chardev", f"socket,id=control,fd={control}"),
        *("-mon", "chardev=control,mode=control"),
        *("-device", "virtio-serial-pci"),
        *("-chardev", f"socket,id=visits,fd={visits}"),
        *("-device", f"virtserialport,chardev=visits,name={VISITS_PORT}"),
    ]
    for share in spec.shares:
        access = "" if share.writable else ",readonly=on"
        words += [
            *(
                "-fsdev",
                f"local,id={share.tag},path={_escaped(share.path)},security_model=none,multidevs=remap{access}",
            ),
            *("-device", f"virtio-9p-pci,fsdev={share.tag},mount_tag={share.tag}"),
        ]
    for disk in spec.disks:
        words += ["-blockdev", json.dumps(_node(disk)), "-device", _device(disk)]
    return tuple(words)


def trial_command(image: Path, *, console: int) -> tuple[str, ...]:
    """A kernel under KVM with nothing else, that says its version on the socket `console` early."""
    return (
        PROGRAM,
        *_machine(KVM, _TRIAL_MEMORY_BYTES),
        *("-kernel", str(image)),
        *("-append", "console=ttyS0 earlyprintk=ttyS0 panic=-1"),
        *("-chardev", f"socket,id=console,fd={console}"),
        *("-serial", "chardev:console"),
    )


def _machine(accelerator: str, memory_bytes: int) -> tuple[str, ...]:
    # q35: under TCG a microvm finds no clock to calibrate its own by, now and then.
    cpu = "host" if accelerator == KVM else "max"
    threads = "" if accelerator == KVM else ",thread=multi"
    return (
        *("-machine", "q35"),
        *("-accel", f"{accelerator}{threads}"),
        *("-cpu", cpu),
        *("-m", f"{memory_bytes // MIB}M"),
        *("-nodefaults", "-no-user-config"),
        *("-display", "none"),
        # With panic=-1 a panic ends QEMU at once.
        "-no-reboot",
    )


def _kernel_words(accelerator: str, counter_khz: int | None) -> str:
    words = ["console=ttyS0", "quiet", "panic=-1", "oops=panic"]
    # Since 6.8 a kernel may be built to mount nothing that is open for writing, and nobody writes to what is mounted (block/bdev.c). What
    # looks at a file system's device meanwhile would be taken for damage of it.
    words += ["bdev_allow_write_mounted=1"]
    if accelerator == TCG:
        # An emulated processor leaks nothing, and its watchdogs bark at the host's load.
        words += ["mitigations=off", "nokaslr", "nowatchdog", "tsc=reliable"]
        # On a busy host ten ticks do not come when they are counted, and the kernel would panic at its
        # boot ("IO-APIC + timer doesn't work"); QEMU's timer is known to be connected.
        words += ["no_timer_check"]
        if counter_khz is not None:
            # What the kernel measures itself on a busy host may be many times too low, and its clock runs so much too fast.
            words += [f"tsc_early_khz={counter_khz}"]
    return " ".join(words)


def _node(disk: GuestDisk) -> dict[str, object]:
    """Direct I/O, so that the host's page cache is not measured; tmpfs has none to be had."""
    return {
        "driver": "raw",
        "node-name": disk.serial,
        "cache": {"direct": not disk.in_memory, "no-flush": False},
        "file": {
            "driver": "host_device" if _is_block_device(disk.path) else "file",
            "filename": str(disk.path),
            # Another guest on the same image is refused; without locks it would not be.
            "locking": "on",
            "cache": {"direct": not disk.in_memory, "no-flush": False},
        },
    }


def _device(disk: GuestDisk) -> str:
    # A discard would punch holes into the image, and filling them would be measured.
    return (
        f"virtio-blk-pci,id={disk.serial},drive={disk.serial},serial={disk.serial},"
        "write-cache=on,discard=off,write-zeroes=off"
    )


def _is_block_device(path: Path) -> bool:
    try:
        return stat.S_ISBLK(path.stat().st_mode)
    except OSError:
        return False


def _escaped(path: Path) -> str:
    """A comma would end QEMU's option, two stand for one."""
    return str(path).replace(",", ",,")
