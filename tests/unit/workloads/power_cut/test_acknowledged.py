"""What clients had been promised before a cut, and what of it is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.tools.written_log import FLUSH, MARK, Written, written_log

from bedplate.cuts.log import Acknowledgements, Log, Missing, read_log, require_protocol
from bedplate.errors import OutputNotUnderstood


def mark(client: int, sequence: int, time_us: int) -> Written:
    # The recorder takes a mark in 30 µs after its client wrote it.
    return Written(
        flags=MARK, text=f"A {client} {sequence} {time_us}".encode(), time_ns=1000 * (time_us + 30)
    )


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return read_log(
        written_log(
            tmp_path / "log",
            [
                Written(flags=MARK, text=b"begin", time_ns=900_000),
                mark(0, 1, 1000),
                mark(1, 1, 2000),
                Written(flags=FLUSH, time_ns=2_500_000),
                mark(0, 2, 3000),
                mark(0, 3, 4000),
                Written(flags=FLUSH, time_ns=9_000_000),
                mark(1, 2, 9500),
            ],
        )
    )


@pytest.mark.parametrize(
    ("position", "transactions", "highest", "cut_us"),
    [
        (0, 0, {}, None),
        (1, 0, {}, 900),
        (2, 1, {0: 1}, 1030),
        (4, 2, {0: 1, 1: 1}, 2500),
        (7, 4, {0: 3, 1: 1}, 9000),
        (8, 5, {0: 3, 1: 2}, 9530),
    ],
)
def test_promises_before_a_cut(
    log: Log, position: int, transactions: int, highest: dict[int, int], cut_us: int | None
) -> None:
    found = Acknowledgements(log).before(position)
    assert (transactions, highest, cut_us) == (found.transactions, found.highest, found.cut_us)


@pytest.mark.parametrize(
    ("present", "missing"),
    [
        ({0: 3, 1: 1}, Missing(0, None)),
        ({0: 7, 1: 9}, Missing(0, None)),  # more than was promised is no loss
        ({0: 2, 1: 1}, Missing(1, 5.0)),
        ({0: 1, 1: 1}, Missing(2, 6.0)),
        ({0: 3}, Missing(1, 7.0)),
        ({}, Missing(4, 8.0)),
    ],
)
def test_what_is_missing_and_since_when(log: Log, present: dict[int, int], missing: Missing) -> None:
    assert missing == Acknowledgements(log).before(7).missing(present)


def test_a_sequence_of_zero_counts(tmp_path: Path) -> None:
    with read_log(written_log(tmp_path / "log", [mark(4, 0, 10)])) as log:
        found = Acknowledgements(log).before(1)
        assert (1, 0) == (found.missing({}).transactions, found.missing({4: 0}).transactions)


def test_marks_are_read_once_for_many_cuts(log: Log) -> None:
    marks = Acknowledgements(log)
    assert [0, 0, 1, 2, 2, 3, 4, 4, 5] == [marks.before(position).transactions for position in range(9)]
    assert [1, 2, 4, 5, 7] == marks.positions


@pytest.mark.parametrize("text", [b"A 1 2", b"A 1 -2 3", b"A one 2 3", b"A 1 2 3 4", b"A  1 2 3"])
def test_half_a_mark_is_no_promise_and_no_silence(tmp_path: Path, text: bytes) -> None:
    with (
        read_log(written_log(tmp_path / "log", [Written(flags=MARK, text=text)])) as log,
        pytest.raises(OutputNotUnderstood, match="mark 0 of the write log"),
    ):
        Acknowledgements(log)


def lines_of_a_writer(path: Path, *lines: str) -> Log:
    return read_log(
        written_log(
            path / "lines",
            [
                Written(flags=MARK, text=line.encode(), time_ns=1_000_000 * number)
                for number, line in enumerate(("begin", *lines), start=1)
            ],
        )
    )


def test_a_writer_of_others_has_the_recorders_times(tmp_path: Path) -> None:
    with lines_of_a_writer(tmp_path, "ack 0 1", "ack 1 1", "ack 0 2") as log:
        require_protocol(log, clients=2, own_marks={b"begin"})
        found = Acknowledgements(log).before(4)
    assert (3, {0: 2, 1: 1}, 4000) == (found.transactions, found.highest, found.cut_us)
    assert Missing(1, 0.0) == found.missing({0: 1, 1: 1})


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("hello",), "hello"),
        (("ack 0 1", "ack 0 1"), "ack 0 1, behind 1 of client 0"),
        (("ack 0 1", "ack 0 3"), "ack 0 3, behind 1 of client 0"),
        (("ack 0 0",), "ack 0 0"),
        (("ack 2 1",), "ack 2 1"),
        (("ack 0 1 7",), "ack 0 1 7"),
        (("ack 0", "1"), "ack 0"),
        (("A 0 1 5",), "A 0 1 5"),
    ],
)
def test_a_line_that_a_writer_may_not_print_is_quoted(
    tmp_path: Path, lines: tuple[str, ...], said: str
) -> None:
    with lines_of_a_writer(tmp_path, *lines) as log, pytest.raises(OutputNotUnderstood) as caught:
        require_protocol(log, clients=2, own_marks={b"begin"})
    assert said in str(caught.value)
    assert "docs/ENGINES.md" in str(caught.value)


def test_what_a_client_was_told_had_failed_is_known_until_the_same_number_is_acknowledged(
    tmp_path: Path,
) -> None:
    lines = [b"ack 0 1", b"fail 0 2", b"ack 1 1", b"fail 1 2", b"ack 0 2"]
    written = [
        Written(flags=MARK, text=text, time_ns=1000 * number) for number, text in enumerate(lines, start=1)
    ]
    log = read_log(written_log(tmp_path / "log", written))
    require_protocol(log, clients=2, own_marks=())
    acknowledged = Acknowledgements(log)
    assert {1: 2} == acknowledged.before(5).failed
    assert {} == acknowledged.before(1).failed
    assert {0: 2, 1: 1} == acknowledged.before(5).highest


@pytest.mark.parametrize("text", [b"fail 0 1", b"fail 0 3", b"fail 2 1", b"fail 0"])
def test_a_failure_is_of_the_next_number_of_a_client(tmp_path: Path, text: bytes) -> None:
    written = [Written(flags=MARK, text=line) for line in (b"ack 0 1", text)]
    with pytest.raises(OutputNotUnderstood, match="fail CLIENT NUMBER"):
        require_protocol(read_log(written_log(tmp_path / "log", written)), clients=2, own_marks=())
