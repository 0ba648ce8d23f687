"""What bedplate measured and what was imported are never compared: nobody knows what else differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.errors import PlanError
from bedplate.model.reason import because

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.analysis.overview import Overview

IMPORTED_BESIDE_MEASURED = "imported-beside-measured"


def require_one_origin(overviews: Sequence[Overview]) -> None:
    """PlanError with the code `imported-beside-measured` where some of the studies are imported and some are not."""
    sides = {True: "", False: ""}
    for found in overviews:
        sides[found.study.facts.is_imported] = str(found.study.directory)
    imported, measured = sides[True], sides[False]
    if imported and measured:
        raise PlanError(
            because(
                IMPORTED_BESIDE_MEASURED,
                f"{imported} was imported and {measured} was measured here: they are not compared, as nobody knows in "
                "what else they differ; show, compare or report each by itself",
                imported=imported,
                measured=measured,
            )
        )
