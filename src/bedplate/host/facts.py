"""Facts of the machine, read without root."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.model.machine import Machine


def read_machine() -> Machine:
    """Fast: starts no program; `tools` is empty."""
    raise NotImplementedError


def tool_versions() -> Mapping[str, str]:
    raise NotImplementedError
