"""What a job does as root: which failures are a visit's, and which are the machine's."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from bedplate.errors import BedplateError, DeviceInUse, MachineUnfit, RequirementMissing, VisitFailed
from bedplate.executors.local import LocalRunner
from bedplate.executors.slurm import on_node
from bedplate.executors.slurm.payload import STARTED
from bedplate.host.interruption import defer_interruptions


@pytest.fixture(autouse=True)
def _own_handlers() -> Iterator[None]:
    """The process that it is has handlers of its own for the rest of its life."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    umask = os.umask(0o022)
    yield
    os.umask(umask)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (None, (0, "")),
        (
            VisitFailed("visit process", "the visit was killed by signal 9"),
            (1, "the visit was killed by signal 9\n"),
        ),
        (MachineUnfit("/: No space left", "and no more"), (3, "/: No space left\nand no more\n")),
        (DeviceInUse("/dev/sdb is in use"), (3, "/dev/sdb is in use\n")),
        (RequirementMissing("this node is not what it was"), (3, "this node is not what it was\n")),
        (OSError(errno.EROFS, "Read-only file system", "/run/b"), (3, "/run/b: Read-only file system\n")),
    ],
)
def test_the_status_says_whose_failure_it_was(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    failure: Exception | None,
    expected: tuple[int, str],
) -> None:
    def live(*_words: object, **_more: object) -> None:
        # Whatever comes of it, the job can tell that it came so far.
        assert (tmp_path / STARTED).exists()
        if failure is not None:
            raise failure

    monkeypatch.setattr(on_node, "_live", live)
    status = on_node.main([str(tmp_path / "request.json"), str(tmp_path)])
    assert expected == (status, capsys.readouterr().err)


def test_a_request_that_cannot_be_read_is_no_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 3 == on_node.main([str(tmp_path / "gone.json"), str(tmp_path)])
    assert "gone.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("raised", "expected"),
    [(BedplateError("the visit was killed by signal 9"), VisitFailed), (MachineUnfit("held"), MachineUnfit)],
)
def test_what_becomes_of_a_visit_is_told_apart_from_what_the_machine_fails(
    monkeypatch: pytest.MonkeyPatch, raised: BedplateError, expected: type[BedplateError], tmp_path: Path
) -> None:
    def fails(*_words: object) -> None:
        raise raised

    monkeypatch.setattr(LocalRunner, "run_visit", fails)
    with pytest.raises(expected, match=raised.reasons[0]):
        on_node.live_one(None, tmp_path)  # type: ignore[arg-type]


def test_the_end_of_a_job_waits_for_what_is_being_taken() -> None:
    on_node._end_on_signals()
    reached: list[str] = []

    def take() -> None:
        with defer_interruptions():
            signal.raise_signal(signal.SIGTERM)
            reached.append("the end")

    with pytest.raises(on_node.JobOver):
        take()
    assert ["the end"] == reached
