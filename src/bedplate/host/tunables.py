"""Settings under /sys and /proc/sys: saved, set, read back, restored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from bedplate.host.device import AttachedDevice
    from bedplate.host.ledger import Ledger
    from bedplate.model.visit import Comparison


@dataclass(frozen=True)
class Tuned:
    path: Path
    before: str
    asked: str
    effective: str


def set_tunable(path: Path, value: str, *, ledger: Ledger) -> Tuned:
    """VerifyFailed if it does not read back."""
    raise NotImplementedError


def restore(tuned: Tuned, *, ledger: Ledger) -> None:
    raise NotImplementedError


def tuned(ledger: Ledger, values: Mapping[Path, str]) -> AbstractContextManager[tuple[Tuned, ...]]:
    raise NotImplementedError


def restore_all(ledger: Ledger) -> tuple[str, ...]:
    """Every tunable and write cache that the ledger holds; returns the problems."""
    raise NotImplementedError


def queue_settings(
    device: AttachedDevice,
    *,
    read_ahead_kb: int | None,
    scheduler: str | None,
    write_back: bool,
    ledger: Ledger,
) -> tuple[Comparison, ...]:
    raise NotImplementedError
