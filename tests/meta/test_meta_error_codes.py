"""Every error has a code of its own, as studies hold it beside its sentences."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Protocol

from tests.support.tools.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ROOT = "BedplateError"
_CODE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class _Judge(Protocol):
    def __call__(self, findings: Sequence[str]) -> None: ...


class _Source(Protocol):
    path: str
    text: str


def _errors(sources: Iterable[_Source]) -> list[tuple[str, ast.ClassDef]]:
    """Every class below the root, with its place."""
    classes = [
        (f"{source.path}:{node.lineno}", node)
        for source in sources
        for node in nodes(source.text)
        if isinstance(node, ast.ClassDef)
    ]
    known = {_ROOT}
    while True:
        found = [each for each in classes if each[1].name == _ROOT or known & _bases(each[1])]
        if {node.name for _, node in found} <= known:
            return found
        known |= {node.name for _, node in found}


def _bases(node: ast.ClassDef) -> set[str]:
    return {base.id for base in node.bases if isinstance(base, ast.Name)}


def _code_of(node: ast.ClassDef) -> str | None:
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="code")], value=ast.Constant(value=str(code))):
                return code
    return None


def wrong_codes(sources: Iterable[_Source]) -> list[str]:
    """Errors without a code of their own, and codes that are none or stand twice."""
    places = defaultdict(list)
    findings = []
    for place, node in _errors(sources):
        code = _code_of(node)
        if code is None:
            findings.append(f'{place}: {node.name} has no code; write code = "word-of-the-field"')
        elif _CODE.fullmatch(code) is None:
            findings.append(f"{place}: {code!r} is no code; use small letters, numbers and hyphens")
        else:
            places[code].append(place)
    return findings + [
        f"{twice[1]}: the code {code!r} is that of {twice[0]}; use another"
        for code, twice in places.items()
        if len(twice) > 1
    ]


def test_every_error_has_a_code_of_its_own(python_sources: Sequence[_Source], judge: _Judge) -> None:
    judge(wrong_codes(source for source in python_sources if source.path.startswith("src/")))


class _Planted:
    path = "src/planted.py"

    def __init__(self, text: str) -> None:
        self.text = f'class {_ROOT}(Exception):\n    code = "failed"\n{text}'


def test_a_planted_error_without_a_code_is_found() -> None:
    deeper = "class Full(BedplateError):\n    code = 'full'\nclass Fuller(Full):\n    pass\n"
    assert 1 == len(wrong_codes([_Planted(deeper)]))


def test_a_planted_code_that_is_none_or_stands_twice_is_found() -> None:
    assert 1 == len(wrong_codes([_Planted("class Full(BedplateError):\n    code = 'Is full'\n")]))
    assert 1 == len(wrong_codes([_Planted("class Full(BedplateError):\n    code = 'failed'\n")]))
