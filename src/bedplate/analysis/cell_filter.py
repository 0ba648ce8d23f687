"""FILTERs: which cells of some studies are meant, in words that a person types.

`filesystem.type=ext4 barrier=no` selects the cells that have all of these levels; `type=ext4,xfs` allows
several. A factor may be named by its end where that is one factor: `type`, `barrier`, `shared_buffers`;
`block_size` where only one of the two block sizes varies; `fs` and `db` are the two, as labels call them. `class=durable` is what a power cut leaves. A cell's id, its
label or its variant's name select it as a whole.

A side of a comparison *has* the level that it names. A choice of cells (`choose`) also keeps the cells that cannot have
the factor, where the level is what holds where nobody asks: `barrier=yes` keeps XFS. Where it is another one they are
passed over, and that is said.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bedplate import registry
from bedplate.analysis.labels import (
    DEFAULT,
    ENGINE,
    FILESYSTEM_BLOCK,
    level_text,
    plan_key,
    typed,
    usual_factors,
)
from bedplate.errors import PlanError
from bedplate.model.cell import database_block_levels
from bedplate.model.course import first_of
from bedplate.model.levels import Scalar
from bedplate.near_names import did_you_mean, near_names, quoted
from bedplate.units import parse_size

STUDY = "study"

# What is no factor, and can be chosen by: what a power cut leaves (docs/METHOD.md, “Durability classes”).
CLASS = "class"

_CLASS_WORDS = frozenset({CLASS, "durability"})

_BYTES = "_bytes"

_TRUE = frozenset({"true", "yes", "on"})

_FALSE = frozenset({"false", "no", "off"})

_LISTED = 12


@dataclass(frozen=True)
class Candidate:
    """A cell of a study that may be selected; `study` counts the studies from 0.

    `levels` are those of `factors`, and the name of its study under `study`. `labels` are its id, its whole label and
    its variant's name. `unasked` are factors whose level nobody asked for, `foreign` those of which it has a default
    only because a cell of another study was asked for one. `classes` are the words that its durability class goes by,
    the class on the study's device first.
    """

    study: int
    cell: str
    labels: tuple[str, ...]
    levels: Mapping[str, Scalar]
    unasked: frozenset[str] = field(default_factory=frozenset)
    foreign: frozenset[str] = field(default_factory=frozenset)
    classes: tuple[str, ...] = ()

    @property
    def own_levels(self) -> Mapping[str, Scalar]:
        """The levels that it would have were its study the only one."""
        return {name: level for name, level in self.levels.items() if name not in self.foreign}

    @property
    def usual(self) -> frozenset[str]:
        """The factors at what holds where nobody asks."""
        return self.unasked | usual_factors(self.levels)


@dataclass(frozen=True)
class Selection:
    """What a filter selects. `names` are the factors that it speaks of, all of them for a cell by its label."""

    text: str
    names: frozenset[str]
    cells: tuple[Candidate, ...]


@dataclass(frozen=True)
class Lacking:
    """Cells that cannot have a factor that a choice names: `kept`, since the level is the usual one, or passed over."""

    factor: str
    kept: bool
    cells: tuple[Candidate, ...]


@dataclass(frozen=True)
class _Term:
    text: str
    names: frozenset[str]
    matches: Callable[[Candidate], bool]
    # The factor, where cells may lack it, and whether those that do are as the term says.
    factor: str | None = None
    keeps_lacking: bool = False

    def chooses(self, candidate: Candidate) -> bool:
        return self.matches(candidate) or (self.keeps_lacking and self.is_lacked_by(candidate))

    def is_lacked_by(self, candidate: Candidate) -> bool:
        return self.factor is not None and self.factor not in candidate.levels


def choose(
    texts: Sequence[str], candidates: Sequence[Candidate]
) -> tuple[tuple[Candidate, ...], tuple[Lacking, ...]]:
    """The cells that any of some filters chooses, and what became of those that cannot have a factor that one names.

    PlanError as for `select`.
    """
    chosen: dict[tuple[int, str], Candidate] = {}
    lacking: dict[tuple[str, bool], dict[tuple[int, str], Candidate]] = {}
    for text in texts:
        if any(text.strip() in candidate.labels for candidate in candidates):
            chosen |= {(one.study, one.cell): one for one in select(text, candidates).cells}
            continue
        terms = _terms(text, candidates)
        found = [one for one in candidates if all(term.chooses(one) for term in terms)]
        if not found:
            raise _nothing(text, terms, candidates)
        chosen |= {(one.study, one.cell): one for one in found}
        for term in terms:
            rest = [other for other in terms if other is not term]
            for one in candidates:
                if term.is_lacked_by(one) and all(other.chooses(one) for other in rest):
                    own = lacking.setdefault((term.factor or "", term.keeps_lacking), {})
                    own[one.study, one.cell] = one
    told = (
        Lacking(factor, kept, tuple(one for place, one in own.items() if kept or place not in chosen))
        for (factor, kept), own in lacking.items()
    )
    in_order = tuple(one for one in candidates if (one.study, one.cell) in chosen)
    return in_order, tuple(each for each in told if each.cells)


def select(text: str, candidates: Sequence[Candidate]) -> Selection:
    """The cells that a filter means, in the order of the candidates.

    PlanError that says what there is: for a name or a level that no cell has, a name that means several factors,
    and levels that no cell has together.
    """
    wanted = text.strip()
    named = tuple(candidate for candidate in candidates if wanted in candidate.labels)
    if wanted and named:
        return Selection(text, _every_name(candidates), named)
    terms = _terms(text, candidates)
    found = tuple(c for c in candidates if all(term.matches(c) for term in terms))
    if not found:
        raise _nothing(text, terms, candidates)
    return Selection(text, frozenset().union(*(term.names for term in terms)), found)


def factor_named(word: str, candidates: Sequence[Candidate]) -> str:
    """The factor that a word means, by its whole dotted name or by an end of it. PlanError where it is none or several."""
    names = list(dict.fromkeys(name for candidate in candidates for name in candidate.levels))
    if word in names:
        return word
    meant = [name for name in names if word in _ends(name)]
    varying = [name for name in meant if len(_levels(name, candidates)) > 1]
    # Of two that are called alike, the one that does not vary selects nothing.
    chosen = varying if len(meant) > 1 and varying else meant
    if len(chosen) == 1:
        return chosen[0]
    if chosen:
        written = (_as_in_a_plan(name, candidates) for name in chosen)
        raise PlanError(f"{word!r} may be {' or '.join(written)}; write the one that is meant")
    vary = [name for name in names if len(_levels(name, candidates)) > 1]
    there = f"these vary: {', '.join(vary) or 'none'}"
    # Each by the way to write it that is nearest to what was written.
    nearest = (
        near for name in names for near in near_names(word, _tails(_as_in_a_plan(name, candidates)))[:1]
    )
    raise PlanError(f"no factor is called {quoted(word)}; {did_you_mean(word, nearest, otherwise=there)}")


def _every_name(candidates: Iterable[Candidate]) -> frozenset[str]:
    return frozenset(name for candidate in candidates for name in candidate.levels)


def _nothing(text: str, terms: Sequence[_Term], candidates: Sequence[Candidate]) -> PlanError:
    counts = ", ".join(f"{term.text} has {sum(map(term.matches, candidates))}" for term in terms)
    return PlanError(f"no cell is all of {text!r}: {counts}, none is in all of them")


def _terms(text: str, candidates: Sequence[Candidate]) -> list[_Term]:
    words = _words(text)
    if not words:
        raise PlanError(f"an empty filter selects nothing; write {_example(candidates)}, or a cell's label")
    every = _every_name(candidates)
    return [_term(word, candidates, every) for word in words]


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise PlanError(
            f"filter {text!r}: {error}; quote a value with spaces as in name='two words'"
        ) from None


def _term(word: str, candidates: Sequence[Candidate], every: frozenset[str]) -> _Term:
    name, equals, levels = word.partition("=")
    if not equals:
        if any(word in candidate.labels for candidate in candidates):
            return _Term(word, every, lambda candidate: word in candidate.labels)
        raise PlanError(
            f"{word!r} is neither name=level nor a cell; write {_example(candidates)}, or one of the cells "
            f"{_shown(dict.fromkeys(candidate.labels[-1] for candidate in candidates))}"
        )
    if name in _CLASS_WORDS and name not in every:
        return _class_term(word, levels, candidates)
    factor = factor_named(name, candidates)
    # A level may hold a comma itself, as mount options do.
    allowed = dict.fromkeys((levels, *levels.split(",")))
    for level in levels.split(","):
        if not any(_is(candidate, factor, (levels, level)) for candidate in candidates):
            # As it may be copied: a level with a blank needs quotes.
            known = [shlex.quote(level_text(factor, found)) for found in _levels(factor, candidates)]
            there = f"there are {_shown(known)}"
            raise PlanError(
                f"{_as_in_a_plan(factor, candidates)} is nowhere {quoted(level)}; "
                f"{did_you_mean(level, known, otherwise=there)}"
            )
    return _Term(
        word,
        frozenset({factor}),
        lambda candidate: _is(candidate, factor, allowed),
        factor,
        any(factor in one.usual and _is(one, factor, allowed) for one in candidates),
    )


def _class_term(word: str, levels: str, candidates: Sequence[Candidate]) -> _Term:
    """`class=durable`; of two words with a hyphen or in quotes: `class=bounded-loss`. It names no factor."""
    known = dict.fromkeys(name for candidate in candidates for name in candidate.classes)
    allowed = {level if level in known else level.replace("-", " ") for level in levels.split(",")}
    if unknown := sorted(allowed - known.keys()):
        raise PlanError(f"no cell has the durability class {unknown[0]!r}; there are {_shown(known)}")
    return _Term(word, frozenset(), lambda candidate: not allowed.isdisjoint(candidate.classes))


def _is(candidate: Candidate, factor: str, allowed: Iterable[str]) -> bool:
    if factor not in candidate.levels:
        return False
    level = candidate.levels[factor]
    return any(
        _means(text, factor, level) or (text == DEFAULT and factor in candidate.unasked) for text in allowed
    )


def _means(text: str, factor: str, level: Scalar) -> bool:
    """Whether a person who writes `text` means this level."""
    if text in (str(level), level_text(factor, level)):
        return True
    if isinstance(level, bool):
        return text.lower() in (_TRUE if level else _FALSE)
    if isinstance(level, str):
        return False
    try:
        is_size = factor.endswith(_BYTES) or factor in database_block_levels()
        return (parse_size(text) if is_size else float(text)) == level
    except ValueError:
        return False


def _ends(name: str) -> set[str]:
    """Every way to write a factor: `build.block_size_bytes`, `block_size_bytes`, `block_size`, `postgresql.block_size`, `db`."""
    whole = {name, *(plan_key(name, engine) for engine in registry.ENGINES)}
    ends = set[str]().union(*map(_tails, whole))
    ends |= {end.removesuffix(_BYTES) for end in ends}
    # As labels call the two: `fs 4k · db 8k`.
    if name == FILESYSTEM_BLOCK:
        ends.add("fs")
    if name in database_block_levels():
        ends.add("db")
    return ends


def _tails(name: str) -> set[str]:
    words = name.split(".")
    return {".".join(words[at:]) for at in range(len(words))}


def _as_in_a_plan(name: str, candidates: Iterable[Candidate]) -> str:
    """`postgresql.block_size`: as the plan has it of the one engine that has the factor; of several engines by its own name."""
    engines = {str(one.levels.get(ENGINE)) for one in candidates if name in one.levels}
    keys = {plan_key(name, engine) for engine in engines & set(registry.ENGINES)}
    return keys.pop() if len(keys) == 1 else name.removesuffix(_BYTES)


def _levels(name: str, candidates: Iterable[Candidate]) -> list[Scalar]:
    """The levels of a factor in the order in which they come up; 1 and true are two."""
    found = {
        typed(candidate.levels[name]): candidate.levels[name]
        for candidate in candidates
        if name in candidate.levels
    }
    return list(found.values())


def _example(candidates: Sequence[Candidate]) -> str:
    """A filter that selects something here, such as `type=ext4`."""
    for name in dict.fromkeys(name for candidate in candidates for name in candidate.levels):
        levels = _levels(name, candidates)
        if len(levels) > 1:
            return f"{name}={shlex.quote(str(levels[0]))}"
    return "name=level"


def _shown(words: Iterable[str]) -> str:
    return first_of(list(dict.fromkeys(words)), _LISTED) or "none"
