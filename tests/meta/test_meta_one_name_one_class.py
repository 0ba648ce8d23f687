"""One public class name means one class, so that a name in one room is read alike in every other."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING, Protocol

from tests.support.tools.syntax import tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class _Judge(Protocol):
    def __call__(self, findings: Sequence[str]) -> None: ...


class _Source(Protocol):
    path: str
    text: str


def classes_of_one_name(sources: Iterable[tuple[str, str]]) -> list[str]:
    """Public classes, at the top of a module, of which another module has one of the same name."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, text in sources:
        for node in tree(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path}:{node.lineno}")
    return [
        f"{name} is {len(found)} classes: {', '.join(found)}; name each after what it holds"
        for name, found in sorted(places.items())
        if len(found) > 1
    ]


def test_a_public_class_name_means_one_class(python_sources: Sequence[_Source], judge: _Judge) -> None:
    product = [(each.path, each.text) for each in python_sources if each.path.startswith("src/")]
    judge(classes_of_one_name(product))


def test_a_planted_second_class_is_found() -> None:
    found = classes_of_one_name(
        [("src/a.py", "class Verdict: ...\n"), ("src/b.py", "\nclass Verdict: ...\n")]
    )
    assert ["Verdict is 2 classes: src/a.py:1, src/b.py:2; name each after what it holds"] == found


def test_private_classes_and_classes_within_others_may_share_a_name() -> None:
    text = "class _Part: ...\nclass Whole:\n    class Inner: ...\n"
    assert [] == classes_of_one_name([("src/a.py", text), ("src/b.py", text.replace("Whole", "Other"))])
