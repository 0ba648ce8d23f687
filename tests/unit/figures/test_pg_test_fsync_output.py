from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.errors import OutputNotUnderstood
from bedplate.model.reason import Reason
from bedplate.workloads.fio.output import PARTS, PgTestFsyncResult, SyncMethod, parse_pg_test_fsync_result

FOLDER = "tests/golden/pg_test_fsync"
WHOLE = ("pg15-ext4", "pg18-ext4", "pg18-tmpfs", "pg18-ramfs")


def text(repository: Path, name: str) -> str:
    return (repository / FOLDER / name).read_text()


def result(repository: Path, name: str) -> PgTestFsyncResult:
    return parse_pg_test_fsync_result(text(repository, f"{name}.txt"))


@pytest.mark.parametrize("name", WHOLE)
def test_every_version_and_file_system_gives_every_method(repository: Path, name: str) -> None:
    found = result(repository, name)
    counted = [sum(method.part == part for method in found.methods) for part in PARTS]
    assert (8192, [5, 5, 5, 2, 1]) == (found.write_size_bytes, counted)


def test_rates_are_kept(repository: Path) -> None:
    found = result(repository, "pg18-ext4")
    fdatasync = found.method("fdatasync")
    assert (16450.145, None) == (fdatasync.ops_per_s, fdatasync.reason)
    assert 13748.354 == found.method("fdatasync", "two writes").ops_per_s


def test_names_lose_the_spaces_that_align_them(repository: Path) -> None:
    found = result(repository, "pg18-ext4")
    assert [
        "1 * 16kB open_sync write",
        "2 * 8kB open_sync writes",
        "4 * 4kB open_sync writes",
        "8 * 2kB open_sync writes",
        "16 * 1kB open_sync writes",
    ] == [method.method for method in found.methods if method.part == "open_sync sizes"]
    assert 979.91 == found.method("16 * 1kB open_sync writes", "open_sync sizes").ops_per_s
    assert 21192.453 == found.method("write, fsync, close", "other descriptor").ops_per_s


def test_a_method_that_is_not_available_is_absent_with_its_reason(repository: Path) -> None:
    writethrough = result(repository, "pg18-ext4").method("fsync_writethrough")
    reason = Reason("method-missing", "PostgreSQL has no such method on this platform")
    assert SyncMethod("one write", "fsync_writethrough", None, reason) == writethrough


def test_a_file_system_without_direct_io_is_another_reason(repository: Path) -> None:
    found = result(repository, "pg18-ramfs")
    absent = [method for method in found.methods if method.ops_per_s is None]
    direct = [method for method in absent if method.reason and "direct I/O" in method.reason.sentence]
    assert (11, 9) == (len(absent), len(direct))
    assert {"open_datasync", "open_sync"} == {
        m.method for m in direct if m.part in {"one write", "two writes"}
    }


def test_a_method_that_it_does_not_try_is_none_of_its_own(repository: Path) -> None:
    with pytest.raises(KeyError, match="O_DSYNC"):
        result(repository, "pg18-ext4").method("O_DSYNC")


def test_a_run_that_gave_up_quotes_it(repository: Path) -> None:
    with pytest.raises(OutputNotUnderstood, match="write failed"):
        parse_pg_test_fsync_result(text(repository, "full-disk.txt"), text(repository, "full-disk.err"))
    with pytest.raises(OutputNotUnderstood, match="printed nothing"):
        parse_pg_test_fsync_result("")


def test_a_run_that_was_cut_is_refused_at_every_line(repository: Path) -> None:
    lines = text(repository, "pg18-ext4.txt").rstrip().splitlines(keepends=True)
    # The last part has a single line: without it, the part is empty.
    for end in range(len(lines)):
        with pytest.raises(OutputNotUnderstood):
            parse_pg_test_fsync_result("".join(lines[:end]))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("16450.145 ops/sec      61 usecs/op", "16450.145 ops/sec      64 usecs/op"),
        ("16450.145 ops/sec", "1645.014 ops/sec"),
        ("16450.145 ops/sec", "-16450.145 ops/sec"),
        ("16450.145 ops/sec", "0.000 ops/sec"),
        ("16450.145 ops/sec", "nan ops/sec"),
        ("16450.145 ops/sec", "16,450.145 ops/sec"),
        ("                              n/a", "                              N/A"),
        ("        fdatasync  ", "        fsync  "),
        ("using two 8kB writes", "using two 16kB writes"),
        ("using two 8kB writes", "using three 8kB writes"),
        ("descriptor.)", "descriptor.) And more."),
        ("Non-sync'ed 8kB writes:", "Non-sync'ed writes:"),
    ],
)
def test_what_pg_test_fsync_would_not_say_is_refused(repository: Path, old: str, new: str) -> None:
    whole = text(repository, "pg18-ext4.txt")
    assert old in whole
    with pytest.raises(OutputNotUnderstood):
        parse_pg_test_fsync_result(whole.replace(old, new))


def printed(ops_per_s: float) -> str:
    """A line as print_elapse of pg_test_fsync.c writes it."""
    return f"        {'fdatasync':<30}{ops_per_s:13.3f} ops/sec  {1e6 / ops_per_s:6.0f} usecs/op"


@settings(deadline=None)
@given(st.floats(0.01, 1e8))
def test_a_rate_of_any_size_is_read_back_to_its_digits(repository: Path, ops_per_s: float) -> None:
    whole = text(repository, "pg18-ext4.txt").splitlines()
    whole[6] = printed(ops_per_s)
    found = parse_pg_test_fsync_result("\n".join(whole)).method("fdatasync").ops_per_s
    assert found == pytest.approx(ops_per_s, abs=0.00051)


@settings(deadline=None)
@given(
    st.text()
    | st.lists(st.sampled_from(["Compare open_sync with different write sizes:", "", printed(5)])).map(
        "\n".join
    )
)
def test_any_text_is_refused(words: str) -> None:
    with pytest.raises(OutputNotUnderstood):
        parse_pg_test_fsync_result(words)
