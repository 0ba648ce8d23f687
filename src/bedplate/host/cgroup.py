"""A control group for the server and its helpers: memory limit, block throttling, CPU seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bedplate.host.ledger import Ledger
    from bedplate.model.cell import Throttle
    from bedplate.model.visit import Comparison


@dataclass(frozen=True)
class Usage:
    memory_bytes_peak: int | None
    cpu_s: float | None


class Group:
    comparisons: tuple[Comparison, ...]

    @classmethod
    def create(
        cls,
        name: str,
        *,
        memory_bytes: int | None = None,
        throttle: Throttle | None = None,
        device_number: str | None = None,
        ledger: Ledger,
    ) -> Group:
        raise NotImplementedError

    def add(self, pid: int) -> None:
        raise NotImplementedError

    def enter(self) -> None:
        """For `preexec_fn`, before privileges are dropped."""
        raise NotImplementedError

    def usage(self) -> Usage:
        raise NotImplementedError

    def cpu_seconds(self) -> float | None:
        raise NotImplementedError

    def release(self) -> None:
        """Kills what is still inside, lifts the limits, removes the group."""
        raise NotImplementedError


def drop_page_cache() -> None:
    """Sync, then drop clean pages, dentries and inodes."""
    raise NotImplementedError
