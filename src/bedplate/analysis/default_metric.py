"""Which metric a run is about, where a call names none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.analysis.run_heads import run_head

if TYPE_CHECKING:
    from collections.abc import Collection

    from bedplate.analysis.overview import Overview

# What stands for a run whose figures are all of its parts.
_PART_HEADS = ("test_operations_per_s", "throughput_mib_per_s", "operations_per_s")


def default_metric(found: Overview, run: tuple[str, str], having: Collection[str]) -> str | None:
    """The first figure of the run, or of its parts, that is among `having`; None where none is."""
    return next((name for name in (run_head(found, run).first, *_PART_HEADS) if name in having), None)
