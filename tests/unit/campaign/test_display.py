"""What a person sees while a study runs."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from bedplate.campaign.display import LineDisplay, display_for_terminal, printable
from bedplate.campaign.live_display import LiveDisplay, bar, sparkline
from bedplate.model.levels import Scalar


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def live(width: int = 80) -> tuple[LiveDisplay, Clock, Console]:
    clock = Clock()
    console = Console(file=io.StringIO(), width=width, force_terminal=False, highlight=False)
    return LiveDisplay(clock=clock, console=console), clock, console


def drawn(display: LiveDisplay, console: Console) -> list[str]:
    with console.capture() as capture:
        console.print(display.draw())
    return [line.rstrip() for line in capture.get().splitlines()]


def said(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_live_display_shows_what_runs_how_fast_what_is_done_and_left() -> None:
    display, clock, console = live()
    display.visit_begins("xfs · repetition 1", number=1, of=8, seconds_left=480.0)
    clock.now_s += 60
    display.event({"event": "step", "step": "run read-write"})
    assert [
        "",
        "visit 1 of 8  ━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌  about 7 min 00 s left",
        "xfs · repetition 1",
        "read-write: getting ready",
    ] == drawn(display, console)
    for transactions in (0, 500, 1000, 2000):
        display.event(
            {
                "event": "second",
                "run": "read-write",
                "phase": "measure",
                "phase_s": 8.0,
                "transactions": transactions,
                "latency_ms_mean": 3.321,
            }
        )
    assert [
        "read-write: measuring  ━━━━━━━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌  4 of 8 s",
        "    2,000 tps     3.32 ms   ▃▅█",
    ] == drawn(display, console)[3:]


def test_a_step_shows_its_age_and_an_image_its_share() -> None:
    display, clock, console = live()
    display.visit_begins("ext4", number=2, of=2, seconds_left=5.0)
    display.event({"event": "step", "step": "load"})
    assert "loading the data" == drawn(display, console)[-1]
    clock.now_s += 12
    assert "loading the data  12 s" == drawn(display, console)[-1]
    assert "longer than expected" in drawn(display, console)[1]
    display.event({"event": "image", "done_bytes": 2**29, "of_bytes": 2**31})
    assert "writing the image (2 GiB)  ━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌" == drawn(display, console)[-1]


def test_the_warm_up_is_told_apart_and_without_a_fixed_length_only_counted() -> None:
    display, _, console = live()
    display.visit_begins("ext4", number=1, of=1, seconds_left=5.0)
    second: dict[str, Scalar] = {
        "event": "second",
        "run": "a",
        "phase": "warmup",
        "phase_s": 0,
        "transactions": 10,
    }
    display.event(second)
    display.event(second)
    assert "a: warm-up" == drawn(display, console)[3]
    display.event({**second, "phase": "measure", "phase_s": 4.0})
    assert "a: measuring  ━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌  1 of 4 s" == drawn(display, console)[3]


@pytest.mark.parametrize(
    ("phase", "item", "shown"),
    [
        ("queries", "14", "cold: query 14"),
        ("stream 2", "9", "cold: stream 2, query 9"),
        ("load", "lineitem", "cold: loading lineitem"),
        ("primary keys", "part_pkey", "cold: primary key part_pkey"),
        ("indexes", "lineitem_l_shipdate_idx", "cold: index lineitem_l_shipdate_idx"),
        ("analyze", "", "cold: ANALYZE"),
        ("reading", "the CSV files", "cold: reading the CSV files"),
        ("queries", "{0}", "cold: query {0}"),
        ("{0}", "{item}", "cold: {0} {item}"),
    ],
)
def test_an_item_of_a_run_is_named_and_counted_and_shows_its_age(phase: str, item: str, shown: str) -> None:
    display, clock, console = live(120)
    display.visit_begins("ext4", number=1, of=1, seconds_left=500.0)
    event: dict[str, Scalar] = {
        "event": "item",
        "run": "cold",
        "phase": phase,
        "item": item,
        "done": 12,
        "of": 22,
    }
    display.event(event)
    assert f"{shown}  ━━━━━━━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌  12 of 22" == drawn(display, console)[3]
    clock.now_s += 75
    assert f"{shown}  ━━━━━━━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌  12 of 22  1 min 15 s" == drawn(display, console)[3]
    # The next one begins anew.
    display.event({**event, "done": 13})
    assert drawn(display, console)[3].endswith("13 of 22")


def test_what_was_counted_before_is_forgotten_when_another_run_is_measured() -> None:
    display, clock, console = live()
    display.visit_begins("ext4", number=1, of=1, seconds_left=500.0)
    display.event({"event": "item", "run": "load", "phase": "checkpoint", "item": "", "done": 40, "of": 40})
    second: dict[str, Scalar] = {
        "event": "second",
        "run": "a",
        "phase": "measure",
        "phase_s": 4.0,
        "transactions": 10,
    }
    display.event(second)
    clock.now_s += 5
    assert "a: measuring  ━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌  1 of 4 s" == drawn(display, console)[3]
    display.event({"event": "step", "step": "cold"})
    assert drawn(display, console)[3].startswith("dropping what is cached")


def test_a_finished_visit_stays_as_one_line_with_its_figures_or_its_reason() -> None:
    display, _, console = live(120)
    display.visit_begins("ext4 [bold]x[/bold]", number=3, of=12, seconds_left=1.0)
    display.visit_ends("completed", 61.0, "read-only 1,234 tps")
    display.visit_ends("failed", 3.0, "mkfs said\x1b[2J no\nand more")
    assert [
        "✓  3/12  ext4 [bold]x[/bold]  1 min 01 s  read-only 1,234 tps",
        "✗  3/12  ext4 [bold]x[/bold]  3 s  mkfs said [2J no and more",
    ] == said(console).splitlines()


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_line_of_the_display_is_wider_than_the_terminal(width: int) -> None:
    display, _, console = live(width)
    display.visit_begins("ext4 " + "x" * 300, number=1, of=2, seconds_left=1e6)
    for _ in range(100):
        display.event(
            {"event": "second", "run": "r" * 90, "phase": "measure", "phase_s": 9.0, "transactions": 10**7}
        )
    lines = drawn(display, console)
    assert 5 == len(lines)
    assert max(map(len, lines)) <= width


def test_the_display_may_be_drawn_while_events_come() -> None:
    display, _, _console = live()
    # Threads take turns so often that a second of them meets in the middle of a list, without a lock.
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    display.visit_begins("ext4", number=1, of=1, seconds_left=5.0)
    stop = threading.Event()
    failures: list[BaseException] = []

    def draw() -> None:
        try:
            while not stop.is_set():
                display.draw()
        except RuntimeError as error:
            failures.append(error)

    thread = threading.Thread(target=draw)
    thread.start()
    for transactions in range(2000):
        display.event(
            {
                "event": "second",
                "run": "r",
                "phase": "measure",
                "phase_s": 9.0,
                "transactions": transactions,
            }
        )
    stop.set()
    thread.join()
    sys.setswitchinterval(interval_s)
    assert [] == failures


def test_in_a_log_each_visit_is_two_lines(capsys: pytest.CaptureFixture[str]) -> None:
    display = LineDisplay()
    display.note("going on")
    for done in range(3):
        display.preparing("PostgreSQL 18: compile", done, 3)
    display.visit_begins("ext4 · repetition 1", number=1, of=2, seconds_left=125.0)
    display.event({"event": "step", "step": "mkfs"})
    display.visit_ends("failed", 3.4, "no\x1b[31m\nroom")
    assert [
        "going on",
        "PostgreSQL 18: compile",
        "PostgreSQL 18: compile: 33 %",
        "PostgreSQL 18: compile: 66 %",
        "[1/2] ext4 · repetition 1 … about 2 min 05 s left in all",
        "        failed in 3 s  no [31m room",
    ] == capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(("terminal", "term"), [(False, "xterm"), (True, "dumb")])
def test_where_nothing_can_be_redrawn_there_are_lines(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, term: str
) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    assert isinstance(display_for_terminal(), LineDisplay)


def test_on_a_terminal_it_is_drawn_and_gives_the_cursor_back(repository: Path) -> None:
    program = (
        "from bedplate.campaign.display import display_for_terminal\n"
        "with display_for_terminal() as display:\n"
        "    display.visit_begins('ext4', number=1, of=2, seconds_left=9)\n"
        "    display.visit_ends('completed', 2, 'read-only 5 tps')\n"
    )
    ours, theirs = os.openpty()
    done = subprocess.run(
        [sys.executable, "-c", program],
        stdout=theirs,
        check=False,
        env={**os.environ, "TERM": "xterm", "PYTHONPATH": str(repository / "src")},
    )
    os.close(theirs)
    shown = os.read(ours, 1 << 20).decode()
    os.close(ours)
    assert 0 == done.returncode
    assert "read-only 5 tps" in shown
    assert "visit 1 of 2" in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")


@given(st.floats(allow_nan=False), st.integers(1, 80))
def test_a_bar_has_its_width_and_is_full_or_empty_only_at_the_ends(fraction: float, width: int) -> None:
    drawn_bar = bar(fraction, width)
    assert width == len(drawn_bar)
    assert drawn_bar == "━" * drawn_bar.count("━") + "╌" * drawn_bar.count("╌")
    if width > 1:
        assert (fraction >= 1) == ("╌" not in drawn_bar)
        assert (fraction <= 0) == ("━" not in drawn_bar)


@given(st.lists(st.integers(0, 10**9), max_size=60))
def test_a_sparkline_has_a_mark_a_second_in_the_order_of_the_values(values: list[int]) -> None:
    line = sparkline(values)
    assert len(values) == len(line)
    assert [value == 0 for value in values] == [mark == " " for mark in line]
    marks = dict(zip(values, line, strict=True))
    assert [marks[value] for value in sorted(marks)] == sorted(marks.values())
    if any(values):
        assert "█" == marks[max(values)]


@given(st.text())
def test_what_tools_said_cannot_command_a_terminal(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable() or not shown
    assert printable(shown) == shown
