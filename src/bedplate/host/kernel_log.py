"""What the kernel said between two moments."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class KernelLog:
    """Open from now on; `messages` may be called more than once and gives all since the opening."""

    def __init__(self, path: Path | None = None) -> None:
        raise NotImplementedError

    def messages(self, *, about: tuple[str, ...] = ()) -> tuple[str, ...] | None:
        """Warnings and above, and lines naming one of `about` (`loop0`). None where it may not be read."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError
