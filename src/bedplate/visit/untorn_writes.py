"""The library that is preloaded into a server, so that each of its pages is written whole or not at all, or counted.

What it counts lies in a file on tmpfs that every process of the server maps. The library is inherited by all that the server starts.
"""

from __future__ import annotations

import shutil
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import RequirementMissing
from bedplate.model.cell import UNTORN_OFF, UNTORN_ON
from bedplate.model.page_writes import PageCounts
from bedplate.model.reason import because
from bedplate.visit.workload import Driver

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.host.command import Account
    from bedplate.model.cell import Cell
    from bedplate.model.reason import Reason
    from bedplate.visit.engine_server import ServerSite

UNTORN_SHIM = Driver("untorn_writes", is_preloaded=True)
# In the order of `enum count` in drivers/untorn_writes.c.
_COUNTED = ("atomic", "plain", "extensions", "split_calls", "no_pages", "buffered")
_REFUSED = ("EINVAL", "EOPNOTSUPP", "ENOSPC")
_FORMAT = struct.Struct(f"={len(_COUNTED) + len(_REFUSED)}Q")


@dataclass(frozen=True)
class UntornWrites:
    """The library in one server: `mode` is the cell's level, `counts` the file of what it counts."""

    library: Path
    counts: Path
    page_bytes: int
    mode: str

    @property
    def environment(self) -> Mapping[str, str]:
        """What the server is started with."""
        return {
            "LD_PRELOAD": str(self.library),
            "BEDPLATE_UNTORN_COUNTS": str(self.counts),
            "BEDPLATE_UNTORN_PAGE_BYTES": str(self.page_bytes),
            "BEDPLATE_UNTORN_WRITES": self.mode,
        }

    def below(self, site: ServerSite) -> ServerSite:
        """The same site of a server that has the library."""
        return replace(site, environment=self.environment, writable=(self.counts,), readable=(self.library,))

    def counted(self) -> PageCounts:
        """Until now."""
        numbers = _FORMAT.unpack(self.counts.read_bytes()[: _FORMAT.size])
        named = dict(zip((*_COUNTED, *_REFUSED), numbers, strict=True))
        return PageCounts(
            **{name: named[name] for name in _COUNTED},
            refused={name: named[name] for name in _REFUSED if named[name]},
        )

    def refusal(self) -> Reason | None:
        """Why what the server did is no measurement of untorn writes; None where each page was written so, or none was asked to."""
        counts = self.counted()
        if counts.is_empty:
            words = f"untorn_writes = {self.mode}: the preloaded library counted no write at all, as if no server had it"
            return because("pages-not-counted", words)
        if self.mode != UNTORN_ON or counts.refusal is None:
            return None
        words = f"untorn_writes = on: {counts.refusal}"
        return because("pages-refused", words, refused=counts.refusals, pages=counts.atomic + counts.refusals)


def untorn_writes(
    cell: Cell, native_drivers: Mapping[str, str], counts: Path, account: Account
) -> UntornWrites | None:
    """The library for a server of the cell, its counts at 0 in the new file `counts`; None where the cell asks for none."""
    mode, library = cell.cluster.untorn_writes, native_drivers.get(UNTORN_SHIM.name)
    return preloaded(mode, library, cell.database_block_bytes, counts, account)


def preloaded(
    mode: str, library: str | None, page_bytes: int | None, counts: Path, account: Account
) -> UntornWrites | None:
    """The same for a server with pages of that size, by the cell's level `mode`."""
    if mode == UNTORN_OFF:
        return None
    if library is None or page_bytes is None:
        raise RequirementMissing(
            f"the request names no driver {UNTORN_SHIM.name}; `bedplate setup` builds it"
        )
    counts.write_bytes(bytes(_FORMAT.size))
    counts.chmod(0o600)
    shutil.chown(counts, account.uid, account.gid)
    return UntornWrites(Path(library), counts, page_bytes, mode)
