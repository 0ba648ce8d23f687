from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bedplate.errors import OutputNotUnderstood
from bedplate.model.reason import Reason
from bedplate.units import GIB, MIB
from bedplate.workloads.bonnie.figures import STAGES, BonnieResult, StageFigures, parse_result

SHORT = Reason(
    "stage-too-short", "not measurable: the stage took less than 0.5 s, and bonnie++ gives no rate for it"
)
NOT_RUN = Reason("not-asked-for", "the stage was not asked for")


def golden(repository: Path, name: str) -> str:
    return (repository / "tests/golden/bonnie" / name).read_text()


def result(repository: Path, name: str) -> BonnieResult:
    return parse_result(golden(repository, f"{name}.csv"))


def line(**changed: str) -> str:
    """A line of a run in which everything could be measured, with some fields changed (`f9="x"`)."""
    rates = [word for number in range(6) for word in (str(1000 + number), str(10 + number))]
    small = [word for number in range(6) for word in (str(2000 + number), str(20 + number))]
    latencies = [f"{number}us" for number in range(1, 13)]
    fields = ["1.98", "2.00a", "bedplate", "1", "7", "1G", "", "8192", "1", *rates, ""]
    fields = [*fields[:21], "4", "", "", "", "", *small, *latencies]
    for place, text in changed.items():
        fields[int(place[1:])] = text
    return ",".join(fields)


def test_reads_every_stage_of_a_run_in_little_memory(repository: Path) -> None:
    found = result(repository, "limited")
    assert ("2.00a", 11, GIB, 30000, 5) == (
        found.version,
        found.seed,
        found.file_size_bytes,
        found.seeks,
        found.seekers,
    )
    assert 65536 == found.files
    assert StageFigures("put_block", "KiB/s", 1441325.0, None, 45.0, None, 42.008) == found.stage("put_block")
    assert StageFigures("getc", "KiB/s", 4357.0, None, 69.0, None, 9.299) == found.stage("getc")
    assert StageFigures("ran_del", "1/s", None, SHORT, None, SHORT, 1.024) == found.stage("ran_del")
    assert STAGES == tuple(stage.stage for stage in found.stages)


def test_plus_signs_are_absent_with_a_reason_and_never_a_number(repository: Path) -> None:
    found = result(repository, "tiny")
    short = {stage.stage for stage in found.stages if stage.rate_reason == SHORT}
    assert set(STAGES) - {"putc", "getc"} == short
    assert {None} == {found.stage(name).rate for name in short}
    assert {None} == {found.stage(name).cpu_percent for name in short}
    # The longest operation is known all the same.
    assert 0.032 == found.stage("put_block").latency_ms_max


def test_a_stage_that_was_not_run_is_told_from_one_that_was_too_short(repository: Path) -> None:
    found = result(repository, "io-only-direct")
    assert StageFigures("putc", "KiB/s", None, NOT_RUN, None, NOT_RUN, None) == found.stage("putc")
    assert StageFigures("ran_stat", "1/s", None, NOT_RUN, None, NOT_RUN, None) == found.stage("ran_stat")
    assert SHORT == found.stage("get_block").rate_reason
    assert found.files is None


def test_the_small_files_alone_have_no_file(repository: Path) -> None:
    found = result(repository, "files-only")
    assert (None, None, None) == (found.file_size_bytes, found.seeks, found.seekers)
    assert 8192 == found.files
    assert 4.871 == found.stage("seq_stat").latency_ms_max


def test_the_cpu_of_several_seekers_is_refused_and_that_of_one_is_kept(repository: Path) -> None:
    several = result(repository, "limited").stage("seeks")
    assert (58521.0, None) == (several.rate, several.cpu_percent)
    # On two processors nothing takes 209 % of one with the device between: five times about 42 %.
    assert str(several.cpu_reason) == "bonnie++ counts its CPU once for each of 5 seekers, and says 209 %"
    one = result(repository, "limited-one-seeker").stage("seeks")
    assert (45674.0, 31.0) == (one.rate, one.cpu_percent)


def test_latencies_are_read_in_their_units(repository: Path) -> None:
    found = result(repository, "limited-direct")
    assert (12.097, 119.0) == (
        found.stage("put_block").latency_ms_max,
        found.stage("rewrite").latency_ms_max,
    )
    assert 123000.0 == parse_result(line(f39="123s")).stage("put_block").latency_ms_max


def test_a_latency_below_the_clock_is_absent() -> None:
    assert parse_result(line(f39="0us")).stage("put_block").latency_ms_max is None


def test_a_rate_of_zero_is_less_than_one() -> None:
    found = parse_result(line(f26="0")).stage("seq_create")
    assert found.rate is None
    assert found.rate_reason is not None
    assert "less than one in a second" in found.rate_reason.sentence


def test_only_seeks_have_a_decimal() -> None:
    assert 170.5 == parse_result(line(f19="170.5")).stage("seeks").rate
    with pytest.raises(OutputNotUnderstood, match="the rate of put_block"):
        parse_result(line(f11="170.5"))


def test_sizes_in_mebibytes_and_gibibytes() -> None:
    assert 1536 * MIB == parse_result(line(f5="1536M")).file_size_bytes
    assert 48 * GIB == parse_result(line(f5="48G")).file_size_bytes


@pytest.mark.parametrize("name", ["direct-per-char", "full-disk", "full-disk-files", "too-small", "no-user"])
def test_a_run_that_failed_quotes_bonnie(repository: Path, name: str) -> None:
    words = {
        "direct-per-char": "disk full",
        "full-disk": "No space left on device",
        "full-disk-files": "Can't write data",
        "too-small": "double RAM",
        "no-user": "nosuchuser",
    }
    with pytest.raises(OutputNotUnderstood, match=words[name]):
        parse_result("", golden(repository, f"{name}.err"))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"f0": "1.97"}, "format 1.98"),
        ({"f1": "1.98"}, "version 2.00"),
        ({"f1": "2.01"}, "version 2.00"),
        ({"f4": ""}, "a seed"),
        ({"f4": "/dev/random"}, "a seed"),
        ({"f5": "1T"}, "size of the file"),
        ({"f9": "+++++"}, "putc that are both"),
        ({"f10": "+++"}, "putc that are both"),
        ({"f9": ""}, "putc that are both"),
        ({"f9": "++++", "f10": "+++"}, "putc"),
        ({"f11": "-5"}, "the rate of put_block"),
        ({"f11": "1e5"}, "the rate of put_block"),
        ({"f11": "nan"}, "the rate of put_block"),
        ({"f11": "١٢"}, "the rate of put_block"),
        ({"f12": "4.5"}, "the CPU share of put_block"),
        ({"f19": "170.55"}, "the rate of seeks"),
        ({"f39": "12"}, "latency of put_block"),
        ({"f39": "12ns"}, "latency of put_block"),
        ({"f39": "1.5ms"}, "latency of put_block"),
        ({"f9": "", "f10": ""}, "no latency of putc"),
    ],
)
def test_a_field_that_does_not_fit_is_refused_by_name(changed: dict[str, str], words: str) -> None:
    with pytest.raises(OutputNotUnderstood, match=words):
        parse_result(line(**changed))


def test_the_wrong_number_of_lines_or_fields_is_refused() -> None:
    for text in (line() + "\n" + line(), line() + ",", line().rsplit(",", 1)[0], "", "\n"):
        with pytest.raises(OutputNotUnderstood):
            parse_result(text)
    # bonnie++ ends its line; several runs in one are no run.
    assert 7 == parse_result(line() + "\n").seed


def printed(value: float) -> str:
    """A latency as print_latency of bon_time.cpp writes it, in seconds."""
    if value > 99.999999:
        return f"{int(value)}s"
    if value > 0.099999:
        return f"{int(value * 1e3)}ms"
    return f"{int(value * 1e6)}us"


@settings(deadline=None)
@given(st.floats(1e-6, 1e5), st.sampled_from(STAGES))
def test_a_latency_is_read_back_to_the_digits_that_were_printed(latency_s: float, stage: str) -> None:
    text = printed(latency_s)
    assume(text != "0us")
    place = f"f{38 + STAGES.index(stage)}"
    found = parse_result(line(**{place: text})).stage(stage).latency_ms_max
    assert found is not None
    coarsest_ms = 1000.0 if text[-2].isdigit() else 1.0 if text.endswith("ms") else 1e-3
    assert found <= latency_s * 1e3 * (1 + 1e-9)
    assert latency_s * 1e3 < found + coarsest_ms * (1 + 1e-6)


@settings(deadline=None)
@given(st.integers(1, 2**31 - 1), st.integers(0, 20000), st.sampled_from(STAGES))
def test_whole_numbers_come_back_in_their_stage_and_in_no_other(rate: int, cpu: int, stage: str) -> None:
    place = 9 + 2 * STAGES.index(stage) if STAGES.index(stage) < 6 else 26 + 2 * (STAGES.index(stage) - 6)
    plain, found = (
        parse_result(line()),
        parse_result(line(**{f"f{place}": str(rate), f"f{place + 1}": str(cpu)})),
    )
    assert (float(rate), float(cpu)) == (found.stage(stage).rate, found.stage(stage).cpu_percent)
    assert [s for s in plain.stages if s.stage != stage] == [s for s in found.stages if s.stage != stage]


@settings(deadline=None)
@given(
    st.text()
    | st.lists(st.text(alphabet="0123456789+.umsG,", max_size=6), min_size=50, max_size=50).map(",".join)
)
def test_any_text_is_understood_or_refused(text: str) -> None:
    try:
        found = parse_result(text)
    except OutputNotUnderstood:
        return
    assert found.version.startswith("2.00")


@settings(deadline=None)
@given(st.integers(0, 49), st.text(alphabet="0123456789+.-umsGM eEnaif", max_size=7))
def test_one_changed_field_never_makes_a_figure_without_its_reason(place: int, text: str) -> None:
    try:
        found = parse_result(line(**{f"f{place}": text}))
    except OutputNotUnderstood:
        return
    for stage in found.stages:
        assert (stage.rate is None) == (stage.rate_reason is not None)
        assert (stage.cpu_percent is None) == (stage.cpu_reason is not None)
        assert stage.rate is None or stage.rate > 0
