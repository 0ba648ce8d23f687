"""What a job does on its node: one claim, visits in order, results whole or absent, root by sudo."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bedplate.executors.slurm import payload
from bedplate.executors.slurm.job_folder import (
    FAILURE,
    ORDER_VERSION,
    WITHDRAWN,
    JobClaim,
    JobFolder,
    JobOrder,
    OrderedVisit,
    Settled,
)
from bedplate.executors.slurm.payload import STARTED, WHOLE, Payload, main
from bedplate.host.cache import put_in_place
from bedplate.host.process import wait_until
from bedplate.model.visit import VisitKey

SOURCES = Path(__file__).resolve().parents[4]
# Stands where a visit would: notes its words, and does what its request says.
VISIT = """
import json, pathlib, sys, time
words = sys.argv[1:]
directory = pathlib.Path(words[-1])
with open(words[0], "a") as log:
    log.write(json.dumps(words[1:]) + "\\n")
deed = pathlib.Path(words[0]).with_name("deed").read_text()
if deed == "refuse":
    sys.exit("sudo: a password is required")
(directory / "started").touch()
if deed == "fail":
    sys.exit("Segmentation fault")
if deed == "unfit":
    print("/dev/sdb is held by process 7", "/: No space left on device", sep="\\n", flush=True)
    sys.exit(3)
if deed == "wait":
    stop = pathlib.Path(words[words.index("--stop-file") + 1])
    while not stop.exists():
        time.sleep(0.01)
    sys.exit(130)
(directory / "visit.json").write_text("{}")
"""


class Bench:
    def __init__(self, place: Path) -> None:
        self.place = place
        self.words = place / "words"
        (place / "visit.py").write_text(VISIT)
        (place / "local").mkdir()
        self.folder = JobFolder(place / "jobs" / "1.1")
        self.order = JobOrder(
            ORDER_VERSION,
            "bedplate-x-1.1",
            "n1",
            1,
            tuple(OrderedVisit(n, n, VisitKey("c", "d", 1, 1)) for n in range(2)),
            (sys.executable, "-S", str(place / "visit.py"), str(self.words)),
            str(place / "local"),
            3600.0,
            needs_root=False,
        )
        self.deed("complete")

    def deed(self, name: str) -> None:
        (self.place / "deed").write_text(name)

    def lay_out(self, order: JobOrder | None = None) -> None:
        self.folder.lay_out(order or self.order, {}, "")

    def environment(self, **changes: str) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(SOURCES / "src"),
            "SLURMD_NODENAME": "n1",
            "SLURM_JOB_ID": "7",
            **changes,
        }

    def start(self, **changes: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-S", "-P", "-m", "bedplate", "run-visits-of-job", str(self.folder.directory)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment(**changes),
        )

    def run(self, **changes: str) -> tuple[int, str]:
        process = self.start(**changes)
        said, _ = process.communicate(timeout=60)
        return process.returncode, said

    def lived(self) -> list[list[str]]:
        return (
            [json.loads(line) for line in self.words.read_text().splitlines()] if self.words.exists() else []
        )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def end_of(bench: Bench) -> str:
    end = bench.folder.end
    assert end is not None
    return end.why


def results_of(bench: Bench) -> int:
    end = bench.folder.end
    assert end is not None
    return end.results


def test_visits_are_lived_in_order_and_their_results_are_in_place(bench: Bench) -> None:
    bench.lay_out()
    assert 0 == bench.run()[0]
    assert "done" == end_of(bench)
    assert 2 == results_of(bench)
    assert (0, 1) == bench.folder.finished() == bench.folder.begun_visits()
    assert [str(bench.folder.request(n)) for n in (0, 1)] == [words[-2] for words in bench.lived()]
    assert all(float((bench.folder.result(n) / WHOLE).read_text()) > 0 for n in (0, 1))
    claim = bench.folder.claim
    assert claim is not None
    assert ("7", "n1") == (claim.by, claim.node)
    assert [] == list((bench.place / "local").glob("*/*"))


def test_an_order_that_somebody_has_is_left_alone(bench: Bench) -> None:
    bench.lay_out()
    bench.folder.take(JobClaim(WITHDRAWN))
    status, said = bench.run()
    assert 1 == status
    assert "somebody else's" in said
    assert [] == bench.lived()
    assert bench.folder.end is None


def test_another_node_is_refused(bench: Bench) -> None:
    bench.lay_out()
    bench.run(SLURMD_NODENAME="n2")
    assert "refused" == end_of(bench)
    assert [] == bench.lived()


def test_a_visit_whose_process_fails_is_a_result_with_its_words_and_the_next_begins(bench: Bench) -> None:
    bench.deed("fail")
    bench.lay_out()
    bench.run()
    assert (0, 1) == bench.folder.finished()
    text = (bench.folder.result(0) / FAILURE).read_text()
    assert "on n1 ended with status 1: Segmentation fault" in text
    assert not (bench.folder.result(0) / STARTED).exists()


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        ("unfit", "/dev/sdb is held by process 7; /: No space left on device"),
        ("refuse", "sudo: a password is required"),
    ],
)
def test_what_the_machine_fails_is_no_result_and_ends_the_job(bench: Bench, deed: str, words: str) -> None:
    bench.deed(deed)
    bench.lay_out()
    status, said = bench.run()
    end = bench.folder.end
    assert end is not None
    assert (1, "unfit", f"no visit can run on n1: {words}") == (status, end.why, end.sentence)
    assert words in said
    assert ((0,), (), 1) == (bench.folder.begun_visits(), bench.folder.finished(), len(bench.lived()))
    assert [] == list((bench.place / "local").glob("*/*"))


def test_a_program_that_is_not_there_is_the_machines_fault(bench: Bench) -> None:
    bench.lay_out(replace(bench.order, command=("no-such-program",)))
    assert 1 == bench.run()[0]
    end = bench.folder.end
    assert end is not None
    assert ("unfit", "no visit can run on n1: no-such-program: No such file or directory") == (
        end.why,
        end.sentence,
    )


def test_a_look_at_a_node_says_what_it_lacks(bench: Bench) -> None:
    bench.deed("unfit")
    bench.lay_out(replace(bench.order, visits=(), facts="facts.json"))
    bench.run()
    assert "done" == end_of(bench)
    assert "/dev/sdb is held" in (bench.folder.result(0) / FAILURE).read_text()


def test_a_job_that_is_asked_to_end_ends_its_visit_and_leaves_no_half_result(bench: Bench) -> None:
    bench.deed("wait")
    bench.lay_out()
    process = bench.start()
    assert wait_until(lambda: bool(bench.lived()), deadline_s=30)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=30)
    assert "stopped" == end_of(bench), said
    assert 0 == results_of(bench)
    assert ((0,), ()) == (bench.folder.begun_visits(), bench.folder.finished())
    assert [] == list((bench.place / "local").glob("*/*"))


def test_near_its_limit_a_job_says_so(bench: Bench) -> None:
    bench.deed("wait")
    bench.lay_out(replace(bench.order, limit_s=0.0))
    process = bench.start()
    assert wait_until(lambda: bool(bench.lived()), deadline_s=30)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert "limit" == end_of(bench)


@pytest.mark.parametrize(
    ("limit_s", "after_s", "why"),
    [
        (3600.0, 3300.0, "stopped"),
        # Slurm tells three minutes ahead, and may be a minute early.
        (3600.0, 3360.0, "limit"),
        (600.0, 480.0, "stopped"),
        (600.0, 590.0, "limit"),
    ],
)
def test_one_that_is_asked_to_end_long_before_its_limit_was_not_ended_by_it(
    bench: Bench, limit_s: float, after_s: float, why: str
) -> None:
    order = replace(bench.order, limit_s=limit_s)
    job = Payload(bench.folder, order, started=time.monotonic() - after_s)
    assert why == job._stopped().why


def test_a_result_waits_for_a_study_that_cannot_be_written(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.lay_out()
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    monkeypatch.setattr(payload, "_STUDY_PAUSE_S", 0.0)
    refusals = iter([True, True])

    def refused(fresh: Path, final: Path) -> None:
        if next(refusals, False):
            raise OSError(errno.EDQUOT, "Disk quota exceeded")
        put_in_place(fresh, final)

    monkeypatch.setattr(payload, "put_in_place", refused)
    job = Payload(bench.folder, bench.order, started=time.monotonic())
    assert "done" == job.run().why
    assert (0, 1) == bench.folder.finished()
    assert 2 == job.results


def test_a_study_that_can_never_be_written_ends_the_job(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.lay_out()
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    monkeypatch.setattr(payload, "STUDY_PATIENCE_S", -1.0)

    def refused(_fresh: Path, _final: Path) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(payload, "put_in_place", refused)
    with pytest.raises(OSError, match="quota"):
        Payload(bench.folder, bench.order, started=time.monotonic()).run()
    assert () == bench.folder.finished()


def test_an_orphan_that_was_given_up_begins_no_further_visit(bench: Bench) -> None:
    bench.lay_out()
    bench.folder.note_settled(Settled("NODE_FAIL", "", 1.0))
    bench.run()
    assert "refused" == end_of(bench)
    assert [] == bench.lived()


def test_a_local_directory_of_somebody_else_is_not_used(bench: Bench) -> None:
    elsewhere = bench.place / "elsewhere"
    elsewhere.mkdir()
    (bench.place / "local" / f"bedplate-{os.getuid()}").symlink_to(elsewhere)
    bench.lay_out()
    bench.run()
    end = bench.folder.end
    assert end is not None
    assert "somebody else" in end.sentence
    assert [] == list(elsewhere.iterdir())


def test_root_is_had_by_sudo_that_cannot_ask(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    job = Payload(bench.folder, replace(bench.order, needs_root=True, node_identity="d"), started=0.0)
    words = job._words(0)
    assert ["sudo", "-n", "--", sys.executable] == words[:4]
    assert "d" == words[words.index("--identity") + 1]
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "sudo" not in job._words(0)


def test_without_an_order_nothing_is_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main([str(tmp_path / "none")])
    assert "job.json" in capsys.readouterr().err
