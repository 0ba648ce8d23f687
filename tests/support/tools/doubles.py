"""Functions that do something else for a while, under whatever names they were imported, or will be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def put_in_place_of(
    function: Callable[..., Any], double: Callable[..., Any], patch: pytest.MonkeyPatch
) -> None:
    """`function` stays the same object and runs the code of `double`, which imports whatever it speaks of."""
    patch.setattr(function, "__code__", double.__code__)
