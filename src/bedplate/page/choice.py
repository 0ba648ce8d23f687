"""What a reader of a page chooses by, and what keeps two cells from being compared: factors and surroundings.

The page makes its verdicts itself, for any choice of cells. It needs what `compared` needs: by which factors
cells differ, and in what surroundings they were measured.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

from bedplate.analysis.cell_filter import CLASS, STUDY
from bedplate.analysis.comparison.compared import candidates_of
from bedplate.analysis.comparison.surroundings import FOLLOWING, surroundings_of
from bedplate.analysis.factors import level_rank, level_text, short_name
from bedplate.analysis.fleet import node_of
from bedplate.model.durability import CLASSES
from bedplate.model.visit import Outcome
from bedplate.statistics.comparable import NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.analysis.overview import Overview
    from bedplate.model.levels import Scalar


# The values of each surrounding, by dataset and node.
_Known: TypeAlias = dict[str, dict[str, dict[str, set[str]]]]


def choice_document(overviews: Sequence[Overview]) -> tuple[list[dict[str, Any]], list[list[int]]]:
    """The factors in which some cells differ, and for each cell its level of each, -1 where it has none.

    A factor has its `name`, its `words`, the texts of its `levels`, each of them once, and which of them are `usual`: what
    holds where nobody asks. Last stands the durability class, by which cells are chosen though it is no factor.
    """
    candidates = candidates_of(overviews)
    names = dict.fromkeys(name for candidate in candidates for name in candidate.levels)
    factors: list[dict[str, Any]] = []
    places: list[list[int]] = [[] for _ in candidates]
    for name in sorted(names, key=lambda one: one != STUDY):
        found = [
            _typed(candidate.levels[name]) if name in candidate.levels else None for candidate in candidates
        ]
        if len(set(found)) < 2:
            continue
        levels = sorted(
            {level for level in found if level is not None}, key=lambda typed: level_rank(typed[1])
        )
        texts = _texts(name, levels)
        usual = {
            texts[levels.index(level)]
            for candidate, level in zip(candidates, found, strict=True)
            if level is not None and name in candidate.usual
        }
        factors.append({"name": name, "words": short_name(name), "levels": texts, "usual": sorted(usual)})
        for place, level in zip(places, found, strict=True):
            place.append(-1 if level is None else levels.index(level))
    classes = [candidate.classes[0] for candidate in candidates]
    known = [name for name in CLASSES if name in classes]
    if len(known) > 1:
        factors.append({"name": CLASS, "words": "durability class", "levels": known, "usual": []})
        for place, own in zip(places, classes, strict=True):
            place.append(known.index(own))
    return factors, places


def foreign_levels(
    overviews: Sequence[Overview], factors: Sequence[Mapping[str, Any]]
) -> tuple[list[int], ...]:
    """For each cell the places of factors of which it has a default only because another study asks for them."""
    places = {factor["name"]: at for at, factor in enumerate(factors)}
    return tuple(
        sorted(places[name] for name in candidate.foreign if name in places)
        for candidate in candidates_of(overviews)
    )


def usual_levels(
    overviews: Sequence[Overview], factors: Sequence[Mapping[str, Any]]
) -> tuple[list[int], ...]:
    """For each cell the places of the factors at whose usual level it is."""
    return tuple(
        [at for at, factor in enumerate(factors) if factor["name"] in candidate.usual]
        for candidate in candidates_of(overviews)
    )


def surroundings_document(overviews: Sequence[Overview], runs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """What `Surroundings` knows: `of` has for each cell and dataset a place in `kinds`, which are values by node.

    `own` are cells whose visits differ among themselves, with the sentences; `identical` and `notes` those of each
    cell; `asked` the levels of each study's runs, where several studies may call two ways of measuring alike.
    """
    kinds: dict[str, int] = {}
    cells = [(number, cell) for number, found in enumerate(overviews) for cell in found.cells]
    known: dict[tuple[int, str], _Known] = {place: {} for place in cells}
    for number, found in enumerate(overviews):
        for visit in found.study.visits:
            record = visit.record
            place = (number, record.key.cell)
            if place in known and not record.key.canary and record.outcome is Outcome.COMPLETED:
                here = known[place].setdefault(record.key.dataset, {}).setdefault(node_of(record) or "", {})
                for name, value in surroundings_of(record).items():
                    here.setdefault(name, set()).add(value)
    places = [
        {
            dataset: kinds.setdefault(json.dumps(_in_order(nodes)), len(kinds))
            for dataset, nodes in known[place].items()
        }
        for place in cells
    ]
    facts = [overviews[number].cells[cell] for number, cell in cells]
    index = {place: at for at, place in enumerate(cells)}
    return {
        "names": list(NAMES.items()),
        "following": [[start, list(names)] for start, names in FOLLOWING.items()],
        "kinds": [json.loads(text) for text in kinds],
        "of": places,
        "own": [[at, list(each.incomparable)] for at, each in enumerate(facts) if each.incomparable],
        "identical": [
            [at, [index[number, other] for other in each.identical_to]]
            for at, ((number, _), each) in enumerate(zip(cells, facts, strict=True))
            if each.identical_to
        ],
        "notes": [[at, list(each.notes_of_pairs)] for at, each in enumerate(facts) if each.notes_of_pairs],
        "asked": [[_asked(found, run) for run in runs] for found in overviews]
        if len(overviews) > 1
        else None,
    }


def _in_order(nodes: Mapping[str, Mapping[str, set[str]]]) -> list[list[Any]]:
    return [
        [node, {name: sorted(values[name]) for name in NAMES if name in values}]
        for node, values in sorted(nodes.items())
    ]


def _asked(found: Overview, run: tuple[str, str]) -> dict[str, str] | None:
    spec = found.spec(run) if run in found.runs else None
    return None if spec is None else {name: str(level) for name, level in spec.levels.items()}


def _typed(level: Scalar) -> tuple[str, Scalar]:
    """`True` and 1 are two levels, whatever Python says."""
    return type(level).__name__, level


def _texts(name: str, levels: Sequence[tuple[str, Scalar]]) -> list[str]:
    texts = [level_text(name, level) for _, level in levels]
    return [
        text if texts.count(text) == 1 else f"{text} ({kind})"
        for text, (kind, _) in zip(texts, levels, strict=True)
    ]
