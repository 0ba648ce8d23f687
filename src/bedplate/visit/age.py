"""How used the file system of a visit is: what fills it, and its free space before the database, with it and after the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.filesystem.ballast import Ballast
from bedplate.filesystem.comparison import fact
from bedplate.filesystem.free_extents import free_space_of
from bedplate.model.filesystem import AGED, FILL, age_of, fill_of
from bedplate.model.free_space import AFTER_LOAD, ENDED, MADE
from bedplate.model.workload import model_of
from bedplate.units import percent

if TYPE_CHECKING:
    from bedplate.filesystem.site import Site
    from bedplate.model.visit import VisitRequest
    from bedplate.visit.findings import Findings, Steps


class VisitAge:
    """Of the scratch device; nothing where the workload has a disk of its own, or the plan does not ask."""

    def __init__(self, request: VisitRequest) -> None:
        self._request = request
        levels = request.cell.filesystem
        here = not model_of(request.dataset.workload).has_own_disk
        self.is_aged = here and age_of(levels) is not None
        self._fill = fill_of(levels) if here else None
        # Its fresh cells are looked at as its aged ones are: looking writes back what is dirty.
        self._is_looked_at = here and not {AGED, FILL}.isdisjoint(levels.features)
        self._ballast: Ballast | None = None

    def before_load(self, site: Site, steps: Steps, findings: Findings) -> None:
        """Fill it but for what the database takes; VisitFailed where that is more than it should hold."""
        if not self._is_looked_at:
            return
        with steps.step("fill"):
            image = site.device.image
            if image is not None:
                allocated = image.stat().st_blocks * 512 >= image.stat().st_size
                findings.comparisons.append(fact("device.image_has_holes", not allocated, "st_blocks"))
            if self._fill is not None:
                self._ballast = Ballast(site.target, self._fill)
                self._ballast.before_load(self._request.needed_bytes or 0)
                findings.comparisons.append(
                    fact("filesystem.ballast", f"up to {percent(self._fill)}", "its files")
                )
            self._look(site, findings, MADE)

    def after_load(self, site: Site, steps: Steps, findings: Findings) -> None:
        """As full as was asked, with the database; VisitFailed where it is not."""
        if not self._is_looked_at:
            return
        with steps.step("fill up"):
            if self._ballast is not None:
                findings.comparisons.append(self._ballast.after_load())
            self._look(site, findings, AFTER_LOAD)

    def at_end(self, site: Site, findings: Findings) -> None:
        """After the runs."""
        if self._is_looked_at:
            self._look(site, findings, ENDED)

    def _look(self, site: Site, findings: Findings, moment: str) -> None:
        findings.free_space.append(free_space_of(site.levels.type, site.target, moment))
