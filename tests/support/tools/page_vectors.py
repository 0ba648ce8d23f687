"""Figures with what Python's statistics make of them, for the page's script to be held against.

`python -m tests.support.tools.page_vectors` writes them to `tests/golden/statistics/`; a unit test sees that they are what Python
says today, another one that the page's script says the same.
"""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

from bedplate.model.figure import Better, Metric, Scale, Status
from bedplate.model.visit import Outcome, Validity
from bedplate.statistics.comparison import Comparison, compare, is_speed, judged_together
from bedplate.statistics.heat_map import average_map, common_scale
from bedplate.statistics.summary import Observation

GOLDEN = Path(__file__).parents[2] / "golden" / "statistics"
METRICS = {
    "tps": Metric("tps", "1/s", Scale.RATIO, Better.HIGHER, ""),
    "latency": Metric("latency", "ms", Scale.RATIO, Better.LOWER, ""),
    "space": Metric("space", "MiB", Scale.RATIO, Better.LOWER, ""),
    "share": Metric("share", "share", Scale.SHARE, Better.HIGHER, ""),
    "bad": Metric("bad", "share", Scale.PROPORTION, Better.LOWER, ""),
    "count": Metric("count", "1", Scale.COUNT, Better.LOWER, ""),
}
_FIELDS = ("kind", "verdict", "estimate", "low", "high", "confidence", "margin", "n", "paired")
_MORE_FIELDS = (
    "smallest",
    "largest",
    "more_repetitions",
    "suspect",
    "unknown",
    "censored",
    "open_side",
    "p_difference",
    "p_same",
    "difference_confidence",
)


def observed(side: list[list[Any]]) -> dict[int, Observation]:
    """A side of a case: repetition, value, status, limit, outcome, validity, and of k of n [k, n]."""
    return {
        repetition: Observation(
            value, Status(status), Outcome(outcome), Validity(validity), limit, tuple(of[0]) if of else None
        )
        for repetition, value, status, limit, outcome, validity, *of in side
    }


def judged(case: dict[str, Any]) -> Comparison:
    return compare(
        observed(case["baseline"]),
        observed(case["contender"]),
        METRICS[case["metric"]],
        margin=case["margin"],
        confidence=case["confidence"],
        shares_repetitions=case["shares_repetitions"],
    )


def said(found: Comparison) -> dict[str, Any]:
    """What the page must say too."""
    fields = {name: getattr(found, name) for name in (*_FIELDS, *_MORE_FIELDS)}
    return {
        **fields,
        "kind": found.kind.value,
        "verdict": found.verdict.value,
        "reasons": list(found.reasons),
    }


def comparison_vectors(count: int = 240) -> dict[str, Any]:
    """Cases with their comparisons alone, and families of them with those together."""
    cases = [_drawn(random.Random(seed)) for seed in range(count)] + _corners()
    cases += [_counted(random.Random(5000 + seed)) for seed in range(count // 4)]
    families = []
    for seed in range(30):
        chance = random.Random(1000 + seed)
        members = [chance.randrange(len(cases)) for _ in range(chance.choice((1, 3, 12, 60)))]
        # What is compared: one figure in all, some, or another one each time.
        figures = [chance.randrange(seed % 5 + 1) for _ in members]
        together = judged_together([judged(cases[member]) for member in members], figures)
        families.append(
            {"members": members, "figures": figures, "expected": [said(found) for found in together]}
        )
    return {
        "metrics": {
            name: {
                "scale": m.scale.value,
                "unit": m.unit,
                "better": m.better.value,
                "is_speed": is_speed(m),
            }
            for name, m in METRICS.items()
        },
        "cases": [{**case, "expected": said(judged(case))} for case in cases],
        "families": families,
    }


def heat_map_vectors() -> list[dict[str, Any]]:
    """Maps of variants, some of which lack squares, with their scale and their average."""
    made = []
    for seed in range(40):
        chance = random.Random(seed)
        scale = chance.choice((Scale.RATIO, Scale.SHARE))
        squares = [(f"fs {row}", f"db {column}") for row in range(3) for column in range(4)]
        spread = chance.choice((0.1, 2.0))
        maps = {
            f"variant {number}": {
                square: 0.0 if chance.random() < 0.004 else chance.lognormvariate(3, spread)
                for square in squares
                if chance.random() > 0.03
            }
            for number in range(chance.randint(1, 5))
        }
        shown = list(dict.fromkeys(square for found in maps.values() for square in found))
        ends = common_scale((v for found in maps.values() for v in found.values()), scale)
        average = average_map(maps, shown, scale)
        made.append(
            {
                "scale": scale.value,
                "maps": {name: [[*at, v] for at, v in found.items()] for name, found in maps.items()},
                "ends": None if ends is None else [ends.low, ends.high, ends.logarithmic],
                "average": [[*square, value] for square, value in average.values.items()],
                "used": list(average.used),
                "left_out": list(average.left_out),
            }
        )
    return made


def _drawn(chance: random.Random) -> dict[str, Any]:
    metric = chance.choice([name for name in METRICS if name != "bad"])
    n = chance.choice((1, 2, 3, 3, 5, 5, 8, 20))
    spread = chance.choice((0.002, 0.02, 0.2, 0.45))
    effect = chance.choice((0.0, 0.0, 0.03, 0.1, 0.7)) * chance.choice((1, -1))
    limit = chance.choice((None, None, None, 120.0))

    def side(shift: float) -> list[list[Any]]:
        rows = []
        for repetition in range(1, n + 1):
            if chance.random() < 0.03:
                continue
            value = 100 * math.exp(shift + chance.gauss(0, spread))
            if metric == "share":
                value = min(1.0, value / 200)
            elif metric == "count":
                value = float(round(value / 10))
            censored = limit is not None and metric in {"latency", "space"} and value > limit
            fate = chance.random()
            status = Status.CENSORED if censored else Status.ABSENT if fate > 0.98 else Status.MEASURED
            rows.append(
                [
                    repetition,
                    value if status is Status.MEASURED else None,
                    status.value,
                    limit if censored else None,
                    (Outcome.FAILED if fate < 0.02 else Outcome.COMPLETED).value,
                    _validity(fate).value,
                ]
            )
        return rows

    return {
        "metric": metric,
        "baseline": side(0.0),
        "contender": side(effect),
        "margin": chance.choice((0.05, 0.05, 0.05, 0.01, None)),
        "confidence": chance.choice((0.95, 0.95, 0.99)),
        "shares_repetitions": chance.random() > 0.2,
    }


def _validity(fate: float) -> Validity:
    if 0.02 < fate < 0.05:
        return Validity.SUSPECT
    return Validity.UNKNOWN if 0.05 <= fate < 0.08 else Validity.VALID


def _corners() -> list[dict[str, Any]]:
    """No error at all, no difference at all, a value of zero, nothing in common, limits on one side and on both."""

    def plain(values: list[float | None], first: int = 1, limit: float | None = None) -> list[list[Any]]:
        return [
            [
                number,
                value,
                (Status.MEASURED if value is not None else Status.CENSORED).value,
                None if value is not None else limit,
                Outcome.COMPLETED.value,
                Validity.VALID.value,
            ]
            for number, value in enumerate(values, first)
        ]

    def case(metric: str, baseline: list[list[Any]], contender: list[list[Any]]) -> dict[str, Any]:
        sides = {"baseline": baseline, "contender": contender}
        return {
            "metric": metric,
            **sides,
            "margin": 0.05,
            "confidence": 0.95,
            "shares_repetitions": True,
        }

    return [
        case("tps", plain([100.0] * 3), plain([200.0] * 3)),
        case("tps", plain([100.0] * 3), plain([100.0] * 3)),
        case("count", plain([4.0] * 5), plain([4.0] * 5)),
        case("tps", plain([100.0, 0.0, 90.0]), plain([100.0, 80.0, 90.0])),
        case("tps", plain([100.0] * 3), plain([100.0] * 3, first=4)),
        case("latency", plain([10.0, 11.0, 12.0]), plain([None] * 3, limit=60.0)),
        case("latency", plain([None, 11.0, 12.0], limit=60.0), plain([20.0, 61.0, 30.0])),
        case("latency", plain([70.0, 11.0, 12.0]), plain([None, 20.0, 21.0], limit=60.0)),
        case("tps", plain([1e-300, 1e-300, 2e-300]), plain([1e300, 2e300, 1e300])),
        case("tps", [], plain([1.0, 2.0, 3.0])),
    ]


def _counted(chance: random.Random) -> dict[str, Any]:
    """k of n in one recording or several, from none to all, some that scatter by more than counting explains."""
    n, cuts = chance.choice((1, 1, 2, 3, 5)), chance.choice((3, 12, 45, 150, 600))
    scatter = chance.choice((0.0, 0.0, 0.3))

    def side(share: float) -> list[list[Any]]:
        rows: list[list[Any]] = []
        for repetition in range(1, n + 1):
            true = min(1.0, max(0.0, share + chance.uniform(-scatter, scatter)))
            bad = sum(chance.random() < true for _ in range(cuts))
            doubt = Validity.SUSPECT if chance.random() < 0.05 else Validity.VALID
            known = (Status.MEASURED.value, None, Outcome.COMPLETED.value, doubt.value)
            rows.append([repetition, bad / cuts, *known, [bad, cuts]])
        return rows

    shares = chance.choice(((0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.2, 0.3), (0.0, 0.1), (0.9, 0.3)))
    return {
        "metric": "bad",
        "baseline": side(shares[0]),
        "contender": side(shares[1]),
        "margin": chance.choice((0.05, 0.05, 0.2, None)),
        "confidence": chance.choice((0.95, 0.95, 0.99)),
        "shares_repetitions": chance.random() > 0.3,
    }


def written(vectors: Any) -> str:
    return json.dumps(vectors, separators=(",", ":"), allow_nan=False) + "\n"


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    (GOLDEN / "comparisons.json").write_text(written(comparison_vectors()), encoding="utf-8")
    (GOLDEN / "heat-maps.json").write_text(written(heat_map_vectors()), encoding="utf-8")
