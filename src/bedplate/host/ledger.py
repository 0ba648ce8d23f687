"""What is held of the machine, written down before it is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.host.command import Commands


@dataclass(frozen=True)
class Holding:
    """kinds: mount (target; source), loop (image; device once known), server (data directory; prefix),
    process (pid; start time), cgroup (path), tunable (path; original), write_cache (name; original),
    image (file), directory (path).
    """

    kind: str
    name: str
    detail: str = ""


@dataclass(frozen=True)
class ReleaseReport:
    released: tuple[str, ...]
    problems: tuple[str, ...]
    alive: tuple[str, ...]


class Ledger:
    """`directory` is <state directory>/<owner>/: everything in it is temporary and removed on release."""

    directory: Path

    @classmethod
    def open(cls, state_directory: Path, owner: str) -> Ledger:
        raise NotImplementedError

    def note(self, holding: Holding) -> None:
        """Before taking. A second note of the same kind and name replaces the detail."""
        raise NotImplementedError

    def settled(self, holding: Holding) -> None:
        raise NotImplementedError

    def held(self) -> tuple[Holding, ...]:
        raise NotImplementedError

    def release(self, commands: Commands) -> tuple[str, ...]:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


def release_orphans(state_directory: Path, commands: Commands) -> ReleaseReport:
    raise NotImplementedError
