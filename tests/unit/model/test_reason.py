"""A reason has a code for decisions and a sentence for people; one of format 1 is read as its sentence."""

from __future__ import annotations

import math

import pytest

from bedplate.errors import DeviceInUse, StudyError, VisitFailed
from bedplate.model import codec
from bedplate.model.levels import Levels
from bedplate.model.reason import (
    FULL_PAGE_WRITES_OFF,
    UNCLASSIFIED,
    Reason,
    because,
    distinct,
    is_given,
    of_format_1,
    reasons_of,
    sentences,
)

_STEAL = because("throttled-machine", "a hypervisor took 7.0 % of the time", share=0.07)


def test_a_reason_reads_as_its_sentence() -> None:
    assert "a hypervisor took 7.0 % of the time" == str(_STEAL)
    assert ("a hypervisor took 7.0 % of the time",) == sentences([_STEAL])


def test_a_reason_said_of_something_keeps_code_and_values() -> None:
    assert Reason(
        _STEAL.code, "read-write: a hypervisor took 7.0 % of the time", _STEAL.values
    ) == _STEAL.about("read-write")


def test_a_value_that_no_study_holds_is_left_out() -> None:
    assert Levels(n=1) == because("few-syncs", "few", n=1, share=math.nan, rate=math.inf, limit=None).values


def test_a_reason_survives_json() -> None:
    written = {"code": "throttled-machine", "sentence": _STEAL.sentence, "values": {"share": 0.07}}
    assert written == codec.to_json(_STEAL)
    assert _STEAL == codec.from_json(Reason, written)


def test_a_sentence_of_format_1_is_read_as_a_reason() -> None:
    assert Reason(UNCLASSIFIED, "no room") == codec.from_json(Reason, "no room")
    assert (Reason(UNCLASSIFIED, "no room"), _STEAL) == codec.from_json(
        tuple[Reason, ...], ["no room", codec.to_json(_STEAL)]
    )


def test_a_sentence_of_format_1_on_which_a_decision_hangs_has_its_code() -> None:
    torn = of_format_1("full_page_writes = off: a page torn by the cut cannot be repaired from the WAL")
    assert FULL_PAGE_WRITES_OFF == torn.code
    # What a run said of its own sessions never decided anything.
    assert UNCLASSIFIED == of_format_1("run read-write: full_page_writes = off: a page").code


@pytest.mark.parametrize(
    "value",
    [7, ["no room"], {"code": "x"}, {"code": "x", "sentence": "y", "more": 1}, {"code": 1, "sentence": ""}],
)
def test_what_is_no_reason_is_refused(value: object) -> None:
    with pytest.raises(StudyError, match="Reason"):
        codec.from_json(Reason, value)


def test_reasons_are_distinct_by_their_sentence() -> None:
    old, other = of_format_1(_STEAL.sentence), of_format_1("no room")
    assert (_STEAL, other) == distinct([old, other, _STEAL, other])


def test_a_code_is_found_among_reasons() -> None:
    assert is_given("throttled-machine", [of_format_1("no room"), _STEAL])
    assert not is_given("throttled-machine", [of_format_1(_STEAL.sentence)])


def test_a_sentence_of_an_error_has_the_code_of_its_class() -> None:
    error = DeviceInUse("/dev/x is mounted", _STEAL)
    assert ("/dev/x is mounted", _STEAL.sentence) == error.reasons
    assert (Reason("device-in-use", "/dev/x is mounted"), _STEAL) == reasons_of(error)
    assert reasons_of(error) == reasons_of(VisitFailed("mount", *reasons_of(error)))
