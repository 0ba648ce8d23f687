"""What a workload brings to the page: the role `page` of its folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bedplate import registry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from bedplate.analysis.overview import Overview

Run = tuple[str, str]

# The sections behind which those of workloads stand, each with the part of the page's script behind which theirs run; at the
# end of “durability” what has no heading stands within.
PLACES = {
    "compare": "statistics/tpch_scores",
    "raw": "views/raw",
    "courses": "views/raw",
    "items": "views/items",
    "durability": "core/rows",
}


@dataclass(frozen=True)
class WorkloadPage:
    """Sections, each an id and a heading, by one of `PLACES`; they stand on a page of studies that the workload `is_in`.

    In its `folder` a section has a template, `ID.html.j2`, and may have a part of the script, `ID.js`. `document` makes what
    the script reads, by its keys, of the studies and runs of a page, `variables` what the template does; `rules` and `templates`
    are what the script judges by and says.
    """

    folder: Path
    sections: Mapping[str, tuple[str, str]]
    is_in: Callable[[Sequence[Overview]], bool]
    document: Callable[[Sequence[Overview], Sequence[Run]], Mapping[str, Any]]
    variables: Callable[[Sequence[Overview]], Mapping[str, Any]] = lambda _: {}
    rules: Mapping[str, Any] = field(default_factory=dict)
    templates: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """ValueError for a place that the page has not."""
        if unknown := self.sections.keys() - PLACES:
            raise ValueError(
                f"no place for sections behind {', '.join(unknown)}; there are {', '.join(PLACES)}"
            )


def workload_pages() -> Sequence[WorkloadPage]:
    """Those of every workload that has the role."""
    return tuple(registry.parts("page").values())
