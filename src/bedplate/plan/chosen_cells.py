"""`cells` of a workload: the few combinations that it runs in, where the product of all factors would be too many.

A table of it names what differs from the plan's first cell of that engine, by the keys of the plan; of every other
factor the first level holds. So one factor at a time is a table of one key, and `{}` is the first cell itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Any, TypeAlias

from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import CellChoice, Plan, PlannedWorkload
from bedplate.plan.engine_table import EngineTable, engine_tables
from bedplate.plan.words import shown

MOST_TABLES = 1000

# What a table asks for: names of levels as a cell has them, each with those that it takes.
Departures: TypeAlias = tuple[tuple[str, tuple[Scalar, ...]], ...]


def departures(value: object) -> tuple[Departures, ...]:
    """The tables of `cells` as a plan has them; ValueError says what is allowed."""
    allowed = 'allowed is a list of tables such as { filesystem.type = ["xfs", "btrfs"], filesystem.barrier = false }'
    if not isinstance(value, list) or not value or len(value) > MOST_TABLES:
        raise ValueError(allowed)
    found = []
    for table in value:
        if not isinstance(table, dict):
            raise ValueError(allowed)
        # By name alone: levels of two types have no order.
        found.append(tuple(sorted(_named(table), key=itemgetter(0))))
    if len(set(found)) < len(found):
        raise ValueError("a table is there twice")
    return tuple(found)


def chosen(plan: Plan, asked: Mapping[int, tuple[Departures, ...]], reasons: list[str]) -> Plan:
    """The plan with its workloads kept to the cells that they name, by the workload's place in the plan.

    What matches no cell, and what would visit one cell and dataset twice, is added to `reasons`.
    """
    first: dict[str, Levels] = {}
    for cell in plan.cells():
        first.setdefault(cell.build.engine, cell.levels)
    workloads = []
    for index, workload in enumerate(plan.workloads):
        choices = tuple(
            CellChoice(departures, levels) for departures in asked.get(index, ()) for levels in first.values()
        )
        workloads.append(replace(workload, only=choices))
        reasons += _unmatched(plan, workload, index, asked.get(index, ()), first)
    kept = replace(plan, workloads=tuple(workloads))
    reasons += _visited_twice(kept)
    return kept


def _sections() -> Mapping[str, type[EngineTable] | None]:
    """The tables of a plan that may be named, and the engine that they are of."""
    of_engines = {name: table for table in engine_tables().values() for name in table.level_names}
    return {"filesystem": None, **of_engines}


def _named(table: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, tuple[Scalar, ...]]]:
    sections = _sections()
    for key, value in table.items():
        name = f"{section}.{key}" if section else key
        if name in sections and isinstance(value, dict):
            yield from _named(value, name)
        elif section:
            # A list is several levels, as nothing that may be named here has lists for levels.
            levels = tuple(value) if isinstance(value, list) else (value,)
            wrong = [level for level in levels if not isinstance(level, (str, int, float, bool))]
            if wrong or not levels:
                raise ValueError(f"{shown(name)} takes a level, or a list of levels; found {shown(value)}")
            engine = sections[section]
            if engine is None:
                yield f"{section}.{key}", levels
            else:
                yield engine.level_name(section, key), tuple(engine.level(section, each) for each in levels)
        else:
            raise ValueError(f"{shown(key)}: a table names keys of {', '.join(sections)}")


def _unmatched(
    plan: Plan,
    workload: PlannedWorkload,
    index: int,
    asked: tuple[Departures, ...],
    first: Mapping[str, Levels],
) -> list[str]:
    cells = [cell for cell in plan.cells() if plan.runs_on(workload, cell.build.engine)]
    found = []
    for number, named in enumerate(asked):
        choices = [CellChoice(named, first[engine]) for engine in {cell.build.engine for cell in cells}]
        if not any(choice.takes(cell.levels) for cell in cells for choice in choices):
            words = (
                ", ".join(f"{name} {'/'.join(map(_in_words, levels))}" for name, levels in named)
                or "the first"
            )
            found.append(
                f"workload[{index}].cells[{number}]: no cell of the plan has {words} and else what the first cell has; "
                "vary those factors where they belong"
            )
    return found


def _visited_twice(plan: Plan) -> list[str]:
    for cell in plan.cells():
        loaded = Counter(
            (workload.type, levels)
            for workload in plan.workloads_of(cell)
            for levels in (*workload.scales, *workload.datasets)
        )
        twice = [kind for (kind, _), count in loaded.items() if count > 1]
        if twice:
            words = (
                f"workload: two of type {twice[0]} load the same dataset in {cell.variant} ({cell.slug}); "
                "keep them apart by `cells`"
            )
            return [words]
    return []


def _in_words(level: Scalar) -> str:
    """As it is where it can be read, in quotes and short where it cannot."""
    text = str(level)
    return text if text.isprintable() and len(text) <= 80 else shown(level)
