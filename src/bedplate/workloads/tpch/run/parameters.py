"""Substitution parameters of the queries: the clause's own for validation, or drawn by its rules (2.4.x.3).

Drawn ones come from bedplate's own generator and not from dbgen's or qgen's: the domains and the uniform
distribution are the clause's, the sequence is ours. A query's parameters hang on the seed, the stream and
the query alone, so they are the same in every version of Python and whatever else is drawn.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, TypeVar

from bedplate.workloads.tpch.run import domains
from bedplate.workloads.tpch.run.schema import exact_scale_factor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from decimal import Decimal

_Value = TypeVar("_Value")

_WORD_BYTES = 8
_WORDS = 1 << (8 * _WORD_BYTES)

_VALIDATION: Mapping[int, Mapping[str, str]] = {
    1: {"DELTA": "90"},
    2: {"SIZE": "15", "TYPE": "BRASS", "REGION": "EUROPE"},
    3: {"SEGMENT": "BUILDING", "DATE": "1995-03-15"},
    4: {"DATE": "1993-07-01"},
    5: {"REGION": "ASIA", "DATE": "1994-01-01"},
    6: {"DATE": "1994-01-01", "DISCOUNT": "0.06", "QUANTITY": "24"},
    7: {"NATION1": "FRANCE", "NATION2": "GERMANY"},
    8: {"NATION": "BRAZIL", "REGION": "AMERICA", "TYPE": "ECONOMY ANODIZED STEEL"},
    9: {"COLOR": "green"},
    10: {"DATE": "1993-10-01"},
    11: {"NATION": "GERMANY"},
    12: {"SHIPMODE1": "MAIL", "SHIPMODE2": "SHIP", "DATE": "1994-01-01"},
    13: {"WORD1": "special", "WORD2": "requests"},
    14: {"DATE": "1995-09-01"},
    15: {"DATE": "1996-01-01"},
    16: {
        "BRAND": "Brand#45",
        "TYPE": "MEDIUM POLISHED",
        "SIZE1": "49",
        "SIZE2": "14",
        "SIZE3": "23",
        "SIZE4": "45",
        "SIZE5": "19",
        "SIZE6": "3",
        "SIZE7": "36",
        "SIZE8": "9",
    },
    17: {"BRAND": "Brand#23", "CONTAINER": "MED BOX"},
    18: {"QUANTITY": "300"},
    19: {
        "QUANTITY1": "1",
        "QUANTITY2": "10",
        "QUANTITY3": "20",
        "BRAND1": "Brand#12",
        "BRAND2": "Brand#23",
        "BRAND3": "Brand#34",
    },
    20: {"COLOR": "forest", "DATE": "1994-01-01", "NATION": "CANADA"},
    21: {"NATION": "SAUDI ARABIA"},
    22: {"I1": "13", "I2": "31", "I3": "23", "I4": "29", "I5": "30", "I6": "18", "I7": "17"},
}


class Draws:
    """Uniform draws from SHA-256 over a key and a counter."""

    def __init__(self, *key: int) -> None:
        self._key = "/".join(("tpch", *map(str, key)))
        self._count = 0

    def below(self, bound: int) -> int:
        """A whole number from 0 to `bound` - 1."""
        # Words beyond the last whole multiple would make small numbers likelier.
        end = _WORDS - _WORDS % bound
        while (word := self._word()) >= end:
            pass
        return word % bound

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def one_of(self, values: Sequence[_Value]) -> _Value:
        """One of the values."""
        return values[self.below(len(values))]

    def some_of(self, values: Sequence[_Value], count: int) -> list[_Value]:
        """`count` of the values, each at most once, in an order that is drawn too."""
        left = list(values)
        return [left.pop(self.below(len(left))) for _ in range(count)]

    def _word(self) -> int:
        digest = hashlib.sha256(f"{self._key}/{self._count}".encode()).digest()
        self._count += 1
        return int.from_bytes(digest[:_WORD_BYTES], "big")


def validation_parameters(query: int, scale_factor: float) -> Mapping[str, str]:
    """The clause's values; `scale_factor` decides query 11's fraction, as it does in qgen's defaults.

    The answers of the specification belong to scale factor 1.
    """
    parameters = dict(_VALIDATION[query])
    return parameters | _fraction(query, scale_factor)


def drawn_parameters(query: int, scale_factor: float, *, seed: int, stream: int) -> Mapping[str, str]:
    """Values drawn for one query of one stream; stream 0 is the power test's."""
    return _RULES[query](Draws(seed, stream, query)) | _fraction(query, scale_factor)


def _fraction(query: int, scale_factor: float) -> dict[str, str]:
    if query != 11:
        return {}
    # An exact decimal: 0.1 as a binary fraction would give 0.000999….
    fraction: Decimal = 1 / (10_000 * exact_scale_factor(scale_factor))
    return {"FRACTION": format(fraction, "f")}


def _first_of_month(draws: Draws, year: int, month: int, months: int) -> str:
    """The first day of one of `months` months, the first of which is given."""
    count = month - 1 + draws.below(months)
    return f"{year + count // 12}-{count % 12 + 1:02d}-01"


def _first_of_year(draws: Draws) -> str:
    return f"{draws.between(1993, 1997)}-01-01"


def _nation(draws: Draws) -> str:
    return draws.one_of(domains.NATIONS).name


def _brand(draws: Draws) -> str:
    return f"Brand#{draws.between(1, 5)}{draws.between(1, 5)}"


def _syllables(draws: Draws, lists: Sequence[Sequence[str]]) -> str:
    return " ".join(draws.one_of(syllables) for syllables in lists)


def _minimum_cost_supplier(draws: Draws) -> dict[str, str]:
    return {
        "SIZE": str(draws.between(1, 50)),
        "TYPE": draws.one_of(domains.TYPE_SYLLABLES[2]),
        "REGION": draws.one_of(domains.REGIONS),
    }


def _shipping_priority(draws: Draws) -> dict[str, str]:
    return {"SEGMENT": draws.one_of(domains.SEGMENTS), "DATE": f"1995-03-{draws.between(1, 31):02d}"}


def _forecasting_revenue_change(draws: Draws) -> dict[str, str]:
    return {
        "DATE": _first_of_year(draws),
        "DISCOUNT": f"0.0{draws.between(2, 9)}",
        "QUANTITY": str(draws.between(24, 25)),
    }


def _volume_shipping(draws: Draws) -> dict[str, str]:
    first, second = draws.some_of(domains.NATIONS, 2)
    return {"NATION1": first.name, "NATION2": second.name}


def _national_market_share(draws: Draws) -> dict[str, str]:
    nation = draws.one_of(domains.NATIONS)
    return {
        "NATION": nation.name,
        "REGION": nation.region,
        "TYPE": _syllables(draws, domains.TYPE_SYLLABLES),
    }


def _shipping_modes(draws: Draws) -> dict[str, str]:
    first, second = draws.some_of(domains.SHIP_MODES, 2)
    return {"SHIPMODE1": first, "SHIPMODE2": second, "DATE": _first_of_year(draws)}


def _customer_distribution(draws: Draws) -> dict[str, str]:
    return {
        "WORD1": draws.one_of(domains.COMMENT_WORDS_1),
        "WORD2": draws.one_of(domains.COMMENT_WORDS_2),
    }


def _parts_supplier_relationship(draws: Draws) -> dict[str, str]:
    brand_and_type = {"BRAND": _brand(draws), "TYPE": _syllables(draws, domains.TYPE_SYLLABLES[:2])}
    sizes = draws.some_of(range(1, 51), 8)
    return brand_and_type | {f"SIZE{place}": str(size) for place, size in enumerate(sizes, 1)}


def _discounted_revenue(draws: Draws) -> dict[str, str]:
    return {
        "QUANTITY1": str(draws.between(1, 10)),
        "QUANTITY2": str(draws.between(10, 20)),
        "QUANTITY3": str(draws.between(20, 30)),
        "BRAND1": _brand(draws),
        "BRAND2": _brand(draws),
        "BRAND3": _brand(draws),
    }


def _potential_part_promotion(draws: Draws) -> dict[str, str]:
    return {"COLOR": draws.one_of(domains.COLORS), "DATE": _first_of_year(draws), "NATION": _nation(draws)}


def _global_sales_opportunity(draws: Draws) -> dict[str, str]:
    return {f"I{place}": code for place, code in enumerate(draws.some_of(domains.COUNTRY_CODES, 7), 1)}


_RULES: Mapping[int, Callable[[Draws], dict[str, str]]] = {
    1: lambda draws: {"DELTA": str(draws.between(60, 120))},
    2: _minimum_cost_supplier,
    3: _shipping_priority,
    4: lambda draws: {"DATE": _first_of_month(draws, 1993, 1, 58)},
    5: lambda draws: {"REGION": draws.one_of(domains.REGIONS), "DATE": _first_of_year(draws)},
    6: _forecasting_revenue_change,
    7: _volume_shipping,
    8: _national_market_share,
    9: lambda draws: {"COLOR": draws.one_of(domains.COLORS)},
    10: lambda draws: {"DATE": _first_of_month(draws, 1993, 2, 24)},
    11: lambda draws: {"NATION": _nation(draws)},
    12: _shipping_modes,
    13: _customer_distribution,
    14: lambda draws: {"DATE": _first_of_month(draws, 1993, 1, 60)},
    15: lambda draws: {"DATE": _first_of_month(draws, 1993, 1, 58)},
    16: _parts_supplier_relationship,
    17: lambda draws: {"BRAND": _brand(draws), "CONTAINER": _syllables(draws, domains.CONTAINER_SYLLABLES)},
    18: lambda draws: {"QUANTITY": str(draws.between(312, 315))},
    19: _discounted_revenue,
    20: _potential_part_promotion,
    21: lambda draws: {"NATION": _nation(draws)},
    22: _global_sales_opportunity,
}
