"""What every table of a plan's schema is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo


class PlanTable(BaseModel):
    """A TOML table: frozen, and a key that is not a field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


# Tables by their keys in another.
InnerTables: TypeAlias = Mapping[str, type[PlanTable]]


def keys_of(table: type[PlanTable]) -> Mapping[str, FieldInfo]:
    """The fields of a table by the keys that a plan has; a field has another name where Python's models have its key for themselves."""
    return {field.alias or name: field for name, field in table.model_fields.items()}


def at_least_one(tables: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tables, if there are any; ValueError otherwise."""
    if not tables:
        raise ValueError("allowed are one or more tables")
    return tables
