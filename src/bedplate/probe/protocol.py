"""A probe reads counters; the sampler reads all probes once a second beside a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


class Probe(Protocol):
    """`name` as the record shows it; `skew` says in words how reading it may disturb the figures."""

    name: str
    skew: str

    def read(self) -> Mapping[str, float]:
        """The counters now, by their dotted names; one that the machine lacks is left out."""
        ...
