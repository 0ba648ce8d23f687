"""A workload or an engine is known by name in its folder, on its line in the registry, and in the places that are listed here."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from tests.support.tools.syntax import nodes

from bedplate import registry

# Constants that hold such a name, for who imports them.
_CONSTANTS = frozenset({"WORKLOAD", "LMDB", "POSTGRESQL"})
_FOLDERS = ("src/bedplate/workloads/", "src/bedplate/engines/", "src/bedplate/registry.py")
# Where a name still stands, and for what. The list may become shorter.
KNOWN: Mapping[str, str] = {
    "analysis/power_cut_view.py": "the verdict of power cuts stands beside every speed",
    "analysis/tpch_view.py": "TPC-H's scores are part of an overview",
    "model/engines.py": "the constants",
    "model/lmdb.py": "the constant",
    "model/power_cut.py": "the constant",
    "model/tpch.py": "the constant",
}


class _Judge(Protocol):
    def __call__(self, findings: Sequence[str]) -> None: ...


class _Source(Protocol):
    path: str
    text: str


def names_in(text: str) -> set[str]:
    """Names of workloads and engines that stand in a module as texts, and constants of them that it takes."""
    names = {*registry.WORKLOADS, *registry.ENGINES} - {"none"}
    found = set()
    for node in nodes(text):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names:
            found.add(node.value)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bedplate"):
            found |= {alias.name for alias in node.names} & _CONSTANTS
        elif isinstance(node, ast.Attribute):
            found |= {node.attr} & _CONSTANTS
    return found


def knowing(sources: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """The modules outside of the folders that know a name, below `src/bedplate`."""
    return {
        path.removeprefix("src/bedplate/"): names
        for path, text in sources
        if path.startswith("src/bedplate/") and not path.startswith(_FOLDERS)
        if (names := names_in(text))
    }


def test_no_other_module_knows_a_workload_or_an_engine_by_name(
    python_sources: Sequence[_Source], judge: _Judge
) -> None:
    found = knowing((each.path, each.text) for each in python_sources)
    judge(
        [
            f"{path} knows {', '.join(sorted(names))}: ask the folder for a role (docs/decisions/0014)"
            for path, names in sorted(found.items())
            if path not in KNOWN
        ]
    )
    judge(
        [
            f"{path} is listed and knows no name any more: take it out"
            for path in sorted(set(KNOWN) - set(found))
        ]
    )


def test_a_planted_name_is_found() -> None:
    planted = {
        "src/bedplate/plan/order.py": 'if workload.type == "tpch":\n    pass\n',
        "src/bedplate/page/answer.py": "from bedplate.model.engines import LMDB as engine\n",
        "src/bedplate/page/choice.py": "from bedplate.workloads.tpch import model as tpch\nname = tpch.WORKLOAD\n",
        "src/bedplate/workloads/fio/run.py": 'name = "fio"\n',
        "src/bedplate/plan/words.py": '"""Of fio and tpch."""\n',
    }
    found = {"plan/order.py": {"tpch"}, "page/answer.py": {"LMDB"}, "page/choice.py": {"WORKLOAD"}}
    assert found == knowing(planted.items())
