"""Settings that a stored recording brings, held against the rules of a plan before a server is started with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bedplate.model.levels import Scalar


def unplanned(
    settings: Mapping[str, Scalar], name_rule: Callable[[str], object], value_rule: Callable[[object], object]
) -> tuple[str, ...]:
    """Why each setting is none that a plan may have; a rule raises ValueError for what it refuses."""
    reasons = []
    for name, value in settings.items():
        try:
            name_rule(name)
            value_rule(value)
        except ValueError as error:
            reasons.append(f"setting {name!r}: {error}")
    return tuple(reasons)
