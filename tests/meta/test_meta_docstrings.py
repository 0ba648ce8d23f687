"""Modules and public functions say what they are for; no test hides another of the same name."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Protocol

from tests.support.tools.syntax import nodes, tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class _Judge(Protocol):
    def __call__(self, findings: Sequence[str]) -> None: ...


class _Source(Protocol):
    path: str
    text: str


def _public_definitions(body: Sequence[ast.stmt], prefix: str = "") -> Iterator[tuple[str, _Definition]]:
    for node in body:
        if not isinstance(node, _Definition) or node.name.startswith("_"):
            continue
        if any(isinstance(d, ast.Name) and d.id in {"overload", "override"} for d in node.decorator_list):
            continue
        yield prefix + node.name, node
        if isinstance(node, ast.ClassDef):
            yield from _public_definitions(node.body, f"{prefix}{node.name}.")


def missing_docstrings(path: str, text: str) -> list[str]:
    """The module, and every public class, method and function without a docstring."""
    module = tree(text)
    findings = [] if ast.get_docstring(module) else [f"{path}: say in a docstring what the module is for"]
    findings += [
        f"{path}:{node.lineno} {name}: say in a docstring what it gives, in which unit, and when it fails"
        for name, node in _public_definitions(module.body)
        if not ast.get_docstring(node)
    ]
    return findings


def hidden_tests(path: str, text: str) -> list[str]:
    """Tests of one scope that share a name: only the last of them runs."""
    scopes = [n for n in nodes(text) if isinstance(n, ast.Module | ast.ClassDef)]
    findings = []
    for scope in scopes:
        functions = [n for n in scope.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        counted = Counter(node.name for node in functions if node.name.startswith("test"))
        findings += [
            f"{path}: {name} is defined {count} times and runs once; name each after its behaviour"
            for name, count in counted.items()
            if count > 1
        ]
    return findings


def shared_module_names(paths: Sequence[str]) -> list[str]:
    """Test modules with the same file name, which a report cannot tell apart."""
    counted = Counter(PurePosixPath(path).name for path in paths)
    return [
        f"{name}: {count} test modules have this name; name each after what it tests"
        for name, count in counted.items()
        if count > 1
    ]


def _test_paths(sources: Sequence[_Source]) -> list[_Source]:
    return [
        s for s in sources if s.path.startswith("tests/") and PurePosixPath(s.path).name.startswith("test_")
    ]


def test_everything_public_has_a_docstring(python_sources: Sequence[_Source], judge: _Judge) -> None:
    ours = [source for source in python_sources if source.path.startswith("src/")]
    judge([finding for source in ours for finding in missing_docstrings(source.path, source.text)])


def test_no_test_hides_another(python_sources: Sequence[_Source], judge: _Judge) -> None:
    judge([finding for s in _test_paths(python_sources) for finding in hidden_tests(s.path, s.text)])


def test_names_of_test_modules_are_unique(python_sources: Sequence[_Source], judge: _Judge) -> None:
    judge(shared_module_names([source.path for source in _test_paths(python_sources)]))


def test_a_planted_missing_docstring_is_found() -> None:
    text = (
        '"""Module."""\nclass A:\n    """A."""\n    def b(self): ...\n    def _c(self): ...\ndef d(): ...\n'
    )
    assert [f.rsplit(": ", 1)[0] for f in missing_docstrings("a.py", text)] == ["a.py:4 A.b", "a.py:6 d"]


def test_a_planted_module_without_a_docstring_is_found() -> None:
    assert len(missing_docstrings("a.py", "x = 1\n")) == 1
    assert len(missing_docstrings("a.py", "")) == 1


def test_private_and_overloaded_definitions_need_none() -> None:
    text = '"""Module."""\nclass _A:\n    def b(self): ...\n@overload\ndef c(): ...\n'
    assert missing_docstrings("a.py", text) == []


def test_a_planted_hidden_test_is_found() -> None:
    text = "def test_a(): ...\ndef test_a(): ...\nclass TestB:\n    def test_a(self): ...\n"
    assert len(hidden_tests("test_x.py", text)) == 1


def test_the_same_name_in_two_classes_passes() -> None:
    text = "class TestA:\n    def test_a(self): ...\nclass TestB:\n    def test_a(self): ...\n"
    assert hidden_tests("test_x.py", text) == []


def test_a_planted_shared_module_name_is_found() -> None:
    assert (
        len(shared_module_names(["tests/unit/a/test_x.py", "tests/unit/b/test_x.py", "tests/unit/test_y.py"]))
        == 1
    )
