"""Damages a study on the disk, a little and by a seed: what a bad disk, a bad copy or a bad person leaves."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# Each of these must not reach a terminal: a title, CSI and OSC by C0 and by C1, overwriting, bidi, a separator.
OBEYED = "\x1b]0;pwned\x07\x1b[2J\x9b31m\r\x08\x7f\u202e\u2066\u2028"
_HOSTILE: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**70,
    -1e300,
    [],
    {},
    "",
    OBEYED,
    f"{OBEYED}\n=HYPERLINK(1)",
    "[/bold][link=file:///x]:boom:",
    "../../..",
    "x" * 5000,
    [[[[]]]],
    {"a": OBEYED},
)
_NOT_JSON = ("NaN", "1e999", "-Infinity", "9" * 5000, '"\\ud800"', "[" * 100_000, "\x00")


def damage(study: Path, seed: int) -> str:
    """Do one thing to one file or folder of a study; what was done, in words."""
    chance = random.Random(seed)
    files = sorted(path for path in study.rglob("*") if path.is_file())
    top = [path for path in files if path.parent == study]
    # The few files at the top decide most.
    path = chance.choice(top if top and chance.random() < 0.4 else files)
    how = chance.choice(_WAYS)
    how(path, chance)
    return f"{how.__name__.lstrip('_')} {path.relative_to(study)}"


def _cut(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: chance.randrange(len(data) + 1)])


def _flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 1, 8))):
        if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def _no_utf8(path: Path, _: random.Random) -> None:
    path.write_bytes(b"\xff\xfe" + path.read_bytes())


def _remove(path: Path, _: random.Random) -> None:
    path.unlink()


def _pipe(path: Path, _: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(path: Path, _: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _endless(path: Path, _: random.Random) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _twice(path: Path, chance: random.Random) -> None:
    """The folder of a file once more, under a name that another one could have."""
    names = ("3.1", "1.2", "9.9", "03-copy", "canary", f"a{OBEYED}", "b\udcff")
    target = path.parent.with_name(chance.choice(names))
    if "visits" in path.parts and not target.exists():
        shutil.copytree(path.parent, target)


def _renamed(path: Path, chance: random.Random) -> None:
    target = path.with_name(chance.choice((f"{path.name}{OBEYED}", "x\udcff", "other.json")))
    path.rename(target)


def _value(path: Path, chance: random.Random) -> None:
    """Another value somewhere in a JSON document."""
    _changed(path, chance, lambda parent, key: parent.__setitem__(key, chance.choice(_HOSTILE)))


def _gone(path: Path, chance: random.Random) -> None:
    _changed(path, chance, lambda parent, key: parent.pop(key))


def _more(path: Path, chance: random.Random) -> None:
    def add(parent: Any, key: Any) -> None:
        if isinstance(parent, dict):
            parent[OBEYED] = parent[key]
        else:
            parent.append(parent[key])

    _changed(path, chance, add)


def _texts(path: Path, _: random.Random) -> None:
    """A text that a terminal would obey behind every text of a document, its structure left alone."""

    def told(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: told(item) for key, item in value.items()}
        if isinstance(value, list):
            return [told(item) for item in value]
        return f"{value}{OBEYED}" if isinstance(value, str) and " " in value else value

    _rewritten(path, told)


def _not_json(path: Path, chance: random.Random) -> None:
    mark = "hostile-value-here"
    _changed(path, chance, lambda parent, key: parent.__setitem__(key, mark))
    text = path.read_text(encoding="utf-8", errors="replace")
    path.write_text(text.replace(f'"{mark}"', chance.choice(_NOT_JSON)), encoding="utf-8")


def _changed(path: Path, chance: random.Random, change: Callable[[Any, Any], object]) -> None:
    def at_random(document: Any) -> Any:
        places = _places(document)
        if places:
            change(*chance.choice(places))
        return document

    _rewritten(path, at_random)


def _rewritten(path: Path, change: Callable[[Any], Any]) -> None:
    if path.suffix != ".json":
        return
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return
    path.write_text(json.dumps(change(document), indent=2, ensure_ascii=False), encoding="utf-8")


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place of a document, as its parent and the key or index in it."""
    if not isinstance(value, (dict, list)):
        return []
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    return [*((value, key) for key in keys), *(place for key in keys for place in _places(value[key]))]


_WAYS: tuple[Callable[[Path, random.Random], None], ...] = (
    *(_value, _value, _value, _gone, _gone, _more, _texts, _not_json, _not_json),
    *(_cut, _flip, _no_utf8, _remove, _pipe, _folder, _endless, _twice, _twice, _renamed),
)
