"""How used a recorded disk is: aged, filled, and its free space before the engine's data, with them and after the clients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from bedplate.filesystem.aged_image import restore_aged
from bedplate.filesystem.ballast import Ballast
from bedplate.filesystem.free_extents import free_space_of
from bedplate.filesystem.registry import filesystem_for
from bedplate.model.filesystem import AGED, FILL, age_of, fill_of
from bedplate.model.free_space import AFTER_LOAD, ENDED, MADE, AgedCopy
from bedplate.units import MIB

if TYPE_CHECKING:
    from bedplate.filesystem.site import Site
    from bedplate.host.ledger import Ledger
    from bedplate.model.free_space import FreeSpace

# What an engine's new data and its log take at the most; where it is less, the rest is filled behind them.
_ENGINE_BYTES = 256 * MIB


def make_filesystem(site: Site, *, ledger: Ledger) -> AgedCopy | None:
    """New or aged, as the levels ask; which aged one."""
    if age_of(site.levels) is None:
        filesystem_for(site.levels.type).mkfs(site)
        return None
    made = restore_aged(site, ledger=ledger)
    return AgedCopy(made.key, made.identity, made.settled)


@dataclass
class RecordedAge:
    """Of one disk; without a `site` the plan asks for nothing, and nothing is looked at."""

    site: Site | None = None
    ballast: Ballast | None = None
    seen: list[FreeSpace] = field(default_factory=list)
    aged: AgedCopy | None = None

    @classmethod
    def begin(cls, site: Site, aged: AgedCopy | None) -> Self:
        """Before the engine's data; VerifyFailed where they have no room."""
        if {AGED, FILL}.isdisjoint(site.levels.features):
            return cls()
        share = fill_of(site.levels)
        age = cls(site, None if share is None else Ballast(site.target, share), aged=aged)
        if age.ballast is not None:
            age.ballast.before_load(_ENGINE_BYTES)
        age._look(MADE)
        return age

    def fill_up(self) -> None:
        """With the engine's data; VerifyFailed where it is not as full as was asked."""
        if self.ballast is not None:
            self.ballast.after_load()
        self._look(AFTER_LOAD)

    def end(self) -> tuple[FreeSpace, ...]:
        """After the clients: what was seen at each moment."""
        self._look(ENDED)
        return tuple(self.seen)

    def _look(self, moment: str) -> None:
        if self.site is not None:
            self.seen.append(free_space_of(self.site.levels.type, self.site.target, moment))
