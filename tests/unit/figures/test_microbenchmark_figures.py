"""Figures of LMDB's tests, from the driver's own documents and from counters."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.support.studies import synthetic_microbenchmark
from tests.support.studies.synthetic_microbenchmark import GOLDEN, RawTests, document, spec_of, write_visit

from bedplate.figures.facts import cache_drops_of
from bedplate.figures.run import make_figures
from bedplate.model import codec
from bedplate.model.cell import ClusterLevels, RunSpec
from bedplate.model.course import COURSE_COLUMNS
from bedplate.model.figure import Figure, RunFigures, Status
from bedplate.model.levels import Levels
from bedplate.model.reason import sentences
from bedplate.model.visit import Outcome, RunRecord, Sample, Validity
from bedplate.workloads.microbenchmark.figures import must_read_bytes, parse_document
from bedplate.workloads.microbenchmark.model import DOCUMENTS, TESTS, WORKLOAD, OperationsDone, write_progress

WRITE, COLD, WARM = (RawTests(spec_of(name)) for name in ("write", "read-cold", "read-warm"))
ASYNCHRONOUS = replace(WRITE.cell, cluster=ClusterLevels(settings=Levels(sync="nosync")))


def made(directory: Path, raw: RawTests) -> RunFigures:
    visit = write_visit(directory, (raw,))
    return make_figures(visit, next((visit / "runs").iterdir()))


def rows(found: RunFigures) -> dict[tuple[str, str, str], Figure]:
    """By phase, item and metric; a row that comes twice is an error."""
    by_key: dict[tuple[str, str, str], Figure] = {}
    for row in found.figures:
        key = (row.phase, row.item, row.metric)
        assert key not in by_key, key
        by_key[key] = row
    return by_key


def value(found: RunFigures, metric: str, test: str) -> float:
    row = rows(found)[TESTS, test, metric]
    assert row.value is not None, row.reason
    return row.value


def golden(test: str) -> dict[str, int]:
    (found,) = [one for one in GOLDEN["tests"] if one["test"] == test]
    assert isinstance(found, dict)
    return found


def test_every_test_has_its_speed_its_time_and_its_bytes(tmp_path: Path) -> None:
    found = made(tmp_path, WRITE)
    assert (Outcome.COMPLETED, Validity.VALID, ()) == (found.outcome, found.validity, found.validity_reasons)
    for test in WRITE.tests:
        one = golden(test)
        seconds = one["elapsed_ns"] / 1e9
        assert value(found, "test_operations_per_s", test) == pytest.approx(one["operations"] / seconds)
        assert value(found, "test_us_per_operation", test) == pytest.approx(1e6 * seconds / one["operations"])
        assert value(found, "test_mib_per_s", test) == pytest.approx(one["bytes"] / seconds / 2**20)
        assert value(found, "test_cpu_us_per_operation", test) == pytest.approx(
            (one["cpu_user_us"] + one["cpu_system_us"]) / one["operations"]
        )
        assert value(found, "test_size_mib", test) == one["data_size_bytes"] / 2**20
        assert value(found, "test_space_mib", test) == one["data_allocated_bytes"] / 2**20
        assert value(found, "device_flushes", test) > 0
    total = rows(found)["measure", "", "tests_s"].value
    assert total == pytest.approx(sum(golden(test)["elapsed_ns"] for test in WRITE.tests) / 1e9)
    assert 0.5 == rows(found)["measure", "", "mkfs_s"].value


def test_a_percentile_that_needs_more_than_were_timed_is_absent(tmp_path: Path) -> None:
    found = rows(made(tmp_path, WRITE))
    # Three batches: the largest and the mean are known, no percentile but the median.
    batch = {metric: row for (_, test, metric), row in found.items() if test == "fillseqbatch"}
    assert batch["test_latency_us_p50"].status is Status.MEASURED
    assert batch["test_latency_us_p99"].status is Status.ABSENT
    assert str(batch["test_latency_us_p99"].reason) == "3 were timed, and this percentile needs 100"
    assert batch["test_latency_us_max"].value is not None
    single = {metric: row for (_, test, metric), row in found.items() if test == "fillseq"}
    percentiles = [single[f"test_latency_us_{name}"].value for name in ("p50", "p95", "p99", "p99_9", "max")]
    assert None not in percentiles
    assert sorted(percentiles) == percentiles  # type: ignore[type-var]


def test_a_walk_has_no_latency_and_a_random_read_has_what_it_found(tmp_path: Path) -> None:
    found = rows(made(tmp_path, COLD))
    assert [] == [metric for _, test, metric in found if test == "readseq" and "latency" in metric]
    assert 1.0 == found[TESTS, "readrandom", "test_found_share"].value
    assert (TESTS, "readseq", "test_found_share") not in found
    assert (TESTS, "readseq", "test_flush_s") not in found
    assert {1} == {row.pass_ for row in found.values() if row.item}


def test_readwhilewriting_has_its_writer(tmp_path: Path) -> None:
    found = made(tmp_path, WARM)
    assert value(found, "test_writer_operations_per_s", "readwhilewriting") > 0
    assert {2} == {row.pass_ for row in found.figures if row.item}


def test_what_is_a_servers_is_not_missed(tmp_path: Path) -> None:
    metrics = {row.metric for row in made(tmp_path, WRITE).figures}
    assert {"device_written_mib", "server_cpu_s", "machine_cpu_share", "dirty_mib_mean"} <= metrics
    assert not {"temporary_mib", "shared_buffers_hit_ratio", "page_cache_hit_ratio", "tps"} & metrics


@pytest.mark.parametrize(
    ("share", "validity"), [(0.09, Validity.SUSPECT), (0.0, Validity.SUSPECT), (0.3, Validity.VALID)]
)
def test_a_cold_test_must_have_read_from_the_device(tmp_path: Path, share: float, validity: Validity) -> None:
    found = made(tmp_path, replace(COLD, device_share=share))
    assert validity is found.validity
    if validity is Validity.SUSPECT:
        assert "a cache answered in a cold pass: readrandom read" in found.validity_reasons[0].sentence
        assert "readreverse" in found.validity_reasons[0].sentence
    # A warm one may have been answered by whatever.
    assert Validity.VALID is made(tmp_path / "warm", replace(WARM, device_share=0.0)).validity


def test_a_pass_that_was_not_made_cold_is_none(tmp_path: Path) -> None:
    found = made(tmp_path, replace(COLD, facts={"made_cold": False}))
    assert Validity.SUSPECT is found.validity
    assert "mounted anew" in found.validity_reasons[0].sentence


def test_caches_that_others_dropped_are_told_from_those_that_bedplate_drops(tmp_path: Path) -> None:
    def dropped(raw: RawTests, before: float, after: float) -> int | None:
        """With so many drops before the second test begins and when it has ended."""
        visit = write_visit(tmp_path / f"{raw.spec.name}-{after}", (raw,))
        record = codec.read(RunRecord, next((visit / "runs").iterdir()) / "record.json")
        first, second, *others = record.phase_counters

        def having(sample: Sample, drops: float) -> Sample:
            return replace(sample, values={**sample.values, "memory.cache_drops": drops})

        phases = (
            replace(first, before=having(first.before, 3.0), after=having(first.after, 3.0)),
            replace(second, before=having(second.before, before), after=having(second.after, after)),
            *(
                replace(one, before=having(one.before, after), after=having(one.after, after))
                for one in others
            ),
        )
        return cache_drops_of(
            replace(record, phase_counters=phases, before=phases[0].before, after=phases[-1].after)
        )

    # Before each cold test bedplate itself drops them.
    assert (0, 2) == (dropped(COLD, 4.0, 4.0), dropped(COLD, 4.0, 6.0))
    assert (0, 1, 3) == (dropped(WARM, 3.0, 3.0), dropped(WARM, 4.0, 4.0), dropped(WARM, 4.0, 6.0))
    visit = write_visit(tmp_path / "before it was counted", (WARM,))
    record = codec.read(RunRecord, next((visit / "runs").iterdir()) / "record.json")
    assert cache_drops_of(record) is None


def test_what_a_test_must_read_is_no_more_than_its_entries_and_of_a_large_one_a_page() -> None:
    large = parse_document(json.dumps(document(RawTests(spec_of("read-cold-100K")), "readseq100K")))
    assert 3 * 4096 == must_read_bytes(large.tests[0], large.options)
    small = parse_document(json.dumps(document(COLD, "readseq")))
    assert 3000 * 116 == must_read_bytes(small.tests[0], small.options)
    # Four readers, each of as many reads as there are entries, read the same entries.
    many = parse_document(json.dumps(document(WARM, "readwhilewriting")))
    assert (6000, 3000 * 116) == (many.tests[0].found, must_read_bytes(many.tests[0], many.options))


def test_a_test_that_the_sync_mode_does_not_have_is_absent_with_the_reason(tmp_path: Path) -> None:
    raw = replace(WRITE, cell=ASYNCHRONOUS, left_out=("fillrandsync", "fillseqsync"))
    found = made(tmp_path, raw)
    assert Validity.VALID is found.validity
    row = rows(found)[TESTS, "fillrandsync", "test_operations_per_s"]
    assert (Status.ABSENT, None) == (row.status, row.value)
    assert str(row.reason) == "it commits synchronously, and sync = nosync does not"
    assert (TESTS, "fillrandsync", "device_flushes") not in rows(found)
    # The sum of the others would be less than that of a cell which has them all.
    total = rows(found)["measure", "", "tests_s"]
    assert (Status.ABSENT, None) == (total.status, total.value)
    assert str(total.reason) == (
        "fillrandsync was left out: sync = nosync; fillseqsync was left out: sync = nosync"
    )


def test_what_fewer_tests_did_is_no_figure_of_the_run(tmp_path: Path) -> None:
    def whole(found: RunFigures) -> dict[str, Figure]:
        return {metric: row for (_, item, metric), row in rows(found).items() if not item}

    complete = whole(made(tmp_path / "all", WRITE))
    fewer = made(tmp_path / "fewer", replace(WRITE, cell=ASYNCHRONOUS, left_out=("fillrandsync",)))
    assert complete.keys() == whole(fewer).keys()
    # The file system was made anew all the same, and the machine was the run's own or was not.
    kept = {"mkfs_s", "steal_share", "watching_cpu_share", "others_cpu_share"}
    assert kept == {metric for metric, row in whole(fewer).items() if row.status is Status.MEASURED}
    for metric in (
        "device_written_mib",
        "device_flushes",
        "server_cpu_s",
        "device_busy_share",
        "dirty_mib_max",
    ):
        assert complete[metric].value is not None
        assert "fillrandsync was left out: sync = nosync" == str(whole(fewer)[metric].reason)
    # A test that all cells have keeps its own.
    assert value(fewer, "device_flushes", "fillseq") > 0


@pytest.mark.parametrize("text", [None, "", "{}", '{"format_version": 1'])
def test_a_document_that_cannot_be_read_leaves_the_others(tmp_path: Path, text: str | None) -> None:
    found = made(tmp_path, replace(WRITE, documents={"fillseq": text}))
    assert Validity.UNKNOWN is found.validity
    assert any("fillseq" in reason.sentence for reason in found.validity_reasons)
    assert rows(found)[TESTS, "fillseq", "test_operations_per_s"].status is Status.ABSENT
    assert value(found, "test_operations_per_s", "fillrandom") > 0


def test_a_test_that_is_not_in_the_record_is_missed(tmp_path: Path) -> None:
    visit = write_visit(tmp_path, (WRITE,))
    run = next((visit / "runs").iterdir())
    record = json.loads((run / "record.json").read_text())
    record["items"] = [item for item in record["items"] if item["item"] != "overwrite"]
    (run / "record.json").write_text(json.dumps(record))
    found = make_figures(visit, run)
    assert (Validity.SUSPECT, ("overwrite is not in the record",)) == (
        found.validity,
        sentences(found.validity_reasons),
    )
    assert str(rows(found)["measure", "", "tests_s"].reason) == "overwrite is not in the record"


def test_a_run_that_failed_has_its_course_and_no_figures(tmp_path: Path) -> None:
    visit = write_visit(tmp_path, (replace(WRITE, outcome=Outcome.FAILED),))
    run = next((visit / "runs").iterdir())
    found = make_figures(visit, run)
    assert (Outcome.FAILED, Validity.UNKNOWN, ()) == (found.outcome, found.validity, found.figures)
    course = pl.read_parquet(run / "course.parquet")
    assert list(COURSE_COLUMNS) == course.columns
    assert "fillseqsync" in course["phase"].to_list()
    assert course["tps"].null_count() == len(course)
    assert not (run / "course.jsonl").exists()
    assert (run / DOCUMENTS / "fillseq.json").exists()


TPCB = parse_document((Path(__file__).parents[2] / "golden/microbenchmark/tpcb.json").read_text())


def of_processes(directory: Path, **changes: int) -> RunFigures:
    """Of the driver's own document of two processes, in which something is otherwise."""
    text = json.loads((Path(__file__).parents[2] / "golden/microbenchmark/tpcb.json").read_text())
    text["tests"][0] |= changes
    spec = RunSpec("tpcb", WORKLOAD, Levels(kind="write", tests="tpcb", processes=2, duration_s=1.0))
    raw = RawTests(spec, documents={"tpcb": json.dumps(text)})
    with_it = {**GOLDEN, "tests": [*GOLDEN["tests"], text["tests"][0]]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthetic_microbenchmark, "GOLDEN", with_it)
        return made(directory, raw)


def test_processes_have_the_share_of_locks_that_they_met_and_the_part_of_the_slowest(tmp_path: Path) -> None:
    (test,) = TPCB.tests
    assert test.busy is not None
    assert test.threads is not None
    found = of_processes(tmp_path)
    assert (Outcome.COMPLETED, Validity.VALID, ()) == (found.outcome, found.validity, found.validity_reasons)
    assert test.operations * 1e9 / test.elapsed_ns == value(found, "test_operations_per_s", "tpcb")
    assert test.busy / (test.busy + test.operations) == value(found, "test_busy_share", "tpcb")
    parts = [side.operations for side in test.threads]
    assert min(parts) * 2 / sum(parts) == value(found, "test_slowest_process_share", "tpcb")
    assert value(found, "test_latency_us_p99", "tpcb") > value(found, "test_latency_us_p50", "tpcb")
    assert (TESTS, "tpcb", "test_mib_per_s") not in rows(found)


def test_the_course_of_tpcb_has_the_transactions_of_each_second(tmp_path: Path) -> None:
    spec = RunSpec("tpcb", WORKLOAD, Levels(kind="write", tests="tpcb", processes=2, duration_s=1.0))
    text = (Path(__file__).parents[2] / "golden/microbenchmark/tpcb.json").read_text()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            synthetic_microbenchmark,
            "GOLDEN",
            {**GOLDEN, "tests": [*GOLDEN["tests"], *json.loads(text)["tests"]]},
        )
        visit = write_visit(tmp_path, (RawTests(spec, documents={"tpcb": text}, slower=4),))
        (run,) = (visit / "runs").iterdir()
        begun_s = synthetic_microbenchmark.MONOTONIC + 0.5
        # The second line came late; the count is of when it was said.
        told = [
            OperationsDone(begun_s + at_s + late_s, at_s, count)
            for at_s, late_s, count in ((1, 0, 100), (2, 0.4, 300), (3, 0, 330))
        ]
        write_progress(run / DOCUMENTS / "tpcb.progress.jsonl", told)
        make_figures(visit, run)
    tps = pl.read_parquet(run / "course.parquet")["tps"].to_list()
    assert [100, 150, 115] == [round(each) for each in tps[:3] if each is not None]


def test_a_process_that_waits_for_a_lock_when_the_time_is_over_makes_the_run_suspect(tmp_path: Path) -> None:
    found = of_processes(tmp_path, elapsed_ns=int(3e9))
    assert Validity.SUSPECT is found.validity
    assert (
        "tpcb took 3.0 s, and 1 s were requested: a process waited for a lock while the others were done"
        == found.validity_reasons[0].sentence
    )
