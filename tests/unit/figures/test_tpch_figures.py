from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.runs.raw_tpch_run import (
    BETWEEN_S,
    DATABASE_BYTES,
    MONOTONIC,
    TIMEOUT_S,
    WALL,
    RawTpch,
    phase_seconds,
    query_seconds,
    raw_tpch_record,
    timed_items,
    write_raw_tpch,
)
from tests.support.studies.synthetic_tpch import TpchRecipe, synthetic_tpch_study

from bedplate.figures.run import make_figures
from bedplate.model import codec
from bedplate.model.cell import Dataset
from bedplate.model.course import COURSE_COLUMNS
from bedplate.model.figure import Figure, RunFigures, Status
from bedplate.model.levels import Levels
from bedplate.model.reason import sentences
from bedplate.model.visit import Outcome, Phase, TimedItem, Validity
from bedplate.workloads.tpch.figures import (
    missing_parts,
    power,
    power_figures,
    throughput,
    throughput_figures,
)
from bedplate.workloads.tpch.model import LOAD, LOAD_PHASES, POWER, QUERY_NUMBERS, THROUGHPUT

ALL_S = {query: query_seconds(query) for query in QUERY_NUMBERS}


def made(directory: Path, raw: RawTpch) -> RunFigures:
    return make_figures(*write_raw_tpch(directory, raw))


def rows(figures: Iterable[Figure]) -> dict[tuple[str, str, str], Figure]:
    """By phase, item and metric; a row that comes twice is an error."""
    found: dict[tuple[str, str, str], Figure] = {}
    for figure in figures:
        key = (figure.phase, figure.item, figure.metric)
        assert key not in found, key
        found[key] = figure
    return found


def value(figures: RunFigures, metric: str, phase: str = "measure", item: str = "") -> float | None:
    return rows(figures.figures)[phase, item, metric].value


def reason(figures: RunFigures, metric: str) -> str:
    figure = rows(figures.figures)["measure", "", metric]
    assert (Status.ABSENT, None) == (figure.status, figure.value)
    assert figure.reason is not None
    return figure.reason.sentence


def test_a_load_has_its_phases_its_tables_and_its_sums(tmp_path: Path) -> None:
    found = made(tmp_path, RawTpch(kind=LOAD))
    assert (Validity.VALID, ()) == (found.validity, found.validity_reasons)
    assert list(LOAD_PHASES) == [row.phase for row in found.figures if row.metric == "phase_s"]
    # The third phase takes 4 s; counters grow by 10 MiB, 2 MiB, 4 flushes and 0.7 s a second.
    expected = {
        "phase_s": 4.0,
        "device_read_mib": 40.0,
        "device_written_mib": 8.0,
        "device_flushes": 16.0,
        "server_cpu_s": 2.8,
        "temporary_mib": 4.0,
    }
    assert expected == pytest.approx({name: value(found, name, "foreign keys") for name in expected})
    assert value(found, "table_load_s", "load", "lineitem") == 1.5
    assert value(found, "table_load_s", "primary keys", "lineitem_pkey") == 1.0
    assert value(found, "load_total_s") == pytest.approx(2 + 3 + 4 + 5 + 6 + 7)
    assert (200.0, 64.0) == (value(found, "database_mib"), value(found, "wal_mib"))
    assert (0.5, 3.0) == (value(found, "mkfs_s"), value(found, "cluster_s"))
    assert value(found, "device_read_mib") == pytest.approx(10 * (27 + 5 * BETWEEN_S))


def test_a_pass_has_its_queries_in_the_order_they_ran(tmp_path: Path) -> None:
    found = made(tmp_path, RawTpch())
    assert (Validity.VALID, ()) == (found.validity, found.validity_reasons)
    queries = [row.item for row in found.figures if row.metric == "query_s"]
    assert [str(query) for query in reversed(QUERY_NUMBERS)] == queries
    assert {2} == {row.pass_ for row in found.figures}
    assert value(found, "query_s", "queries", "14") == 8.0
    assert value(found, "device_read_mib", "queries", "14") == pytest.approx(80.0)
    assert value(found, "temporary_mib", "queries", "14") == pytest.approx(8.0)
    assert value(found, "queries_total_s") == pytest.approx(sum(ALL_S.values()))
    assert value(found, "queries_completed") == 22
    assert value(found, "tpch_power") == power(ALL_S, 1.0).value
    assert value(found, "shared_buffers_hit_ratio") == pytest.approx(0.9)
    # 10 MiB a second from the device, 20 MiB a second asked for.
    assert value(found, "page_cache_hit_ratio") == pytest.approx(0.5)
    assert value(found, "device_busy_share") == pytest.approx(0.5)
    assert value(found, "dirty_mib_max") == pytest.approx(32.0)
    assert found.measure_start_wall_s == pytest.approx(WALL)
    assert found.duration_s == pytest.approx(sum(ALL_S.values()) + 21 * BETWEEN_S)


def test_the_scale_factor_scales_power(tmp_path: Path) -> None:
    found = made(tmp_path, RawTpch(scale_factor=10.0))
    assert value(found, "tpch_power") == power(ALL_S, 10.0).value


def test_a_timeout_is_censored_and_no_failure(tmp_path: Path) -> None:
    found = made(tmp_path, RawTpch(stopped=("20",)))
    assert (Outcome.COMPLETED, Validity.VALID) == (found.outcome, found.validity)
    figure = rows(found.figures)["queries", "20", "query_s"]
    assert (Status.CENSORED, None, TIMEOUT_S) == (figure.status, figure.value, figure.limit)
    (total,) = (row for row in found.figures if row.metric == "queries_total_s")
    assert (Status.CENSORED, None) == (total.status, total.value)
    assert total.limit == pytest.approx(sum(ALL_S.values()) - ALL_S[20] + TIMEOUT_S)
    assert value(found, "queries_completed") == 21
    assert "query 20" in reason(found, "tpch_power")


def test_streams_have_their_queries_and_one_interval(tmp_path: Path) -> None:
    found = made(tmp_path, RawTpch(kind=THROUGHPUT, streams=3))
    assert (Validity.VALID, ()) == (found.validity, found.validity_reasons)
    assert [f"stream {i}" for i in (1, 2, 3) for _ in QUERY_NUMBERS] == [
        row.phase for row in found.figures if row.metric == "query_s"
    ]
    interval_s = 2 * sum(ALL_S.values())
    assert value(found, "streams_s") == pytest.approx(interval_s)
    assert value(found, "queries_completed") == 66
    assert value(found, "tpch_throughput") == throughput(3, interval_s, 1.0).value
    # Streams run at once: no counter is one query's.
    assert {"query_s"} == {row.metric for row in found.figures if row.item}


def test_throughput_is_absent_where_a_stream_was_stopped(tmp_path: Path) -> None:
    found = made(tmp_path, RawTpch(kind=THROUGHPUT, stopped=("3", "4")))
    assert found.validity is Validity.VALID
    assert value(found, "queries_completed") == 40
    assert (
        f"stream 1 was stopped at the limit of {TIMEOUT_S:g} s in query 3, 4; stream 2 was stopped"
        in reason(found, "tpch_throughput")
    )
    assert value(found, "streams_s") is not None


def test_a_run_that_failed_has_its_course_and_no_figures(tmp_path: Path) -> None:
    directory, run = write_raw_tpch(tmp_path, RawTpch(outcome=Outcome.FAILED))
    found = make_figures(directory, run)
    assert (Outcome.FAILED, ("query 5: its answer differs",)) == (found.outcome, sentences(found.reasons))
    assert (Validity.UNKNOWN, ()) == (found.validity, found.figures)
    assert found.duration_s is not None
    assert (run / "course.parquet").exists()
    assert not (run / "course.jsonl").exists()


def test_a_run_that_never_began_says_so(tmp_path: Path) -> None:
    raw = RawTpch(outcome=Outcome.NOT_RUN, phases=(), items=())
    directory, run = write_raw_tpch(tmp_path, raw)
    found = make_figures(directory, run)
    assert (Outcome.NOT_RUN, (), None) == (found.outcome, found.figures, found.duration_s)
    assert ("nothing was measured",) == sentences(found.validity_reasons)
    assert not (run / "course.parquet").exists()


def test_the_course_names_the_phase_of_every_second(tmp_path: Path) -> None:
    seconds = {"query 14": 2.5, "query 2": 0.2, "query 9": 0.1, "query 20": 3.0}
    directory, run = write_raw_tpch(tmp_path, RawTpch(seconds=seconds))
    make_figures(directory, run)
    course = pl.read_parquet(run / "course.parquet")
    assert list(COURSE_COLUMNS) == course.columns
    # It begins at .75 of a wall-clock second: second 0 is that one.
    assert list(range(7)) == course["second"].to_list()
    assert ["query 14"] * 3 + ["query 20"] * 4 == course["phase"].to_list()
    assert course["tps"].is_null().all()
    inner = course.filter(pl.col("second").is_between(1, 5))["device_read_mib_per_s"]
    assert inner.to_list() == pytest.approx([10.0] * 5)


def test_readings_at_the_ends_of_phases_are_part_of_the_course(tmp_path: Path) -> None:
    """A pass of less than a second lies between two samples of the sampler."""
    seconds = {"query 14": 0.3, "query 2": 0.3, "query 9": 0.3}
    directory, run = write_raw_tpch(tmp_path, RawTpch(seconds=seconds))
    (run / "course.jsonl").write_text("")
    make_figures(directory, run)
    course = pl.read_parquet(run / "course.parquet")
    assert ["query 14", "query 9"] == course["phase"].to_list()
    # From .75 of the first second to .75 of the next: only that is covered for the half of a second.
    assert course["device_read_mib_per_s"].to_list() == [None, pytest.approx(10.0)]


def test_a_stepped_wall_clock_moves_no_phase_and_is_told(tmp_path: Path) -> None:
    steady, stepped = tmp_path / "steady", tmp_path / "stepped"
    found = made(stepped, RawTpch(wall_step_s=-3600.0))
    made(steady, RawTpch())
    assert Validity.SUSPECT is found.validity
    assert "stepped by -3600.000 s" in found.validity_reasons[0].sentence
    courses = [
        pl.read_parquet(next(path.glob("runs/*/course.parquet"))).select("second", "phase")
        for path in (steady, stepped)
    ]
    assert courses[0].equals(courses[1])


def test_checkpoints_are_placed_within_the_run(tmp_path: Path) -> None:
    log = (
        f"{WALL - 9:.3f} 7 checkpointer LOG:  checkpoint starting: immediate force wait\n"
        f"{WALL - 8:.3f} 7 checkpointer LOG:  checkpoint complete: wrote 1\n"
        f"{WALL + 20:.3f} 7 checkpointer LOG:  checkpoint starting: immediate force wait\n"
        f"{WALL + 26:.3f} 7 checkpointer LOG:  checkpoint complete: wrote 9\n"
    )
    (window,) = made(tmp_path, RawTpch(kind=LOAD, server_log=log)).windows
    assert window.kind == "requested"
    assert (window.start_s, window.end_s) == pytest.approx((20.0, 26.0), abs=0.01)


COLD = RawTpch(state="cold", pass_number=1)
SUSPECT: dict[str, tuple[RawTpch, str]] = {
    "from a cache": (
        replace(COLD, growth={"device.read_sectors": 100.0}),
        "of a database of 200 MiB: it was in a cache",
    ),
    "nothing read, though queries were stopped": (
        replace(COLD, growth={"device.read_sectors": 0.0}, stopped=("1",)),
        "a cold pass read 0",
    ),
    "never made cold": (replace(COLD, facts={"made_cold": False}), "does not say"),
    "a query is missing": (RawTpch(items=timed_items(RawTpch())[1:]), "query 22 is not in the record"),
    "a query comes twice": (
        RawTpch(items=(*timed_items(RawTpch()), TimedItem("queries", "7", 3.0))),
        "query 7 is in the record 2 times",
    ),
    "a query without an end": (
        RawTpch(items=(*timed_items(RawTpch())[1:], TimedItem("queries", "22", None))),
        "query 22 has no time",
    ),
    "a stream is missing": (
        RawTpch(kind=THROUGHPUT, items=timed_items(RawTpch(kind=THROUGHPUT))[:22]),
        "query 1 of stream 2 is not in the record; query 2 of",
    ),
    "a phase is missing": (
        RawTpch(kind=LOAD, seconds=dict.fromkeys(LOAD_PHASES[:-1], 1.0)),
        "the phase 'checkpoint' is not in the record",
    ),
    "kernel": (RawTpch(kernel_messages=("I/O error",)), "1 warning during the visit"),
    "crash": (
        RawTpch(server_log=f"{WALL + 9:.3f} 7 client backend PANIC:  no space\n"),
        "first PANIC: no space",
    ),
    "steal": (RawTpch(growth={"cpu.steal_s": 1.0}), "a hypervisor took 33.3 %"),
}
FINE: dict[str, RawTpch] = {
    "cold": COLD,
    "a warm pass reads nothing": RawTpch(growth={"device.read_sectors": 0.0}),
    "little was read, as queries were stopped": replace(
        COLD, growth={"device.read_sectors": 100.0}, stopped=("1",)
    ),
    "a session's error is no broken server": RawTpch(
        server_log=f"{WALL + 9:.3f} 7 client backend ERROR:  canceling statement due to statement timeout\n"
    ),
    "the server was stopped before the cold pass": replace(
        COLD, server_log=f"{WALL - 2:.3f} 7 client backend FATAL:  terminating connection\n"
    ),
}


@pytest.mark.parametrize("name", SUSPECT)
def test_a_rule_speaks_with_its_numbers(tmp_path: Path, name: str) -> None:
    raw, words = SUSPECT[name]
    found = made(tmp_path, raw)
    assert (Validity.SUSPECT, 1) == (found.validity, len(found.validity_reasons)), found.validity_reasons
    assert words in found.validity_reasons[0].sentence


@pytest.mark.parametrize("name", FINE)
def test_a_sound_run_is_valid(tmp_path: Path, name: str) -> None:
    found = made(tmp_path, FINE[name])
    assert (Validity.VALID, ()) == (found.validity, found.validity_reasons)


def test_the_limit_of_a_cold_pass_is_a_tenth_of_the_database(tmp_path: Path) -> None:
    length_s = sum(phase_seconds(COLD).values()) + 21 * BETWEEN_S
    least = DATABASE_BYTES / 10 / 512 / length_s
    for share, expected in ((0.99, Validity.SUSPECT), (1.01, Validity.VALID)):
        raw = replace(COLD, growth={"device.read_sectors": least * share})
        assert expected is made(tmp_path / str(share), raw).validity


def test_a_missing_course_or_log_leaves_the_run_unknown(tmp_path: Path) -> None:
    directory, run = write_raw_tpch(tmp_path, RawTpch())
    (directory / "logs/server.log").unlink()
    found = make_figures(directory, run)
    assert found.validity is Validity.UNKNOWN
    assert "checkpoints are not known" in found.validity_reasons[-1].sentence
    assert value(found, "query_s", "queries", "14") == 8.0


def test_counters_that_were_not_read_are_absent_and_times_stay(tmp_path: Path) -> None:
    found = made(tmp_path, RawTpch(phase_counters=()))
    figure = rows(found.figures)["queries", "14", "device_read_mib"]
    assert (Status.ABSENT, None) == (figure.status, figure.value)
    assert value(found, "query_s", "queries", "14") == 8.0
    assert value(found, "device_read_mib") is not None


def test_a_counter_that_ran_backwards_is_absent(tmp_path: Path) -> None:
    found = made(tmp_path, RawTpch(growth={"server.cpu_s": -1.0}))
    assert "ran backwards" in reason(found, "server_cpu_s")


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_what_is_no_length_of_time_is_no_time(tmp_path: Path, seconds: float) -> None:
    items = (*timed_items(RawTpch())[1:], TimedItem("queries", "22", seconds))
    found = made(tmp_path, RawTpch(items=items))
    assert rows(found.figures)["queries", "22", "query_s"].status is Status.ABSENT
    assert "query 22" in reason(found, "tpch_power")
    assert "query 22" in reason(found, "queries_total_s")


def test_a_load_without_a_phase_has_no_total(tmp_path: Path) -> None:
    found = made(tmp_path, RawTpch(kind=LOAD, seconds=dict.fromkeys(LOAD_PHASES[:-1], 1.0)))
    assert "checkpoint" in reason(found, "load_total_s")


def test_a_journal_device_counts_for_what_was_written(tmp_path: Path) -> None:
    growth = {"journal_device.written_sectors": 2048.0, "journal_device.flushes": 6.0}
    found = made(tmp_path, RawTpch(kind=LOAD, growth=growth))
    assert value(found, "device_written_mib", "load") == pytest.approx(2 * (2.0 + 1.0))
    assert value(found, "device_flushes", "load") == pytest.approx(2 * (4.0 + 6.0))


def test_a_kind_that_is_not_known_is_told(tmp_path: Path) -> None:
    found = made(tmp_path, RawTpch(kind="refresh", seconds={"x": 5.0}, items=()))
    assert found.validity is Validity.SUSPECT
    assert "the kind of the run is 'refresh'" in found.validity_reasons[0].sentence


@settings(deadline=None)
@given(
    st.lists(
        st.builds(
            TimedItem,
            st.sampled_from(("queries", "stream 1", "stream 2", "load")),
            st.sampled_from([str(query) for query in range(24)] + ["", "x", "01", "٣"]),
            st.none() | st.floats(-1, 1e6),
            st.none() | st.floats(0.001, 1e6),
        ),
        max_size=60,
    ),
    st.sampled_from((POWER, THROUGHPUT)),
)
def test_any_items_make_figures_once_each_or_reasons(items: list[TimedItem], kind: str) -> None:
    record = replace(raw_tpch_record(RawTpch(kind=kind)), items=tuple(items))
    dataset = Dataset("tpch", Levels(scale_factor=0.1))
    figures = (
        power_figures(record, dataset, pass_=1) if kind == POWER else throughput_figures(record, dataset)
    )
    found = rows(figures)
    for figure in found.values():
        assert (figure.status is Status.MEASURED) == (figure.value is not None)
        assert figure.value is None or math.isfinite(figure.value)
        assert bool(figure.reason) == (figure.status is Status.ABSENT)
    score = found["measure", "", "tpch_power" if kind == POWER else "tpch_throughput"]
    times = [row for row in found.values() if row.metric == "query_s" and row.status is Status.MEASURED]
    whole = len(times) == 22 * (1 if kind == POWER else 2)
    assert (score.status is Status.MEASURED) == whole
    assert whole or any(item.limit_s for item in items) or missing_parts(record)


def test_phases_that_touch_or_overlap_give_each_second_once(tmp_path: Path) -> None:
    phases = tuple(
        Phase(f"query {i}", MONOTONIC + at, MONOTONIC + at + 0.3, WALL + at, WALL + at + 0.3)
        for i, at in enumerate(range(3), start=1)
    )
    directory, run = write_raw_tpch(tmp_path, RawTpch(phases=(*phases, replace(phases[-1], name="query 9"))))
    make_figures(directory, run)
    seconds = pl.read_parquet(run / "course.parquet")["second"].to_list()
    assert sorted(set(seconds)) == seconds


@pytest.mark.parametrize("kind", [LOAD, POWER, THROUGHPUT])
def test_the_synthetic_study_has_the_rows_that_are_made(tmp_path: Path, kind: str) -> None:
    """What the reading side is tested on must be what it gets."""
    stopped = () if kind == LOAD else ("20",)
    ours = made(tmp_path / "raw", RawTpch(kind=kind, stopped=stopped, state="cold", pass_number=1))
    recipe = TpchRecipe(
        filesystems=("ext4",), database_blocks=(8192,), repetitions=1, timeouts=((0, 20),), failed=()
    )
    study = synthetic_tpch_study(tmp_path / "study", recipe)
    name = "cold" if kind == POWER else kind
    (path,) = study.glob(f"visits/*/*/1.1/runs/*-{name}-*/run.json")
    theirs = codec.read(RunFigures, path)

    def shape(figures: RunFigures) -> set[tuple[str, str, int, str, Status]]:
        return {
            # Which tables and keys a load has is not the maker's to know.
            (row.phase, "" if row.metric == "table_load_s" else row.item, row.pass_, row.metric, row.status)
            for row in figures.figures
            if row.metric != "table_load_s" or row.phase in ("load", "primary keys")
        }

    assert shape(ours) == shape(theirs)
    assert pl.read_parquet(path.with_name("course.parquet")).columns == list(COURSE_COLUMNS)
