"""The latency of a plan, from TOML to the type that the model has; ValueError says what is allowed."""

from __future__ import annotations

from typing import Any

from bedplate.model.devices.latency import MOST_PLACES, USUAL_PLACES, Latency, Law, Stall
from bedplate.plan.emulated.latencies import LATENCIES
from bedplate.plan.values import size, whole_number
from bedplate.plan.words import joined, shown
from bedplate.units import KIB

_TIMES = ("read", "write", "flush")
LATENCY_KEYS = (*_TIMES, "queue_depth", "sequential", "iops", "bandwidth", "stall")
# A page is copied through user space twice; what that comes to is some GB/s, and a limit near to it would be none.
_MOST_BYTES_PER_S = 10**9


def latency(value: Any) -> Latency:
    """A named device, or a table of what it takes; a made-up one is named by its keys."""
    if isinstance(value, str) and value in LATENCIES:
        return LATENCIES[value]
    if not isinstance(value, dict) or not value:
        raise ValueError(f"allowed: {', '.join(LATENCIES)}, or a table with {', '.join(LATENCY_KEYS)}")
    reasons = [f"{name}: missing; say what one takes" for name in _TIMES if name not in value]
    found: dict[str, Any] = {}
    for key, given in value.items():
        try:
            found[key] = _value(key, given)
        except ValueError as error:
            reasons.append(f"{shown(key)} = {shown(given)}: {error}")
    if reasons:
        raise ValueError(joined(reasons))
    # Of every key, so that two levels never have one name.
    name = "custom " + ", ".join(f"{key} {found[key]}" for key in LATENCY_KEYS if key in found)
    bandwidth = found.pop("bandwidth", None)
    depth = found.pop("queue_depth", USUAL_PLACES)
    return Latency(name, queue_depth=depth, bytes_per_s=bandwidth, **found)


def _value(key: str, value: Any) -> str | int:
    if key in (*_TIMES, "sequential"):
        return Law.parse(_text(value)).words
    if key == "stall":
        return Stall.parse(_text(value)).words
    if key == "queue_depth":
        return whole_number(1, MOST_PLACES, value)
    if key == "iops":
        return whole_number(1, 10**6, value)
    if key == "bandwidth":
        return size(64 * KIB, _MOST_BYTES_PER_S, value)
    raise ValueError(f"unknown key; allowed: {', '.join(LATENCY_KEYS)}")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ValueError('write a text with a unit, such as "2ms"')
