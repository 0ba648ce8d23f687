"""A plan kept to one cell and dataset of it, to try one result again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bedplate.errors import PlanError
from bedplate.model.cell import Cell, Dataset
from bedplate.plan.engine_table import engine_tables, section_of
from bedplate.plan.load import load_plan
from bedplate.plan.toml.parsed import parse_toml
from bedplate.plan.toml.written import toml_text

_Path = tuple[str | int, ...]


def narrowed(text: str, cell: Cell, dataset: Dataset, *, directory: Path) -> dict[str, Any]:
    """The values of a plan that comes to this cell and dataset and to no other; its files are read from `directory`.

    Each factor keeps its first level with which the plan, read as any, still has both. So nothing has to know what cells call a key.
    PlanError where the plan cannot be read here, or has no such cell.
    """

    def has(values: Mapping[str, Any]) -> bool:
        plan = load_plan(toml_text(values), source="plan.toml", directory=directory)
        return any(
            dataset.workload == workload.type and dataset.levels in workload.datasets
            for found in plan.cells()
            if _is(found, cell)
            for workload in plan.workloads_of(found)
        )

    values = parse_toml(text)
    if not has(values):
        raise PlanError(f"the plan has no cell {cell.id} with {dataset.words}")
    values = _kept(values, has, ("workload",))
    # Its cells are named beside the plan's first one, which is another now.
    values = {**values, "workload": [{**values["workload"][0]}]}
    values["workload"][0].pop("cells", None)
    others = engine_tables().keys() - {section_of(cell.build.engine)}
    values = {name: each for name, each in values.items() if name not in others}
    while (path := next(_several(values), None)) is not None:
        values = _kept(values, has, path)
    if not has(values):
        raise PlanError(f"the plan does not have cell {cell.id} alone")
    return values


def _is(found: Cell, cell: Cell) -> bool:
    """Whether a cell of the plan is the one; an executor chooses the kernel that the plan leaves open."""
    return cell == (found if found.kernel.release is not None else replace(found, kernel=cell.kernel))


def _kept(values: dict[str, Any], has: Callable[[Mapping[str, Any]], bool], path: _Path) -> dict[str, Any]:
    """The values with the one alternative at `path` with which the plan has what is asked for."""
    reasons: tuple[str, ...] = (f"{path} has no level of the cell",)
    for alternative in _alternatives(_at(values, path)):
        candidate: dict[str, Any] = _with(values, path, alternative)
        try:
            if has(candidate):
                return candidate
        except PlanError as error:
            reasons = error.reasons
    raise PlanError(*reasons)


def _several(values: object, path: _Path = ()) -> Iterator[_Path]:
    """Paths at which the plan has several alternatives and a cell has one: varied levels, and tables of file systems."""
    if isinstance(values, dict):
        if "vary" in values or (len(path) == 0 and len(values.get("filesystem", ())) > 1):
            yield path or ("filesystem",)
            return
        for name, each in values.items():
            yield from _several(each, (*path, name))
    elif isinstance(values, list):
        for index, each in enumerate(values):
            yield from _several(each, (*path, index))


def _alternatives(found: Any) -> Iterator[Any]:
    if isinstance(found, dict):
        yield from found["vary"]
    else:
        for table in found:
            yield [table]


def _at(values: Any, path: _Path) -> Any:
    for part in path:
        values = values[part]
    return values


def _with(values: Any, path: _Path, new: object) -> Any:
    """A copy of the values with another one at a path."""
    if not path:
        return new
    first, *rest = path
    changed: Any = dict(values) if isinstance(values, dict) else list(values)
    changed[first] = _with(values[first], tuple(rest), new)
    return changed
