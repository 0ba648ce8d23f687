"""The limits that the page's script judges by, and the words and sentences that stand elsewhere too, as Python has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bedplate.analysis import selected, wording
from bedplate.analysis.comparison import sentences as pooled
from bedplate.analysis.comparison import surroundings
from bedplate.analysis.effects import sentences as effect_words
from bedplate.analysis.factors import DEFAULT
from bedplate.analysis.parts import VISIT_FIGURES
from bedplate.analysis.scores import SCORES
from bedplate.model.device_cache import CACHE_WORDS
from bedplate.model.durability import BOUNDED_LOSS, DURABLE, ONLY_READS, UNKNOWN, UNSAFE
from bedplate.model.figure import STOPPED_AT
from bedplate.model.power_cut_metrics import RECOVERY
from bedplate.page.workload_page import workload_pages
from bedplate.statistics import comparison as two_samples
from bedplate.statistics import estimation, heat_map
from bedplate.statistics.comparable import DIFFERENCE
from bedplate.statistics.comparison import Verdict
from bedplate.statistics.false_discovery import RATE
from bedplate.statistics.pooled_pairs import LEVEL, VALUES_MIN
from bedplate.statistics.summary import SUSPECT, UNKNOWN_BASIS

if TYPE_CHECKING:
    from collections.abc import Mapping

# By the names that the script calls them by.
_TEMPLATES: Mapping[str, str] = {
    "no_value": two_samples.NO_VALUE,
    "no_value_left_out": two_samples.LEFT_OUT,
    "no_common_repetition": two_samples.NO_COMMON_REPETITION,
    "not_positive": two_samples.NOT_POSITIVE,
    "both_stopped": two_samples.BOTH_STOPPED,
    "too_few_in_common": two_samples.TOO_FEW_IN_COMMON,
    "too_few_on_one_side": two_samples.TOO_FEW_ON_ONE_SIDE,
    "suspect_runs": two_samples.SUSPECT_RUNS,
    "unknown_runs": two_samples.UNKNOWN_RUNS,
    "surroundings_differ": DIFFERENCE,
    "visits_differ": surroundings.VISITS_DIFFER,
    "runs_differ": surroundings.RUNS_DIFFER,
    "promises_differ": wording.PROMISES_DIFFER,
    "promises_differ_elsewhere": wording.PROMISES_DIFFER_ELSEWHERE,
    "sectors_512": wording.SECTORS_512,
    "sectors_4k": wording.SECTORS_4K,
    "sectors_other": wording.OTHER_SECTORS,
    "one_recording": wording.ONE_RECORDING,
    "several_recordings": wording.SEVERAL_RECORDINGS,
    "within_recordings": wording.WITHIN_RECORDINGS,
    "same_in_force": wording.SAME_IN_FORCE,
    "identical": wording.IDENTICAL,
    "same_within": wording.SAME_WITHIN,
    "of_ratios": wording.OF_RATIOS,
    "of_differences": wording.OF_DIFFERENCES,
    "left_out": wording.LEFT_OUT,
    "stopped": wording.STOPPED,
    "stopped_at": STOPPED_AT,
    "none_can_tell": wording.NONE_CAN_TELL,
    "can_tell": wording.CAN_TELL,
    "wrong_on_average": wording.WRONG_ON_AVERAGE,
    "no_run_in_both": wording.NO_RUN_IN_BOTH,
    "pooled": pooled.POOLED,
    "pooled_with_interval": pooled.WITH_INTERVAL,
    "pooled_without_interval": pooled.WITHOUT_INTERVAL,
    "pooled_depends": pooled.DEPENDS,
    "pooled_no_factor": pooled.NO_FACTOR_TOLD,
    "pooled_range": pooled.PAIRS_RANGE,
    "pooled_without": pooled.PAIRS_WITHOUT,
    "pairs_disagree": pooled.PAIRS_DISAGREE,
    "pairs_cross": pooled.PAIRS_CROSS,
    "about_pooled": pooled.ABOUT_POOLED,
    "kept_without": selected.KEPT_WITHOUT,
    "passed_over": selected.PASSED_OVER,
    "no_effects": effect_words.NO_EFFECTS,
    "no_factor": effect_words.NO_FACTOR,
    "no_factor_in_a_class": effect_words.NO_FACTOR_IN_A_CLASS,
    "not_positive_runs": effect_words.NOT_POSITIVE_RUNS,
    "stopped_cells": effect_words.STOPPED_CELLS,
    "descriptions_only": effect_words.DESCRIPTIONS_ONLY,
    "no_interplay": effect_words.NO_INTERPLAY,
}


def rules_document() -> dict[str, Any]:
    """By the script's own names; a text with {names} is filled by the script."""
    pages = workload_pages()
    return {
        "verdicts": {
            "MARGIN": two_samples.MARGIN,
            "CONFIDENCE": two_samples.CONFIDENCE,
            "RATE": RATE,
            "REPETITIONS_MIN": estimation.REPETITIONS_MIN,
            "REPETITIONS_MAX": two_samples.REPETITIONS_MAX,
            "CHANCE": two_samples.CHANCE,
            "CLASSES": estimation.CLASSES,
            "NO_SCATTER": estimation.NO_SCATTER,
            "CANNOT_TELL": Verdict.CANNOT_TELL.value,
        },
        "pooled": {"LEVEL": LEVEL, "VALUES_MIN": VALUES_MIN},
        "heat_map": {"LOGARITHMIC_ABOVE": heat_map.LOGARITHMIC_ABOVE},
        **{name: rules for own in pages for name, rules in own.rules.items()},
        "visit_figures": list(VISIT_FIGURES),
        "scores": list(SCORES),
        "words": {
            "default": DEFAULT,
            "only_reads": ONLY_READS,
            "after_power_cut": wording.AFTER_POWER_CUT,
            "sides": wording.SIDES,
            "share": effect_words.SHARE,
            "recovery": RECOVERY,
            "caches": dict(CACHE_WORDS),
            "classes": [DURABLE, BOUNDED_LOSS, UNSAFE, UNKNOWN],
            "marks": dict(wording.BASIS_MARKS),
            "basis": {UNKNOWN_BASIS: wording.UNKNOWN_VALIDITY},
            "doubts": {SUSPECT: SUSPECT, UNKNOWN_BASIS: wording.OF_UNKNOWN_VALIDITY},
        },
        "templates": {**_TEMPLATES, **{name: text for own in pages for name, text in own.templates.items()}},
    }
