"""What a visit finds in its guest beside the kernel: drivers, and programs that the machine has not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bedplate.errors import RequirementMissing
from bedplate.executor.qemu import zfs_modules
from bedplate.model.filesystem import TRAITS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bedplate.executor.qemu.guest_kernel import GuestKernel
    from bedplate.host.apt.package_tree import PackageTree


@dataclass(frozen=True)
class Surroundings:
    """`load` are modprobe and insmod lines, `path` and `library_path` come before the system's own.

    `versions` is what the record must say beyond what the visit itself can find out.
    """

    load: tuple[tuple[str, str], ...] = ()
    path: tuple[Path, ...] = ()
    library_path: tuple[Path, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


def surroundings_of(
    filesystem: str, kernel: GuestKernel, *, trees: Sequence[PackageTree], cache_directory: Path
) -> Surroundings:
    """The surroundings of a visit on this type; RequirementMissing where ZFS was not built."""
    found = Surroundings(
        path=tuple(entry for tree in trees for entry in tree.path),
        library_path=tuple(entry for tree in trees for entry in tree.library_path),
    )
    if filesystem == zfs_modules.TYPE:
        return _with_zfs(found, kernel, cache_directory)
    # By the alias that mount(2) itself would ask for; what is built in, or lacking, does no harm here.
    types = TRAITS[filesystem].kernel_types if filesystem in TRAITS else ()
    return Surroundings(tuple(("modprobe", f"fs-{name}") for name in types), found.path, found.library_path)


def _with_zfs(found: Surroundings, kernel: GuestKernel, cache_directory: Path) -> Surroundings:
    tree = zfs_modules.find_zfs(kernel, cache_directory)
    if tree is None:
        raise RequirementMissing(
            f"ZFS for kernel {kernel.release} is not in {cache_directory}; `bedplate setup --zfs` builds it"
        )
    return Surroundings(
        load=(
            *(("modprobe", name) for name in tree.kernel_modules),
            *(("insmod", str(path)) for path in tree.modules),
        ),
        path=(*tree.path, *found.path),
        library_path=(*tree.library_path, *found.library_path),
        versions={"zfs": tree.version, "zfs_modules": tree.digest},
    )
