"""The first root of a guest: a static busybox, the modules that reach the host's root, and /init.

/bin/busybox     static; /init makes its other names (`/bin/busybox --install -s /bin`)
/init            src/bedplate/executors/qemu/init.sh
/m/order         one file name per line, to be given to insmod in this order
/m/*.ko          those modules, decompressed
/dev /proc /sys /h /rw /n /tmp /run     empty; /dev has console and null
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import RequirementMissing
from bedplate.executors.qemu.guest_tools import find_busybox, find_zstd, is_static
from bedplate.executors.qemu.kernel_modules import module_name, read_module
from bedplate.executors.qemu.kernel_parts import modules_of
from bedplate.executors.qemu.newc import archive, character_device, directory, regular_file
from bedplate.host.cache import cache_directory
from bedplate.host.command import Commands

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bedplate.executors.qemu.guest_kernel import GuestKernel
    from bedplate.executors.qemu.newc import CpioEntry

# What stands between the image and the host's root: the PCI devices, the disks, the shares, the layer
# of memory over the root, and the port that the agent is spoken to through.
BOOT_MODULES = ("virtio_pci", "virtio_blk", "9p", "9pnet_virtio", "overlay", "virtio_console")
INIT = Path(__file__).with_name("init.sh")
_FOLDERS = ("bin", "dev", "h", "m", "n", "proc", "run", "rw", "sys", "tmp")


def make_initramfs(
    kernel: GuestKernel,
    *,
    target: Path,
    busybox: Path | None = None,
    init: Path = INIT,
    modules: Sequence[str] = BOOT_MODULES,
    cache: Path | None = None,
) -> Path:
    """Write the initramfs of `kernel` to `target` in one step, and answer with it.

    `busybox` is a static one, by default the machine's or the one in the cache (`ensure_kernel` put it
    there). RequirementMissing where there is none, or where the kernel lacks one of `modules`.
    """
    cache = cache or cache_directory()
    busybox = busybox or find_busybox(cache)
    if busybox is None:
        raise RequirementMissing(
            "no static busybox was found, which a guest starts with; install the package busybox-static, "
            "or fetch the guest's kernel again"
        )
    if not is_static(busybox):
        raise RequirementMissing(f"{busybox} needs libraries, and a guest starts without any")
    entries = (
        *(directory(name) for name in _FOLDERS),
        character_device("dev/console", 5, 1),
        character_device("dev/null", 1, 3, 0o666),
        regular_file("bin/busybox", busybox.read_bytes(), 0o755),
        regular_file("init", init.read_bytes(), 0o755),
        *_module_files(kernel, modules, cache),
    )
    _write_whole(target, archive(entries))
    return target


def _module_files(kernel: GuestKernel, names: Sequence[str], cache: Path) -> Iterator[CpioEntry]:
    zstd = find_zstd(cache)
    commands = Commands()
    loaded = []
    for path in modules_of(kernel).load_order(names):
        data = read_module(path, commands=commands, zstd=zstd)
        loaded.append(f"{module_name(path.name)}.ko")
        yield regular_file(f"m/{loaded[-1]}", data)
    yield regular_file("m/order", "".join(f"{name}\n" for name in loaded).encode())


def _write_whole(target: Path, data: bytes) -> None:
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        temporary.chmod(0o644)
        temporary.rename(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
