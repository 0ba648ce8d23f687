"""The runs of pgbench: every combination of the levels of its `[[workload.run]]` tables, in order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

from bedplate.model.cell import RunSpec
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import DEFAULTS_VERSION
from bedplate.plan.values import UNTIL_STEADY, Script
from bedplate.plan.workload_tables import RunTable

# Threads of pgbench where the plan is silent. A thread for each client since version 2: one that serves two sessions
# makes two speeds of one configuration, as the scheduler places it (docs/METHOD.md, "Threads of pgbench").
_JOBS_UNTIL_VERSION_2 = 2
WARMUP_LIMIT_S = 600.0
_FACTORS = ("script", "clients", "jobs", "warmup", "duration", "rate", "protocol")


def run_count(table: RunTable) -> int:
    """How many runs a table makes, without making them."""
    count = 1
    for levels in _factors(table).values():
        count *= len(levels)
    return count


def run_specs(
    tables: tuple[RunTable, ...], workload: str, *, defaults: int = DEFAULTS_VERSION
) -> tuple[RunSpec, ...]:
    """The runs of all tables, in the order of the plan; ValueError if two have one name.

    Within a table the last key of the list above varies fastest. Where a key varies, its level is
    appended to the name.
    """
    specs = tuple(spec for table in tables for spec in _runs(table, workload, defaults))
    # Folders are made of the names: what differs in punctuation only would differ in nothing there.
    names = Counter(re.sub(r"[^a-z0-9.]+", "-", spec.name.lower()) for spec in specs)
    twice = sorted(name for name, count in names.items() if count > 1)
    if twice:
        raise ValueError(f"two runs are called {', '.join(twice)}; give each a name")
    return specs


def _factors(table: RunTable) -> dict[str, tuple[Any, ...]]:
    return {name: getattr(table, name) or (None,) for name in _FACTORS}


def _runs(table: RunTable, workload: str, defaults: int) -> Iterator[RunSpec]:
    factors = _factors(table)
    for combination in product(*factors.values()):
        levels = dict(zip(factors, combination, strict=True))
        varied = {name: level for name, level in levels.items() if len(factors[name]) > 1}
        yield RunSpec(_name(table, levels["script"], varied), workload, _levels(table, levels, defaults))


def _name(table: RunTable, script: Script, varied: dict[str, Any]) -> str:
    name = table.name or script.stem or script.name
    for factor, level in varied.items():
        if factor == "script":
            name += "" if table.name is None else f"-{_word(level)}"
        else:
            name += f"-{factor}-{_word(level)}"
    return name


def _word(level: Any) -> str:
    if isinstance(level, Script):
        return level.stem or level.name
    if level is None:
        return "unlimited"
    return f"{level:g}" if isinstance(level, float) else str(level).replace(" ", "-")


def _levels(table: RunTable, levels: dict[str, Any], defaults: int) -> Levels:
    script: Script = levels["script"]
    steady = levels["warmup"] == UNTIL_STEADY
    found: dict[str, Scalar | None] = {
        "script": script.name,
        "script_text": script.text,
        "clients": levels["clients"],
        "jobs": levels["jobs"] or _default_jobs(levels["clients"], defaults),
        "warmup": UNTIL_STEADY if steady else "fixed",
        # Until steady: the longest that it may take.
        "warmup_s": (table.warmup_limit or WARMUP_LIMIT_S) if steady else levels["warmup"],
        "duration_s": levels["duration"],
        "rate_tps": levels["rate"],
        "protocol": levels["protocol"],
    }
    return Levels({name: level for name, level in found.items() if level is not None})


def _default_jobs(clients: int, defaults: int) -> int:
    return clients if defaults >= 2 else min(clients, _JOBS_UNTIL_VERSION_2)
