"""PostgreSQL settings in a plan: their names, their values, and those that bedplate itself decides."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.configuring.server_settings import (
    CONTROLLED,
    INCLUDES,
    configuration_lines,
    refused_library,
    syntax_errors,
    without_controlled,
)
from bedplate.plan.words import joined
from bedplate.units import parse_duration_s

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bedplate.model.cell import ClusterLevels

# PostgreSQL folds names to lower case; an extension's have one dot. 63 is NAMEDATALEN - 1.
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}(\.[a-z_][a-z0-9_$]{0,62})?")
# What `scaled_page_costs` makes follow the block size.
PAGE_COSTS = ("seq_page_cost", "random_page_cost")

# PostgreSQL's own defaults, and what it takes (guc_tables.c); the target's default holds since 14.
CHECKPOINT_TIMEOUT_S = 300.0
_CHECKPOINT_TIMEOUTS_S = (30.0, 86400.0)
CHECKPOINT_COMPLETION_TARGET = 0.9
# Of one file.
_REASONS_MOST = 20


def setting_name(text: str) -> str:
    """The name in PostgreSQL's own spelling (lower case); ValueError says why it is refused."""
    name = text.lower()
    if _NAME.fullmatch(name) is None:
        raise ValueError("a setting's name has letters, digits and underscores, and at most one dot")
    if name in CONTROLLED:
        raise ValueError(f"bedplate sets {name} itself: {CONTROLLED[name]}")
    return name


def setting_value(value: object) -> str:
    """The value as postgresql.conf has it: booleans become on and off, numbers their digits."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int) and abs(value) < 2**63:
        return str(value)
    if isinstance(value, float) and abs(value) < float("inf"):
        return f"{value:.15g}"
    if isinstance(value, str) and len(value) <= 1000 and value.isprintable():
        return value
    raise ValueError("allowed are true, false, a number, or a text of at most 1000 printable characters")


def refused_settings(settings: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Why some settings may not have the values that a plan gives them."""
    found = [refused_library(name, value) for name, values in settings.items() for value in values]
    return tuple(dict.fromkeys(reason for reason in found if reason))


def configuration_text(text: str) -> str:
    """An own postgresql.conf, checked for what cannot be followed; ValueError names the lines."""
    if "\0" in text:
        raise ValueError("it has a NUL character")
    lines = list(configuration_lines(text))
    found = [name for _, name, _ in lines if name in INCLUDES]
    if found:
        raise ValueError(f"it has {', '.join(sorted(set(found)))}: includes are not followed, write one file")
    refused = [reason for _, name, value in lines if (reason := refused_library(name, value))]
    # What bedplate decides is no line of the server's.
    refused += syntax_errors(without_controlled(text))
    if refused:
        raise ValueError(joined(dict.fromkeys(refused), most=_REASONS_MOST))
    return text


def controlled_in(text: str) -> tuple[str, ...]:
    """The settings of an own postgresql.conf over which bedplate's own values win."""
    return tuple(sorted({name for name, _ in _configuration(text) if name in CONTROLLED}))


def page_costs_in(text: str) -> tuple[str, ...]:
    """The costs of a page that an own postgresql.conf sets, and `scaled_page_costs` does not see."""
    return tuple(sorted({name for name, _ in _configuration(text) if name in PAGE_COSTS}))


def names_in(text: str) -> frozenset[str]:
    """Every setting of an own postgresql.conf."""
    return frozenset(name for name, _ in _configuration(text))


def in_force(cluster: ClusterLevels, name: str) -> str | None:
    """A setting as the plan asks for it: from `settings`, else from the own postgresql.conf, else None."""
    if name in cluster.settings:
        return str(cluster.settings[name])
    found = None
    for key, value in _configuration(cluster.configuration or ""):
        if key == name:  # the last one wins, as in the server
            found = value
    return found


def checkpoint_timeout_s(cluster: ClusterLevels) -> float:
    """The time between timed checkpoints; a value that the server would refuse counts as the default."""
    value = in_force(cluster, "checkpoint_timeout")
    try:
        found = CHECKPOINT_TIMEOUT_S if value is None else parse_duration_s(value)
    except ValueError:
        return CHECKPOINT_TIMEOUT_S
    least, most = _CHECKPOINT_TIMEOUTS_S
    return found if least <= found <= most else CHECKPOINT_TIMEOUT_S


def checkpoint_completion_target(cluster: ClusterLevels) -> float:
    """The share of the time between checkpoints over which one is spread; understood as the one above."""
    value = in_force(cluster, "checkpoint_completion_target")
    try:
        found = CHECKPOINT_COMPLETION_TARGET if value is None else float(value)
    except ValueError:
        return CHECKPOINT_COMPLETION_TARGET
    return found if 0 <= found <= 1 else CHECKPOINT_COMPLETION_TARGET


def _configuration(text: str) -> Iterator[tuple[str, str]]:
    for _, name, value in configuration_lines(text):
        yield name, value
