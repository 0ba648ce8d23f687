"""A parameter or a function is called by the field's word for it, and one name means few things.

What a name means is counted by its types: of more than three, a reader has to look up which one is meant. Counted is what a
value is made of, because `visit: Visit`, `visit: Visit | None` and `visit: Sequence[Visit]` need no second look:
a container counts as its elements (a mapping as its values), a union as each of its members, a tuple of unlike things and a
class with parameters as one type each, every `Callable` as one, `int` as `float`, `PurePosixPath` as `Path`.
`None`, `Any` and `object` say nothing and do not count, nor does what has no annotation (`self`, a lambda's parameters).

Participles and pronouns say that there is a thing, and not which (`names.toml` has them, each with what is said in its place).
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from tests.meta.conftest import Source
from tests.support.tools.syntax import nodes

_SOURCE = "src/bedplate/"
_TYPES = 3
# What the lists may promise beyond what is needed, all together: lanes that lower a count at once do not fail by each other.
_SLACK = 60
_CONTAINERS = frozenset(
    [
        "AbstractSet",
        "Collection",
        "Container",
        "Counter",
        "Generator",
        "Iterable",
        "Iterator",
        "MutableSequence",
        "Reversible",
        "Sequence",
        "Set",
        "deque",
        "frozenset",
        "list",
        "set",
        "tuple",
    ]
)
_MAPPINGS = frozenset({"Mapping", "MutableMapping", "defaultdict", "dict"})
_ALIKE = {"int": "float", "PurePosixPath": "Path"}
_SAYS_NOTHING = frozenset({"Any", "None", "object"})


def element_types(annotation: ast.expr | None) -> set[str]:
    """The types that a value of this annotation is made of."""
    if annotation is None:
        return set()
    if isinstance(annotation, ast.Constant):
        text = annotation.value
        return element_types(ast.parse(text, mode="eval").body) if isinstance(text, str) else set()
    if isinstance(annotation, ast.BinOp):
        return element_types(annotation.left) | element_types(annotation.right)
    if not isinstance(annotation, ast.Subscript):
        name = ast.unparse(annotation).rpartition(".")[2]
        return {_ALIKE.get(name, name)} - _SAYS_NOTHING
    name = ast.unparse(annotation.value).rpartition(".")[2]
    inside = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    if name in _MAPPINGS:
        return element_types(inside[-1])
    if name == "tuple" and len(inside) > 1 and ast.unparse(inside[-1]) != "...":
        return {ast.unparse(annotation)}
    return element_types(inside[0]) if name in _CONTAINERS else {name}


def _functions(source: Source) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, list[ast.arg]]]:
    for node in nodes(source.text):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            rest = [argument for argument in (given.vararg, given.kwarg) if argument is not None]
            yield node, [*given.posonlyargs, *given.args, *given.kwonlyargs, *rest]


def types_of_names(sources: Iterable[Source]) -> dict[str, set[str]]:
    """Every parameter's name with the types that it has."""
    types: dict[str, set[str]] = defaultdict(set)
    for source in sources:
        for _, arguments in _functions(source):
            for argument in arguments:
                types[argument.arg] |= element_types(argument.annotation)
    return types


def refused_names(
    source: Source, refused: Mapping[str, str], of_parameters: Mapping[str, str]
) -> Iterator[str]:
    """Each parameter and function of a refused name, with its place and what is said instead."""
    for function, arguments in _functions(source):
        named = [(function.lineno, function.name, refused)]
        named += [(argument.lineno, argument.arg, {**refused, **of_parameters}) for argument in arguments]
        for line, name, words in named:
            word = name.strip("_")
            if word in words:
                yield f"{source.path}:{line}: `{name}` says no thing; {words[word]}"


@pytest.fixture(scope="module")
def names(repository: Path) -> dict[str, dict[str, str]]:
    """The list of names."""
    return tomllib.loads((repository / "tests/meta/names.toml").read_text(encoding="utf-8"))


def _room(path: str) -> str:
    return path.removeprefix(_SOURCE).partition("/")[0].removesuffix(".py")


def test_no_parameter_or_function_is_a_participle_or_pronoun(
    names: Mapping[str, Mapping[str, str]],
    python_sources: Sequence[Source],
    judge: Callable[[Sequence[str]], None],
) -> None:
    yet = {room: int(count) for room, count in names["refused_yet"].items()}
    by_room: dict[str, list[str]] = defaultdict(list)
    for source in python_sources:
        if source.path.startswith(_SOURCE):
            by_room[_room(source.path)] += refused_names(
                source, names["refused"], names["refused_of_parameters"]
            )
    findings = []
    for room, refusals in sorted(by_room.items()):
        if len(refusals) > yet.get(room, 0):
            findings += [f"{room} has {len(refusals)} such names and may have {yet.get(room, 0)}:", *refusals]
    judge(findings + _too_generous("refused_yet", yet, {room: len(by_room[room]) for room in yet}))


def test_a_parameter_name_has_few_types(
    names: Mapping[str, Mapping[str, str]],
    python_sources: Sequence[Source],
    judge: Callable[[Sequence[str]], None],
) -> None:
    yet = {name: int(count) for name, count in names["types_yet"].items()}
    types = types_of_names(source for source in python_sources if source.path.startswith(_SOURCE))
    findings = [
        f"`{name}` has {len(kinds)} types and may have {yet.get(name, _TYPES)}: {', '.join(sorted(kinds))}; name it by what it is"
        for name, kinds in sorted(types.items())
        if len(kinds) > yet.get(name, _TYPES)
    ]
    counts = {name: max(_TYPES, len(types.get(name, ()))) for name in yet}
    judge(findings + _too_generous("types_yet", yet, counts))


def _too_generous(section: str, yet: Mapping[str, int], counts: Mapping[str, int]) -> list[str]:
    excess = Counter({name: limit - counts[name] for name, limit in yet.items()})
    if excess.total() <= _SLACK:
        return []
    return [
        f"names.toml, [{section}]: {name} = {counts[name]} will do" for name, over in excess.items() if over
    ]


@pytest.mark.parametrize(
    ("annotation", "types"),
    [
        ("Visit | None", {"Visit"}),
        ("Sequence[Visit]", {"Visit"}),
        ("'tuple[Visit, ...]'", {"Visit"}),
        ("Mapping[str, frozenset[Visit]]", {"Visit"}),
        ("tuple[Visit, str]", {"tuple[Visit, str]"}),
        ("int | float | bool", {"float", "bool"}),
        ("Callable[[str], int]", {"Callable"}),
        ("subprocess.Popen[bytes]", {"Popen"}),
        ("Any", set()),
    ],
)
def test_a_value_counts_as_what_it_is_made_of(annotation: str, types: set[str]) -> None:
    assert types == element_types(ast.parse(annotation, mode="eval").body)


def test_a_planted_name_is_refused_with_its_replacement() -> None:
    source = Source(
        "src/bedplate/a.py", "def _found(read: str, found_devices: int) -> None: ...\ndef read(): ...\n"
    )
    assert [
        "src/bedplate/a.py:1: `_found` says no thing; the match",
        "src/bedplate/a.py:1: `read` says no thing; the reader",
    ] == list(refused_names(source, {"found": "the match"}, {"read": "the reader"}))


def test_a_list_that_promises_too_much_is_named() -> None:
    assert [] == _too_generous("types_yet", {"a": 40}, {"a": 3})
    assert ["names.toml, [types_yet]: a = 3 will do"] == _too_generous(
        "types_yet", {"a": 100, "b": 3}, {"a": 3, "b": 3}
    )
