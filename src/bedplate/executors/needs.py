"""The programs that file systems and workloads need, as their rooms state them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.filesystem.registry import filesystem_for
from bedplate.visit.workload import workload_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bedplate.host.requirement import Need


def filesystem_needs(types: Iterable[str]) -> tuple[Need, ...]:
    """What these types of file systems need, each type once."""
    return tuple(need for kind in dict.fromkeys(types) for need in filesystem_for(kind).needs)


def workload_needs(types: Iterable[str]) -> tuple[Need, ...]:
    """What these types of workloads need, each once."""
    return tuple(dict.fromkeys(need for kind in dict.fromkeys(types) for need in workload_for(kind).needs))
