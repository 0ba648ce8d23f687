"""What must be there before the first visit in a guest: QEMU, kernels, tools of the file systems.

QEMU is installed like any other package. Kernels and tools go into the cache, where they need no root
and change nothing of the machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.executors.needs import filesystem_needs
from bedplate.executors.qemu.kernels import ensure_kernel, find_kernel
from bedplate.executors.qemu.zfs_modules import ensure_zfs, find_zfs
from bedplate.host.apt.package_tree import ensure_package_tree
from bedplate.host.cache import cache_directory
from bedplate.host.command import Commands
from bedplate.host.requirement import look

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bedplate.executors.protocol import Listener
    from bedplate.executors.qemu.kernels import GuestKernel
    from bedplate.host.apt.package_tree import PackageTree
    from bedplate.host.build_progress import BuildProgress
    from bedplate.model.cell import Cell

ZFS = "zfs"


def kernels_of(cells: Iterable[Cell]) -> tuple[str | None, ...]:
    """The kernels that these cells ask for, each once; None is the executor's own."""
    return tuple(dict.fromkeys(cell.kernel.release for cell in cells))


def prepare_kernels(asked: Iterable[str | None], listener: Listener) -> tuple[GuestKernel, ...]:
    """Every kernel that is asked for, fetched now where the cache lacks it."""
    kernels = []
    for name in asked:
        what = f"kernel {name or 'for guests'}"
        missing = find_kernel(name, cache_directory=cache_directory()) is None

        def tell(step: str, what: str = what) -> None:
            listener.preparing(f"{what}: {step}", 0, 0)

        kernel = ensure_kernel(name, cache_directory=cache_directory(), commands=Commands(), progress=tell)
        if missing:
            listener.note(f"kernel {kernel.release} is in the cache now ({kernel.origin})")
        kernels.append(kernel)
    return tuple(kernels)


def prepare_zfs(kernels: Iterable[GuestKernel], listener: Listener) -> None:
    """ZFS's modules for every kernel, built now where the cache lacks them: minutes each."""
    for kernel in kernels:
        what = f"ZFS for kernel {kernel.release}"

        def tell(progress: BuildProgress, what: str = what) -> None:
            listener.preparing(f"{what}: {progress.step}", progress.done or 0, progress.total or 0)

        made_now = find_zfs(kernel, cache_directory()) is None
        tree = ensure_zfs(kernel, cache_directory=cache_directory(), commands=Commands(), progress=tell)
        if made_now:
            listener.note(f"built {what}: {tree.version}, {tree.build_seconds:.0f} s")


def prepare_guests(cells: Iterable[Cell], listener: Listener) -> tuple[PackageTree, ...]:
    """The kernels of these cells, and a private tree of the tools that the machine lacks.

    RequirementMissing where something can be had from nowhere.
    """
    cells = tuple(cells)
    prepare_kernels(kernels_of(cells), listener)
    kinds = dict.fromkeys(cell.filesystem.type for cell in cells if cell.filesystem.type != ZFS)
    needs = dict.fromkeys(filesystem_needs(kinds))
    packages = sorted({item.package for item in look(needs) if not item.found})
    trees: list[PackageTree] = []
    if packages:

        def tell(step: str) -> None:
            listener.preparing(f"tools of the file systems: {step}", 0, 0)

        trees.append(
            ensure_package_tree(
                packages, cache_directory=cache_directory(), commands=Commands(), progress=tell
            )
        )
    return tuple(trees)
