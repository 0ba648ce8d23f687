"""The workloads and the engines, and the folder of each: a new one is a folder and a line here.

The rooms of the house know roles and no names. A room declares what it needs of a workload or an engine (the plan a table,
the visit a load and runs, the figures a maker), and asks here. `ROLES` of a folder's `__init__.py` says which of its files fulfils which role, by the object of that name in capitals. Files are imported
when they are asked for: a visit stays on the standard library, and a start of the command line reads no figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from bedplate.errors import PlanError
from bedplate.near_names import unknown_name

# By the type that a plan names, in the order in which they are listed.
WORKLOADS: Mapping[str, str] = {
    "pgbench": "bedplate.workloads.pgbench",
    "tpch": "bedplate.workloads.tpch",
    "sysbench": "bedplate.workloads.sysbench",
    "microbenchmark": "bedplate.workloads.microbenchmark",
    "bonnie": "bedplate.workloads.bonnie",
    "fio": "bedplate.workloads.fio",
    "acks": "bedplate.workloads.acks",
    "power_cut": "bedplate.workloads.power_cut",
    "faulty_disk": "bedplate.workloads.faulty_disk",
}
# Types that are called otherwise today, by their names in plans and studies of before: both names stay good, and a record keeps its own.
FORMER_TYPES: Mapping[str, str] = {"lmdb": "microbenchmark"}
# By the name that a cell has for it. The identity of a cell does not name the first.
ENGINES: Mapping[str, str] = {
    "postgresql": "bedplate.engines.postgresql",
    "lmdb": "bedplate.engines.lmdb",
    "sqlite": "bedplate.engines.sqlite",
    "mariadb": "bedplate.engines.mariadb",
    "none": "bedplate.engines.none",
    "own-engine": "bedplate.engines.external",
}


def first_workload() -> str:
    """The type that runs where a plan names none."""
    return next(iter(WORKLOADS))


def part(workload: str, role: str) -> Any:
    """What a workload has for a role: the object `ROLE` (in capitals) of the file that its folder names for it.

    The caller's protocol gives its type. PlanError lists the known workloads; a role that the folder does not
    have is a KeyError, as it is a fault of the folder.
    """
    return _object(_folder(type_today(workload), WORKLOADS, "workload"), role)


def type_today(workload: str) -> str:
    """What a type of workloads is called today, whatever its records call it; a name that nobody knows stays."""
    return FORMER_TYPES.get(workload, workload)


def parts(role: str) -> Mapping[str, Any]:
    """What the workloads have for a role that not all of them have, by their types, in the order of the registry."""
    return _objects(WORKLOADS, role)


def engine_part(engine: str, role: str) -> Any:
    """As `part`, of an engine."""
    return _object(_folder(engine, ENGINES, "engine"), role)


def engines_with(role: str) -> tuple[str, ...]:
    """The engines that have a role, by their names in the order of the registry; its files are not imported."""
    return tuple(name for name, folder in ENGINES.items() if role in _roles(folder))


def engine_part_or_none(engine: str, role: str) -> Any | None:
    """As `engine_part`, of a role that not all of them have."""
    folder = _folder(engine, ENGINES, "engine")
    return _object(folder, role) if engine in engines_with(role) else None


def engine_parts(role: str) -> Mapping[str, Any]:
    """As `parts`, of the engines by their names."""
    return _objects(ENGINES, role)


def _folder(name: str, folders: Mapping[str, str], kind: str) -> str:
    if name not in folders:
        raise PlanError(unknown_name(kind, name, folders))
    return folders[name]


def _objects(folders: Mapping[str, str], role: str) -> Mapping[str, Any]:
    return {name: _object(folder, role) for name, folder in folders.items() if role in _roles(folder)}


def _object(folder: str, role: str) -> Any:
    return getattr(import_module(f"{folder}.{_roles(folder)[role]}"), role.upper())


@cache
def _roles(folder: str) -> Mapping[str, str]:
    """The file of each role that a folder has."""
    files: Mapping[str, Sequence[str]] = import_module(folder).ROLES
    return {role: file for file, roles in files.items() for role in roles}
