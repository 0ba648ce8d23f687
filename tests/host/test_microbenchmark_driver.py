"""The microbenchmark's driver with LMDB as it is built and run: counts read back, every end that it can come to."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.tools.patience import AT_MOST_S

from bedplate.campaign.preparation import prepare_drivers
from bedplate.engines.lmdb.visit import LIBLMDB
from bedplate.host.command import Commands
from bedplate.host.native_driver import library_requirement, library_version
from bedplate.units import KIB, MIB
from bedplate.workloads.microbenchmark.figures import BenchDocument, BenchFailure, BenchTest, parse_document
from bedplate.workloads.microbenchmark.model import progress_of

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

_EVERY = (
    *("fillrandsync", "fillrandom", "fillrandbatch", "fillseqsync", "fillseq", "fillseqbatch", "overwrite"),
    *("readrandom", "readseq", "readreverse", "readwhilewriting"),
    *("fillrand100K", "readrand100K", "fillseq100K", "readseq100K"),
)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    commands = Commands()
    requirement = library_requirement(LIBLMDB, reason="the LMDB driver", commands=commands)
    if not requirement.found:
        pytest.skip(requirement.sentence)
    return Path(prepare_drivers(["microbenchmark"], ["lmdb"])["microbenchmark_lmdb"])


@pytest.fixture
def memory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bedplate-test-lmdb-", dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.fixture
def small_disk(memory: Path) -> Iterator[Path]:
    """An ext4 of 24 MiB on a loop device."""
    commands, image, target = Commands(), memory / "image", memory / "mount"
    target.mkdir()
    with image.open("xb") as file:
        file.truncate(24 * MIB)
    commands.run(["mkfs.ext4", "-q", "-F", str(image)])
    commands.run(["mount", "-o", "loop", str(image), str(target)])
    try:
        yield target
    finally:
        commands.run(["umount", str(target)])


Bench = Callable[..., tuple[int, BenchDocument]]


@pytest.fixture
def bench(driver: Path) -> Bench:
    """Runs the driver to its end; gives its status and its document."""

    def run(folder: Path, *words: str | int) -> tuple[int, BenchDocument]:
        argv = [str(driver), "--directory", str(folder), *map(str, words)]
        done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=AT_MOST_S)
        return done.returncode, parse_document(done.stdout)

    return run


def entries_in(folder: Path) -> int:
    """The number of entries as LMDB's own tool reads it."""
    if shutil.which("mdb_stat") is None:
        pytest.skip("mdb_stat is missing (package lmdb-utils): the database is read back with it")
    text = subprocess.run(["mdb_stat", str(folder)], check=True, capture_output=True, text=True).stdout
    found = re.search(r"^\s*Entries: (\d+)$", text, re.MULTILINE)
    assert found, text
    return int(found[1])


def dump_of(folder: Path) -> list[tuple[bytes, bytes]]:
    """Every key and value, in the order in which LMDB's own tool writes them."""
    if shutil.which("mdb_dump") is None:
        pytest.skip("mdb_dump is missing (package lmdb-utils): the database is read back with it")
    text = subprocess.run(["mdb_dump", str(folder)], check=True, capture_output=True, text=True).stdout
    body = text.partition("HEADER=END\n")[2].partition("DATA=END")[0].split()
    lines = [bytes.fromhex(line) for line in body]
    return list(zip(lines[::2], lines[1::2], strict=True))


def only_test(bench: Bench, folder: Path, *words: str | int) -> BenchTest:
    status, found = bench(folder, *words)
    assert (0, None) == (status, found.failure)
    return found.tests[-1]


def failure_of(bench: Bench, folder: Path, *words: str | int) -> BenchFailure:
    status, found = bench(folder, *words)
    assert 1 == status
    assert found.failure is not None
    return found.failure


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--set", "sync=nometasync", "--set", "readahead=false", "--keys", "shuffled"),
        ("--set", "writemap=true", "--flush-after", "--touch", "pages"),
    ],
)
def test_every_test_runs_and_counts_what_was_asked(
    bench: Bench, driver: Path, memory: Path, words: tuple[str, ...]
) -> None:
    status, found = bench(memory, "--tests", ",".join(_EVERY), "--entries", 5000, "--threads", 2, *words)
    assert (0, None, None) == (status, found.failure, found.interrupted)
    assert library_version(LIBLMDB, commands=Commands()) == found.library.header
    for test in found.tests:
        asked = 10 if test.test.endswith("sync") else 5 if test.test.endswith("100K") else 5000
        if test.test == "readwhilewriting":
            asked *= 2
        assert asked == test.operations or test.test == "readseq100K", test.test
        assert test.elapsed_ns > 0
    # What is on disk at the end is what fillseq100K wrote.
    assert 5 == entries_in(memory)
    said = json.loads(subprocess.run([driver, "--version"], check=True, capture_output=True).stdout)
    assert found.library.version == said["library"]


@pytest.mark.parametrize("test", ["fillseq", "fillseqbatch", "fillrandom", "fillrandbatch"])
def test_the_number_of_entries_is_read_back(bench: Bench, memory: Path, test: str) -> None:
    # 1234 is no multiple of the batch: the last one is a part.
    only_test(bench, memory, "--tests", test, "--entries", 1234, "--keys", "shuffled", "--batch", 100)
    found = dump_of(memory)
    assert [b"%016d" % number for number in range(1234)] == [key for key, _ in found]
    assert {100} == {len(value) for _, value in found}
    assert all(value[:50].isascii() and value[:50].decode().isprintable() for _, value in found)


def test_random_keys_repeat_and_readrandom_says_what_it_found(bench: Bench, memory: Path) -> None:
    read = only_test(bench, memory, "--tests", "fillrandom,readrandom", "--entries", 5000)
    entries = entries_in(memory)
    # 1 - 1/e of them, within four standard deviations.
    assert 0.60 * 5000 < entries < 0.66 * 5000
    assert read.found is not None
    assert abs(read.found / 5000 - entries / 5000) < 0.03
    assert read.found * 116 == read.bytes


def test_an_overwrite_changes_values_and_not_their_number(bench: Bench, memory: Path) -> None:
    only_test(bench, memory, "--tests", "fillseq", "--entries", 500)
    before = dump_of(memory)
    only_test(bench, memory, "--tests", "overwrite", "--entries", 500, "--existing", "--seed", 2)
    after = dump_of(memory)
    assert [key for key, _ in before] == [key for key, _ in after]
    changed = sum(first != second for first, second in zip(before, after, strict=True))
    assert 0.55 * 500 < changed < 0.72 * 500


def test_the_same_seed_writes_the_same_database(bench: Bench, memory: Path) -> None:
    dumps: list[list[tuple[bytes, bytes]]] = []
    for seed in (1, 1, 2):
        folder = memory / str(len(dumps))
        folder.mkdir()
        only_test(bench, folder, "--tests", "fillrandbatch", "--entries", 300, "--seed", seed)
        dumps.append(dump_of(folder))
    assert dumps[0] == dumps[1] != dumps[2]


def test_a_second_start_reads_what_the_first_wrote(bench: Bench, memory: Path) -> None:
    words = ("--entries", 2000, "--set", f"map_bytes={4 * MIB}")
    only_test(bench, memory, "--tests", "fillseqbatch", *words)
    size = (memory / "data.mdb").stat().st_size
    for test in ("readseq", "readreverse", "readrandom"):
        found = only_test(bench, memory, "--tests", test, "--existing", *words)
        assert (2000, 2000 * 116) == (found.operations, found.bytes)
    assert size == (memory / "data.mdb").stat().st_size
    refused = failure_of(bench, memory, "--tests", "fillseq", *words)
    assert "a database is in the directory already" in refused.error
    assert 2000 == entries_in(memory)


@pytest.mark.parametrize("writemap", [(), ("--set", "writemap=true")])
@pytest.mark.parametrize(
    ("how", "whole", "sparse"),
    [("none", False, True), ("ftruncate", True, True), ("fallocate", True, False), ("written", True, False)],
)
def test_preallocation_is_what_was_asked_for(
    *, bench: Bench, small_disk: Path, writemap: tuple[str, ...], how: str, whole: bool, sparse: bool
) -> None:
    words = (
        "--tests",
        "fillrandsync",
        "--sync-entries",
        20,
        "--set",
        f"map_bytes={8 * MIB}",
        "--set",
        f"preallocation={how}",
    )
    found = only_test(bench, small_disk, *words, *writemap)
    assert found.data_size_bytes is not None
    assert found.data_allocated_bytes is not None
    # A writable map is as long as the file from the start.
    assert (whole or bool(writemap)) == (found.data_size_bytes == 8 * MIB)
    assert sparse == (found.data_allocated_bytes < 1 * MIB)
    assert (small_disk / "data.mdb").stat().st_blocks * 512 == found.data_allocated_bytes
    assert 0 < entries_in(small_disk) <= 20


def test_a_map_that_is_too_small_keeps_the_tests_before_it(bench: Bench, memory: Path) -> None:
    status, found = bench(
        memory, "--tests", "fillseqsync,fillseqbatch", "--entries", 20_000, "--set", f"map_bytes={MIB}"
    )
    assert (1, ["fillseqsync"]) == (status, [test.test for test in found.tests])
    assert found.failure is not None
    assert "MDB_MAP_FULL: Environment mapsize limit reached" == found.failure.error
    assert ("fillseqbatch", "put") == (found.failure.test, found.failure.step)
    assert 0 < found.failure.operations < 20_000


@pytest.mark.parametrize("test", ["fillseq", "fillseqbatch", "fillrand100K"])
def test_a_full_disk_says_so(bench: Bench, small_disk: Path, test: str) -> None:
    found = failure_of(bench, small_disk, "--tests", test)
    # The library's own word for a batch whose write came back short is an input/output error.
    assert (found.code, found.error) in {(28, "No space left on device"), (5, "Input/output error")}
    assert (test, "commit") == (found.test, found.step)
    assert found.free_bytes is not None
    assert found.free_bytes < 64 * KIB


def test_a_full_disk_under_a_sparse_map_is_a_reason_and_no_crash(bench: Bench, small_disk: Path) -> None:
    found = failure_of(bench, small_disk, "--tests", "fillseq", "--set", "writemap=true")
    assert (28, "write through the map") == (found.code, found.step)
    assert "No space left on device" in found.error
    assert "SIGBUS" in found.error
    assert found.operations > 0


def test_a_full_disk_stops_all_threads(bench: Bench, small_disk: Path) -> None:
    words = ("--tests", "fillseqbatch,readwhilewriting", "--entries", 100_000, "--duration-s", 60)
    status, found = bench(small_disk, *words, "--set", "writemap=true", "--set", f"map_bytes={512 * MIB}")
    assert 1 == status
    assert found.failure is not None
    assert ("readwhilewriting", 28) == (found.failure.test, found.failure.code)


@pytest.mark.parametrize("how", ["fallocate", "written"])
def test_preallocation_beyond_the_disk_says_so(bench: Bench, small_disk: Path, how: str) -> None:
    found = failure_of(bench, small_disk, "--set", f"preallocation={how}", "--set", f"map_bytes={64 * MIB}")
    assert (28, f"preallocate: {how}") == (found.code, found.step)


def test_a_map_that_was_cut_below_its_reader_is_no_full_disk(driver: Path, memory: Path) -> None:
    words = ["--tests", "fillseqbatch,readrandom", "--entries", "50000", "--reads", "9999999999"]
    with subprocess.Popen(
        [driver, "--directory", memory, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        # The first line comes a second into the test that does not end.
        while "readrandom" not in process.stderr.readline():
            assert process.poll() is None
        with (memory / "data.mdb").open("r+b") as file:
            file.truncate(2 * 4096)
        output, _ = process.communicate(timeout=AT_MOST_S)
    found = parse_document(output)
    assert 1 == process.returncode
    assert found.failure is not None
    assert (-signal.SIGBUS, "readrandom") == (found.failure.code, found.failure.test)
    assert "the file was cut" in found.failure.error


@pytest.mark.parametrize(
    ("value_bytes", "error"), [(5_000_000_000, "MDB_BAD_VALSIZE"), (8 * MIB, "MDB_MAP_FULL")]
)
def test_a_value_that_does_not_fit_ends_in_the_librarys_words(
    bench: Bench, memory: Path, value_bytes: int, error: str
) -> None:
    words = ("--tests", "fillseqsync", "--entries", 10, "--set", f"map_bytes={4 * MIB}")
    found = failure_of(bench, memory, *words, "--value-bytes", value_bytes)
    assert found.error.startswith(f"{error}: ")
    assert ("put", 0) == (found.step, found.operations)


def test_a_directory_that_is_not_there_is_named_by_the_system(bench: Bench, memory: Path) -> None:
    found = failure_of(bench, memory / "gone", "--tests", "fillseq")
    assert ("No such file or directory", "open the environment") == (found.error, found.step)
    assert found.free_bytes is None
    found = failure_of(bench, memory, "--tests", "readseq", "--existing")
    assert ("No such file or directory", "open the environment") == (found.error, found.step)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("test", ["fillrandsync", "readwhilewriting"])
def test_a_signal_ends_it_with_what_was_done(
    driver: Path, memory: Path, test: str, number: signal.Signals
) -> None:
    words = [
        "--tests",
        f"fillseqbatch,{test}",
        "--entries",
        "2000",
        "--duration-s",
        "600",
        "--write-rate",
        "99",
    ]
    with subprocess.Popen(
        [
            driver,
            "--directory",
            memory,
            *words,
            "--sync-entries",
            "1000000000",
            "--set",
            f"map_bytes={512 * MIB}",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        # A line a second: on a slow machine the first may be of the loading before it.
        progress = next(line for line in process.stderr if json.loads(line)["test"] == test)
        process.send_signal(number)
        output, _ = process.communicate(timeout=AT_MOST_S)
    found = parse_document(output)
    assert 128 + number == process.returncode
    assert (number.name, None) == (found.interrupted, found.failure)
    assert [("fillseqbatch", True), (test, False)] == [(t.test, t.complete) for t in found.tests]
    told = progress_of(progress.encode(), 0.0)
    assert json.loads(progress)["test"] == test
    assert told is not None
    assert 0 < told.operations <= found.tests[1].operations
    # Every commit that was counted is there; of random numbers below 10^9 few are drawn twice.
    committed = found.tests[1].operations if test == "fillrandsync" else 2000
    assert 0.99 * committed < entries_in(memory) <= committed


def test_readers_end_by_the_clock_and_the_writer_keeps_its_rate(bench: Bench, memory: Path) -> None:
    words = ("--tests", "fillseqbatch,readwhilewriting", "--entries", 2000, "--threads", 3)
    found = only_test(bench, memory, *words, "--duration-s", 1, "--write-rate", 100)
    assert found.threads is not None
    assert found.writer is not None
    assert 3 == len(found.threads)
    # No upper bound: who gets no processor ends late.
    assert all(side.elapsed_ns > 0.99e9 for side in (*found.threads, found.writer))
    # A turn that was missed is made up for; one begins with the clock.
    assert found.writer.operations <= 101 * found.writer.elapsed_ns / 1e9 + 1
    assert found.writer.operations > 0
    assert found.found == found.operations


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--directory is missing"),
        (("--directory", "x", "surplus"), "'surplus' belongs to no option"),
        (("--directory", "x", "--nonsense"), "'--nonsense' is no option"),
        (("--directory", "x", "--entries"), "'--entries' is no option, or lacks its value"),
        (
            ("--directory", "x", "--existing=1"),
            "'--existing=1' is no option, or lacks its value, or takes none",
        ),
        (("--directory", "x", "--tests", "fillseq,fillwild"), "does not know 'fillwild'"),
        (("--directory", "x", "--tests", ""), "does not know ''"),
        (("--directory", "x", "--entries", "-1"), "--entries takes a whole number from 1"),
        (("--directory", "x", "--entries", "0"), "--entries takes a whole number from 1"),
        (("--directory", "x", "--entries", "1e6"), "found '1e6'"),
        (("--directory", "x", "--entries", "99999999999999999999"), "--entries takes"),
        (("--directory", "x", "--set", "map_bytes=4097"), "in steps of 4096"),
        (("--directory", "x", "--set", "sync=often"), "--set sync does not know 'often'"),
        (("--directory", "x", "--set", "sync"), "--set takes NAME=VALUE, found 'sync'"),
        (("--directory", "x", "--set", "journal=off"), "lmdb has no setting 'journal'"),
        (("--directory", "x", "--set", "sync=nosync"), "fillrandsync commits synchronously"),
        (("--directory", "x", "--tests", "fillseq", "--set", "sync=mapasync"), "needs --set writemap=true"),
        (("--directory", "x", "--tests", "readseq"), "name a fill test before it"),
        (("--directory", "x", "--tests", "fillseq", "--existing"), "--existing keeps the one"),
        (("--directory", "x", "--tests", "fillseq,readseq100K"), "another size"),
        (("--directory", "x", "--tests", "readseq,readseq100K", "--existing"), "different sizes"),
        (("--directory", "x", "--value-bytes", "70000000000000"), "more than a map can hold"),
    ],
)
def test_a_wrong_call_touches_nothing(driver: Path, memory: Path, words: tuple[str, ...], said: str) -> None:
    done = subprocess.run([driver, *words], check=False, capture_output=True, text=True, cwd=memory)
    assert (2, "") == (done.returncode, done.stdout)
    assert said in done.stderr.splitlines()[0]
    assert [] == list(memory.iterdir())


def test_the_engine_that_does_nothing_needs_no_directory_and_costs_little(driver: Path, memory: Path) -> None:
    argv = [str(driver), "--null", "--tests", ",".join(_EVERY), "--entries", "20000"]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, cwd=memory)
    found = parse_document(done.stdout)
    assert [] == list(memory.iterdir())
    counts = {test.test: test.operations for test in found.tests}
    assert (20_000, 20_000, 20) == (counts["readseq"], counts["readrandom"], counts["fillrand100K"])
    assert {None} == {test.data_size_bytes for test in found.tests}


def test_a_document_that_nobody_takes_is_an_error(driver: Path, memory: Path) -> None:
    argv = [str(driver), "--directory", str(memory), "--tests", "fillseq", "--entries", "10"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(argv, check=False, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (1, "document cannot be written" in done.stderr) == (done.returncode, True)
