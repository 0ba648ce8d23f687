"""Deadlines, deaths and last words of a guest, on a clock and a line of the test's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bedplate.executors.qemu.guest import (
    TCG,
    BootCrashed,
    Channel,
    Control,
    Deadlines,
    Guest,
    GuestExit,
    GuestFailed,
    GuestGone,
    GuestSpec,
    Message,
    QemuProcess,
    read_console,
)
from bedplate.model.cell import Dataset, RunSpec
from bedplate.model.levels import Levels
from bedplate.units import GIB

LIMITS = Deadlines(visit_s=100, load_s_per_scale=2)
DIES = object()
ENDED = {"agent": "ended", "status": 0, "tainted": 0}
ALIVE = {"agent": "alive"}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class FakeChannel(Channel):
    """Says each of `script` at its second; `DIES` closes the line."""

    def __init__(self, clock: Clock, script: Iterable[tuple[float, Any]]) -> None:
        self.fake_clock = clock
        self.script = list(script)
        self.sent: list[str] = []

    def send(self, line: str) -> None:
        self.sent.append(line)

    def receive(self, *, until: float) -> Message | None:
        if not self.script or self.script[0][0] > until:
            self.fake_clock.now = until
            return None
        second, message = self.script.pop(0)
        self.fake_clock.now = max(self.fake_clock.now, second)
        if message is DIES:
            raise GuestGone
        return message  # type: ignore[no-any-return]

    def close(self) -> None:
        pass


class FakeProcess(QemuProcess):
    def __init__(self, status: int = 0, said: str = "") -> None:
        self.status = status
        self.running = True
        self.words = said

    @property
    def output(self) -> str:
        return self.words

    def is_running(self) -> bool:
        return self.running

    def end(self, *, gently: bool) -> int:
        self.running = False
        return self.status

    def wait(self) -> int:
        return self.end(gently=False)


class FakeControl(Control):
    def __init__(self) -> None:
        pass

    def close(self) -> None:
        pass


class Stage:
    def __init__(self, tmp_path: Path, *script: tuple[float, Any], status: int = 0, said: str = "") -> None:
        self.console = tmp_path / "console.log"
        self.clock = Clock()
        self.process = FakeProcess(status, said)
        self.channel = FakeChannel(self.clock, script)
        self.events: list[Mapping[str, object]] = []
        self.guest = Guest(
            GuestSpec(Path("/k"), Path("/i"), TCG, GIB, 2, ()),
            process=self.process,
            channel=self.channel,
            control=FakeControl(),
            console=self.console,
            clock=self.clock,
        )

    def live(self, limit_s: float = 1000.0) -> GuestExit:
        return self.guest.live(3, limit_s=limit_s, silence_s=30, on_event=self.events.append)


def test_a_visit_is_asked_for_and_its_events_are_passed_on(tmp_path: Path) -> None:
    step = {"event": "step", "step": "mkfs"}
    stage = Stage(tmp_path, (1, step), (2, ALIVE), (3, "Traceback"), (4, "ValueError: x"), (5, ENDED))
    ended = stage.live()
    assert ["visit 3"] == stage.channel.sent
    assert [step] == stage.events
    assert GuestExit(0, "Traceback\nValueError: x", broken=False) == ended
    assert stage.process.running


def test_the_boot_is_over_when_the_agent_is_ready(tmp_path: Path) -> None:
    stage = Stage(tmp_path, (9, "SeaBIOS"), (12, {"agent": "ready", "tainted": 4096}))
    stage.guest.wait_until_ready(60)
    assert 12 == stage.guest.boot_seconds


def test_a_boot_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    stage = Stage(tmp_path, (61, {"agent": "ready"}))
    with pytest.raises(GuestFailed, match="was not ready after 1 min 00 s") as caught:
        stage.guest.wait_until_ready(60)
    assert not stage.process.running
    assert "(it is empty)" in caught.value.reasons[-1]


@pytest.mark.parametrize(
    ("console", "kind"),
    [
        (b"[ 1.5] Kernel panic - not syncing: Fatal exception in interrupt\r\n", BootCrashed),
        (b"bedplate: no share was found\r\n", GuestFailed),
        (b"", GuestFailed),
    ],
)
def test_a_panic_is_a_reason_to_boot_again_and_silence_is_none(
    tmp_path: Path, console: bytes, kind: type
) -> None:
    stage = Stage(tmp_path, (5, DIES))
    stage.console.write_bytes(console)
    with pytest.raises(GuestFailed, match="died while it booted") as caught:
        stage.guest.wait_until_ready(60)
    assert kind is caught.type


@pytest.mark.parametrize(
    ("status", "kind"), [(-11, BootCrashed), (-6, BootCrashed), (-9, GuestFailed), (1, GuestFailed)]
)
def test_a_crash_of_qemu_is_a_reason_to_boot_again_and_its_end_by_others_is_none(
    tmp_path: Path, status: int, kind: type
) -> None:
    stage = Stage(tmp_path, (5, DIES), status=status)
    with pytest.raises(GuestFailed, match="died while it booted") as caught:
        stage.guest.wait_until_ready(60)
    assert kind is caught.type
    stage = Stage(tmp_path, (5, DIES), status=status)
    with pytest.raises(GuestFailed, match="died while it worked") as caught:
        stage.live()
    assert GuestFailed is caught.type


def test_a_silent_guest_hangs_and_is_killed(tmp_path: Path) -> None:
    stage = Stage(tmp_path, (10, ALIVE), (20, {"event": "step", "step": "load"}), (51, ALIVE))
    with pytest.raises(GuestFailed, match=r"hangs: it said nothing for 30 s, and was killed"):
        stage.live()
    assert 50 == stage.clock.now
    assert not stage.process.running


def test_a_guest_that_speaks_may_take_as_long_as_the_visit_may(tmp_path: Path) -> None:
    stage = Stage(tmp_path, *((second, ALIVE) for second in range(10, 900, 10)), (901, ENDED))
    assert 0 == stage.live(limit_s=1000).status


def test_a_visit_that_never_ends_is_given_up_though_the_guest_lives(tmp_path: Path) -> None:
    stage = Stage(tmp_path, *((second, ALIVE) for second in range(10, 2000, 10)))
    with pytest.raises(GuestFailed, match="was not done within 3 min 20 s"):
        stage.live(limit_s=200)
    assert 200 == stage.clock.now


def test_a_panic_is_named_with_the_consoles_last_lines(tmp_path: Path) -> None:
    stage = Stage(tmp_path, (5, DIES))
    stage.console.write_bytes(
        b"\x1bc\x1b[?7l\x1b[2JSeaBIOS\r\n[  1.0] sysrq: Trigger a crash\r\n"
        b"[  1.1] Kernel panic - not syncing: sysrq triggered crash\r\n"
        + b"".join(b"frame %d\r\n" % number for number in range(30))
    )
    with pytest.raises(GuestFailed) as caught:
        stage.live()
    first, last = caught.value.reasons
    assert (
        "the guest died while it worked (QEMU ended with status 0): "
        "Kernel panic - not syncing: sysrq triggered crash" == first
    )
    assert last.endswith("frame 28 | frame 29")
    assert "frame 17" not in last
    assert "\x1b" not in last


def test_a_killed_qemu_is_named_by_its_signal_and_its_own_words(tmp_path: Path) -> None:
    stage = Stage(tmp_path, (5, DIES), status=-9, said="qemu: cannot allocate memory")
    with pytest.raises(GuestFailed, match="killed by signal 9") as caught:
        stage.live()
    assert "QEMU said: qemu: cannot allocate memory" == caught.value.reasons[1]


def test_an_interruption_ends_the_guest(tmp_path: Path) -> None:
    stage = Stage(tmp_path, (5, {"event": "step"}))

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stage.guest.live(1, limit_s=10, silence_s=30, on_event=interrupt)
    assert not stage.process.running


@pytest.mark.parametrize(
    ("before", "after", "broken"),
    [
        (0, 0, False),
        (0, 1 << 7, True),
        (0, 1 << 9, True),
        (0, 1 << 14, True),
        # Modules from outside the tree, and a warning that was there at boot, say nothing of the visit.
        (0, 1 << 12 | 1, False),
        (1 << 9, 1 << 9, False),
        (1 << 9, 1 << 9 | 1 << 7, True),
    ],
)
def test_a_kernel_that_warned_serves_no_other_visit(
    tmp_path: Path, before: int, after: int, broken: bool
) -> None:
    stage = Stage(tmp_path, (1, {"agent": "ready", "tainted": before}), (2, {**ENDED, "tainted": after}))
    stage.guest.wait_until_ready(60)
    assert broken is stage.live().broken


def test_what_a_guest_says_does_not_fill_our_memory(tmp_path: Path) -> None:
    stage = Stage(tmp_path, *((1, f"line {number}") for number in range(5000)), (2, ENDED))
    said = stage.live().said.splitlines()
    assert "line 4999" == said[-1]
    assert len(said) < 300


def test_a_visits_limit_grows_with_what_was_asked() -> None:
    class Request:
        runs = (
            RunSpec("a", "pgbench", Levels({"warmup_s": 10, "duration_s": 60})),
            RunSpec("b", "pgbench", Levels({"duration_s": 30.0})),
        )
        dataset = Dataset("pgbench", Levels(scale=25))

    assert 100 + 2 * 100 + 25 * 2 == LIMITS.of_visit(Request())  # type: ignore[arg-type]


def test_a_console_that_is_long_or_absent_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "console.log"
    assert "" == read_console(path)
    path.write_bytes(b"x" * 100_000 + b"\nlast\n")
    assert read_console(path).endswith("\nlast\n")
    assert len(read_console(path)) < 20_000
