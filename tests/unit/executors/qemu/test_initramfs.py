from __future__ import annotations

import lzma
import stat
from pathlib import Path

import pytest
from tests.support.guests.fake_distribution import elf
from tests.unit.executors.qemu.test_newc import read

from bedplate.errors import RequirementMissing
from bedplate.executors.qemu import slot
from bedplate.executors.qemu.kernels import GuestKernel
from bedplate.executors.qemu.slot import BOOT_MODULES, INIT, make_initramfs

MODULE = b"\x7fELF "
DEPENDENCIES = """\
kernel/drivers/virtio/virtio.ko.xz:
kernel/drivers/virtio/virtio_pci.ko.xz: kernel/drivers/virtio/virtio.ko.xz
kernel/drivers/block/virtio_blk.ko.xz: kernel/drivers/virtio/virtio.ko.xz
kernel/net/9p/9pnet.ko.xz:
kernel/net/9p/9pnet_virtio.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/drivers/virtio/virtio.ko.xz
kernel/fs/9p/9p.ko.xz: kernel/net/9p/9pnet.ko.xz
kernel/fs/overlayfs/overlay.ko.xz:
"""


@pytest.fixture
def guest(tmp_path: Path) -> GuestKernel:
    kernel = GuestKernel("6.12", "6.12.1", tmp_path / "vmlinuz", tmp_path, "a test", "0", None)
    kernel.module_directory.mkdir(parents=True)
    (kernel.module_directory / "modules.dep").write_text(DEPENDENCIES)
    (kernel.module_directory / "modules.builtin").write_text("kernel/drivers/char/virtio_console.ko\n")
    for line in DEPENDENCIES.splitlines():
        path = kernel.module_directory / line.partition(":")[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lzma.compress(MODULE + path.name.encode()))
    return kernel


@pytest.fixture
def busybox(tmp_path: Path) -> Path:
    path = tmp_path / "busybox"
    path.write_bytes(elf(static=True))
    return path


@pytest.fixture
def init(tmp_path: Path) -> Path:
    path = tmp_path / "init.sh"
    path.write_text("#!/bin/busybox sh\n")
    return path


def test_it_holds_all_that_a_guest_starts_with(
    guest: GuestKernel, busybox: Path, init: Path, tmp_path: Path
) -> None:
    target = make_initramfs(guest, target=tmp_path / "initramfs", busybox=busybox, init=init)
    files = {item.name: item for item in read(target.read_bytes())}
    assert files["init"].data == init.read_bytes()
    assert files["init"].mode == stat.S_IFREG | 0o755
    assert files["bin/busybox"].data == busybox.read_bytes()
    assert files["bin/busybox"].mode & 0o111
    assert {"dev", "proc", "sys", "h", "rw", "n", "tmp", "run"} <= set(files)
    assert files["dev/console"].device == (5, 1)
    order = files["m/order"].data.decode().split()
    assert order == [
        *("virtio.ko", "virtio_pci.ko", "virtio_blk.ko"),
        *("9pnet.ko", "9p.ko", "9pnet_virtio.ko", "overlay.ko"),
    ]
    assert {f"m/{name}" for name in order} == {name for name in files if name.endswith(".ko")}
    assert files["m/9p.ko"].data == MODULE + b"9p.ko.xz"


def test_the_same_kernel_makes_the_same_bytes_and_nothing_else_is_left(
    guest: GuestKernel, busybox: Path, init: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    first = make_initramfs(guest, target=folder / "a", busybox=busybox, init=init)
    second = make_initramfs(guest, target=folder / "b", busybox=busybox, init=init)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b"]


def test_an_initramfs_that_fails_leaves_the_old_one(
    guest: GuestKernel, busybox: Path, init: Path, tmp_path: Path
) -> None:
    target = tmp_path / "initramfs"
    target.write_bytes(b"old")
    (guest.module_directory / "kernel/fs/9p/9p.ko.xz").unlink()
    with pytest.raises(RequirementMissing, match=r"9p\.ko\.xz cannot be read"):
        make_initramfs(guest, target=target, busybox=busybox, init=init)
    assert target.read_bytes() == b"old"


def test_modules_that_the_kernel_lacks_are_all_named(
    guest: GuestKernel, busybox: Path, init: Path, tmp_path: Path
) -> None:
    (guest.module_directory / "modules.builtin").write_text("")
    with pytest.raises(RequirementMissing, match="no module virtio_console"):
        make_initramfs(guest, target=tmp_path / "i", busybox=busybox, init=init)


def test_a_guest_needs_a_busybox_that_needs_nothing(
    guest: GuestKernel, init: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dynamic = tmp_path / "dynamic"
    dynamic.write_bytes(elf(static=False))
    with pytest.raises(RequirementMissing, match="needs libraries"):
        make_initramfs(guest, target=tmp_path / "i", busybox=dynamic, init=init)
    monkeypatch.setattr(slot, "find_busybox", lambda _: None)
    with pytest.raises(RequirementMissing, match="busybox-static"):
        make_initramfs(guest, target=tmp_path / "i", init=init)


def test_the_products_init_loads_what_the_initramfs_holds() -> None:
    text = INIT.read_text(encoding="utf-8")
    assert text.startswith("#!/bin/busybox sh\n")
    assert "/m/order" in text
    assert "9p" in text
    assert "overlay" in text
    assert {"9p", "9pnet_virtio", "overlay"} <= set(BOOT_MODULES)
