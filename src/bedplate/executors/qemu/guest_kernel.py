"""One kernel that a guest may boot, wherever it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.executors.qemu.own_kernel.configuration import Configuration


@dataclass(frozen=True)
class GuestKernel:
    """One kernel, with its modules where it has any, ready to boot.

    `asked` is None where none was asked for. `release` is what `uname -r` says in it. `modules` is
    the folder that has `lib/modules/<release>` below it, None where all that a guest needs is built in.
    `origin` is packages, version and suite, the path, or a commit. `digest` changes when the image or a module does.
    `configuration` are its build options, None where none came with it.
    """

    asked: str | None
    release: str
    image: Path
    modules: Path | None
    origin: str
    digest: str
    configuration: Configuration | None

    @property
    def module_directory(self) -> Path:
        """`lib/modules/<release>` of a kernel that has modules: where modules.dep and they are."""
        if self.modules is None:
            raise ValueError(f"kernel {self.release} has no modules")
        return self.modules / "lib" / "modules" / self.release
