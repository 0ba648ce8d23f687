"""What the driver of the microbenchmark is told, and why a test was not done: in the driver's own documents."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.studies.synthetic_microbenchmark import RawTests, document, spec_of

from bedplate.errors import BedplateError
from bedplate.model.levels import Levels
from bedplate.model.plan import model_of
from bedplate.registry import engine_part
from bedplate.visit.cuts import BenchEngine
from bedplate.workloads.microbenchmark import model as named
from bedplate.workloads.microbenchmark.plan import BENCH_TESTS
from bedplate.workloads.microbenchmark.visit import BenchCall, read_done

GOLDEN = Path(__file__).parents[2] / "golden" / "microbenchmark"
ENGINE: BenchEngine = engine_part("lmdb", "microbenchmark")
CALL = BenchCall(
    test="fillseq",
    fresh=True,
    writes=True,
    entries=3000,
    value_bytes=100,
    levels=Levels(batch=1000, threads=2),
    settings=ENGINE.opened(Levels(), Levels(), synchronous=False, fresh=True),
    engine="LMDB",
    seed=7,
)


def call(**changes: Any) -> tuple[str, ...]:
    return replace(CALL, **changes).argv("/cache/driver", Path("/mnt/data"))


def reasons(path: Path, asked: BenchCall = CALL, *, status: int = 1, said: str = "") -> tuple[str, ...]:
    with pytest.raises(BedplateError) as failed:
        read_done(path, asked, ENGINE.remedies, status=status, message=said)
    return failed.value.reasons


def test_the_argument_list_of_a_fill() -> None:
    assert (
        "/cache/driver",
        "--directory=/mnt/data",
        "--tests=fillseq",
        "--entries=3000",
        "--value-bytes=100",
        "--batch=1000",
        "--threads=2",
        "--set=preallocation=none",
        "--set=readahead=true",
        "--set=sync=nosync",
        "--set=writemap=false",
        "--flush-after",
        "--seed=7",
    ) == call()


def test_every_setting_has_its_option() -> None:
    settings = Levels(sync="nometasync", writemap=True, readahead=False, preallocation="written")
    opened = ENGINE.opened(settings, Levels(map_bytes=2**20), synchronous=False, fresh=True)
    words = call(settings=opened, levels=Levels(batch=10, threads=4))
    for word in ("sync=nometasync", "writemap=true", "readahead=false", "preallocation=written"):
        assert f"--set={word}" in words
    assert "--set=map_bytes=1048576" in words


@pytest.mark.parametrize(("synchronous", "mode"), [(True, "full"), (False, "nosync"), (None, None)])
def test_commits_of_a_test_wait_as_it_is_called_unless_a_plan_says_how(
    *, synchronous: bool | None, mode: str | None
) -> None:
    opened = ENGINE.opened(Levels(), Levels(), synchronous=synchronous, fresh=True)
    assert mode == opened.get("sync")
    opened = ENGINE.opened(Levels(sync="mapasync"), Levels(), synchronous=synchronous, fresh=True)
    assert (mode and "mapasync") == opened.get("sync")


def test_a_test_that_keeps_the_database_preallocates_nothing_and_a_read_flushes_nothing() -> None:
    settings = ENGINE.opened(Levels(preallocation="written"), Levels(), synchronous=None, fresh=False)
    reading = call(test="readseq", fresh=False, writes=False, settings=settings)
    assert "--existing" in reading
    assert not [word for word in reading if "preallocation" in word or word == "--flush-after"]
    assert {"--existing", "--flush-after"} <= set(call(test="overwrite", fresh=False, settings=settings))


def test_a_document_gives_time_operations_and_library(tmp_path: Path) -> None:
    text = document(RawTests(spec_of("write")), "fillseq")
    path = tmp_path / "fillseq.json"
    path.write_text(json.dumps(text))
    done = read_done(path, CALL, ENGINE.remedies, status=0, message="")
    (test,) = text["tests"]
    assert (test["elapsed_ns"] / 1e9, 3000, text["library"]["version"]) == (
        done.seconds,
        done.operations,
        done.library,
    )
    assert "after its document" in reasons(path)[0]


@pytest.mark.parametrize("changed", [{"sync": "full"}, {"writemap": True}, {"readahead": False}])
def test_another_setting_than_the_one_asked_for_is_no_measurement(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    path = tmp_path / "fillseq.json"
    path.write_text(json.dumps(document(RawTests(spec_of("write")), "fillseq")))
    (reason,) = reasons(path, replace(CALL, settings=CALL.settings.updated(**changed)), status=0)
    (name,) = changed
    assert f"fillseq: {name} = {changed[name]!r} was asked for" in reason


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (
            "map-full",
            ("MDB_MAP_FULL: Environment mapsize limit reached (put, after 7000 operations)", "map_size"),
        ),
        ("value-too-large", ("MDB_BAD_VALSIZE: Unsupported size of key/DB name/data",)),
        (
            "disk-full",
            ("No space left on device (commit, after 434464 operations)", "scratch device is full"),
        ),
        ("disk-full-short-write", ("Input/output error (commit", "scratch device is full")),
        ("disk-full-writemap", ("could not be allocated (SIGBUS)", "scratch device is full")),
        ("interrupted", ("was ended by SIGTERM",)),
    ],
)
def test_a_failure_comes_in_the_librarys_own_words(name: str, parts: tuple[str, ...]) -> None:
    found = reasons(GOLDEN / f"{name}.json")
    assert found[0].startswith("fillseq: ")
    assert all(any(part in reason for reason in found) for part in parts), found
    # What is full says so, what is not does not.
    assert ("disk-full" in name) == any("scratch device is full" in reason for reason in found)


def test_a_driver_that_left_no_document_is_told_by_how_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "fillseq.json"
    path.write_text("")
    assert "fillseq: the driver was killed by SIGKILL" in reasons(path, status=-9)[0]
    assert (
        "ended with status 2: --set sync does not know 'x'"
        in reasons(path, status=2, said="--set sync does not know 'x'")[0]
    )
    assert "left no whole document" in reasons(path, status=0)[0]
    assert "cannot be read" in reasons(tmp_path / "none.json")[0]


@pytest.mark.parametrize("text", ["[]", "{}", '{"failure": null}', '{"failure": {"error": "x"}}', "nonsense"])
def test_a_document_that_is_none_is_never_a_traceback(tmp_path: Path, text: str) -> None:
    path = tmp_path / "fillseq.json"
    path.write_text(text)
    assert "fillseq: the driver left no whole document" in reasons(path, status=0)[0]


def test_the_kinds_of_tests_are_those_of_the_plan() -> None:
    write, cold, large = (spec_of(name) for name in ("write", "read-cold", "write-100K"))
    assert all(map(named.writes, (*named.tests_of(write), *named.tests_of(large))))
    assert not any(map(named.writes, named.tests_of(cold)))
    assert [True, False, True] == [model_of(spec.workload).fills(spec) for spec in (write, cold, large)]
    assert {"fillrandsync", "fillseqsync"} == set(filter(named.is_synchronous, BENCH_TESTS))
    assert {test for test in BENCH_TESTS if named.writes(test) and not named.is_fill(test)} == {
        "overwrite",
        "readwhilewriting",
    }
