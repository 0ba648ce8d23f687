"""The effects of factors as a page shows them: shares, ratios beside the first level of each factor, and sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bedplate.analysis.advice.advised import objectives_of
from bedplate.analysis.default_metric import default_metric
from bedplate.analysis.effects.factor_effects import StudyEffects, across_classes, study_effects
from bedplate.analysis.effects.sentences import (
    all_else_equal,
    crossing_sentences,
    effect_notes,
    interaction_sentences,
    part_words,
    share_name,
    strongest_sentence,
)
from bedplate.analysis.factors import level_text, short_name
from bedplate.analysis.rounding import rounded
from bedplate.analysis.search.marks import is_chosen
from bedplate.model.figure import Scale
from bedplate.model.metrics import METRICS
from bedplate.statistics.estimation import REPETITIONS_MIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.analysis.effects.factor_effects import FactorEffects
    from bedplate.analysis.overview import Overview
    from bedplate.statistics.effects import Effects

_DIGITS = 5


def page_effects(found: Overview) -> StudyEffects:
    """Effects on what a run is about, and on its latency, steadiness and space as far as these have a logarithm."""
    names: dict[str, None] = {}
    for run in found.runs:
        having = {name for cell in found.cells for m in found.of(cell, run) for name in m.metrics}
        first = default_metric(found, run, having)
        wanted = [first] if first else []
        # By the stored metric: space has another name, also where a run has the database's size alone.
        wanted += [each.parts[0] for each in objectives_of(found, run) if len(each.parts) == 1]
        names |= dict.fromkeys(name for name in wanted if METRICS[name].scale is Scale.RATIO)
    has_effects = names and not is_chosen(found.study)
    return study_effects(found, metrics=tuple(names)) if has_effects else StudyEffects(found, ())


def effects_view(effects: Sequence[StudyEffects], runs: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """One entry per study, run, metric and part of a run; `run` is the index among `runs`.

    Its designs are those within each durability class, then those across the classes where a ratio crosses them.
    """
    return [
        {
            "study": number,
            "run": runs.index(each.asked.run),
            "metric": each.asked.metric,
            "part": each.asked.part,
            "strongest": strongest_sentence(each),
            "incomparable": list(each.incomparable),
            "suspect": each.suspect,
            "unknown": each.unknown,
            "unusable": each.unusable,
            "stopped": each.stopped,
            "designs": [
                _design(part, one)
                for one in (each, across.get(each.asked))
                if one is not None
                for part in one.parts
            ],
            "crossing": list(crossing_sentences(each)),
        }
        for number, found in enumerate(effects)
        for across in [{one.asked: one for one in across_classes(found).found}]
        for each in found.found
    ]


def _design(part: Effects, each: FactorEffects) -> dict[str, Any]:
    variation = part.variation
    shares = () if variation is None else variation.shares
    first = {effect.factor: effect.baseline for effect in reversed(part.effects)}
    return {
        "name": part_words(each, part),
        "across": each.across,
        "cells": part.cells,
        "repetitions": len(part.repetitions),
        "judged": len(part.repetitions) >= REPETITIONS_MIN,
        "shares": [
            [share_name(share), *(rounded(value, _DIGITS) for value in (share.share, share.low, share.high))]
            for share in sorted(shares, key=lambda share: -share.share)
        ],
        "confidence": rounded(part.effects_confidence, 6),
        "ratios": [
            [
                short_name(effect.factor),
                level_text(effect.factor, effect.level),
                level_text(effect.factor, effect.baseline),
                *(
                    rounded(value, _DIGITS)
                    for value in (effect.judged.ratio, effect.judged.low, effect.judged.high)
                ),
                effect.judged.real,
            ]
            for effect in part.effects
            if effect.baseline == first[effect.factor]
        ],
        "interactions": list(interaction_sentences(part, METRICS[each.asked.metric])),
        "notes": [
            f"{all_else_equal(part)}.",
            *effect_notes(part),
            *(crossing_sentences(each) if each.across else ()),
        ],
    }
