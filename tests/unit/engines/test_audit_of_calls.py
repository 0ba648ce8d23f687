"""The judge of an audit on lists of calls that were written for it: what no real program does in the same order each time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bedplate.engines.external.audit import CallJudge, read_calls
from bedplate.engines.external.prepare import EnginePromise
from bedplate.errors import OutputNotUnderstood
from bedplate.model.levels import Levels

FOLDER, LOG, DATA = "1:1", "1:2", "1:3"

WRITE = f"write\t{LOG}\t0\t10\t0\t0\t/tmp/data/log"
SYNC = f"sync\tfsync\t{LOG}\t0\t0\t/tmp/data/log"
NAME = f"add\tcreate\t{FOLDER}\tlog\t{LOG}\t/tmp/data"
SYNC_FOLDER = f"sync\tfsync\t{FOLDER}\t0\t0\t/tmp/data"
BEGIN = (NAME, WRITE, SYNC, SYNC_FOLDER, "mark\tbegin\\n")


def judge(
    *calls: str | tuple[int, int, str], clients: int = 1, promise: EnginePromise | None = None
) -> CallJudge:
    """After these calls, one behind another; those with two numbers began and ended there."""
    found, at = [], 0
    for call in calls:
        entry, end, text = (at + 1, at + 2, call) if isinstance(call, str) else call
        at = max(at, end)
        found.append(f"{entry}\t{end}\t7\t{end * 1000}\t{text}")
    result = CallJudge(promise, clients)
    read_calls(result, "\n".join([*found, f"{at}\t{at}\t0\t{at * 1000}\tend\t0\t0"]))
    return result


def codes(result: CallJudge) -> Sequence[tuple[str, str]]:
    return list(result.findings)


def ack(number: int, client: int = 0) -> str:
    return f"mark\tack {client} {number}\\n"


def test_a_sync_covers_what_ended_before_it_began() -> None:
    for write, is_clean in (((20, 21, WRITE), True), ((20, 23, WRITE), False)):
        result = judge(*BEGIN, write, (22, 24, SYNC), ack(1))
        assert (codes(result) == []) is is_clean


def test_what_was_prepared_and_not_synced_is_found_at_the_first_acknowledgement() -> None:
    assert codes(judge(NAME, WRITE, "mark\tbegin\\n", ack(1))) == [
        ("bytes-never", "log"),
        ("name-never", "log"),
    ]
    assert codes(judge(NAME, WRITE, "mark\tbegin\\n", "all\tsync", ack(1))) == []


def test_nothing_counts_before_anything_is_acknowledged() -> None:
    assert codes(judge(NAME, WRITE, "mark\tbegin\\n")) == []


def test_several_lines_in_one_write_are_several_acknowledgements() -> None:
    result = judge(*BEGIN, WRITE, "mark\tack 0 1\\nack 0 2\\n")
    assert (result.acks, len(result.findings["bytes-never", "log"].acks)) == (2, 2)


def test_the_number_of_a_removed_file_is_another_file_s_later() -> None:
    again = (f"remove\tunlink\t{FOLDER}\tlog\t{LOG}\t/tmp/data", SYNC_FOLDER, ack(1))
    result = judge(
        *BEGIN, WRITE, *again, f"add\tcreate\t{FOLDER}\tother\t{LOG}\t/tmp/data", SYNC_FOLDER, ack(2)
    )
    assert codes(result) == []


def test_a_name_with_a_tab_and_a_backslash_is_that_name() -> None:
    result = judge(*BEGIN, f"add\tcreate\t{FOLDER}\ta\\tb\\\\n\t{DATA}\t/tmp/data", ack(1))
    assert codes(result) == [("name-never", "a\tb\\n")]


def test_names_that_differ_by_their_numbers_are_one_finding() -> None:
    calls = [
        call
        for number in range(3)
        for call in (f"add\tlink\t{FOLDER}\tpart-{number}\t{LOG}\t/tmp/data", ack(number + 1))
    ]
    result = judge(*BEGIN, *calls)
    (group,) = result.findings.values()
    assert list(group.names) == ["part-0", "part-1", "part-2"]


@pytest.mark.parametrize(
    ("transactions", "ms", "is_clean"), [(2, None, True), (1, None, False), (None, 1, True)]
)
def test_a_bounded_loss_is_of_commits_or_of_time(
    transactions: int | None, ms: float | None, is_clean: bool
) -> None:
    promise = EnginePromise(Levels(), "bounded loss", transactions, ms, "a test")
    result = judge(*BEGIN, WRITE, ack(1), ack(2), SYNC, ack(3), promise=promise)
    assert (codes(result) == []) is is_clean


def test_an_exchange_of_two_names_is_synced_by_their_folder() -> None:
    exchange = (
        f"rename\t{FOLDER}\tnew\t{FOLDER}\tlog\t{DATA}\t-\t/tmp/data\t/tmp/data",
        f"add\texchange\t{FOLDER}\tnew\t{LOG}\t/tmp/data",
    )
    made = (f"add\tcreate\t{FOLDER}\tnew\t{DATA}\t/tmp/data", SYNC_FOLDER, ack(1))
    assert codes(judge(*BEGIN, *made, *exchange, SYNC_FOLDER, ack(2))) == []
    assert ("name-never", "log") in codes(judge(*BEGIN, *made, *exchange, ack(2)))


@pytest.mark.parametrize(
    "text", ["", "1\t2\t3", "1\t2\t3\t4\twrite\tx", "1\t2\t3\t4\tend\t0", "1\t2\t3\t4\tmark\tbegin"]
)
def test_what_is_no_list_of_calls_is_quoted(text: str) -> None:
    with pytest.raises(OutputNotUnderstood):
        read_calls(CallJudge(None, 1), text)
