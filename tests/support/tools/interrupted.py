"""A signal planted before every line of some code in turn, as its handler would raise it there."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from bedplate.host.interruption import arrive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType

_LINES_MAX = 2000


class Signal(BaseException):
    """What the handler raises; in a `held` block at its end."""


def interrupted_at_each_line(deed: Callable[[], object], *, of: Callable[[CodeType], bool]) -> Iterator[str]:
    """Do it again and again, each time with a signal before one line more of the code that `of` takes.

    Yields where the signal came, after the deed ended by it. Ends with a deed that no signal met, which has to end well.
    """
    for number in range(1, _LINES_MAX):
        place = _interrupted(deed, number, of)
        if place is None:
            return
        yield place
    raise AssertionError(f"more than {_LINES_MAX} lines")


def in_files(*ends: str) -> Callable[[CodeType], bool]:
    """Code of files whose names end so."""
    return lambda code: code.co_filename.endswith(ends)


def in_functions(file: str, *names: str) -> Callable[[CodeType], bool]:
    """These functions of one file."""
    return lambda code: code.co_filename.endswith(file) and code.co_name in names


def _interrupted(deed: Callable[[], object], number: int, of: Callable[[CodeType], bool]) -> str | None:
    left = number
    place: str | None = None

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal left, place
        if place is not None or not of(frame.f_code):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                arrive(Signal())
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        deed()
    except Signal:
        assert place is not None
        return place
    finally:
        sys.settrace(before)
    assert place is None, f"the signal at {place} was lost"
    return None
