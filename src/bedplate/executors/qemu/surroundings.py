"""What a visit finds in its guest beside the kernel: drivers, and programs that the machine has not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bedplate.errors import RequirementMissing
from bedplate.executors.qemu import zfs_modules
from bedplate.executors.qemu.own_kernel import options
from bedplate.executors.qemu.own_kernel.options import lacking
from bedplate.host.recorder import DRIVER as RECORDER
from bedplate.model.filesystem import TRAITS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from bedplate.executors.qemu.guest_kernel import GuestKernel
    from bedplate.host.apt.package_tree import PackageTree

# It is a file system in user space, and loop devices go above its disks. Nothing asks for either by itself: there is
# no udev, which would make the devices by which they are asked for.
_FOR_THE_RECORDER = (("modprobe", "fuse"), ("modprobe", "loop"))


@dataclass(frozen=True)
class GuestTools:
    """`load` are modprobe and insmod lines, `path` and `library_path` come before the system's own.

    `versions` is what the record must say beyond what the visit itself can find out.
    """

    load: tuple[tuple[str, str], ...] = ()
    path: tuple[Path, ...] = ()
    library_path: tuple[Path, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


def surroundings_of(
    filesystem: str,
    kernel: GuestKernel,
    *,
    trees: Sequence[PackageTree],
    cache_directory: Path,
    drivers: Collection[str] = (),
) -> GuestTools:
    """The surroundings of a visit on this type with these drivers; RequirementMissing where ZFS was not built."""
    loads = kernel.modules is not None
    if RECORDER in drivers and not loads and kernel.configuration is not None:
        reasons = tuple(lacking(kernel.configuration, options.RECORDER, with_modules=False))
        if reasons:
            raise RequirementMissing(*(f"kernel {kernel.release}: {reason}" for reason in reasons))
    found = GuestTools(
        load=_FOR_THE_RECORDER if RECORDER in drivers and loads else (),
        path=tuple(entry for tree in trees for entry in tree.path),
        library_path=tuple(entry for tree in trees for entry in tree.library_path),
    )
    if filesystem == zfs_modules.TYPE:
        return _with_zfs(found, kernel, cache_directory)
    # By the alias that mount(2) itself would ask for; what is built in, or lacking, does no harm here.
    types = TRAITS[filesystem].kernel_types if filesystem in TRAITS and loads else ()
    return replace(found, load=(*found.load, *(("modprobe", f"fs-{name}") for name in types)))


def _with_zfs(found: GuestTools, kernel: GuestKernel, cache_directory: Path) -> GuestTools:
    tree = zfs_modules.find_zfs(kernel, cache_directory)
    if tree is None:
        raise RequirementMissing(
            f"ZFS for kernel {kernel.release} is not in {cache_directory}; `bedplate setup --zfs` builds it"
        )
    return GuestTools(
        load=(
            *found.load,
            *(("modprobe", name) for name in tree.kernel_modules),
            *(("insmod", str(path)) for path in tree.modules),
        ),
        path=(*tree.path, *found.path),
        library_path=(*tree.library_path, *found.library_path),
        versions={"zfs": tree.version, "zfs_modules": tree.digest},
    )
