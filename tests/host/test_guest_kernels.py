"""Real packages from this machine's mirror, and the kernels that are in its cache, booted."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.guests.guest_lab import guest_lab
from tests.support.tools.patience import AT_MOST_S

from bedplate.errors import RequirementMissing
from bedplate.executors.qemu.guest import GuestFailed
from bedplate.executors.qemu.kernels import (
    GuestKernel,
    ModuleTree,
    find_busybox,
    find_kernel,
    guest_machine,
    is_static,
    known_kernels,
)
from bedplate.executors.qemu.own_kernel import release_in_image
from bedplate.executors.qemu.slot import make_initramfs
from bedplate.host.apt import PackageTree, ensure_package_tree
from bedplate.host.command import Commands
from bedplate.host.facts import read_machine
from bedplate.host.files import cache_directory
from bedplate.host.requirement import find_tool
from bedplate.units import GIB

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

# Loads what the initramfs holds, says what became of it, and switches the guest off.
INIT = """\
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t devtmpfs devtmpfs /dev; mount -t proc proc /proc
exec >/dev/console 2>&1
loaded=0
while read -r module; do insmod "/m/$module" && loaded=$((loaded + 1)); done </m/order
echo "reached $(uname -r) with $loaded of $(wc -l </m/order) and $(grep -c -w -e 9p -e overlay /proc/filesystems)"
poweroff -f
"""
KERNELS = known_kernels(cache_directory())
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=[item.release for item in KERNELS])


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> PackageTree:
    """busybox and kmod from the mirror, in a cache of their own."""
    try:
        return ensure_package_tree(
            ("busybox-static", "kmod"),
            cache_directory=tmp_path_factory.mktemp("cache"),
            commands=Commands(),
            progress=lambda _: None,
        )
    except RequirementMissing as error:
        pytest.skip(f"no packages to be had: {'; '.join(error.reasons)}")


def test_programs_of_a_tree_run(tools: PackageTree) -> None:
    busybox = tools.demand_program("busybox")
    assert is_static(busybox)
    assert Commands().run([str(busybox), "echo", "it runs"]).stdout == "it runs\n"
    depmod = tools.demand_program("depmod")
    assert "kmod version" in Commands().run([str(depmod), "-V"], extra_environment=tools.environment).stdout


@each_kernel
def test_a_kernel_in_the_cache_is_whole(kernel: GuestKernel) -> None:
    assert release_in_image(kernel.image) == kernel.release
    modules = ModuleTree(kernel.module_directory)
    assert all((kernel.module_directory / path).is_file() for path in modules.dependencies)
    types = guest_machine(kernel, memory_bytes=GIB, host=read_machine()).filesystems
    assert {"ext4", "xfs", "btrfs", "jfs", "nilfs2", "f2fs", "fuse", "9p"} <= set(types)
    found = find_kernel(kernel.release, cache_directory=cache_directory())
    assert found == kernel


@each_kernel
def test_a_kernel_boots_to_init_with_all_its_modules(kernel: GuestKernel, tmp_path: Path) -> None:
    qemu = find_tool("qemu-system-x86_64")
    if qemu is None or find_busybox(cache_directory()) is None:
        pytest.skip("needs qemu-system-x86_64 and a static busybox")
    init = tmp_path / "init"
    init.write_text(INIT, encoding="utf-8")
    image = make_initramfs(kernel, target=tmp_path / "initramfs", init=init)
    words = (
        "-M q35 -accel tcg,thread=multi -cpu max -m 512M -nodefaults -no-user-config -display none -no-reboot"
    )
    argv = [str(qemu), *words.split(), "-kernel", str(kernel.image), "-initrd", str(image)]
    argv += ["-append", "console=ttyS0 quiet panic=-1 mitigations=off nokaslr", "-serial", "stdio"]
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=AT_MOST_S,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    assert f"reached {kernel.release} with " in done.stdout, done.stdout[-2000:]
    words_said = done.stdout.partition(f"reached {kernel.release} with ")[2].split()
    assert words_said[0] == words_said[2] != "0"
    assert words_said[4] == "2"


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """The image of a stock kernel that a user names: a file, and nothing beside it."""
    if not KERNELS:
        pytest.skip("no kernel is in the cache")
    return Path(shutil.copy(KERNELS[-1].image, tmp_path / "bzImage"))


def test_a_stock_kernel_without_its_modules_is_refused_by_its_configuration(alone: Path) -> None:
    kernel = KERNELS[-1]
    assert kernel.configuration is not None
    (alone.parent / f"config-{kernel.release}").write_text(kernel.configuration.text)
    with pytest.raises(RequirementMissing) as refused:
        find_kernel(str(alone), cache_directory=cache_directory())
    reasons = "; ".join(refused.value.reasons)
    assert "CONFIG_9P_FS is a module (=m), and no modules are beside the image" in reasons
    assert "CONFIG_VIRTIO_BLK is a module (=m)" in reasons
    assert "CONFIG_DEVTMPFS" not in reasons


def test_a_stock_kernel_whose_configuration_nobody_knows_says_in_its_guest_what_it_lacks(alone: Path) -> None:
    kernel = find_kernel(str(alone), cache_directory=cache_directory())
    assert kernel is not None
    assert (kernel.release, kernel.modules, kernel.configuration) == (KERNELS[-1].release, None, None)
    with guest_lab() as lab:
        executor = lab.executor(find=lambda *_, **__: kernel)
        with pytest.raises(GuestFailed) as failed:
            lab.live(executor, lab.deed("nothing"))
    said = failed.value.reasons[0]
    assert f"its kernel {kernel.release} lacks" in said
    assert {"CONFIG_9P_FS", "CONFIG_VIRTIO_BLK", "CONFIG_OVERLAY_FS"} <= set(said.split())
