"""A signal before any line of a program's start leaves no process that nobody knows of."""

from __future__ import annotations

import os
import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.tools.interrupted import in_functions, interrupted_at_each_line
from tests.support.tools.unrestricted import UNRESTRICTED

from bedplate.engines.postgresql import prepare
from bedplate.errors import BedplateError
from bedplate.host import recorder
from bedplate.host.command import Account, Commands
from bedplate.host.ledger import Ledger
from bedplate.visit import server
from bedplate.visit.recording import ToolProcess
from bedplate.workloads.acks.visit import PipeReader
from bedplate.workloads.power_cut import bench

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import IO

_SLEEPS = ("sleep", "600")
_ROOT = Account("root", 0, 0)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "state", "visit") as opened:
        yield opened
        opened.release(Commands())


def program_at(path: Path, lines: str) -> str:
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return str(path)


def require_no_child(where: str) -> None:
    """Neither one that runs nor one that nobody has waited for."""
    with pytest.raises(ChildProcessError):
        pytest.fail(f"{where} leaves process {os.waitpid(-1, os.WNOHANG)}")


def require_none_left(deed: Callable[[], object], *functions: tuple[str, ...], lines_min: int) -> None:
    parts = [in_functions(*each) for each in functions]
    places = []
    for place in interrupted_at_each_line(deed, of=lambda code: any(part(code) for part in parts)):
        require_no_child(place)
        places.append(place)
    require_no_child("no signal")
    assert lines_min <= len(places)


def test_of_a_tool(tmp_path: Path) -> None:
    context: Any = SimpleNamespace(enter_group=lambda: None, account=_ROOT, commands=Commands())

    def deed() -> None:
        tool = ToolProcess(
            _SLEEPS,
            context=context,
            output=tmp_path / "said",
            directory=tmp_path,
            confinement=UNRESTRICTED,
            name="it",
        )
        with tool:
            pass

    require_none_left(deed, ("visit/recording.py", "__enter__", "_start"), lines_min=6)


def test_of_the_reader_of_acks(tmp_path: Path) -> None:
    program = program_at(tmp_path / "reader", "exec sleep 600")

    def deed() -> None:
        with PipeReader((program,), errors=tmp_path / "errors"):
            pass

    require_none_left(deed, ("workloads/acks/visit.py", "__enter__"), lines_min=6)


def test_of_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(argv: tuple[str, ...], *_: object) -> subprocess.Popen[bytes]:
        return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    monkeypatch.setattr(server, "_started", started)

    def deed() -> None:
        session = server.PipedSession(("cat",), UNRESTRICTED)
        session.close()

    require_none_left(deed, ("visit/server.py", "__init__"), lines_min=6)


def _sleeper(argv: object, stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(_SLEEPS, stdout=subprocess.PIPE, stderr=stderr, start_new_session=True)


def test_of_the_workers_that_replay_cuts(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "started_apart", _sleeper)
    monkeypatch.setattr("bedplate.model.codec.write", lambda file, _: file.touch())
    job: Any = None

    def deed() -> None:
        with bench.Workers(tmp_path / "log", job, 2, memory=tmp_path, ledger=ledger):
            pass

    require_none_left(deed, ("workloads/power_cut/bench.py", "__enter__", "_begin"), lines_min=20)
    assert {"state"} == {path.name for path in tmp_path.iterdir() if path.suffix != ".err"}
    assert () == ledger.holdings()


def test_of_the_recorder(tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    program = program_at(tmp_path / "driver", """echo '{"ready": true}'; exec sleep 600""")

    def started(_argv: object, _folder: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen((program,), stdout=subprocess.PIPE, start_new_session=True)

    monkeypatch.setattr(recorder, "_popen", started)
    monkeypatch.setattr(recorder, "recorder_reasons", lambda: ())
    monkeypatch.setattr(recorder, "room_reasons", lambda *_: ())
    folders = iter(range(10**6))

    def deed() -> None:
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        begun = recorder.Recorder.start(
            tmp_path, folder, recorder.RecorderSizes(1, 1), ledger=ledger, commands=Commands()
        )
        begun.abandon()

    require_none_left(deed, ("host/recorder.py", "start", "_wait_until_ready"), lines_min=15)
    assert () == ledger.release(Commands())


def test_of_a_worker_that_restores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "started_apart", _sleeper)

    def deed() -> None:
        def tell(_: str) -> None:
            raise BedplateError("enough")

        monkeypatch.setattr(prepare, "_lines", lambda _process: iter(("one",)))
        with pytest.raises(BedplateError):
            prepare._run(tmp_path / "job.json", "it", tell)

    # Up to the first line of its own: behind that its `finally` is at work.
    require_none_left(deed, ("host/interruption.py", "defer_interruptions"), lines_min=4)
