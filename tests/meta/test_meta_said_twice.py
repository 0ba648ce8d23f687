"""What the page's script says stands once: in Python, which gives it to the script (`page/document.py`), or in the script."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from tests.support.tools.literals import HOLE, python_literals, script_literals

from bedplate.page.document import rules_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_PRODUCT = "src/bedplate/"
# What may stand in both: so many words in a row, and whole texts of so many.
_WORDS_MAX = 5
_WHOLE_WORDS_MAX = 3
_WORD = re.compile(r"[\w'’-]+")
# No sentence: what begins every file of XML.
_ALLOWED = re.compile(r"<\?xml ")


class _Judge(Protocol):
    def __call__(self, findings: Sequence[str]) -> None: ...


class _Source(Protocol):
    path: str
    text: str


def _keys(text: str) -> Iterator[tuple[str, ...]]:
    """What two texts have in common where one repeats the other."""
    pieces = [tuple(_WORD.findall(piece.lower())) for piece in text.split(HOLE)]
    if sum(map(len, pieces)) > _WHOLE_WORDS_MAX:
        yield (HOLE.join(" ".join(piece) for piece in pieces),)
    for piece in pieces:
        for at in range(len(piece) - _WORDS_MAX):
            yield piece[at : at + _WORDS_MAX + 1]


def said_twice(scripts: Mapping[str, str], modules: Mapping[str, str]) -> list[str]:
    """Every literal of a script that a literal of a module repeats."""
    known: dict[tuple[str, ...], str] = {}
    for path, source in modules.items():
        for literal in python_literals(source):
            for key in _keys(literal.text):
                known.setdefault(key, f"{path}:{literal.line}")
    return [
        f"{path}:{literal.line} says what {place} says: {' '.join(literal.text.split())!r:.120}; name it in Python, and "
        "give it to the script in page/document.py"
        for path, source in scripts.items()
        for literal in script_literals(source)
        if not _ALLOWED.search(literal.text)
        if (place := next((known[key] for key in _keys(literal.text) if key in known), None))
    ]


def unused(names: Iterable[str], scripts: Iterable[str]) -> list[str]:
    """Templates that no script names; a name may be put together."""
    literals = [literal.text for source in scripts for literal in script_literals(source)]
    whole, started = set(literals), [text.split(HOLE)[0] for text in literals if HOLE in text]
    return [
        f"page/document.py gives {name!r} to a script that never says it"
        for name in names
        if name not in whole and not any(start and name.startswith(start) for start in started)
    ]


def _of(sources: Sequence[_Source], start: str, ending: str) -> dict[str, str]:
    return {
        source.path: source.text
        for source in sources
        if source.path.startswith(start) and source.path.endswith(ending)
    }


def test_nothing_is_said_in_python_and_in_the_script(sources: Sequence[_Source], judge: _Judge) -> None:
    scripts = _of(sources, _PRODUCT, ".js")
    assert scripts
    judge(said_twice(scripts, _of(sources, _PRODUCT, ".py")))


def test_the_script_says_whatever_it_is_given(sources: Sequence[_Source], judge: _Judge) -> None:
    judge(unused(rules_document()["templates"], _of(sources, _PRODUCT, ".js").values()))


def test_finds_what_is_said_twice() -> None:
    module = {
        "a.py": '"""No verdict is given to anyone here."""\nX = f"none of {n} of the queries has a time here"\n'
    }
    joined = "said(`None of ${n} of the queries ` +\n  `has a time here`);\n"
    (found,) = said_twice({"a.js": joined}, module)
    assert found.startswith("a.js:1 says what a.py:2 says: ")
    within = 'one / two; const text = ok ? `${x ? `(${f({ y: /[`/]/ })}) ` : ""}of the queries has a time here, too` : 1;'
    assert 1 == len(said_twice({"a.js": within}, module))
    fewer = "// none of n of the queries has a time here\nsaid('no verdict is given to anyone', \"queries has a time here\");"
    assert [] == said_twice({"a.js": fewer}, module)
    assert 1 == len(said_twice({"a.js": 'x("After a power cut")'}, {"a.py": 'X = "after a\\npower cut"'}))


def test_finds_what_is_given_and_never_said() -> None:
    assert ["page/document.py gives 'gone' to a script that never says it"] == unused(
        ["said", "sectors_512", "gone"], ['say("said"); say(`sectors_${one}`); say(`${one}`);']
    )
