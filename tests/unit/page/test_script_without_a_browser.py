"""The page's script pairs and judges as Python does: every two levels of every factor of some studies."""

from __future__ import annotations

import base64
import json
import random
import re
import shlex
import zlib
from dataclasses import replace
from itertools import permutations, product
from string import Formatter
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.studies.synthetic_power_cuts import torn_study
from tests.support.studies.synthetic_study import Recipe, with_barriers_of_xfs, write_study
from tests.support.tools.page_script import in_node, said_by_script
from tests.support.tools.page_vectors import GOLDEN

from bedplate.analysis.comparison import ComparisonQuestion, answer, candidates_of
from bedplate.analysis.overview import overview
from bedplate.analysis.pooled import figure_words, pooled_lines
from bedplate.analysis.wording import (
    PROMISES_DIFFER,
    PROMISES_DIFFER_ELSEWHERE,
    WRONG_ON_AVERAGE,
    about_counts,
    confidence_words,
    margin_words,
    number_words,
    promises_differ,
    ratio_figure,
    scatter_of,
)
from bedplate.errors import PlanError
from bedplate.model.course import filled
from bedplate.model.metrics import METRICS
from bedplate.page.document import page_document, rules_document
from bedplate.page.views import effects_view, page_effects
from bedplate.statistics.comparison import Comparison, EstimateKind, compare, left_out_words
from bedplate.statistics.summary import GEOMETRIC_MEAN, MEAN, Summary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from bedplate.analysis.comparison import Compared
    from bedplate.analysis.overview import Overview

    Writer = Callable[[Path], Sequence[Path]]

RECIPE = Recipe(filesystem_blocks=(4096,), database_blocks=(4096, 8192), repetitions=3, course_s=5)
NUMBER = re.compile(r"\d+(?:\.\d+)?")
TEMPLATES = rules_document()["templates"]
# For each question: of every pair and run, in Python's order.
ASK = """async questions => {
  const { pairs, document: page } = bedplate;
  await bedplate.data.open();
  bedplate.choice.open();
  const metric = page.metrics.findIndex(({ name }) => name === "tps");
  const asked = page.runs.map((_, run) => ({ run, metric, part: 0 }));
  const answers = [];
  for (const question of questions) {
    const judged = await pairs.judged(pairs.pairsOf(question), asked);
    const lines = bedplate.pooled.linesOf(judged, question).map(bedplate.pooled.sentences);
    answers.push([lines, judged.map(one => [one.baseline, one.contender, page.runs[one.run].run,
      one.found.verdict, [...one.incomparable].sort(), [...one.notes].sort()])]);
  }
  return answers;
}"""


COMPARED = """vectors => {
  const { verdicts } = bedplate;
  const side = rows => new Map(rows.map(([repetition, value, status, limit, outcome, validity, of]) => [repetition, { value, status, limit, outcome, validity, of: of ?? null }]));
  const made = vectors.cases.map(one => verdicts.compare(side(one.baseline), side(one.contender), vectors.metrics[one.metric],
    { margin: one.margin, confidence: one.confidence, sharesRepetitions: one.shares_repetitions }));
  const says = (found, more) => ({ ...found, p_difference: verdicts.pDifferent(found), p_same: verdicts.pAlike(found), more_repetitions: more ? verdicts.moreRepetitions(found) : undefined });
  return {
    cases: made.map(found => says(found, true)),
    families: vectors.families.map(({ members, figures }) => verdicts.judgedTogether(members.map(member => made[member]), figures).map(found => says(found, false))),
  };
}"""
DRAWN = """vectors => vectors.map(({ maps, scale }) => {
  const known = new Map(Object.entries(maps).map(([name, squares]) => [name, new Map(squares.map(([row, column, value]) => [`${row}/${column}`, value]))]));
  const ends = bedplate.heatScale.common([...known.values()].flatMap(squares => [...squares.values()]), scale);
  const average = bedplate.heatScale.average(known, scale);
  return { ends: ends && [ends.low, ends.high, ends.logarithmic], average: [...average.values], used: average.used, left_out: average.left_out };
})"""

SAID = """({ filled, left_out, margins, confidences, told, pairs, counts, numbers, figures, ratios, summaries }) => {
  const { words } = bedplate;
  return {
    filled: filled.map(([name, values]) => words.filled(name, values)),
    left_out: left_out.map(runs => words.leftOut(...runs)),
    margins: margins.map(margin => words.margin(...margin)),
    confidences: confidences.map(own => words.confidences(own)),
    told: told.map(([n, found, own]) => words.canTell(n, new Map(found), own)),
    pairs: pairs.map(([one, other]) => words.promisesDiffer(bedplate.document.cells[one], bedplate.document.cells[other])),
    counts: counts.map(one => words.aboutCounts(...one)),
    numbers: numbers.map(([value, scatter]) => bedplate.number(value, scatter)),
    ratios: ratios.map((value) => bedplate.ratioFigure(value)),
    scatters: summaries.map(([n, mean, minimum, maximum, low, high, is_ratio]) =>
      bedplate.scatter({ n, mean, minimum, maximum, low, high, is_ratio })),
    figures: figures.map(([kind, estimate, low, high]) =>
      bedplate.pooled.figureWords({ kind, estimate, low, high, verdict: "cannot tell", margin: 0.05, reasons: [] })),
  };
}"""


# How many runs, their mean, range and interval, and whether they are compared as a ratio.
SUMMARIES = [
    (n, mean, mean * (1 - spread), mean * (1 + spread), *ends, is_ratio)
    for n in (0, 1, 2, 3)
    for mean in (0.012, 9.99, 10.0, 1234.0)
    for spread in (0.0, 0.001, 0.3)
    for ends in ((None, None), (mean * 0.9, mean * 1.2))
    for is_ratio in (True, False)
]


def summary_of(  # noqa: PLR0917 -- as the script has it
    n: int,
    mean: float,
    minimum: float,
    maximum: float,
    low: float | None,
    high: float | None,
    is_ratio: bool,
) -> Summary:
    kind = GEOMETRIC_MEAN if is_ratio else MEAN
    return Summary(n, minimum=minimum, maximum=maximum, centre=mean, centre_kind=kind, low=low, high=high)


# Ties, whole numbers, what rounds to one more digit, and the ends of what is written out.
NUMBERS = [
    sign * value * 10.0**power
    for sign in (1, -1)
    for value in (1.0, 1.0005, 2.5, 9.9994, 9.9996, 1.2345, 1.2335, 7 / 3)
    for power in range(-7, 14)
] + [0.0, 1000.5, 1001.5, 0.125, 8.0, 24_310.0, 0.000_1, 0.000_099_999, 999_999_999.0, 1e9, 999_949_999.5]
SCATTERS = (None, 0.013, 0.7, 188.0)
# Estimate and bounds: where one is near equality, or a ratio has many digits.
BOUNDS = [
    (1.06, 1.0046, 1.12),
    (0.94, 0.8875, 0.9963),
    (1.06, 1.00001, 1.12),
    (1.003, 0.9971, 1.0062),
    (1.0, 1.0, 1.0),
    (1240.4, 999.6, 1531.2),
    (0.0043, 0.0021, 0.00872),
    (2.5e9, 1.25e9, 5.25e9),
]
INFLATED = "packed => packed.map(one => Array.from(bedplate.unpacked(one)))"


def one_study(place: Path) -> Sequence[Path]:
    return [write_study(place / "one", RECIPE)]


def one_asks_for_more(place: Path) -> Sequence[Path]:
    asking = replace(RECIPE, cells=with_barriers_of_xfs(RECIPE), seed=9)
    return [write_study(place / "plain", RECIPE), write_study(place / "asking", asking)]


def two_kernels(place: Path) -> Sequence[Path]:
    kernels = {"before": "6.1", "again": "6.1", "after": "6.12"}
    return [
        write_study(place / name, replace(RECIPE, provenance={"kernel": kernel}, seed=number))
        for number, (name, kernel) in enumerate(kernels.items())
    ]


def in_doubt(place: Path) -> Sequence[Path]:
    return [write_study(place / "doubted", replace(RECIPE, suspect=((0, 1), (1, 2)), failed=((2, 1),)))]


def told(overviews: Sequence[Overview], compared: Compared) -> list[Any]:
    places = [(each.study, each.cell) for each in candidates_of(overviews)]
    sides = (compared.pair.baseline, compared.pair.contender)
    return [
        *(places.index((side.study, side.cell)) for side in sides),
        compared.asked.run[1],
        compared.comparison.verdict.value,
        sorted(compared.incomparable),
        sorted(compared.notes),
    ]


def expected_of(
    overviews: Sequence[Overview], factor: str, levels: Sequence[str]
) -> tuple[list[tuple[str, ...]], list[list[Any]]]:
    """The pooled lines, and what is said of each pair."""
    baseline, contender = (f"{factor}={shlex.quote(level)}" for level in levels)
    try:
        found = answer(overviews, ComparisonQuestion(baseline, contender, metrics=("tps",)))
    except PlanError:
        return [], []
    lines = [sentences for _, sentences in pooled_lines(found)]
    return lines, sorted(told(overviews, compared) for compared in found.compared)


def said_alike(one: str, other: str) -> bool:
    """The same words, and the same numbers but for the last digit: figures on the page have five."""
    words, numbers = zip(
        *((NUMBER.sub("#", text), NUMBER.findall(text)) for text in (one, other)), strict=True
    )
    return words[0] == words[1] and all(
        abs(float(first) - float(second)) <= 1.01 * 10.0 ** -len(first.partition(".")[2])
        for first, second in zip(*numbers, strict=True)
    )


@in_node
@pytest.mark.parametrize("write", [one_study, one_asks_for_more, two_kernels, in_doubt])
def test_the_script_pairs_and_judges_as_python_does(write: Writer, tmp_path: Path) -> None:
    overviews = [overview(study) for study in write(tmp_path)]
    document = page_document(overviews)
    runs = [(run["dataset"], run["run"]) for run in document["runs"]]
    document["effects"] = effects_view([page_effects(found) for found in overviews], runs)
    questions = [
        (factor["name"], levels)
        for factor in document["factors"]
        for levels in permutations(factor["levels"], 2)
    ]
    expected = [expected_of(overviews, factor, levels) for factor, levels in questions]
    sides = [
        {
            name: {"factor": factor, "level": level}
            for name, level in zip(("baseline", "contender"), levels, strict=True)
        }
        for factor, levels in questions
    ]
    found = said_by_script(document, ASK, sides)
    assert 4 < sum(bool(pairs) for _, pairs in expected)
    assert 2 < sum(bool(lines) for lines, _ in expected)
    for question, (lines, wanted), (shown, said) in zip(questions, expected, found, strict=True):
        assert wanted == sorted(said), question
        assert [len(line) for line in lines] == [len(line) for line in shown], (question, lines, shown)
        for first, second in zip(
            (t for line in lines for t in line), (t for line in shown for t in line), strict=True
        ):
            assert said_alike(first, second), (question, first, second)


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A page's document: what the script judges by is in each."""
    recipe = Recipe(filesystem_blocks=(4096,), database_blocks=(8192,), course_s=5)
    return page_document([overview(write_study(tmp_path_factory.mktemp("rules") / "study", recipe))])


def hold_together(expected: dict[str, Any], found: dict[str, Any], *, but: tuple[str, ...] = ()) -> None:
    for name, wanted in expected.items():
        if name in but:
            continue
        if isinstance(wanted, float):
            assert found[name] == pytest.approx(wanted, rel=1e-9, abs=1e-300), (name, expected)
        else:
            assert wanted == found[name], (name, expected)


@in_node
def test_what_is_packed_is_unpacked(rules: dict[str, Any]) -> None:
    chance = random.Random(7)
    texts = [
        b"",
        b"a",
        b"x" * 70_000,
        bytes(chance.randrange(256) for _ in range(70_000)),
        bytes(chance.choice(b"abcdefgh") for _ in range(20_000)),
        json.dumps([chance.random() for _ in range(3_000)]).encode(),
    ]
    cases = [(text, zlib.compress(text, level)) for text in texts for level in (0, 1, 9)]
    packed = [base64.b64encode(made).decode() for _, made in cases]
    assert [list(text) for text, _ in cases] == said_by_script(rules, INFLATED, packed)


@in_node
def test_the_script_judges_as_python_does(rules: dict[str, Any]) -> None:
    vectors = json.loads((GOLDEN / "comparisons.json").read_text(encoding="utf-8"))
    found = said_by_script(rules, COMPARED, vectors)
    assert len(vectors["cases"]) == len(found["cases"])
    for case, made in zip(vectors["cases"], found["cases"], strict=True):
        hold_together(case["expected"], made)
    for family, together in zip(vectors["families"], found["families"], strict=True):
        for expected, made in zip(family["expected"], together, strict=True):
            hold_together(expected, made, but=("more_repetitions",))


@in_node
def test_the_script_averages_maps_as_python_does(rules: dict[str, Any]) -> None:
    vectors = json.loads((GOLDEN / "heat-maps.json").read_text(encoding="utf-8"))
    found = said_by_script(rules, DRAWN, vectors)
    for expected, made in zip(vectors, found, strict=True):
        assert (expected["used"], expected["left_out"]) == (made["used"], made["left_out"])
        assert expected["ends"] == made["ends"]
        values = {f"{row}/{column}": value for row, column, value in expected["average"]}
        assert values == pytest.approx(dict(made["average"]), rel=1e-9)


def fillings() -> list[tuple[str, dict[str, Any]]]:
    """Every template with values, among them what a regular expression or another template would take for its own."""
    texts = ("ext4 $& {n} {s} `a`", "", "Zürich \u2014 <b>$1</b>")
    return [
        (name, {field: n if field == "n" else text for field in fields})
        for name, template in TEMPLATES.items()
        for fields in [{field for _, field, _, _ in Formatter().parse(template) if field not in {None, "s"}}]
        for n, text in zip((0, 1, 17), texts, strict=True)
    ]


def margin_of(kind: EstimateKind, margin: float) -> str:
    metric = METRICS["tps" if kind is EstimateKind.RATIO else "tps_trend"]
    return margin_words(compare({}, {}, metric, margin=margin))


def compared_so(kind: EstimateKind, estimate: float, low: float, high: float) -> Comparison:
    plain = compare({}, {}, METRICS["tps" if kind is EstimateKind.RATIO else "tps_trend"])
    return replace(plain, estimate=estimate, low=low, high=high)


@pytest.fixture(scope="module")
def torn(tmp_path_factory: pytest.TempPathFactory) -> list[Overview]:
    """Cells of which some differ in what survives a power cut, on devices with sectors of 4 KiB and of 512 bytes."""
    base = tmp_path_factory.mktemp("torn")
    sectors = {"whole": 4096, "torn": 512}
    return [
        overview(torn_study(base / name, {"kind": "block device", "physical_block_size": size}))
        for name, size in sectors.items()
    ]


@in_node
def test_the_script_says_word_for_word_what_python_says(torn: list[Overview]) -> None:
    cells = [cell for each in torn for cell in each.cells.values()]
    pairs = list(permutations(range(len(cells)), 2))
    runs = list(product((0, 1, 2, 40), repeat=2))
    margins = list(product(EstimateKind, (0.0, 0.005, 0.01, 0.05, 0.07, 0.1, 0.125, 0.2, 1 / 3, 0.55)))
    confidences = [
        [0.95],
        [0.95, 0.95],
        [0.99, 0.95, 0.975],
        [0.9989, 0.95],
        [0.99999, 0.999996],
        [0.9, 0.123456],
    ]
    told = [(0, {}), (1, {"faster": 1}), (7, {"slower": 2, "same": 1})]
    counts = list(product((1, 2, 5), (False, True)))
    filled_in = fillings()
    numbers = list(product(NUMBERS, SCATTERS))
    figures = list(product(EstimateKind, BOUNDS))
    ratios = [one for one in NUMBERS if one > 0]
    expected: dict[str, list[Any]] = {
        "filled": [filled(TEMPLATES[name], **values) for name, values in filled_in],
        "left_out": [left_out_words(*one) for one in runs],
        "margins": [margin_of(*one) for one in margins],
        "confidences": [confidence_words(own) for own in confidences],
        "told": [
            f"{sum(counted.values())} of {n} comparison{'' if n == 1 else 's'} with an interval can tell{words}. "
            f"{filled(WRONG_ON_AVERAGE, confidence='95 to 99 %')}"
            for (n, counted), words in zip(told, ("", ": 1 faster", ": 2 slower, 1 same"), strict=True)
        ],
        "pairs": [promises_differ(cells[one], cells[other]) for one, other in pairs],
        "counts": [about_counts(n, has_interval=within) for n, within in counts],
        "numbers": [number_words(*one) for one in numbers],
        "ratios": [ratio_figure(one) for one in ratios],
        "scatters": [scatter_of(summary_of(*one)) for one in SUMMARIES],
        "figures": [figure_words(compared_so(kind, *one)) for kind, one in figures],
    }
    given = {
        "filled": filled_in,
        "left_out": runs,
        "margins": [(kind.value, margin) for kind, margin in margins],
        "confidences": confidences,
        "told": [(n, list(counted.items()), [0.99, 0.95]) for n, counted in told],
        "pairs": pairs,
        "counts": counts,
        "numbers": numbers,
        "ratios": ratios,
        "summaries": SUMMARIES,
        "figures": [(kind.value, *one) for kind, one in figures],
    }
    starts = {template.partition("{")[0] for template in (PROMISES_DIFFER, PROMISES_DIFFER_ELSEWHERE)}
    assert all(any(words.startswith(start) for words in expected["pairs"]) for start in starts)
    found = said_by_script(page_document(torn), SAID, given)
    for part, wanted in expected.items():
        assert wanted == found[part], part


SAFEST = """({ cells, better }) => {
  const { heatScale } = bedplate;
  const maps = new Map([...new Set(cells.map(({ panel }) => panel))].map((name) => [name, new Map()]));
  const { promise, maps: kept, others } = heatScale.ofSafestClass(maps, cells);
  return [heatScale.promises(cells), promise, [...kept.keys()], others, better.map((one) => heatScale.bestDurable(cells, (index) => cells[index].value, one))];
}"""


@in_node
def test_no_average_has_two_durability_classes_and_the_best_durable_square_is_found(
    rules: dict[str, Any],
) -> None:
    kinds = {
        "ext4": ("durable", [0, 0]),
        "nobarrier": ("unsafe / durable", [2, 0]),
        "xfs": ("durable", [0, 0]),
    }
    cells = [
        {
            "index": index,
            "panel": panel,
            "promise_here": kinds[panel][0],
            "safety": kinds[panel][1],
            "value": value,
        }
        for index, (panel, value) in enumerate(
            [("nobarrier", 9.0), ("ext4", 2.0), ("ext4", 3.0), ("xfs", 4.0)]
        )
    ]
    found = said_by_script(rules, SAFEST, {"cells": cells, "better": ["higher", "lower", "neither"]})
    assert ["durable, unsafe / durable", "durable", ["ext4", "xfs"], 1, [3, 1, None]] == found
