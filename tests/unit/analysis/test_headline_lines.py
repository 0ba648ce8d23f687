"""The lines of an answer at a width: what has no room gives way, and a command never does."""

from __future__ import annotations

import shlex

import pytest

from bedplate.analysis.answer import HeadlineLine, _ended, _with_common, fitted


def test_a_quoted_word_of_a_command_stays_whole() -> None:
    command = f"sudo ./bedplate run {shlex.quote('/my study of  blanks/and  more of them')} --repetitions 5"
    for columns in range(30, 90):
        shown = "\n".join(fitted([HeadlineLine("", command, 1, copied=True)], columns=columns))
        # As a shell takes the end of a line behind a backslash.
        assert shlex.split(command) == shlex.split(shown.replace("\\\n", ""))


@pytest.mark.parametrize("most", range(1, 7))
def test_no_line_announces_a_command_that_is_not_there(most: int) -> None:
    lines = [
        HeadlineLine("Take", "the first of all of them", 0),
        HeadlineLine("Not", "what a power cut destroys", 1),
        HeadlineLine("More", "two more repetitions would tell:", 1),
        HeadlineLine("", "sudo ./bedplate run study", 1, copied=True),
        HeadlineLine("More", "and this once more:", 3),
        HeadlineLine("", "sudo ./bedplate run study --retry-failed", 3, copied=True),
    ]
    shown = fitted(lines, most=most)
    assert not shown[-1].endswith(":")
    assert len(shown) <= most


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            "no verdict yet with 2 repetitions of read-only. Seen so far, durable: ext4 barrier 72,390 tps, xfs 70,000 tps.",
            "no verdict yet with 2 repetitions of read-only.",
        ),
        (
            "ext4 has ×0.97 (0.95 to 0.99) of its tps; what is gained over this system's default (a mean of all; see below) is not known.",
            "ext4 has ×0.97 (0.95 to 0.99) of its tps.",
        ),
        (
            "2 runs failed; to try them again while nothing else uses the machine takes about 2 min:",
            "2 runs failed:",
        ),
    ],
)
def test_what_has_no_room_ends_behind_a_whole_sentence(text: str, left: str) -> None:
    fits = HeadlineLine("Take", "first", 0)
    assert fitted([fits, HeadlineLine("Not", text, 2)], most=2)[1].split(maxsplit=1)[1] == left


def test_a_line_that_has_no_room_is_said_in_short_or_not_at_all() -> None:
    fits = HeadlineLine("Take", "first", 0)
    long = HeadlineLine(
        "Types", f"xfs / ext4 over 108 {'matched ' * 8}pairs: ×1.08", 1, short="xfs / ext4: ×1.08"
    )
    assert ["first", "xfs / ext4: ×1.08"] == [
        text.split(maxsplit=1)[1] for text in fitted([fits, long], most=2)
    ]
    assert 3 == len(fitted([fits, long], most=3))
    narrow = HeadlineLine("Types", long.text, 1, short="xfs / ext4: ×1.08; of some pairs")
    assert "xfs / ext4: ×1.08." == fitted([fits, narrow], columns=32, most=2)[1].split(maxsplit=1)[1]
    whole = HeadlineLine("Types", long.text, 1)
    assert ["Take   first"] == [text.rstrip() for text in fitted([fits, whole], most=2)]


def test_what_comes_first_stays_whole() -> None:
    take = HeadlineLine("Take", f"{'a cell ' * 15}", 0)
    for rank in (0, 1, 2):
        shown = fitted([take, HeadlineLine("Not", "slow ones", rank)], most=2)
        assert 15 == " ".join(" ".join(shown).split()).count("a cell")


def test_what_names_have_in_common_is_said_once() -> None:
    assert "ext4, xfs with full_page_writes=on" == _with_common(
        ["ext4 full_page_writes=on", "xfs full_page_writes=on"]
    )
    assert "ext4 a, xfs b" == _with_common(["ext4 a", "xfs b"])
    assert "ext4, xfs" == _with_common(["ext4", "xfs"])
    assert "ext4 a" == _with_common(["ext4 a"])


@pytest.mark.parametrize(
    ("text", "ended"), [("failed", "failed."), ("gone.", "gone."), ("and so on…", "and so on…")]
)
def test_a_line_ends_once(text: str, ended: str) -> None:
    assert ended == _ended(text)
