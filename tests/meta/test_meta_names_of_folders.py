"""A workload or an engine is known by name in its folder, on its line in the registry, and in the places that are listed here.

Code is judged by its syntax tree; comments, docstrings, templates, styles and scripts by whole words, as `git grep -iw` does it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from tests.support.tools.syntax import nodes

from bedplate import registry

# Constants that hold such a name, for who imports them.
_CONSTANTS = frozenset({"WORKLOAD", "LMDB", "POSTGRESQL"})
_FOLDERS = ("src/bedplate/workloads/", "src/bedplate/engines/", "src/bedplate/registry.py")
# Names that are a word of the field besides, or that a plan, a record and the build of a server have as a key.
_WORDS = frozenset({"none", "microbenchmark", "postgresql", "power_cut"})
# Where a name still is, and for what. The list may become shorter.
KNOWN: Mapping[str, str] = {
    "cuts/records.py": "the constant",
    "cuts/runs.py": "the verdict of power cuts stands beside every speed",
    "model/engines.py": "the constants: a reader asks a workload for its engine and may import none",
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


def words_in(text: str) -> set[str]:
    """Names that stand in a text as whole words, in any case: in a comment, too."""
    names = sorted({*registry.WORKLOADS, *registry.ENGINES} - _WORDS)
    return {found.lower() for found in re.findall(rf"\b(?:{'|'.join(names)})\b", text, re.IGNORECASE)}


def knowing(sources: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """The files outside of the folders that know a name, below `src/bedplate`."""
    return {
        path.removeprefix("src/bedplate/"): names
        for path, text in sources
        if path.startswith("src/bedplate/") and not path.startswith(_FOLDERS)
        if (names := words_in(text) | (names_in(text) if path.endswith(".py") else set()))
    }


def test_no_other_file_knows_a_workload_or_an_engine_by_name(
    sources: Sequence[_Source], judge: _Judge
) -> None:
    found = knowing((each.path, each.text) for each in sources)
    judge(
        [
            f"{path} knows {', '.join(sorted(names))}: ask the folder for a role, or say what it does (docs/decisions/0014)"
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
        "src/bedplate/page/answer.py": "from bedplate.model.engines import POSTGRESQL as engine\n",
        "src/bedplate/page/document.py": "from bedplate.model import elsewhere\nname = elsewhere.WORKLOAD\n",
        "src/bedplate/workloads/fio/visit.py": 'name = "fio"\n',
        "src/bedplate/plan/words.py": '"""Of Fio."""\n# as pgbench does\n',
        "src/bedplate/page/assets/script/views/raw.js": "// tpch\n",
        "src/bedplate/plan/scaled.py": '"""Of fiona and tpch_scores, of a power_cut."""\n',
    }
    found = {
        "plan/order.py": {"tpch"},
        "page/answer.py": {"POSTGRESQL"},
        "page/document.py": {"WORKLOAD"},
        "plan/words.py": {"fio", "pgbench"},
        "page/assets/script/views/raw.js": {"tpch"},
    }
    assert found == knowing(planted.items())
