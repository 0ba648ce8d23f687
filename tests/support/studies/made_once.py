"""Studies that many tests want, each in a directory of its own: made once, and then written from memory."""

from __future__ import annotations

from collections import OrderedDict
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Files: TypeAlias = dict[Path, bytes | None]

Asked = ParamSpec("Asked")
# Of each maker, those that were asked for last: a study is a few megabytes.
_KEPT_MAX = 8


def made_once(make: Callable[Concatenate[Path, Asked], Path]) -> Callable[Concatenate[Path, Asked], Path]:
    """A maker that writes what it wrote before for the same recipe; a recipe is what its `repr` says."""
    kept: OrderedDict[str, Files] = OrderedDict()

    @wraps(make)
    def write(directory: Path, /, *asked: Asked.args, **named: Asked.kwargs) -> Path:
        recipe = repr((asked, sorted(named.items())))
        if recipe in kept:
            kept.move_to_end(recipe)
            _write(directory, kept[recipe])
        else:
            make(directory, *asked, **named)
            kept[recipe] = _read(directory)
            if len(kept) > _KEPT_MAX:
                kept.popitem(last=False)
        return directory

    return write


def _read(directory: Path) -> Files:
    """What is in a directory by its path there; None for a folder."""
    return {
        path.relative_to(directory): None if path.is_dir() else path.read_bytes()
        for path in sorted(directory.rglob("*"))
    }


def _write(directory: Path, files: Files) -> None:
    directory.mkdir(parents=True)
    for path, content in files.items():
        if content is None:
            (directory / path).mkdir()
        else:
            (directory / path).write_bytes(content)
