"""One study at a time on a scratch device."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path


def device_lock(state_directory: Path, stable_name: str, *, study: str = "") -> AbstractContextManager[None]:
    """DeviceInUse names the pid and the study of the holder."""
    raise NotImplementedError
