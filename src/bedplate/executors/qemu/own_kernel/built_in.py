"""What a kernel without modules has, from its configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.executors.qemu.own_kernel.options import FILESYSTEMS, SCHEDULERS, has
from bedplate.model.filesystem import TRAITS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bedplate.executors.qemu.own_kernel.configuration import Configuration

_ALWAYS = ("9p", "overlay", "proc", "sysfs", "tmpfs")
# By type: what else its driver answers to.
_ANSWERS_TO = {"ext4": ("ext3",)}


@dataclass(frozen=True)
class AllBuiltIn:
    """The same questions as to a `ModuleTree`; there is nothing to load. `configuration` is None where it is not known."""

    configuration: Configuration | None

    def filesystems(self) -> tuple[str, ...]:
        """Types that are built in; all that a plan may name where nothing is known, as the guest tells then."""
        if self.configuration is None:
            known = {name for traits in TRAITS.values() for name in traits.kernel_types} - {"zfs"}
            return tuple(sorted(known.union(_ALWAYS)))
        found = {
            kind
            for kind, option in FILESYSTEMS.items()
            if kind in TRAITS and kind != "ntfs-3g" and has(self.configuration, option, with_modules=False)
        }
        if has(self.configuration, FILESYSTEMS["ntfs-3g"], with_modules=False):
            found |= {"fuse", "fuseblk"}
        for kind, names in _ANSWERS_TO.items():
            found.update(names if kind in found else ())
        return tuple(sorted(found.union(_ALWAYS)))

    def schedulers(self) -> tuple[str, ...]:
        """Schedulers of I/O that are built in, `none` apart; all where nothing is known."""
        if self.configuration is None:
            return tuple(SCHEDULERS)
        return tuple(
            name for name, option in SCHEDULERS.items() if has(self.configuration, option, with_modules=False)
        )

    def load_order(self, names: Iterable[str]) -> tuple[Path, ...]:  # noqa: ARG002 -- what is lacking was refused before
        """Nothing."""
        return ()
