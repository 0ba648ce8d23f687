"""What a plan may tell PostgreSQL although it will not mean what it seems to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.postgresql.configuring.settings import controlled_in, in_force, page_costs_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.model.plan import Plan
    from bedplate.plan.warnings import PlanWarnings


def of_plan(plan: Plan) -> Iterator[str]:
    """Sentences."""
    yield from _of_configurations(plan)
    yield from _of_scaled_costs(plan)


def _of_configurations(plan: Plan) -> list[str]:
    found = []
    for text in dict.fromkeys(cluster.configuration for cluster in plan.clusters if cluster.configuration):
        names = controlled_in(text)
        if names:
            found.append(f"postgresql.configuration: bedplate's own {', '.join(names)} win over the file's")
    for cluster in plan.clusters:
        names = page_costs_in(cluster.configuration or "") if cluster.scaled_page_costs else ()
        if names:
            found.append(
                f"postgresql.configuration: scaled_page_costs replaces the file's {', '.join(names)}; what "
                "shall be scaled belongs into [postgresql.settings]"
            )
    return found


def _of_scaled_costs(plan: Plan) -> list[str]:
    """The planner takes a share of an index for cached by `effective_cache_size`, whose default counts pages."""
    blocks = {build.block_size_bytes for build in plan.builds if build.is_built}
    left = any(
        cluster.scaled_page_costs
        and not cluster.scaled_block_settings
        and in_force(cluster, "effective_cache_size") is None
        for cluster in plan.clusters
    )
    if len(blocks) < 2 or not left:
        return []
    words = (
        "scaled_page_costs: effective_cache_size is left at PostgreSQL's default of 524288 pages, which is 512 MB at "
        "1 kB and 16 GB at 32 kB. Query plans may still follow the block size. Set it in [postgresql.settings], or "
        "scaled_block_settings = true"
    )
    return [words]


WARNINGS: PlanWarnings = of_plan
