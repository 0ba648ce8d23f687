"""Reasons of suspect runs that differ in their amounts alone are one sentence with ranges."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.analysis.wording import Told, one_sentence, shape
from bedplate.terminal.table_parts import Notes

OTHERS = (
    "suspect (write): other programs used {} % of the processors' time or more (limit 10 %): the run did not"
)
NUMBERS = st.one_of(st.integers(0, 10**9).map("{:,}".format), st.floats(0, 1e6).map("{:.3f}".format))


def told(text: str) -> Told:
    """What is told of a run in doubt has amounts behind its head."""
    return Told(text, text.index(": ") + 2 if text.startswith("suspect") else None)


def test_an_amount_is_a_range_and_what_is_the_same_stays() -> None:
    reasons = [told(OTHERS.format(share)) for share in (43, 9, 18)]
    assert 1 == len({shape(reason) for reason in reasons})
    assert OTHERS.format("9–43") == one_sentence(reasons)
    assert reasons[0].sentence == one_sentence(reasons[:1] * 3)
    taken = [told(f"suspect (a): interrupt took {ns} ns") for ns in ("9,000", "10,000.5")]
    assert "suspect (a): interrupt took 9,000–10,000.5 ns" == one_sentence(taken)
    stepped = [told(f"suspect: the wall clock was stepped by {s} s: so") for s in ("+0.500", "-0.250")]
    assert "suspect: the wall clock was stepped by -0.250 to +0.500 s: so" == one_sentence(stepped)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("suspect (power): query 3 has no time", "suspect (power): query 5 has no time"),
        ("suspect (a): I/O error on vda1", "suspect (a): I/O error on vda2"),
        ("suspect (a): pid: 7 hung", "suspect (a): pid: 8 hung"),
        ("suspect (a): block 7, sector 9 is bad", "suspect (a): block 8, sector 9 is bad"),
        ("suspect (a): Linux 6.1.2 warned", "suspect (a): Linux 6.1.3 warned"),
        ("suspect (a): read 0x10", "suspect (a): read 0x20"),
        ("suspect (a): read 900 KiB", "suspect (a): read 1.2 MiB"),
        ("suspect (1): read 900 KiB", "suspect (2): read 900 KiB"),
        # A failure is told as it was.
        ("failed (a): it took 7 s", "failed (a): it took 8 s"),
        ("the visit was not due for 3 days", "the visit was not due for 4 days"),
    ],
)
def test_a_name_with_a_number_in_it_is_no_amount(one: str, other: str) -> None:
    assert shape(told(one)) != shape(told(other))


@settings(deadline=None)
@given(st.lists(st.text(st.sampled_from("a 1290.,%:;()-+\0\n"), max_size=14).map("suspect: {}".format)))
def test_whatever_stands_in_a_reason_each_shape_is_one_sentence(reasons: list[str]) -> None:
    for key, alike in groupby(sorted(map(told, reasons), key=shape), key=shape):
        known = list(alike)
        made = one_sentence(known)
        assert made == known[0].sentence or len({*known}) > 1
        # What they have in common stands in it as it was.
        assert all(part in made for part in key)


@settings(deadline=None)
@given(st.lists(NUMBERS, min_size=2, max_size=6))
def test_a_range_reaches_from_the_smallest_to_the_largest(numbers: list[str]) -> None:
    made = one_sentence([told(f"suspect (a): it took {number} s") for number in numbers])
    ends = made.removeprefix("suspect (a): it took ").removesuffix(" s").split("–")
    values = [float(number.replace(",", "")) for number in numbers]
    assert [min(values), max(values)] == [float(ends[i].replace(",", "")) for i in (0, -1)]


def test_footnotes_of_alike_reasons_share_a_mark() -> None:
    notes = Notes()
    found = [notes.marks_of([told(OTHERS.format(share))]) for share in (18, 43)]
    # The names of other cells hold numbers that are no amounts.
    found += [notes.marks(f"suspect: the same as ext4 · fs {size} KiB") for size in (1, 4)]
    assert [" [a]", " [a]", " [b]", " [c]"] == found
    assert [f"[a] {OTHERS.format('18–43')}", "[b] suspect: the same as ext4 · fs 1 KiB"] == [
        line.plain for line in notes.lines()
    ][:2]
