"""What every table of a plan's schema is."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Table(BaseModel):
    """A TOML table: frozen, and a key that is not a field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


def at_least_one(tables: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tables, if there are any; ValueError otherwise."""
    if not tables:
        raise ValueError("allowed are one or more tables")
    return tables
