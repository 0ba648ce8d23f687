"""The data of a page, apart from how it looks: one JSON document that the page's script reads.

Figures stand in columns, one entry per run, since a page of hundreds of cells is mostly figures.
Indices point into `cells`, `runs`, `metrics` and `parts`. What speaks of parts of runs is packed: a study of
TPC-H has a hundred of them.
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from bedplate.analysis import comparison, pooled, wording
from bedplate.analysis import effects as effect_words
from bedplate.analysis.cell_filter import CLASS, STUDY
from bedplate.analysis.comparison import FOLLOWING, candidates_of, study_names, surroundings_of
from bedplate.analysis.course_file import course_scan, read_course
from bedplate.analysis.effective import effective_document
from bedplate.analysis.fleet import node_of
from bedplate.analysis.labels import DEFAULT, level_rank, level_text, short_name
from bedplate.analysis.overview import SCORES, VISIT_FIGURES, CellFacts, Overview, counted_share
from bedplate.analysis.part_summaries import PagePart, RankedSummary, page_parts, ranked
from bedplate.analysis.run_heads import has_speeds, moved_bytes, run_head, run_kind, writes
from bedplate.analysis.wording import (
    counted,
    durability_class,
    durability_told,
    durability_words,
    repetitions_sentence,
    rounded,
    safety,
    words_on_device,
)
from bedplate.model import limits
from bedplate.model.codec import json_fields, to_json
from bedplate.model.course import COURSE_FILE, LATENCY_FILE, SHOWN_COLUMNS
from bedplate.model.device_cache import CACHE_WORDS
from bedplate.model.durability import BOUNDED_LOSS, CLASSES, DURABLE, ONLY_READS, UNKNOWN, UNSAFE
from bedplate.model.figure import STOPPED_AT, Better, Figure, Metric, Status
from bedplate.model.levels import Scalar
from bedplate.model.metrics import METRICS, RECOVERY
from bedplate.model.reason import sentences
from bedplate.model.visit import Outcome
from bedplate.page.static import workload_pages
from bedplate.page.views import PAGE_MARGINS
from bedplate.statistics import comparison as two_samples
from bedplate.statistics import estimation, heat_map
from bedplate.statistics.comparison import DIFFERENCE, DISAGREEMENT, NAMES, Verdict, is_speed
from bedplate.statistics.estimation import VALUES_MIN
from bedplate.statistics.false_discovery import RATE
from bedplate.statistics.summary import SUSPECT, UNKNOWN_BASIS, SummaryKey


class PackedData:
    """Pieces of bytes in base64, one behind the other; the page's `bedplate.packedData` takes them from there."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0

    def put(self, piece: bytes | None) -> list[int] | None:
        """Where the piece stands: its first letter and how many it has. None for nothing."""
        if piece is None:
            return None
        text = base64.b64encode(piece).decode("ascii")
        place = [self._length, len(text)]
        self._pieces.append(text)
        self._length += len(text)
        return place

    @property
    def text(self) -> str:
        """All pieces."""
        return "".join(self._pieces)


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
            {level for level in found if level is not None}, key=lambda typed: level_rank(name, typed[1])
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


# By the names that the script calls them by.
_TEMPLATES: Mapping[str, str] = {
    "no_value": two_samples.NO_VALUE,
    "no_value_left_out": two_samples.LEFT_OUT,
    "no_common_repetition": two_samples.NO_COMMON_REPETITION,
    "both_zero": two_samples.BOTH_ZERO,
    "not_positive": two_samples.NOT_POSITIVE,
    "both_stopped": two_samples.BOTH_STOPPED,
    "too_few_in_common": two_samples.TOO_FEW_IN_COMMON,
    "too_few_on_one_side": two_samples.TOO_FEW_ON_ONE_SIDE,
    "suspect_runs": two_samples.SUSPECT_RUNS,
    "unknown_runs": two_samples.UNKNOWN_RUNS,
    "surroundings_differ": DIFFERENCE,
    "visits_differ": comparison.VISITS_DIFFER,
    "runs_differ": comparison.RUNS_DIFFER,
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
    "same_counts": wording.SAME_COUNTS,
    "not_known": wording.NOT_KNOWN,
    "in_every_repetition": pooled.IN_EVERY_REPETITION,
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
    "pooled_same": pooled.SAME_PAIR,
    "pooled_incomparable": pooled.INCOMPARABLE_PAIR,
    "pooled_stopped": pooled.STOPPED_PAIR,
    "pairs_disagree": pooled.PAIRS_DISAGREE,
    "pairs_cross": pooled.PAIRS_CROSS,
    "about_pooled": pooled.ABOUT_POOLED,
    "kept_without": comparison.KEPT_WITHOUT,
    "passed_over": comparison.PASSED_OVER,
    "no_effects": effect_words.NO_EFFECTS,
    "no_factor": effect_words.NO_FACTOR,
    "no_factor_in_a_class": effect_words.NO_FACTOR_IN_A_CLASS,
    "runs_without_figure": effect_words.RUNS_WITHOUT_FIGURE,
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
            "NOTHING_TOLD": wording.NOTHING_TOLD,
            "CANNOT_TELL": Verdict.CANNOT_TELL.value,
        },
        "pooled": {"DISAGREEMENT": DISAGREEMENT, "VALUES_MIN": VALUES_MIN},
        "heat_map": {"LOGARITHMIC_ABOVE": heat_map.LOGARITHMIC_ABOVE},
        **{name: rules for own in pages for name, rules in own.rules.items()},
        "visit_figures": list(VISIT_FIGURES),
        "margins": list(PAGE_MARGINS),
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


if TYPE_CHECKING:
    Numbers = npt.NDArray[np.float64]

# Ends of a column, which the steps between them are made from.
_END_DIGITS = 7

# Eight bins to a doubling of the latency: finer than the width of a line on the page.
_BINS_PER_DOUBLING = 8

_PARTED_BY_ZERO = ("warmup", "measure")

_LOGARITHMIC = "latency_ms_"

_ONE_BYTE = 254

# Beyond so many seconds of all runs together, a page keeps a byte of a value: else it would weigh too much.
_FINE_SECONDS = 250_000


@dataclass(frozen=True)
class Precision:
    """Into how many steps the range of a column is cut: transactions and their latencies, and the lanes beside."""

    transactions: int
    beside: int

    def steps(self, column: str) -> int:
        """The steps of a column of the course."""
        is_main = column == "tps" or column.startswith(_LOGARITHMIC)
        return self.transactions if is_main else self.beside


FINE = Precision(65_000, 65_000)

# A step is no higher than the line is thick: lanes are drawn 186 and 87 pixels high at the most.
COARSE = Precision(180, 64)


def precision_for(seconds: float) -> Precision:
    """How fine the courses of a page are, from the seconds of all its runs together."""
    return FINE if seconds <= _FINE_SECONDS else COARSE


def packed_runs(
    directories: Sequence[Path | None], precision: Precision
) -> list[tuple[bytes | None, bytes | None]]:
    """The packed course and latencies of each run, in their order; None where there is none."""

    def both(directory: Path | None) -> tuple[bytes | None, bytes | None]:
        if directory is None:
            return None, None
        return packed_course(directory, precision), packed_latencies(directory)

    # Reading Parquet and deflating leave the interpreter to others meanwhile.
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as workers:
        return list(workers.map(both, directories))


def packed_course(directory: Path, precision: Precision = FINE) -> bytes | None:
    """The course of a run, packed; None where the run has none.

    A run of several phases also has `phases`: the name of each, its first second and the one after its last.
    """
    path = directory / COURSE_FILE
    if not limits.is_file(path):
        return None
    frame = read_course(path)
    seconds = frame.get_column("second").to_list()
    names = [name for name in SHOWN_COLUMNS if name != "second" and name in frame.columns]
    values = frame.select(pl.col(name).cast(pl.Float64) for name in names).to_numpy().astype(np.float64)
    head: dict[str, Any] = {"n": len(seconds), "columns": []}
    first = seconds[0] if seconds else 0
    if seconds == list(range(first, first + len(seconds))):
        head["first"] = first
    else:
        head["second"] = seconds
    planes: list[bytes] = []
    for place, name in enumerate(names):
        made = _in_steps(values[:, place], precision.steps(name), logarithmic=name.startswith(_LOGARITHMIC))
        if made is not None:
            column, plane = made
            head["columns"].append([name, *column])
            planes.append(plane)
    phases = _phases(frame)
    if phases:
        head["phases"] = phases
    words = json.dumps(head, separators=(",", ":"), allow_nan=False).encode()
    return zlib.compress(b"".join((len(words).to_bytes(4, "little"), words, *planes)), level=6)


def _in_steps(values: Numbers, steps: int, *, logarithmic: bool) -> tuple[list[Any], bytes] | None:
    """A column's low, high, steps and whether they are of the logarithm, and its codes; None without a value."""
    known = np.isfinite(values)
    if not known.any():
        return None
    found = values[known]
    # Zeros have no logarithm.
    logarithmic = logarithmic and bool(np.min(found) > 0)
    least = float(np.min(found))
    low = rounded(least if logarithmic else min(least, 0.0), _END_DIGITS)
    high = rounded(float(np.max(found)), _END_DIGITS)
    ends = np.array([low, high], dtype=np.float64)
    if logarithmic:
        ends, found = np.log(ends), np.log(found)
    width = ends[1] - ends[0]
    codes = np.zeros(len(values), dtype=np.uint16)
    share = np.clip((found - ends[0]) / width, 0, 1) if width > 0 else np.zeros(len(found))
    codes[known] = 1 + np.rint(share * steps)
    planes = [(codes & 0xFF).astype(np.uint8).tobytes()]
    if steps > _ONE_BYTE:
        planes.append((codes >> 8).astype(np.uint8).tobytes())
    return [low, high, steps, int(logarithmic)], b"".join(planes)


def _phases(frame: pl.DataFrame) -> list[tuple[str, int, int]]:
    """Stretches of seconds of one phase; none for a warm-up and its measurement, which second 0 parts."""
    if "phase" not in frame.columns or frame["phase"].is_in(_PARTED_BY_ZERO).all():
        return []
    stretches = (
        frame.with_columns(pl.col("phase").rle_id().alias("stretch"))
        .group_by("stretch", "phase", maintain_order=True)
        .agg(pl.col("second").min().alias("first"), pl.col("second").max().alias("last"))
    )
    return [
        (str(row["phase"]), int(row["first"]), int(row["last"]) + 1)
        for row in stretches.iter_rows(named=True)
        if row["phase"] is not None
    ]


def packed_latencies(directory: Path) -> bytes | None:
    """The latencies of the measured window as `low_ms` (lower bounds), `high_ms` and `count`, packed.

    Summed over the seconds and the scripts of the run.
    """
    path = directory / LATENCY_FILE
    if not limits.is_file(path):
        return None
    # Most seconds have the same bounds: they are summed first, and put into bins when few are left. A run of a day has millions of
    # rows, which need not be there at once.
    with course_scan(path) as rows:
        found = (
            rows.filter((pl.col("phase") == "measure") & (pl.col("count") > 0))
            .group_by("latency_us_low", "latency_us_high")
            .agg(pl.col("count").sum())
            .collect(engine="streaming")
        )
    bins = (
        found.with_columns(
            (pl.max_horizontal(pl.col("latency_us_high"), 1e-3).log(2) * _BINS_PER_DOUBLING)
            .ceil()
            .alias("bin")
        )
        .group_by("bin")
        .agg(pl.col("latency_us_low").min(), pl.col("latency_us_high").max(), pl.col("count").sum())
        .sort("bin")
    )
    if bins.is_empty():
        return None
    return _deflated(
        {
            "low_ms": [rounded(value / 1000) for value in bins.get_column("latency_us_low")],
            "high_ms": [rounded(value / 1000) for value in bins.get_column("latency_us_high")],
            "count": bins.get_column("count").to_list(),
        }
    )


def packed(value: Any) -> str:
    """JSON, deflated (zlib), in base64: what the page's `unpack` takes apart."""
    return base64.b64encode(_deflated(value)).decode("ascii")


def _deflated(value: Any) -> bytes:
    return zlib.compress(json.dumps(value, separators=(",", ":"), allow_nan=False).encode(), level=6)


_FIGURE_DIGITS = 6


def observations_document(
    overviews: Sequence[Overview], metrics: Sequence[str], parts: Sequence[PagePart]
) -> dict[str, Any]:
    """The figures of single runs that stand nowhere else on the page: limits of whole runs, and all of parts.

    `limits` are [measurement, metric, limit] of what was stopped there; `within` is packed: for each part and metric
    the measurements, their values, null where there is none, and their limits, null where none was met. `counted` are
    [measurement, metric, part, k, n] of shares that are k of n.
    """
    measurements = [m for found in overviews for m in found.measurements]
    metric_of = {name: index for index, name in enumerate(metrics)}
    part_of = {(part.phase, part.item): index for index, part in enumerate(parts)}
    limits: list[list[float]] = []
    counted: list[list[int]] = []
    columns: dict[tuple[int, int], list[list[Any]]] = {}
    for number, m in enumerate(measurements):
        for name, figure in m.by_metric.items():
            limit = _limit(figure)
            if limit is not None and name in metric_of:
                limits.append([number, metric_of[name], limit])
            if (of := counted_share(m, name)) is not None and name in metric_of:
                counted.append([number, metric_of[name], 0, *of])
        for (phase, item, name), figure in m.parts.items():
            if name in metric_of and (phase, item) in part_of and figure.status is not Status.ABSENT:
                rows = columns.setdefault((part_of[phase, item], metric_of[name]), [[], [], []])
                rows[0].append(number)
                rows[1].append(rounded(m.value(name, phase, item), _FIGURE_DIGITS))
                rows[2].append(_limit(figure))
                if (of := counted_share(m, name, phase, item)) is not None:
                    counted.append([number, metric_of[name], part_of[phase, item], *of])
    within = [[part, metric, *rows] for (part, metric), rows in columns.items()]
    return {"limits": limits, "within": packed(within) if within else None, "counted": counted}


def _limit(figure: Figure) -> float | None:
    return rounded(figure.limit, _FIGURE_DIGITS) if figure.status is Status.CENSORED else None


FORMAT_VERSION = 1

_SUMMARY_DIGITS = 5


@dataclass(frozen=True)
class _Indices:
    """What the document's columns point into, and the shown summaries of every study, in its order."""

    runs: tuple[tuple[str, str], ...]
    metrics: tuple[str, ...]
    parts: tuple[PagePart, ...]
    summaries: tuple[Mapping[SummaryKey, RankedSummary], ...]

    def part(self, key: SummaryKey) -> int:
        return self._part_of[key.phase, key.item]

    @cached_property
    def _part_of(self) -> Mapping[tuple[str, str], int]:
        return {(part.phase, part.item): index for index, part in enumerate(self.parts)}


def page_document(overviews: Sequence[Overview], packed_data: PackedData | None = None) -> dict[str, Any]:
    """Everything that the script of a page draws from; courses and latencies are put into the packed data."""
    indices = _Indices(
        runs=_runs(overviews),
        metrics=_metrics(overviews),
        parts=page_parts(overviews),
        summaries=tuple(
            {key: ranked(found, key, summary) for key, summary in found.summaries.items()}
            for found in overviews
        ),
    )
    factors, levels = choice_document(overviews)
    within = {
        "summaries": _summaries(overviews, indices, whole=False),
    }
    return {
        "format_version": FORMAT_VERSION,
        "studies": [
            _study(found, name) for found, name in zip(overviews, study_names(overviews), strict=True)
        ],
        "rules": rules_document(),
        "metrics": [_metric(METRICS[name]) for name in indices.metrics],
        "parts": [[part.label, part.group] for part in indices.parts],
        "runs": [_run(overviews, run, indices.metrics) for run in indices.runs],
        "factors": factors,
        "surroundings": surroundings_document(overviews, indices.runs),
        "observations": observations_document(overviews, indices.metrics, indices.parts),
        "cells": _cells(
            overviews, levels, foreign_levels(overviews, factors), usual_levels(overviews, factors)
        ),
        "pruned": [entry for number, found in enumerate(overviews) for entry in _pruned(number, found)],
        "summaries": _summaries(overviews, indices, whole=True),
        "within": packed(within) if len(indices.parts) > 1 else None,
        "ranking": [_ranking(overviews, run) for run in indices.runs],
        "measurements": _measurements(overviews, indices, packed_data or PackedData()),
        "effective": [effective_document(found) for found in overviews],
        **{
            key: part
            for own in workload_pages()
            for key, part in own.document(overviews, indices.runs).items()
        },
    }


def _runs(overviews: Sequence[Overview]) -> tuple[tuple[str, str], ...]:
    return tuple(dict.fromkeys(run for found in overviews for run in found.runs))


def _metrics(overviews: Sequence[Overview]) -> tuple[str, ...]:
    present = {key.metric for found in overviews for key in found.summaries}
    # Without any value there are still squares to explain: the first figure of a run is what they lack.
    present |= {run_head(found, run).first for found in overviews for run in found.runs}
    return tuple(name for name in METRICS if name in (present or {"tps"}))


def _metric(metric: Metric) -> dict[str, Any]:
    """Without what it is taken from, which docs/METRICS.md says."""
    shown = {name: value for name, value in to_json(metric).items() if name != "source"}
    return {**shown, "is_speed": is_speed(metric), "direction": metric.better.words}


def _run(overviews: Sequence[Overview], run: tuple[str, str], metrics: Sequence[str]) -> dict[str, Any]:
    """`kind` is what it does, `writes` whether it writes, `first` the metric that stands for it.

    `moves` is how a run is drawn that is about bytes in a second; null of any other.
    """
    owner = next(found for found in overviews if run in found.runs)
    return {
        "dataset": run[0],
        "dataset_words": owner.dataset_words(run[0]),
        "run": run[1],
        "kind": run_kind(owner, run),
        "writes": writes(owner, run),
        "moves": None if (moved := moved_bytes(owner, run)) is None else to_json(moved),
        "first": metrics.index(run_head(owner, run).first),
    }


def _study(found: Overview, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "title": found.study.facts.title,
        "directory": found.study.directory.name,
        "marks": list(found.marks),
        "selection": found.selection,
        "repetitions": found.repetitions,
        "sentence": repetitions_sentence(
            found.repetitions, executor=found.study.facts.executor, has_speeds=has_speeds([found])
        ),
    }


def _cells(
    overviews: Sequence[Overview],
    levels: Sequence[Sequence[int]],
    foreign: Sequence[Sequence[int]],
    usual: Sequence[Sequence[int]],
) -> list[dict[str, Any]]:
    cells = [(found, cell, i) for i, found in enumerate(overviews) for cell in found.cells.values()]
    return [
        {
            **_cell(found, cell, number),
            "levels": places,
            "usual": at_usual,
            **({"foreign": others} if others else {}),
        }
        for (found, cell, number), places, others, at_usual in zip(cells, levels, foreign, usual, strict=True)
    ]


# Where a label stands among the heat maps.
_SQUARE = "panel row=filesystem_block row_bytes=filesystem_block_bytes column=database_block column_bytes=database_block_bytes"


def _cell(found: Overview, cell: CellFacts, number: int) -> dict[str, Any]:
    label = cell.label
    return {
        "study": number,
        "id": cell.id,
        **json_fields(label, _SQUARE),
        "throttle": label.emulated_device or None,
        "emulated": cell.emulated,
        "durability": durability_told(cell),
        "durability_class": durability_class(cell.durability, cell.cache),
        "promise": durability_words(cell.durability),
        "promise_here": words_on_device(cell),
        "cache": cell.cache,
        "safety": list(safety(cell)),
        "identical_to": [found.cells[other].label.full for other in cell.identical_to],
        "changing": cell.changing,
    }


def _pruned(number: int, found: Overview) -> list[dict[str, Any]]:
    return [
        {
            "study": number,
            **json_fields(label, _SQUARE),
            "reasons": list(reasons),
        }
        for label, reasons in found.pruned
    ]


def _summaries(overviews: Sequence[Overview], indices: _Indices, *, whole: bool) -> dict[str, list[Any]]:
    """Columns, one entry per cell, run and metric that has something to say, of whole runs or of parts.

    `censored` is how many repetitions were stopped at a limit, `limit` the limit. Those of parts also have `part`.
    """
    # By the names of the columns.
    statistics = {
        "mean": "centre",
        **{name: name for name in ("minimum", "maximum", "variation", "low", "high")},
    }
    names = ("cell", "run", "metric", "n", "basis", *statistics, "reason", "counted", "censored", "limit")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    if not whole:
        columns["part"] = []
    run_of = {run: index for index, run in enumerate(indices.runs)}
    metric_of = {name: index for index, name in enumerate(indices.metrics)}
    first = 0
    for found, shown in zip(overviews, indices.summaries, strict=True):
        cell_of = {cell: first + index for index, cell in enumerate(found.cells)}
        first += len(found.cells)
        for key, entry in shown.items():
            part = indices.part(key)
            if (part == 0) != whole:
                continue
            summary = entry.summary
            columns["cell"].append(cell_of[key.cell])
            columns["run"].append(run_of[key.dataset, key.run])
            columns["metric"].append(metric_of[key.metric])
            columns["n"].append(summary.n)
            columns["basis"].append(summary.basis)
            columns["counted"].append(counted(summary))
            columns["reason"].append(None if summary.n else found.absence(key))
            for name, statistic in statistics.items():
                columns[name].append(rounded(getattr(summary, statistic), _SUMMARY_DIGITS))
            columns["censored"].append(summary.censored)
            columns["limit"].append(rounded(entry.limit, _SUMMARY_DIGITS))
            if not whole:
                columns["part"].append(part)
    return columns


def _ranking(overviews: Sequence[Overview], run: tuple[str, str]) -> list[int]:
    """The cells with a value in the first figure of a run, those of the strictest class of durability first, then the best."""
    ranked: list[tuple[int, float, int]] = []
    first = 0
    for found in overviews:
        metric = run_head(found, run).first
        sign = 1 if METRICS[metric].better is Better.LOWER else -1
        for index, cell in enumerate(found.cells.values(), start=first):
            centre = found.summary(cell.id, run, metric).centre
            if centre is not None:
                strictness = CLASSES.index(durability_class(cell.durability, cell.cache))
                ranked.append((strictness, sign * centre, index))
        first += len(found.cells)
    return [index for _, _, index in sorted(ranked)]


def _measurements(
    overviews: Sequence[Overview], indices: _Indices, packed_data: PackedData
) -> dict[str, Any]:
    """Columns, one entry per run that was due; canaries too, with the run's index -1.

    `course` and `latencies` are places in the packed data, `steps` how finely a course's transactions were cut.
    """
    names = (
        "study",
        "cell",
        "run",
        "repetition",
        "order",
        "canary",
        "outcome",
        "unreached",
        "emulated",
        "validity",
        "reasons",
        "warmup_s",
        "duration_s",
        "windows",
    )
    columns: dict[str, list[Any]] = {name: [] for name in names}
    figures: list[list[float | None]] = [[] for _ in indices.metrics]
    run_of = {run: index for index, run in enumerate(indices.runs)}
    first = 0
    for number, found in enumerate(overviews):
        cell_of = {cell: first + index for index, cell in enumerate(found.cells)}
        first += len(found.cells)
        for m in found.measurements:
            run = m.figures
            entry = {
                "study": number,
                "cell": cell_of.get(m.cell, -1),
                "run": -1 if m.canary else run_of[m.dataset, m.run],
                "repetition": m.repetition,
                "order": m.order,
                "canary": m.canary,
                "outcome": m.outcome.value,
                "unreached": m.unreached,
                "emulated": m.where is not None and m.where.emulated,
                "validity": m.validity.value,
                "reasons": list(sentences(m.reasons)),
                "warmup_s": rounded(run.warmup_s) if run else None,
                "duration_s": rounded(run.duration_s) if run else None,
                "windows": [[w.kind, rounded(w.start_s), rounded(w.end_s)] for w in run.windows]
                if run
                else [],
            }
            for name, value in entry.items():
                columns[name].append(value)
            for index, metric in enumerate(indices.metrics):
                figures[index].append(rounded(m.value(metric), _SUMMARY_DIGITS))
    return {**columns, **_courses(overviews, packed_data), "figures": figures}


def _courses(overviews: Sequence[Overview], packed_data: PackedData) -> dict[str, Any]:
    """Courses are drawn of runs, not of canaries."""
    due = [m for found in overviews for m in found.measurements]
    runs = [m.figures for m in due if m.figures is not None and not m.canary]
    precision = precision_for(sum((run.warmup_s or 0) + (run.duration_s or 0) for run in runs))
    made = packed_runs([None if m.canary else m.directory for m in due], precision)
    return {
        "course": [packed_data.put(course) for course, _ in made],
        "latencies": [packed_data.put(latencies) for _, latencies in made],
        "steps": precision.transactions,
    }
