from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from tests.support.guests.own_kernels import guest_configuration, packed_image

from bedplate.executors.qemu.own_kernel import (
    EVERY_GUEST,
    FILESYSTEMS,
    RECORDER,
    SCHEDULERS,
    SHUT_IN,
    AllBuiltIn,
    Configuration,
    WantedConfiguration,
    embedded_configuration,
    lacking,
    lacking_by_console,
)
from bedplate.executors.qemu.slot import BOOT_MODULES, INIT
from bedplate.host import shut_in
from bedplate.host.command import Commands
from bedplate.host.facts import SCHEDULER_MODULES
from bedplate.model.filesystem import TRAITS

# What init.sh needs as a module is what its option is called.
OPTION_OF_MODULE = {
    "virtio_pci": "VIRTIO_PCI",
    "virtio_blk": "VIRTIO_BLK",
    "9p": "9P_FS",
    "9pnet_virtio": "NET_9P_VIRTIO",
    "overlay": "OVERLAY_FS",
    "virtio_console": "VIRTIO_CONSOLE",
}


def configuration(**changed: str) -> Configuration:
    return Configuration(guest_configuration(**changed), "a test")


def test_what_a_guest_loads_before_its_root_may_be_a_module_and_nothing_else() -> None:
    as_module = {option.name for option in EVERY_GUEST if option.as_module}
    assert as_module == {*(OPTION_OF_MODULE[name] for name in BOOT_MODULES), "NET_9P"}


def test_what_the_first_program_looks_for_is_checked_before_the_boot_as_well() -> None:
    looked_for = set(re.findall(r"needs(?:_type)? (\w+) \S+$", INIT.read_text(), re.MULTILINE))
    assert len(looked_for) > 10
    assert looked_for <= {option.name for option in EVERY_GUEST}


def test_every_file_system_and_scheduler_of_a_plan_has_its_option() -> None:
    assert set(FILESYSTEMS) == set(TRAITS) - {"zfs"}
    assert set(SCHEDULERS) == set(SCHEDULER_MODULES.values())


def test_every_namespace_and_filter_that_shuts_a_program_in_is_asked_for() -> None:
    text = Path(shut_in.__file__).read_text()
    # Namespaces of mounts have no option: every kernel has them. One of users is asked for where the caller is not root, and in a guest it is.
    used = {f"{kind}_NS" for kind in re.findall(r"_CLONE_NEW(\w+)", text)} - {"NS_NS", "USER_NS"}
    assert {"NAMESPACES", "SECCOMP"} | used == {option.name for option in SHUT_IN}


def test_a_whole_configuration_lacks_nothing() -> None:
    assert list(lacking(configuration(), EVERY_GUEST, with_modules=False)) == []


@pytest.mark.parametrize("option", EVERY_GUEST, ids=lambda option: option.name)
def test_each_option_is_missed_alone(option: object) -> None:
    name = option.name  # type: ignore[attr-defined]
    (found,) = lacking(configuration(**{f"_{name}": "n"}), EVERY_GUEST, with_modules=True)
    assert found.startswith(f"CONFIG_{name} is not set: ")


def test_an_option_that_serves_as_well_is_enough() -> None:
    ext2 = (FILESYSTEMS["ext2"],)
    assert list(lacking(configuration(EXT4_USE_FOR_EXT2="y"), ext2, with_modules=False)) == []
    assert list(lacking(configuration(), ext2, with_modules=False)) == [
        "CONFIG_EXT2_FS or CONFIG_EXT4_USE_FOR_EXT2 is not set: ext2"
    ]


def test_a_recorder_is_named_by_both_its_options() -> None:
    assert len(list(lacking(configuration(), RECORDER, with_modules=False))) == 2


def test_a_kernel_without_modules_has_the_file_systems_that_are_built_in() -> None:
    found = AllBuiltIn(configuration(EXT4_FS="y", XFS_FS="m", FUSE_FS="y", IOSCHED_BFQ="y")).filesystems()
    assert {"ext3", "ext4", "fuse", "fuseblk", "9p"} <= set(found)
    assert not {"xfs", "ext2", "btrfs", "zfs"} & set(found)
    assert AllBuiltIn(configuration(IOSCHED_BFQ="y")).schedulers() == ("bfq",)
    assert AllBuiltIn(configuration()).load_order(["virtio_blk"]) == ()


def test_where_nothing_is_known_of_a_kernel_nothing_is_ruled_out_but_modules_apart() -> None:
    found = set(AllBuiltIn(None).filesystems())
    assert {"ext4", "xfs", "btrfs", "f2fs", "jfs"} <= found
    assert "zfs" not in found
    assert set(AllBuiltIn(None).schedulers()) == set(SCHEDULERS)


@pytest.mark.parametrize(
    ("console", "expected"),
    [
        (
            "[    2.1] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)",
            "CONFIG_BLK_DEV_INITRD",
        ),
        ("[    1.9] Failed to execute /init (error -8)", "CONFIG_BINFMT_SCRIPT"),
        ("[    1.9] Kernel panic - not syncing: No working init found.", "CONFIG_BINFMT_SCRIPT"),
        ("", "CONFIG_SERIAL_8250_CONSOLE"),
        ("SeaBIOS (version 1.16)\nBooting from ROM..", "CONFIG_SERIAL_8250_CONSOLE"),
    ],
)
def test_a_console_tells_which_option_a_kernel_lacks(console: str, expected: str) -> None:
    (found,) = lacking_by_console(console)
    assert expected in found


@pytest.mark.parametrize(
    "console",
    ["bedplate: the guest cannot be made: share root", "[    0.1] Kernel panic - not syncing: IO-APIC"],
)
def test_a_console_that_tells_of_something_else_is_left_to_itself(console: str) -> None:
    assert lacking_by_console(console) == ()


GOLDEN = Path(__file__).parents[4] / "golden/kernels"


def test_the_shipped_configuration_came_out_of_linux_whole(tmp_path: Path) -> None:
    """What `scripts/extract-ikconfig` would find in the image of 6.12.118 that was built with it, without Btrfs."""
    held = (GOLDEN / "linux-6.12.118-guest.ikconfig").read_bytes()
    image = tmp_path / "bzImage"
    image.write_bytes(packed_image("6.12.118", gzip.compress(held)))
    text = embedded_configuration(image, commands=Commands())
    assert text is not None
    assert "Linux/x86 6.12.118 Kernel Configuration" in text
    found = Configuration(text, "Linux 6.12.118")
    assert list(lacking(found, (*EVERY_GUEST, *RECORDER), with_modules=False)) == []
    wanted = WantedConfiguration("# CONFIG_BTRFS_FS is not set\n")
    assert list(wanted.losses(found)) == []
    assert wanted.left_out(found) == ("BTRFS_FS_POSIX_ACL",)
    assert {"ext2", "ext3", "ext4", "xfs", "fuse"} <= set(AllBuiltIn(found).filesystems())
    assert "btrfs" not in AllBuiltIn(found).filesystems()
    assert AllBuiltIn(found).schedulers() == ("mq-deadline", "kyber", "bfq")


def test_all_that_tinyconfig_lacks_is_named_at_once() -> None:
    text = gzip.decompress((GOLDEN / "linux-6.12.118-tinyconfig.gz").read_bytes()).decode()
    found = list(lacking(Configuration(text, "make tinyconfig"), EVERY_GUEST, with_modules=False))
    assert len(found) > 25
    assert "CONFIG_9P_FS is not set: the folders of the host" in found
    assert "CONFIG_SERIAL_8250_CONSOLE is not set: the guest's console" in found
