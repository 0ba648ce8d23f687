"""One kernel that a guest may boot, wherever it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class GuestKernel:
    """One kernel with its modules, ready to boot.

    `asked` is None where none was asked for. `release` is what `uname -r` says in it. `modules` is
    the folder that has `lib/modules/<release>` below it. `origin` is packages, version and suite, or
    the path. `digest` changes when the image or a module does. `config` is the file of its build
    options, None where none came with it.
    """

    asked: str | None
    release: str
    image: Path
    modules: Path
    origin: str
    digest: str
    config: Path | None

    @property
    def module_directory(self) -> Path:
        """`lib/modules/<release>`: where modules.dep and the modules are."""
        return self.modules / "lib" / "modules" / self.release
