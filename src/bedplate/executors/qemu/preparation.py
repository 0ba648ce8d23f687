"""What must be there before the first visit in a guest: QEMU, kernels, tools of the file systems.

QEMU is installed like any other package. Kernels and tools go into the cache, where they need no root
and change nothing of the machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bedplate.errors import CommandFailed, VerifyFailed
from bedplate.executors.needs import filesystem_needs
from bedplate.executors.qemu.kernels import ensure_kernel, find_kernel
from bedplate.executors.qemu.zfs_modules import ensure_zfs, find_zfs
from bedplate.host.apt.package_tree import ensure_package_tree
from bedplate.host.cache import cache_directory
from bedplate.host.command import Commands
from bedplate.host.requirement import look
from bedplate.model.source_commit import is_commit_level

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bedplate.executors.protocol import Listener
    from bedplate.executors.qemu.kernels import GuestKernel
    from bedplate.host.apt.package_tree import PackageTree
    from bedplate.host.build_progress import BuildProgress
    from bedplate.model.cell import Cell
    from bedplate.model.source_commit import KernelSource

ZFS = "zfs"
_NO_TREE = "it is not in the cache, and the plan does not name its tree"
# By the level of a commit.
_FAILED: dict[str, tuple[str, ...]] = {}


def kernels_of(cells: Iterable[Cell]) -> tuple[str | None, ...]:
    """The kernels that these cells ask for, each once; None is the executor's own."""
    return tuple(dict.fromkeys(cell.kernel.release for cell in cells))


@dataclass(frozen=True)
class PreparedKernels:
    """What there is now; `failed` are the reasons of builds that failed, by the level of their commits."""

    kernels: tuple[GuestKernel, ...]
    failed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def prepare_kernels(
    asked: Iterable[str | None], listener: Listener, sources: Mapping[str, KernelSource] | None = None
) -> PreparedKernels:
    """Every kernel that is asked for, fetched now where the cache lacks it; a commit of `sources` is built.

    A build that fails is said, and the next kernel is its own matter; it is not tried again by this process. RequirementMissing where something can be had from nowhere: a
    kernel of the distribution, a tool of the build.
    """
    kernels: list[GuestKernel] = []
    failed: dict[str, tuple[str, ...]] = {}
    for name in asked:
        source = None if name is None else (sources or {}).get(name)
        what = f"kernel {name or 'for guests'}"
        missing = find_kernel(name, cache_directory=cache_directory()) is None
        if missing and name is not None and is_commit_level(name) and (source is None or name in _FAILED):
            failed[name] = _FAILED.get(name, (_NO_TREE,))
            continue

        def tell(step: str, what: str = what) -> None:
            listener.preparing(f"{what}: {step}", 0, 0)

        try:
            kernel = ensure_kernel(
                name, cache_directory=cache_directory(), commands=Commands(), progress=tell, source=source
            )
        except (CommandFailed, VerifyFailed) as error:
            if source is None:
                raise
            failed[source.level] = _FAILED[source.level] = error.reasons
            listener.note("\n".join(error.reasons))
            continue
        if missing:
            how = "is in the cache now" if source is None else "was built"
            listener.note(f"kernel {kernel.release} {how} ({kernel.origin})")
        kernels.append(kernel)
    return PreparedKernels(tuple(kernels), failed)


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


@dataclass(frozen=True)
class PreparedGuests:
    """Private trees of the tools that the machine lacks; and builds of kernels that failed, as in `PreparedKernels`."""

    trees: tuple[PackageTree, ...]
    failed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def prepare_guests(cells: Iterable[Cell], listener: Listener) -> PreparedGuests:
    """The kernels of these cells, and the tools of their file systems. Commits were built before (`prepare_kernels`).

    RequirementMissing where something can be had from nowhere.
    """
    cells = tuple(cells)
    failed = prepare_kernels(kernels_of(cells), listener).failed
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
    return PreparedGuests(tuple(trees), failed)
