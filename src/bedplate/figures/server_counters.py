"""What an engine's server counts, as figures: the role `counter_figures` of its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bedplate import registry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bedplate.figures.counters import Deltas, Divisors


@dataclass(frozen=True)
class FuzzyLog:
    """How far a server without checkpoints of its own was from a steady state over a window; None is not known.

    `turned_over` is how often the whole log was written. `ages` are the checkpoint ages of its samples, what a recovery would
    read then, and `age_limit` is what the server lets them come to; all in bytes.
    """

    turned_over: float | None
    ages: tuple[float, ...] = ()
    age_limit: float | None = None


class ServerCounters(Protocol):
    """The role itself. An engine with a server and without it has PostgreSQL's counters."""

    def formulas(self, deltas: Deltas, divisors: Divisors) -> Mapping[str, Callable[[], float]]:
        """Each metric of the server and how it is made; Absent where a counter is missing."""
        ...

    def fuzzy(self, deltas: Deltas | None, measured: Sequence[Mapping[str, float]]) -> FuzzyLog:
        """From the counters at both ends of the window, and its samples."""
        ...


class _NoServer:
    """Nothing is counted, and nobody makes checkpoints."""

    def formulas(self, deltas: Deltas, divisors: Divisors) -> Mapping[str, Callable[[], float]]:  # noqa: ARG002 -- none
        return {}

    def fuzzy(self, deltas: Deltas | None, measured: Sequence[Mapping[str, float]]) -> FuzzyLog:  # noqa: ARG002 -- none
        return FuzzyLog(None)


def server_counters_of(engine: str) -> ServerCounters | None:
    """That of an engine; None where its server has none of its own."""
    if engine not in registry.engines_with("server"):
        return _NoServer()
    found: ServerCounters | None = registry.engine_part_or_none(engine, "counter_figures")
    return found
