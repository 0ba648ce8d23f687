"""Python sources as their nodes: parsed once, whoever asks."""

from __future__ import annotations

import ast
from functools import cache


@cache
def nodes(text: str) -> tuple[ast.AST, ...]:
    """Every node of a module in the order of `ast.walk`."""
    return tuple(ast.walk(ast.parse(text)))


def tree(text: str) -> ast.Module:
    """The module itself."""
    first = nodes(text)[0]
    assert isinstance(first, ast.Module)
    return first
