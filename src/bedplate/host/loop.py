"""Image files of bedplate's own and the loop devices over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bedplate.host.command import Commands
    from bedplate.host.device import AttachedDevice
    from bedplate.host.ledger import Ledger


def image_reasons(path: Path, size_bytes: int) -> tuple[str, ...]:
    """Why an image of that size cannot be made there; touches nothing."""
    raise NotImplementedError


def write_image(path: Path, size_bytes: int, *, progress: Callable[[int], None] | None = None) -> None:
    """Fully written with zeros; `progress` is called with the bytes done. Leaves nothing when it fails."""
    raise NotImplementedError


def attach_loop(image: Path, *, ledger: Ledger, commands: Commands) -> AttachedDevice:
    raise NotImplementedError


def detach_loop(device: AttachedDevice, *, ledger: Ledger, commands: Commands) -> None:
    raise NotImplementedError
