"""The scratch device: refused with every reason at once, or prepared."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bedplate.host.command import Commands
    from bedplate.host.device import AttachedDevice
    from bedplate.host.ledger import Ledger
    from bedplate.model.visit import ScratchDevice


def refusal_reasons(
    scratch: ScratchDevice, commands: Commands, *, minimum_bytes: int = 0, directory: Path | None = None
) -> tuple[str, ...]:
    """`directory` is where an image would stand if the plan names no image_directory."""
    raise NotImplementedError


def prepare(
    scratch: ScratchDevice,
    *,
    ledger: Ledger,
    commands: Commands,
    directory: Path,
    progress: Callable[[int], None] | None = None,
) -> AttachedDevice:
    raise NotImplementedError


def release_device(
    device: AttachedDevice, *, ledger: Ledger, commands: Commands, keep_image: bool = False
) -> None:
    raise NotImplementedError
