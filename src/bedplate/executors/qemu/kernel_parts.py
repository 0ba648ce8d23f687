"""What a kernel consists of beside its image: modules, or nothing, as all is built in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.executors.qemu.kernel_modules import ModuleTree
from bedplate.executors.qemu.own_kernel.built_in import AllBuiltIn

if TYPE_CHECKING:
    from bedplate.executors.qemu.guest_kernel import GuestKernel


def modules_of(kernel: GuestKernel) -> ModuleTree | AllBuiltIn:
    """Its modules and what is built in; both answer the same questions."""
    if kernel.modules is None:
        return AllBuiltIn(kernel.configuration)
    return ModuleTree(kernel.module_directory)
