"""pydantic's findings as sentences: key, what was found, what is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from bedplate import registry
from bedplate.near_names import did_you_mean
from bedplate.plan.document import TABLES
from bedplate.plan.table import keys_of
from bedplate.plan.values import listed_for
from bedplate.plan.words import at_most, shown

# A hostile plan must not make a terminal scroll for minutes.
MOST_REASONS = 100
_LONGEST_REASON = 2000
_SETTINGS, _CLUSTER = "settings", "slurm"
# Tables that a plan may have several of.
_REPEATED = frozenset({"filesystem", "workload"})


def sentences(error: ValidationError, document: Mapping[str, Any]) -> tuple[str, ...]:
    """One sentence per finding, without the file's name."""
    return at_most(
        [_sentence(finding, document) for finding in error.errors(include_url=False)], MOST_REASONS
    )


def bounded(reason: str) -> str:
    """The reason, cut where it would fill a screen."""
    if len(reason) <= _LONGEST_REASON:
        return reason
    return f"{reason[:_LONGEST_REASON]}… ({len(reason)} characters)"


def _sentence(finding: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    location = tuple(finding["loc"])
    key = key_text(_as_written(location), document)
    kind = finding["type"]
    if kind == "union_tag_not_found":
        return f"{key}.type: missing; expected {', '.join(registry.WORKLOADS)}"
    if kind == "union_tag_invalid":
        found = finding["input"]["type"]
        return f"{key}.type: found {_found(found)}; expected {listed_for(found, registry.WORKLOADS)}"
    if kind == "extra_forbidden":
        return f"{key}: unknown key; {_closest(location, document)}"
    if kind == "missing":
        return f"{key}: missing; expected {_description(location)}"
    if kind == "value_error":
        return f"{key}: found {_found(finding['input'])}; {finding['ctx']['error']}"
    return f"{key}: found {_found(finding['input'])}; expected {_description(location)}"


def key_text(location: Sequence[str | int], document: Mapping[str, Any]) -> str:
    """`filesystem[1].block_size.vary[2]`: the way through the plan as its author wrote it."""
    text = ""
    here: Any = document
    for part in location:
        if isinstance(part, int):
            if isinstance(here, dict) and isinstance(here.get("vary"), list):
                text += f".vary[{part}]"
                here = here["vary"][part]
            elif isinstance(here, list) and part < len(here) and isinstance(here[part], dict):
                text += f"[{part}]"
                here = here[part]
            # Else a bare value, which the schema sees as the only one of its levels.
        elif part != "[key]":
            text += f".{_key(part)}" if text else _key(part)
            here = here.get(part) if isinstance(here, dict) else None
    return text or "the plan"


def _key(part: str) -> str:
    if part.replace("_", "").replace("-", "").replace(".", "").isalnum() and len(part) <= 60:
        return part
    return shown(part)


def _found(value: Any) -> str:
    if isinstance(value, dict):
        return f"a table with {shown(', '.join(map(str, value)))}" if value else "an empty table"
    return shown(value)


def _as_written(location: Sequence[str | int]) -> tuple[str | int, ...]:
    """The location without the type by which a [[workload]] was chosen, which is no key."""
    if len(location) > 2 and location[0] == "workload" and isinstance(location[1], int):
        return (*location[:2], *location[3:])
    return tuple(location)


def _names(location: Sequence[str | int]) -> tuple[str, ...]:
    names = tuple(part for part in location if isinstance(part, str))
    return (
        (names[0], registry.type_today(names[1]), *names[2:])
        if names[1:] and names[0] == "workload"
        else names
    )


def _closest(location: Sequence[str | int], document: Mapping[str, Any]) -> str:
    *table, key = _names(location)
    allowed = list(keys_of(TABLES[tuple(table)]))
    listed = f"allowed: {', '.join(allowed)}"
    if _SETTINGS in allowed:
        listed += f"; a setting of the server goes into [{'.'.join((*table, _SETTINGS))}]"
    return did_you_mean(key, allowed, otherwise=_elsewhere(table, key, document) or listed)


def _elsewhere(table: Sequence[str], key: str, document: Mapping[str, Any]) -> str:
    """`it is a key of [machine]`: the tables that have the key; to a workload, those of the others are foreign.

    A cluster's table is meant by nobody who has none.
    """
    homes = [names for names, other in TABLES.items() if names != tuple(table) and key in keys_of(other)]
    if table[:1] == ["workload"]:
        homes = [names for names in homes if names[:1] != ("workload",) or names[:2] == tuple(table[:2])]
    if _CLUSTER not in document:
        homes = [names for names in homes if names != (_CLUSTER,)]
    written = dict.fromkeys(map(_header, homes))
    return f"it is a key of {' and of '.join(written)}" if written else ""


def _header(names: tuple[str, ...]) -> str:
    """As the table is headed in a plan."""
    if not names:
        return "the plan itself, above its tables"
    if names[0] == "workload":
        return f"[[{'.'.join((names[0], *names[2:]))}]]"
    return f"[[{names[0]}]]" if names[0] in _REPEATED else f"[{names[0]}]"


def _description(location: Sequence[str | int]) -> str:
    names = _names(location)
    for length in range(len(names), 0, -1):
        table = TABLES.get(names[: length - 1])
        field = keys_of(table).get(names[length - 1]) if table else None
        if field and field.description:
            return field.description
    return "a table"
