"""A writer that is timed: programs of the tests' own, without the confinement that only root can give."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from bedplate.engines.external.prepare import PROGRAMS_KEY
from bedplate.figures.courses import read_latency_log
from bedplate.figures.transactions import transaction_count
from bedplate.host.command import Account, Commands
from bedplate.host.shut_in import DATA, PROGRAMS, Confinement
from bedplate.model.cell import ClusterLevels, RunSpec
from bedplate.model.levels import Levels, Scalar
from bedplate.model.visit import Outcome, RunRecord
from bedplate.units import GIB
from bedplate.visit.declaration import WAITING_CLIENTS, WAITING_COMMITS, WAITING_FLUSHES
from bedplate.visit.recording import ToolProcess
from bedplate.workloads.acks.model import read_summary
from bedplate.workloads.acks.visit import RUN

if TYPE_CHECKING:
    from bedplate.visit.recording import VisitContext

Run = Callable[..., RunRecord]
ENGINE = 'name = "brickbase"\n'
ENDLESS = "number=0; while :; do number=$((number + 1)); echo ack 0 $number; sleep 0.01; done"


@pytest.fixture
def told() -> list[Mapping[str, Scalar]]:
    return []


@pytest.fixture
def unconfined(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is confined runs as it is, in its own folder, by the names that are outside."""

    def become(confinement: Confinement) -> None:
        os.closerange(3, 1000)
        argv = [
            word.replace(PROGRAMS, str(confinement.programs)).replace(DATA, str(confinement.data))
            for word in confinement.argv
        ]
        os.execv(argv[0], argv)  # noqa: S606 -- no shell

    monkeypatch.setattr(Confinement, "child", lambda own: nullcontext(partial(become, own)))


@pytest.fixture
def run(tmp_path: Path, log_reader: Path, told: list[Mapping[str, Scalar]], unconfined: None) -> Run:
    """Runs the lines of a shell as a writer for `duration_s` after `warmup_s`."""

    def made(
        text: str, *, warmup_s: float = 0.0, duration_s: float = 0.2, engine: str = ENGINE, probes: Any = ()
    ) -> RunRecord:
        for name in ("data", "engine", "run/logs"):
            (tmp_path / name).mkdir(parents=True)
        writer = tmp_path / "engine" / "writer"
        writer.write_text(f"#!/bin/sh\n{text}\n")
        writer.chmod(0o755)
        context = SimpleNamespace(
            account=Account("me", os.getuid(), os.getgid()),
            commands=Commands(),
            data_directory=tmp_path / "data",
            emit=told.append,
            engine_settings=Levels(),
            enter_group=lambda: None,
            log_directory=tmp_path,
            memory_bytes=GIB,
            mount_point=tmp_path,
            native_drivers={PROGRAMS_KEY: str(writer.parent), "pgbench_log": str(log_reader)},
            probes=probes,
            request=SimpleNamespace(cell=SimpleNamespace(cluster=ClusterLevels(configuration=engine))),
            seed=7,
            tool_versions={},
        )
        spec = RunSpec("acks", "acks", Levels(clients=1, warmup_s=warmup_s, duration_s=duration_s))
        return RUN.run(spec, cast("VisitContext", context), tmp_path / "run")

    return made


def test_what_is_acknowledged_in_the_window_is_counted_and_the_writer_ended(
    run: Run, tmp_path: Path, told: list[Mapping[str, Scalar]]
) -> None:
    record = run(f"echo brickbase 1 >&2; echo $@ >told; echo begin; {ENDLESS}", warmup_s=0.2, duration_s=1.0)
    assert [] == [str(reason) for reason in record.reasons]
    assert Outcome.COMPLETED is record.outcome
    assert ["warmup", "measure"] == [phase.name for phase in record.phases]
    found = read_summary(tmp_path / "run" / "logs")
    logs = [read_latency_log(tmp_path / "run" / f"{name}.bin") for name in ("warmup", "measure")]
    assert all(log.complete for log in logs)
    assert transaction_count(logs[1]) == found.transactions
    (measured,) = (phase for phase in record.phases if phase.name == "measure")
    # The reader's clock runs from when it hears that it begins: on a loaded machine that is late, and what it counts is less.
    assert 0 < found.duration_s <= measured.end_monotonic_s - measured.start_monotonic_s
    assert 1.0 <= measured.end_monotonic_s - measured.start_monotonic_s
    assert {"clients": 1, "duration_s_asked": 1.0}.items() <= record.facts.items()
    # It was told of a longer time than it had, and what it left is gone.
    assert "--duration=6" in " ".join(record.commands[0])
    assert [] == list((tmp_path / "data").iterdir())
    assert "measure" in {event["phase"] for event in told}


class _Flushes:
    """A device that was flushed three times since it was last looked at."""

    name = "device"

    def __init__(self) -> None:
        self._count = 0

    def read(self) -> Mapping[str, float]:
        self._count += 3
        return {"device.flushes": self._count}


@pytest.mark.parametrize(("promised", "is_held"), [("durable", True), ("bounded loss", False)])
def test_who_promises_to_wait_is_held_against_the_flushes_of_the_window(
    run: Run, tmp_path: Path, promised: str, *, is_held: bool
) -> None:
    promise = f'[[promise]]\nclass = "{promised}"\nsource = "a test"\n'
    record = run(f"echo begin; {ENDLESS}", duration_s=0.3, engine=ENGINE + promise, probes=(_Flushes(),))
    assert [] == [str(reason) for reason in record.reasons]
    acks = read_summary(tmp_path / "run" / "logs").transactions
    (counters,) = [found for found in record.phase_counters if found.phase == "measure"]
    flushes = counters.after.values["device.flushes"] - counters.before.values["device.flushes"]
    assert 0 < acks
    assert is_held == (
        {WAITING_COMMITS: acks, WAITING_FLUSHES: flushes, WAITING_CLIENTS: 1}.items() <= record.facts.items()
    )


@pytest.mark.parametrize(
    ("writer", "warmup_s", "said"),
    [
        ("echo begin; echo broken >&2; exit 3", 0.0, "the writer of brickbase ended with status 3: broken"),
        ("echo begin; kill -SEGV $$", 60.0, "the writer of brickbase was ended by SIGSEGV"),
        ("echo begin; exec sleep 4242", 0.0, "the writer of brickbase acknowledged nothing in 0.2 s"),
        (
            "echo begin; echo ack 0 1; echo ack 0 1; exec sleep 4242",
            60.0,
            "found 'ack 0 1, behind 1 of client 0'",
        ),
        ("echo begin; echo hello; exec sleep 4242", 60.0, "found 'hello'"),
        # Without a pipe it ends by a signal: what it printed is the cause.
        (f"echo begin; {ENDLESS.replace('ack 0', 'ack 1')}", 60.0, "found 'ack 1 1'"),
        (":", 0.0, "ended before it printed `begin`"),
        ("echo begin; echo ack 0 1", 60.0, "the writer of brickbase ended before its measurement began"),
    ],
)
def test_a_writer_that_cannot_be_timed_says_why(run: Run, writer: str, warmup_s: float, said: str) -> None:
    record = run(writer, warmup_s=warmup_s)
    assert Outcome.FAILED is record.outcome
    assert said in str(record.reasons[0])


@pytest.mark.parametrize(
    ("deep", "said"),
    [(1100, []), (2200, ["what the writer of brickbase left cannot be measured: File name too long"])],
)
def test_folders_in_folders_are_measured_and_removed(
    run: Run, tmp_path: Path, deep: int, said: list[str]
) -> None:
    digs = f"python3 -c \"import os\nfor _ in range({deep}): os.mkdir('d'); os.chdir('d')\nopen('f', 'w').write('four')\""
    record = run(f"cd $1; {digs}; echo begin; {ENDLESS}", duration_s=0.5)
    assert said == [str(reason) for reason in record.reasons]
    assert said or 4 == record.facts["database_bytes"]
    assert [] == list((tmp_path / "data").iterdir())


def test_what_a_confined_writer_says_is_kept_within_bounds(tmp_path: Path, unconfined: None) -> None:
    talks = "import sys\nsys.stderr.write('first\\n' + 'x' * 5_000_000 + '\\nlast words\\n'); sys.exit(3)"
    confinement = Confinement(("/usr/bin/python3", "-c", talks), tmp_path, tmp_path, Account("me", 0, 0))
    context = SimpleNamespace(enter_group=lambda: None, commands=Commands())
    tool = ToolProcess(
        confinement.argv,
        cast("VisitContext", context),
        output=tmp_path / "said",
        directory=tmp_path,
        name="it",
        confinement=confinement,
    )
    with tool:
        ended = tool.wait(limit_s=60)
    assert ended.problem is not None
    assert (True, True) == (ended.problem.endswith("x | last words"), len(ended.problem) < 2100)
    assert 2**20 < tool.errors.stat().st_size < 2**20 + 2**15
    kept = tool.errors.read_text()
    assert (True, True) == (kept.startswith("first\n"), "x\n(not all of it was kept)\nx" in kept)


@pytest.mark.parametrize(
    ("limit", "writer", "said"),
    [
        ("PREPARATION_LIMIT_S", "exec sleep 4242", "printed no line"),
        (
            "PATIENCE_S",
            "trap '' TERM; echo begin; echo ack 0 1; while :; do sleep 4242; done",
            "after SIGTERM",
        ),
    ],
)
def test_a_writer_that_never_begins_or_never_ends_is_killed(
    run: Run, monkeypatch: pytest.MonkeyPatch, limit: str, writer: str, said: str
) -> None:
    monkeypatch.setattr(f"bedplate.workloads.acks.visit.{limit}", 0.1)
    record = run(writer)
    assert said in str(record.reasons[0])
