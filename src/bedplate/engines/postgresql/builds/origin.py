"""What every way of getting a source answers with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class SourceUnavailable(Exception):
    """One way did not lead to the source; the message is the reason, collected with the others'."""


@dataclass(frozen=True)
class Fetched:
    """A tarball that was found: `promised_sha256` is what its origin says, None if it says nothing."""

    tarball: Path
    version: str
    detail: str
    promised_sha256: str | None
