"""Whole studies through the real command line: to the end, interrupted, killed, extended."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.studies.study_lab import NOBODY, PLAN, Lab, identities, tmpfs
from tests.support.tools.patience import AT_MOST_S

from bedplate.host.mount import read_mount_table
from bedplate.host.process import wait_until

pytestmark = [pytest.mark.host, pytest.mark.third_lane]


def test_a_study_runs_to_the_end_and_anybody_can_read_it(lab: Lab) -> None:
    # The plan is named relative to where the command stands, and so is the study.
    lab.plan()
    said = lab.call("run", "plan.toml", "--study", "study")
    assert "1 visit completed, 0 failed" in said
    assert [] == lab.left_behind()
    assert {"plan.toml", "machine.json", "schedule.json", "study.json", "visits"} <= {
        path.name for path in lab.study.iterdir()
    }
    (place,) = lab.visits()
    run = next((lab.study / "visits" / place / "runs").iterdir())
    assert {"run.json", "record.json", "course.parquet", "latency.parquet"} <= {p.name for p in run.iterdir()}

    everybody = 0o4
    assert [] == [p for p in lab.study.rglob("*") if not p.stat().st_mode & everybody]
    readers = lab.base / "readers"
    readers.mkdir()
    readers.chmod(0o777)
    status = json.loads(lab.call("show", lab.study, "--status", "--json", before=NOBODY))
    assert (1, 0, 0, None) == (
        status["completed"],
        status["failed"],
        status["left"],
        status["writer"],
    )
    assert 0 < status["measured_share"] < 1
    shown = json.loads(lab.call("show", lab.study, "--json", before=NOBODY))
    assert shown
    assert "ext4" in lab.call("show", lab.study, before=NOBODY)
    page = readers / "report.html"
    lab.call("report", lab.study, "-o", page, before=NOBODY)
    assert "<html" in page.read_text()[:2000]
    for line in lab.call("export", lab.study, "-o", readers / "all", before=NOBODY).splitlines():
        assert Path(line).stat().st_size > 0

    assert "needs root" in lab.run(lab.base / "plan.toml", status=3, before=NOBODY)
    before = identities(lab.study)
    assert "is complete" in lab.run(lab.base / "plan.toml")
    assert before == identities(lab.study)


@pytest.mark.parametrize(("whom", "visits"), [("process", 2), ("group", 1)])
def test_an_interrupted_study_goes_on_with_the_same_command(lab: Lab, whom: str, visits: int) -> None:
    plan = lab.plan(("repetitions = 1", f"repetitions = {visits}"))
    process = lab.start_until(f"[{visits}/{visits}]", "run", plan, "--study", lab.study)
    visit = lab.visit_process()
    lab.wait_for_step(visit, "mount")
    namespaces = {Path(f"/proc/{pid}/ns/mnt").readlink() for pid in (os.getpid(), process.pid, visit)}
    assert 3 == len(namespaces)
    before = identities(lab.study)
    if whom == "group":
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=AT_MOST_S)
    assert 130 == process.returncode, said
    assert "what was finished is kept" in said
    assert [] == lab.left_behind()
    assert visits - 1 == len(lab.visits())
    assert "going on" in lab.run(plan)
    assert visits == len(lab.visits())
    after = identities(lab.study)
    assert before == {path: after.get(path) for path in before}


def test_a_visit_whose_mounts_another_program_copied_is_no_result(lab: Lab) -> None:
    process = lab.start_until("[1/1]", "run", lab.plan(), "--study", lab.study)
    visit = lab.visit_process()
    lab.wait_for_step(visit, "load")
    copy = subprocess.Popen(
        ["nsenter", f"--target={visit}", "--mount", "unshare", "--mount", "sh", "-c", "echo held; read -r _"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
    )
    assert copy.stdout is not None
    assert copy.stdout.readline() == "held\n"
    try:
        said, _ = process.communicate(timeout=AT_MOST_S)
    finally:
        copy.communicate("\n")
    assert 3 == process.returncode, said
    assert f"process {copy.pid} (sh)" in said
    assert {} == lab.visits()
    assert "1 visit completed, 0 failed" in lab.run(lab.base / "plan.toml")
    assert [] == lab.left_behind()


def test_a_killed_study_goes_on_without_losing_a_visit_or_having_one_twice(lab: Lab) -> None:
    plan = lab.plan(("repetitions = 1", "repetitions = 2"))
    finished: dict[str, tuple[int, int]] = {}
    # The first falls into the making of the study, the last into the second visit or its figures.
    for seconds in (1.2, 2.5, 4.0, 6.0, 8.0):
        process = lab.start("run", plan, "--study", lab.study)
        try:
            process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        now = identities(lab.study) if (lab.study / "visits").is_dir() else {}
        assert finished == {path: now.get(path) for path in finished}
        finished = now
    lab.run(plan)
    assert [] == lab.left_behind()
    records = lab.visits()
    assert [1, 2] == sorted(record.key.repetition for record in records.values())
    assert {("completed", 1)} == {(record.outcome.value, record.key.attempt) for record in records.values()}
    after = identities(lab.study)
    assert finished == {path: after.get(path) for path in finished}


def test_a_second_start_is_refused_with_the_reason(lab: Lab) -> None:
    plan = lab.plan()
    first = lab.start_until("[1/1]", "run", plan, "--study", lab.study)
    visit = lab.visit_process()
    # It lasts for as long as others ask, however slow they are.
    os.kill(visit, signal.SIGSTOP)
    try:
        said = lab.run(plan, status=2)
        assert f"is being written by process {first.pid}" in said
        assert str(first.pid) == json.loads(lab.call("show", lab.study, "--status", "--json"))["writer"]
        # Another study would be measured together with the first: refused before it is made.
        other = lab.base / "other"
        said = lab.call("run", plan, "--study", other, status=3)
        assert f"in use by bedplate process {first.pid}, study {lab.study}" in said
        assert not other.exists()
    finally:
        os.kill(visit, signal.SIGCONT)
    first.communicate(timeout=AT_MOST_S)
    assert 0 == first.returncode
    assert {"completed"} == {record.outcome.value for record in lab.visits().values()}


def test_a_full_disk_stops_the_study_with_the_reason_and_it_goes_on_later(lab: Lab) -> None:
    plan = lab.plan()
    disk = lab.base / "disk"
    with tmpfs(disk, "900k"):
        lab.study = disk / "study"
        lab.study.mkdir()
        # The image stands elsewhere, as it does for a real device.
        (lab.base / "images").mkdir()
        (lab.study / "scratch").mkdir()
        subprocess.run(["mount", "--bind", lab.base / "images", lab.study / "scratch"], check=True)
        ballast = disk / "ballast"
        ballast.write_bytes(b"x" * 800_000)
        process = lab.start("run", plan, "--study", lab.study)
        said, _ = process.communicate(timeout=AT_MOST_S)
        assert process.returncode in {1, 3}, said
        assert "No space left" in said
        assert [] == lab.left_behind()
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        ballast.unlink()
        lab.run(plan, "--retry-failed")
        assert "completed" == max(lab.visits().values(), key=lambda record: record.key.attempt).outcome
        assert [] == lab.left_behind()


def test_extend_runs_only_what_is_new_and_writes_it_down(lab: Lab, finished: Path) -> None:
    shutil.copytree(finished, lab.study)
    plan = lab.plan()
    before = identities(lab.study)
    lab.call("run", lab.study, "--repetitions", "2")
    after = identities(lab.study)
    assert before == {path: after.get(path) for path in before}
    assert [1, 2] == sorted(record.key.repetition for record in lab.visits().values())
    assert (PLAN.replace("repetitions = 1", "repetitions = 2")).split() == (
        lab.study / "plan.toml"
    ).read_text().split()
    assert "has all of that already" in lab.call("run", lab.study, "--repetitions", "2")
    history = json.loads(lab.call("show", lab.study, "--status", "--json"))["history"]
    assert ["created", "extended from 1 to 2 repetitions"] == [entry["what"] for entry in history]

    assert "repetitions: was 2, is 1" in lab.call("run", lab.study, "--repetitions", "1", status=2)
    smaller = lab.plan(("repetitions = 1", "repetitions = 2"), ("ext4", "xfs"), name="smaller.toml")
    said = lab.call("run", lab.study, "--add", smaller, status=2)
    assert "cells taken out: ext4" in said
    assert "--repetitions N or --plan PLAN" in lab.call("extend", lab.study, status=2)
    assert "was extended since" in lab.run(plan, status=2)
    assert 2 == len(lab.visits())


def test_a_failed_visit_is_told_kept_and_done_again_when_asked(lab: Lab) -> None:
    plan = lab.plan(('shared_buffers = "16MB"', 'shared_buffers = { vary = ["900GB", "16MB"] }'))
    said = lab.run(plan, status=1)
    assert "1 visit completed, 1 failed" in said
    assert [] == lab.left_behind()
    status = lab.call("show", lab.study, "--status")
    assert "at server start" in status
    (logs,) = re.findall(r"logs: (.*)", status)
    assert "shared memory" in (Path(logs) / "server.log").read_text()
    # Complete, but not well: the code says so, and so does the way out.
    assert "--retry-failed" in lab.run(plan, status=1)
    assert 2 == len(lab.visits())
    lab.run(plan, "--retry-failed", status=1)
    assert [("completed", 1), ("failed", 1), ("failed", 2)] == sorted(
        (record.outcome.value, record.key.attempt) for record in lab.visits().values()
    )


def test_a_study_may_have_any_name_that_is_text(lab: Lab) -> None:
    name = "-leading  two spaces größe-✓-文 line\nbreak quote'\"`$(x)"
    lab.study = lab.base / name
    lab.run(lab.plan())
    assert ["completed"] == [record.outcome.value for record in lab.visits().values()]
    assert [] == lab.left_behind()


def test_results_belong_to_who_called_sudo(lab: Lab, finished: Path) -> None:
    shutil.copytree(finished, lab.study)
    caller = {"SUDO_UID": "12345", "SUDO_GID": "12346"}
    # Reading and going on, by root again, works whoever it belongs to.
    for _ in range(2):
        lab.run(lab.plan(), environment=caller)
        made = [lab.study, *lab.study.rglob("*")]
        assert {(12345, 12346)} == {(path.lstat().st_uid, path.lstat().st_gid) for path in made}
    page = lab.base / "pages" / "report.html"
    page.parent.mkdir()
    lab.call("report", lab.study, "-o", page, environment=caller)
    assert (12345, 0, 0) == tuple(path.stat().st_uid for path in (page, page.parent, lab.base))


def test_a_reader_that_went_away_does_not_stop_a_study(lab: Lab) -> None:
    process = lab.start("run", lab.plan(), "--study", lab.study)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert 0 == process.wait(timeout=AT_MOST_S)
    assert ["completed"] == [record.outcome.value for record in lab.visits().values()]


def test_a_full_disk_below_what_is_said_does_not_stop_a_study(lab: Lab) -> None:
    """Its output goes to a file, as from cron; only the end says that nobody could read it."""
    disk = lab.base / "disk"
    with tmpfs(disk, "64k"):
        said = disk / "said.log"
        said.write_bytes(b"x" * (64 << 10))
        assert 0 == os.statvfs(disk).f_bavail
        with said.open("ab") as file:
            process = lab.start("run", lab.plan(), "--study", lab.study, stdout=file)
            status = process.wait(timeout=AT_MOST_S)
        assert 64 << 10 == said.stat().st_size
    assert (3, ["completed"]) == (status, [record.outcome.value for record in lab.visits().values()])
    assert [] == lab.left_behind()


def test_one_killed_visit_costs_one_visit(lab: Lab) -> None:
    """SIGKILL of the visit's process alone, as the kernel does when memory runs out."""
    plan = lab.plan(("repetitions = 1", "repetitions = 2"))
    process = lab.start_until("[1/2]", "run", plan, "--study", lab.study)
    visit = lab.visit_process()
    lab.wait_for_step(visit, "server")
    assert [] == [entry.target for entry in read_mount_table() if entry.target.startswith(str(lab.state))]
    os.kill(visit, signal.SIGKILL)
    wait_until(lambda: len(lab.visits()) > 0, deadline_s=AT_MOST_S)
    before = {path: path.read_bytes() for path in finished_files(lab)}
    said, _ = process.communicate(timeout=AT_MOST_S)
    assert 1 == process.returncode, said
    assert ["failed", "completed"] == [
        record.outcome.value for record in sorted(lab.visits().values(), key=lambda one: one.key.repetition)
    ], said
    # Nothing that the dead one left writes to what was finished.
    assert before == {path: path.read_bytes() for path in before}
    lost = next(record for record in lab.visits().values() if record.outcome.value == "failed")
    assert ("visit process", True) == (lost.failed_step, "signal 9" in lost.reasons[0].sentence)
    assert [] == lab.left_behind()
    assert "2 visits" in lab.run(plan, status=1)


def finished_files(lab: Lab) -> list[Path]:
    return [
        path
        for path in (lab.study / "visits").rglob("*")
        if path.is_file() and ".unfinished" not in str(path)
    ]


def test_a_start_of_a_complete_study_gives_back_what_was_left_too(lab: Lab, finished: Path) -> None:
    shutil.copytree(finished, lab.study)
    image = lab.base / "left.img"
    image.touch()
    taker = "import os, sys; from pathlib import Path; from bedplate.host.ledger import Holding, Ledger\n"
    taker += "Ledger.open(Path(sys.argv[1]), 'dead').note(Holding('image', sys.argv[2])); os._exit(9)"
    argv = [sys.executable, "-c", taker, str(lab.state), str(image)]
    subprocess.run(argv, env=lab.environment, check=False)
    said = lab.run(lab.plan())
    assert "is complete" in said
    assert f"left behind by a killed start: {image} deleted" in said
    assert not image.exists()


def test_a_namespace_of_somebody_elses_costs_no_visit(lab: Lab) -> None:
    plan = lab.plan(("repetitions = 1", "repetitions = 2"))
    process = lab.start_until("[1/2]", "run", plan, "--study", lab.study)
    lab.wait_for_step(lab.visit_process(), "server")
    # It keeps what it has of this study, and lets go of what other tests have mounted meanwhile.
    words = r"awk '{print $5}' /proc/self/mountinfo | grep '^/\(tmp\|run\|var/tmp\)/' | grep -v \"$0\" | xargs -r umount --lazy"
    stranger = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", f"{words}; exec sleep 600", str(lab.base)],
        stderr=subprocess.DEVNULL,
    )
    try:
        said, _ = process.communicate(timeout=AT_MOST_S)
    finally:
        stranger.kill()
        stranger.wait()
    assert 0 == process.returncode, said
    assert ["clean", "clean"] == [record.filesystem_check for record in lab.visits().values()]
    assert [] == lab.left_behind()


def test_a_device_that_others_hold_ends_the_start_and_is_no_result(lab: Lab) -> None:
    plan = lab.plan(("repetitions = 1", "repetitions = 2"))
    process = lab.start_until("[1/2]", "run", plan, "--study", lab.study)
    visit = lab.visit_process()
    lab.wait_for_step(visit, "server")
    # A stranger who goes into the visit's own namespace, and stays when the visit is gone.
    stranger = subprocess.Popen(
        ["nsenter", "--target", str(visit), "--mount", "sleep", "600"],
        env={name: word for name, word in os.environ.items() if name != "BEDPLATE_LEDGER"},
    )
    try:
        assert wait_until(
            lambda: Path(f"/proc/{stranger.pid}/comm").read_text().strip() == "sleep", deadline_s=AT_MOST_S
        )
        os.kill(visit, signal.SIGKILL)
        said, _ = process.communicate(timeout=AT_MOST_S)
        assert 3 == process.returncode, said
        assert f"process {stranger.pid} (sleep)" in said
        assert {} == lab.visits()
    finally:
        stranger.kill()
        stranger.wait()
    lab.run(plan)
    assert {"completed"} == {record.outcome.value for record in lab.visits().values()}
    assert [] == lab.left_behind()


def test_a_misspelt_setting_ends_the_study_after_two_visits(lab: Lab) -> None:
    plan = lab.plan(
        ("repetitions = 1", "repetitions = 5"), ('shared_buffers = "16MB"', 'shared_bufers = "16MB"')
    )
    said = lab.run(plan, status=1)
    assert 2 == len(lab.visits())
    assert "the first 2 visits of this start failed alike, at server start" in said
    assert "shared_bufers" in said
    assert [] == lab.left_behind()


def test_a_full_state_directory_is_named_and_is_no_result(lab: Lab) -> None:
    with tmpfs(lab.state, "200k"):
        lab.state.chmod(0o755)
        (lab.state / "ballast").write_bytes(b"x" * 196 * 1024)
        said = lab.run(lab.plan(), status=3)
        assert str(lab.state) in said
        assert "No space left" in said
        assert "Traceback" not in said
        assert not lab.study.exists() or {} == lab.visits()
        (lab.state / "ballast").unlink()
        lab.run(lab.plan())
        assert [f"mount {lab.state}"] == lab.left_behind()
