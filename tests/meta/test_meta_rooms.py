"""Each room says in four lines what is in it, what is not, what it may import and what it must not; and imports no more."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tests.support.tools.syntax import tree

_LINES = ("Here", "Not here", "May import", "Must not import")


class _Judge(Protocol):
    def __call__(self, findings: Sequence[str]) -> None: ...


def said(docstring: str) -> Mapping[str, str]:
    """What the four lines say, by their first words; nothing where one is missing or out of order."""
    heads = "|".join(_LINES)
    found = dict(re.findall(rf"^({heads}): (.+?)(?=^(?:{heads}): |\Z)", docstring, re.MULTILINE | re.DOTALL))
    return found if tuple(found) == _LINES else {}


def imported_rooms(text: str) -> set[str]:
    """The rooms of bedplate that a module imports when it runs; what is for types alone is left out."""
    found = set()
    for node in _run(tree(text)):
        if isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
        elif isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
    return {name.split(".")[1] for name in found if name.startswith("bedplate.")}


def _run(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield child
            yield from _run(child)


def wrong_rooms(bedplate: Path) -> list[str]:
    """Rooms without the four lines, with names in them that are no rooms, and imports that they do not allow."""
    rooms = {path.parent.name: path for path in sorted(bedplate.glob("*/__init__.py"))}
    findings = []
    for room, path in rooms.items():
        lines = said(ast.get_docstring(tree(path.read_text(encoding="utf-8"))) or "")
        if not lines:
            findings.append(f"{room}/__init__.py: say in four lines {': …, '.join(_LINES)}: …")
            continue
        may, must_not = (set(re.findall(r"`(\w+)`", lines[head])) for head in _LINES[2:])
        findings += [
            f"{room}/__init__.py: {name} is no room" for name in sorted((may | must_not) - set(rooms))
        ]
        allowed = (set(rooms) if lines["May import"].startswith("every room") else may) - must_not
        for module in sorted(path.parent.rglob("*.py")):
            imported = imported_rooms(module.read_text(encoding="utf-8")) & set(rooms)
            findings += [
                f"{module.relative_to(bedplate)} imports {other}: {room}/__init__.py does not allow it"
                for other in sorted(imported - allowed - {room})
            ]
    return findings


def test_each_room_says_what_it_is_and_imports_no_more(repository: Path, judge: _Judge) -> None:
    judge(wrong_rooms(repository / "src/bedplate"))


def _room(folder: Path, name: str, docstring: str, module: str = "") -> None:
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(f'"""{docstring}"""\n', encoding="utf-8")
    (folder / name / "part.py").write_text(module, encoding="utf-8")


def test_a_planted_room_that_says_less_or_imports_more_is_found(tmp_path: Path) -> None:
    text = "A.\n\nHere: a.\nNot here: b.\nMay import: `low`.\nMust not import: `old`."
    _room(tmp_path, "low", text.replace("`low`", "nothing").replace("`old`", "`high`"))
    _room(tmp_path, "high", text, "def f():\n    from bedplate.bare import x\nfrom bedplate.low import y\n")
    _room(tmp_path, "bare", text.replace("Not here: b.\n", ""))
    types = "if TYPE_CHECKING:\n    from bedplate.low import z\n"
    _room(tmp_path, "whole", text.replace("`low`", "every room").replace("`old`", "`bare`"), types)
    assert [
        "bare/__init__.py: say in four lines Here: …, Not here: …, May import: …, Must not import: …",
        "high/__init__.py: old is no room",
        "high/part.py imports bare: high/__init__.py does not allow it",
    ] == wrong_rooms(tmp_path)
