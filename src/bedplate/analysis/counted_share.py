"""Shares that are k of n: how many of the cuts of a run were bad, and of how many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.analysis.parts import WHOLE
from bedplate.model.power_cut import UNIT_PROFILES, VOLATILE_PROFILES
from bedplate.model.power_cut_metrics import CUT

if TYPE_CHECKING:
    from bedplate.analysis.overview import Measurement

BAD_SHARE, BAD_CUTS = "power_cut_bad_share", "power_cuts_bad"
# Those that a run of a study is cut with: the plan's, and of a device with a unit the one in place of those that tear.
_VOLATILE = (*VOLATILE_PROFILES, *UNIT_PROFILES.values())
# A figure is written with all its digits.
_ROUNDING = 1e-9


def counted_share(
    measurement: Measurement, metric: str, phase: str = WHOLE, item: str = ""
) -> tuple[int, int] | None:
    """(bad, cuts) behind a share of bad cuts; None for any other figure, and where figures contradict each other.

    The share of a whole run is that of its drawn cuts with a volatile cache, which its profiles count.
    """
    if metric != BAD_SHARE:
        return None
    share, bad = (measurement.value(name, phase, item) for name in (metric, BAD_CUTS))
    if share is None or bad is None:
        return None
    parts = [(CUT, profile.value) for profile in _VOLATILE] if phase == WHOLE else [(phase, item)]
    cuts = sum(measurement.value("power_cuts", *part) or 0.0 for part in parts)
    if not 0 <= bad <= cuts or cuts < 1 or abs(bad - share * cuts) > _ROUNDING * cuts:
        return None
    return round(bad), round(cuts)
