"""Which options of a kernel's configuration a guest needs, what for, and which of them a kernel lacks.

What is in the first table is used by every guest (`init.sh`, `agent.sh`, `command_line.py`) or by every visit; without one of these it does not
boot, or no visit runs. The others are needed by what a plan may ask for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.executors.qemu.own_kernel.configuration import MODULE, NOT_SET

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bedplate.executors.qemu.own_kernel.configuration import Configuration


@dataclass(frozen=True)
class NeededOption:
    """An option, without CONFIG_, and what it is for. `alternatives` serve as well. A module serves where `as_module`."""

    name: str
    purpose: str
    as_module: bool = False
    alternatives: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """`CONFIG_EXT2_FS or CONFIG_EXT4_USE_FOR_EXT2`."""
        return " or ".join(f"CONFIG_{name}" for name in (self.name, *self.alternatives))


_RUNS = "runs the host's programs"
_CONSOLE = "the guest's console"
_DISKS = "the guest's disks"
_SHARES = "the folders of the host"
_SERVERS = "servers and their clients"

# What a visit starts is shut in by these (`host/shut_in/`). A program that is kept from less would be measured otherwise.
SHUT_IN = (
    NeededOption("NAMESPACES", "what programs of others are kept from: all that follows"),
    NeededOption("PID_NS", "what programs of others are kept from: other processes"),
    NeededOption("NET_NS", "what programs of others are kept from: the network"),
    NeededOption("IPC_NS", "what programs of others are kept from: shared memory of other programs"),
    # SECCOMP_FILTER follows from this one and NET, and nobody sets it.
    NeededOption("SECCOMP", "what programs of others are kept from: system calls"),
)
EVERY_GUEST = (
    NeededOption("64BIT", _RUNS),
    NeededOption("PCI", "the devices of QEMU's machine"),
    NeededOption("ACPI", "the processors and interrupts of QEMU's machine"),
    NeededOption("PRINTK", _CONSOLE),
    NeededOption("TTY", _CONSOLE),
    NeededOption("SERIAL_8250_CONSOLE", _CONSOLE),
    NeededOption("BLK_DEV_INITRD", "the first root of the guest"),
    NeededOption("BINFMT_ELF", _RUNS),
    NeededOption("BINFMT_SCRIPT", "the first program of the guest, a script"),
    NeededOption("DEVTMPFS", "the files of devices"),
    NeededOption("PROC_FS", "what the kernel says of itself"),
    NeededOption("PROC_SYSCTL", "what the kernel says of itself"),
    NeededOption("SYSFS", "what the kernel says of its devices"),
    NeededOption("SHMEM", "memory of the guest's own, over the host's root"),
    NeededOption("TMPFS", "memory of the guest's own, over the host's root"),
    NeededOption("OVERLAY_FS", "memory of the guest's own, over the host's root", as_module=True),
    NeededOption("BLOCK", _DISKS),
    NeededOption("BLK_DEV", _DISKS),
    NeededOption("VIRTIO_PCI", "disks, shared folders and the agent's port", as_module=True),
    NeededOption("VIRTIO_BLK", _DISKS, as_module=True),
    NeededOption("VIRTIO_CONSOLE", "the port of the agent", as_module=True),
    NeededOption("NET", _SHARES),
    NeededOption("NET_9P", _SHARES, as_module=True),
    NeededOption("NET_9P_VIRTIO", _SHARES, as_module=True),
    NeededOption("9P_FS", _SHARES, as_module=True),
    NeededOption("MULTIUSER", "a server's own account"),
    NeededOption("FILE_LOCKING", _SERVERS),
    NeededOption("UNIX", _SERVERS),
    NeededOption("INET", _SERVERS),
    NeededOption("SYSVIPC", _SERVERS),
    NeededOption("FUTEX", _SERVERS),
    NeededOption("EPOLL", _SERVERS),
    NeededOption("EVENTFD", _SERVERS),
    NeededOption("SIGNALFD", _SERVERS),
    NeededOption("TIMERFD", _SERVERS),
    NeededOption("POSIX_TIMERS", _SERVERS),
    NeededOption("ADVISE_SYSCALLS", "forgetting what is in the page cache"),
    NeededOption("CGROUPS", "the CPU time of a visit"),
    *SHUT_IN,
)
# Power cuts and failing disks: the recorder is a file system in user space, and loop devices go above its disk.
RECORDER = (
    NeededOption("FUSE_FS", "the recorder of power cuts", as_module=True),
    NeededOption("BLK_DEV_LOOP", "the recorder of power cuts", as_module=True),
)
# By the type in a plan.
FILESYSTEMS: Mapping[str, NeededOption] = {
    "ext2": NeededOption("EXT2_FS", "ext2", as_module=True, alternatives=("EXT4_USE_FOR_EXT2",)),
    "ext3": NeededOption("EXT4_FS", "ext3", as_module=True),
    "ext4": NeededOption("EXT4_FS", "ext4", as_module=True),
    "xfs": NeededOption("XFS_FS", "xfs", as_module=True),
    "btrfs": NeededOption("BTRFS_FS", "btrfs", as_module=True),
    "f2fs": NeededOption("F2FS_FS", "f2fs", as_module=True),
    "jfs": NeededOption("JFS_FS", "jfs", as_module=True),
    "nilfs2": NeededOption("NILFS2_FS", "nilfs2", as_module=True),
    "reiserfs": NeededOption("REISERFS_FS", "reiserfs", as_module=True),
    "bcachefs": NeededOption("BCACHEFS_FS", "bcachefs", as_module=True),
    "ntfs3": NeededOption("NTFS3_FS", "ntfs3", as_module=True),
    "ntfs-3g": NeededOption("FUSE_FS", "ntfs-3g", as_module=True),
}
SCHEDULERS: Mapping[str, NeededOption] = {
    "mq-deadline": NeededOption("MQ_IOSCHED_DEADLINE", "mq-deadline", as_module=True),
    "kyber": NeededOption("MQ_IOSCHED_KYBER", "kyber", as_module=True),
    "bfq": NeededOption("IOSCHED_BFQ", "bfq", as_module=True),
}
# A guest of `vmlinux` is begun by another way.
VMLINUX = (NeededOption("PVH", "QEMU begins a vmlinux by it; a bzImage needs none"),)


def has(configuration: Configuration, needed: NeededOption, *, with_modules: bool) -> bool:
    """Whether the kernel has the option, or one that serves as well."""
    as_module = needed.as_module and with_modules
    return any(configuration.has(name, as_module=as_module) for name in (needed.name, *needed.alternatives))


def lacking(
    configuration: Configuration, needed: Iterable[NeededOption], *, with_modules: bool
) -> Iterator[str]:
    """A sentence for each option that a kernel lacks: what was found, what it is for."""
    for option in needed:
        if has(configuration, option, with_modules=with_modules):
            continue
        found = configuration.value(option.name)
        if found == MODULE:
            why = (
                "a module (=m), and must be built in"
                if with_modules
                else "a module (=m), and no modules are beside the image"
            )
        else:
            why = "not set" if found == NOT_SET else found
        yield f"{option.words} is {why}: {option.purpose}"
