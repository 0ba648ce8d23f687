"""One try of a fault from an empty directory to where its engine is ended: what ends it, and what is waited for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bedplate.cuts.faults import CONTROLS, FAULTS, Fault, fault_named
from bedplate.errors import BedplateError, KilledFromOutside
from bedplate.model.free_space import AgedCopy
from bedplate.model.reason import Reason, because, reasons_of
from bedplate.workloads.faulty_disk import visit
from bedplate.workloads.faulty_disk.visit import FaultTrial, _Course, _require_untorn

AGED = AgedCopy("0123456789abcdef", "6f0c3f0e-0d5e-4f4e-9d25-5a4f1b4a1c11", settled=False)


@contextmanager
def opened(session: object) -> Iterator[object]:
    yield session


class Preloaded:
    """The library in a server, by what it counted."""

    def __init__(self, **refused: int) -> None:
        self.refused = refused

    def counted(self) -> Any:
        return SimpleNamespace(refused=self.refused)

    def refusal(self) -> Reason | None:
        return because("pages-refused", f"refused: {self.refused}") if self.refused else None


@pytest.mark.parametrize(
    ("untorn", "name", "is_refused"),
    [
        (None, "control-none", False),
        (Preloaded(), "control-none", False),
        (Preloaded(EINVAL=2), "control-none", True),
        (Preloaded(ENOSPC=2), "control-none", True),
        (Preloaded(ENOSPC=2), "write-once-data", True),
        # What has no room refuses pages: that is the fault.
        (Preloaded(ENOSPC=2), "no-space", False),
        (Preloaded(ENOSPC=2), "full", False),
        (Preloaded(ENOSPC=2, EINVAL=1), "full", True),
    ],
)
def test_a_page_that_was_not_written_untorn_is_an_error_of_the_run(
    untorn: Preloaded | None, name: str, is_refused: bool
) -> None:
    fault, asked = fault_named(name), cast("Any", untorn)
    if not is_refused:
        _require_untorn(asked, fault)
        return
    with pytest.raises(BedplateError, match="refused: ") as caught:
        _require_untorn(asked, fault)
    assert ["pages-refused"] == [reason.code for reason in reasons_of(caught.value)]


def written(place: Path, fault: Fault, writer: object, setup: dict[str, object]) -> _Course:
    """What a try saw of a fault of this writer's disk."""
    made = SimpleNamespace(
        age=SimpleNamespace(fill_up=lambda: None, aged=AGED),
        journal_bytes=None,
        data_directory=place / "data",
        untorn=None,
        complaints=tuple,
        recorder=SimpleNamespace(status=lambda: SimpleNamespace(fault_hits=1, first_hit=None, entries=77)),
    )
    vars(made).update(setup)
    engine = SimpleNamespace(cuts=SimpleNamespace(writer=lambda *_, **__: writer))
    tried = FaultTrial(
        *(
            cast("Any", SimpleNamespace(log_directory=place)),
            cast("Any", None),
            cast("Any", engine),
            "postgresql",
        ),
        clients=1,
        duration_s=1.0,
        image_bytes=65536,
    )
    tried._write(cast("Any", made), fault, course := _Course(), seed=1, logs=place)
    return course


@pytest.fixture
def unmapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks where on a disk anything is."""
    monkeypatch.setattr(FaultTrial, "_map", lambda *_: None)
    monkeypatch.setattr(FaultTrial, "_look_at_place", lambda *_: None)


def made_writer(**other: object) -> SimpleNamespace:
    """Of a server that drives its clients without trouble."""
    writer = SimpleNamespace(
        bound_ms=None,
        bound_transactions=None,
        was_killed=False,
        checkpoints=lambda: None,
        drive=lambda *_, **__: SimpleNamespace(version="18"),
    )
    vars(writer).update(other)
    return writer


@pytest.mark.usefixtures("unmapped")
def test_a_try_reads_what_the_preloaded_library_counted(tmp_path: Path) -> None:
    control = CONTROLS["control-none"]
    with pytest.raises(BedplateError, match="EOPNOTSUPP"):
        written(tmp_path, control, made_writer(), {"untorn": Preloaded(EOPNOTSUPP=3)})
    course = written(tmp_path, control, made_writer(), {"untorn": Preloaded()})
    assert course.writable
    assert AGED == course.aged


@pytest.mark.usefixtures("unmapped")
def test_a_server_that_the_kernel_killed_has_not_stopped(tmp_path: Path) -> None:
    def drive(*_: object, **__: object) -> None:
        raise BedplateError("client 0, transaction 7: the server closed the connection")

    fault = FAULTS["write-once-data"]
    assert written(tmp_path, fault, made_writer(drive=drive), {}).trouble is not None
    with pytest.raises(KilledFromOutside):
        written(tmp_path, fault, made_writer(drive=drive, was_killed=True), {})


@pytest.mark.usefixtures("unmapped")
def test_what_a_library_left_in_the_page_cache_is_on_the_disk_before_its_state_is_taken(
    tmp_path: Path,
) -> None:
    settled: list[int] = []
    setup: dict[str, object] = {"settle": lambda: settled.append(1)}
    quiet = written(tmp_path, FAULTS["lost-once-journal"], made_writer(), setup)
    assert (77, [1]) == (quiet.position, settled)
    assert written(tmp_path, FAULTS["write-once-journal"], made_writer(), setup).position is None


@pytest.mark.usefixtures("unmapped")
@pytest.mark.parametrize(
    ("name", "bound_ms", "is_server", "waits_s", "ended_early"),
    [
        ("lost-once-log", 600.0, True, [0.6], False),
        ("rot-sector-log", 600.0, True, [0.6], False),
        ("lost-once-log", 5_400_000.0, True, [60.0], True),
        # What waits for its commits has nothing in memory, and a library's memory is the kernel's.
        ("lost-once-log", None, True, [], False),
        ("lost-once-log", 600.0, False, [], False),
        # A checkpoint writes the log.
        ("lost-once-data", 600.0, True, [], False),
    ],
)
def test_a_server_may_write_what_its_settings_let_wait_before_it_is_ended(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    name: str,
    bound_ms: float | None,
    is_server: bool,
    waits_s: list[float],
    ended_early: bool,
) -> None:
    waited: list[float] = []
    event = SimpleNamespace(wait=waited.append)
    monkeypatch.setattr(visit, "threading", SimpleNamespace(Event=lambda: event, Thread=Thread))
    monkeypatch.setattr(FaultTrial, "_find_what_rots", lambda *_: None)
    session = SimpleNamespace(checkpoint=lambda: None)
    writer = made_writer(bound_ms=bound_ms, checkpoints=lambda: opened(session) if is_server else None)
    course = written(tmp_path, FAULTS[name], writer, {})
    assert (waits_s, ended_early) == (waited, course.ended_early)
