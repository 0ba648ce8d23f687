"""Whole studies through the real command line: to the end, interrupted, killed, refused, extended."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bedplate.host.command import Commands
from bedplate.host.ledger import release_orphans
from bedplate.host.loop_table import attached_to
from bedplate.host.mount import read_mount_table
from bedplate.host.patience import wait_until
from bedplate.model import codec
from bedplate.model.visit import VisitRecord

pytestmark = pytest.mark.host

SOURCES = Path(__file__).resolve().parents[2]

PLAN = """
title = "Small"
seed = 3
repetitions = 1
[scratch_device]
image_size = "512 MB"
[[filesystem]]
type = "ext4"
[postgresql]
version = "18"
[postgresql.settings]
shared_buffers = "16MB"
[[workload]]
type = "pgbench"
scale = 1
[[workload.run]]
script = "read-only"
clients = 2
jobs = 1
warmup = "1 s"
duration = "1 s"
[canary]
enabled = false
"""


class Lab:
    """A private place with its own state directory, and the command line in it."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.study = base / "study"
        self.state = base / "state"
        self.started: list[subprocess.Popen[str]] = []
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("SUDO_")},
            "BEDPLATE_STATE": str(self.state),
            "PYTHONPATH": str(SOURCES / "src"),
        }

    def plan(self, *changes: tuple[str, str], name: str = "plan.toml") -> Path:
        text = PLAN
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = self.base / name
        path.write_text(text)
        return path

    def start(self, *words: str | Path, **changes: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*changes.pop("before", ()), sys.executable, "-m", "bedplate", *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.base,
            env={**self.environment, **changes.pop("environment", {})},
            start_new_session=True,
            **changes,
        )
        self.started.append(process)
        return process

    def call(self, *words: str | Path, status: int = 0, **changes: Any) -> str:
        process = self.start(*words, **changes)
        said, _ = process.communicate(timeout=120)
        assert status == process.returncode, said
        return said

    def run(self, plan: Path, *words: str | Path, status: int = 0, **changes: Any) -> str:
        return self.call("run", plan, "--study", self.study, *words, status=status, **changes)

    def start_until(self, text: str, *words: str | Path) -> subprocess.Popen[str]:
        """A start that has said so much."""
        process = self.start(*words)
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if text in line:
                return process
        raise AssertionError(f"it never said {text!r}: {''.join(said)}")

    def visits(self, study: Path | None = None) -> dict[str, VisitRecord]:
        """Finished visits by their place; the place must be the one that the record names."""
        root = (study or self.study) / "visits"
        found = {}
        for path in sorted(root.glob("*/*/*/visit.json")):
            if ".unfinished" not in path.parent.name:
                record = codec.read(VisitRecord, path)
                assert f"{record.key.repetition}.{record.key.attempt}" == path.parent.name
                found[str(path.parent.relative_to(root))] = record
        return found

    def left_behind(self) -> list[str]:
        """Everything of ours that the machine, or the study, still holds."""
        found = [f"mount {entry.target}" for entry in read_mount_table() if str(self.state) in entry.target]
        found += [f"image {path}" for path in self.base.glob("**/*.img")]
        found += [f"loop of {path}" for path in self.base.glob("**/*.img") if attached_to(path)]
        found += [f"state {path}" for path in self.state.glob("[0-9]*")]
        found += [f"half a visit {path}" for path in self.base.glob("**/*.unfinished")]
        found += [f"half a file {path}" for path in self.base.glob("**/.*.part")]
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(self.base) in words:
                found.append(f"process {words:.100}")
        return found


@pytest.fixture
def lab() -> Iterator[Lab]:
    # Not tmp_path: the server's account must be able to reach the mount point.
    base = Path(tempfile.mkdtemp(prefix="bedplate-test-study-"))
    base.chmod(0o755)
    place = Lab(base)
    try:
        yield place
    finally:
        for process in place.started:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if place.state.is_dir():
            release_orphans(place.state, Commands())
        for entry in read_mount_table():
            if str(base) in entry.target:
                subprocess.run(["umount", "--lazy", entry.target], check=False)
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="module")
def finished() -> Iterator[Path]:
    """A study of one visit that is complete, to be copied."""
    base = Path(tempfile.mkdtemp(prefix="bedplate-test-study-"))
    base.chmod(0o755)
    place = Lab(base)
    try:
        place.run(place.plan())
        yield place.study
    finally:
        shutil.rmtree(base, ignore_errors=True)


@contextmanager
def tmpfs(path: Path, size: str) -> Iterator[None]:
    path.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def identities(study: Path) -> dict[str, tuple[int, int]]:
    """Inode and time of every file of every finished visit."""
    files = [path for path in (study / "visits").rglob("*") if path.is_file()]
    return {
        str(path): (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in files
        if ".unfinished" not in str(path)
    }


# Nobody's rights, and with them only the reading of a Python that may stand in root's home.
NOBODY = (
    *("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"),
    *("--inh-caps", "-all,+dac_read_search", "--ambient-caps", "+dac_read_search"),
    *("--bounding-set", "-all,+dac_read_search"),
)


def test_a_study_runs_to_the_end_and_anybody_can_read_it(lab: Lab) -> None:
    # The plan is named relative to where the command stands, and so is the study.
    lab.plan()
    said = lab.call("run", "plan.toml", "--study", "study")
    assert "1 visits completed, 0 failed" in said
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
    status = json.loads(lab.call("status", lab.study, "--json", before=NOBODY))
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


@pytest.mark.parametrize("whom", ["process", "group"])
def test_an_interrupted_study_goes_on_with_the_same_command(lab: Lab, whom: str) -> None:
    plan = lab.plan(("repetitions = 1", "repetitions = 2"))
    process = lab.start_until("[2/2]", "run", plan, "--study", lab.study)
    wait_until(
        lambda: any(entry.target.startswith(str(lab.state)) for entry in read_mount_table()), deadline_s=60
    )
    before = identities(lab.study)
    if whom == "group":
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert 130 == process.returncode, said
    assert "what was finished is kept" in said
    assert [] == lab.left_behind()
    assert 1 == len(lab.visits())
    assert "going on" in lab.run(plan)
    assert 2 == len(lab.visits())
    after = identities(lab.study)
    assert before == {path: after.get(path) for path in before}


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
    said = lab.run(plan, status=2)
    assert f"is being written by process {first.pid}" in said
    assert str(first.pid) == json.loads(lab.call("status", lab.study, "--json"))["writer"]
    # Another study would be measured together with the first: refused before it is made.
    other = lab.base / "other"
    said = lab.call("run", plan, "--study", other, status=3)
    assert f"in use by bedplate process {first.pid}, study {lab.study}" in said
    assert not other.exists()
    first.communicate(timeout=60)
    assert 0 == first.returncode
    assert {"completed"} == {record.outcome.value for record in lab.visits().values()}


def test_another_plan_machine_or_a_damaged_study_is_refused_and_nothing_is_lost(
    lab: Lab, finished: Path
) -> None:
    plan = lab.plan()
    shutil.copytree(finished, lab.study)
    before = identities(lab.study)

    other = lab.plan(("seed = 3", "seed = 4"), ('"1 s"\n[canary]', '"2 s"\n[canary]'), name="other.toml")
    said = lab.run(other, status=2)
    assert "seed: was 3, is 4" in said
    assert "duration_s: was 1.0, is 2.0" in said

    facts = lab.study / "study.json"
    kept = facts.read_text()
    identity = json.loads(kept)["machine_identity"]
    for old, new, expected in (
        (identity, "0123456789abcdef", "another machine"),
        (os.uname().release, "2.6.32", "kernel 2.6.32"),
        ('"format_version": 1', '"format_version": 99', "format 99"),
        ("{", "", "study.json is not JSON"),
    ):
        facts.write_text(kept.replace(old, new, 1))
        assert expected in lab.run(plan, status=2)
    facts.write_text(kept)
    schedule = lab.study / "schedule.json"
    whole = schedule.read_text()
    schedule.write_text(whole[: len(whole) // 2])
    assert "schedule.json is not JSON" in lab.run(plan, status=2)
    schedule.write_text(whole)
    frozen = lab.study / "plan.toml"
    text = frozen.read_text()
    frozen.write_text("repetitions = [")
    assert "the study's own plan is damaged" in lab.run(plan, status=2)
    frozen.unlink()
    assert "plan.toml" in lab.run(plan, status=2)
    frozen.write_text(text)
    assert before == identities(lab.study)

    record = next(lab.study.glob("visits/*/*/*/visit.json"))
    record.write_text(record.read_text()[:-100])
    assert "visit.json is not JSON" in lab.run(plan, "--retry-failed", status=2)
    assert "visit.json is not JSON" in lab.call("status", lab.study, status=2)


def test_a_place_that_cannot_hold_a_study_is_refused(lab: Lab) -> None:
    plan = lab.plan()
    lab.study.write_text("mine")
    assert "no directory" in lab.run(plan, status=2)
    assert "mine" == lab.study.read_text()
    lab.study.unlink()
    lab.study.mkdir()
    (lab.study / "letter").write_text("mine")
    assert "not empty and no study" in lab.run(plan, status=2)
    assert ["letter"] == [path.name for path in lab.study.iterdir()]
    with tmpfs(lab.base / "sealed", "4m"):
        sealed = lab.base / "sealed"
        subprocess.run(["mount", "-o", "remount,ro", str(sealed)], check=True)
        assert "error: " in lab.call("run", plan, "--study", sealed / "study", status=3)
        subprocess.run(["mount", "-o", "remount,rw", str(sealed)], check=True)
    with tmpfs(lab.base / "small", "4m"):
        said = lab.call("run", plan, "--study", lab.base / "small" / "study", status=3)
        assert "the image needs 512 MiB" in said
        assert not (lab.base / "small" / "study").exists()
    assert [] == lab.left_behind()


def test_a_full_disk_stops_the_study_with_the_reason_and_it_goes_on_later(lab: Lab) -> None:
    plan = lab.plan(("repetitions = 1", "repetitions = 2"))
    disk = lab.base / "disk"
    with tmpfs(disk, "900k"):
        lab.study = disk / "study"
        lab.study.mkdir()
        # The image stands elsewhere, as it does for a real device.
        (lab.base / "images").mkdir()
        (lab.study / "scratch").symlink_to(lab.base / "images")
        ballast = disk / "ballast"
        ballast.write_bytes(b"x" * 700_000)
        process = lab.start("run", plan, "--study", lab.study)
        said, _ = process.communicate(timeout=120)
        assert process.returncode in {1, 3}, said
        assert "No space left" in said
        assert [] == lab.left_behind()
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        ballast.unlink()
        lab.run(plan, "--retry-failed")
        last = {
            (r.key.repetition, r.outcome.value) for r in lab.visits().values() if r.outcome == "completed"
        }
        assert {(1, "completed"), (2, "completed")} == last
        assert [] == lab.left_behind()


def test_extend_runs_only_what_is_new_and_writes_it_down(lab: Lab, finished: Path) -> None:
    shutil.copytree(finished, lab.study)
    plan = lab.plan()
    before = identities(lab.study)
    lab.call("extend", lab.study, "--repetitions", "2")
    after = identities(lab.study)
    assert before == {path: after.get(path) for path in before}
    assert [1, 2] == sorted(record.key.repetition for record in lab.visits().values())
    assert (PLAN.replace("repetitions = 1", "repetitions = 2")).split() == (
        lab.study / "plan.toml"
    ).read_text().split()
    assert "has all of that already" in lab.call("extend", lab.study, "--repetitions", "2")
    history = json.loads(lab.call("status", lab.study, "--json"))["history"]
    assert ["created", "extended from 1 to 2 repetitions"] == [entry["what"] for entry in history]

    assert "repetitions: was 2, is 1" in lab.call("extend", lab.study, "--repetitions", "1", status=2)
    smaller = lab.plan(("repetitions = 1", "repetitions = 2"), ("ext4", "xfs"), name="smaller.toml")
    said = lab.call("extend", lab.study, "--plan", smaller, status=2)
    assert "cells taken out: ext4" in said
    assert "either --repetitions N or --plan PLAN" in lab.call("extend", lab.study, status=2)
    assert "was extended since" in lab.run(plan, status=2)
    assert 2 == len(lab.visits())


def test_a_failed_visit_is_told_kept_and_done_again_when_asked(lab: Lab) -> None:
    plan = lab.plan(('shared_buffers = "16MB"', 'shared_buffers = { vary = ["900GB", "16MB"] }'))
    said = lab.run(plan, status=1)
    assert "1 visits completed, 1 failed" in said
    assert [] == lab.left_behind()
    status = lab.call("status", lab.study)
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


def test_cells_that_this_kernel_refuses_are_pruned_with_its_words(lab: Lab) -> None:
    environment = {"BEDPLATE_CACHE": str(lab.base / "cache")}
    plan = lab.plan(
        ('type = "ext4"', 'type = "ext4"\nmount_options = { vary = [[], ["errors=nonsense"]] }'),
        ("scale = 1", "scale = 1000000"),
    )
    before = json.loads(lab.call("plan", plan, "--json", environment=environment))
    assert (2, 0) == (len(before["cells"]), len(before["pruned"]))
    # The scale is beyond any image, so that nothing is built or measured: only the study's making counts.
    process = lab.start("run", plan, "--study", lab.study, environment=environment)
    wait_until((lab.study / "study.json").exists, deadline_s=60)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    found = json.loads(lab.call("plan", plan, "--json", environment=environment))
    assert (1, 1) == (len(found["cells"]), len(found["pruned"]))
    (reason,) = found["pruned"][0]["reasons"]
    assert "errors=nonsense" in reason
    assert "/dev/loop" not in reason
    assert [] == lab.left_behind()


@pytest.mark.parametrize("name", ["-leading  two spaces größe-✓-文", "line\nbreak quote'\"`$(x)"])
def test_a_study_may_have_any_name_that_is_text(lab: Lab, name: str) -> None:
    lab.study = lab.base / name
    lab.run(lab.plan())
    assert ["completed"] == [record.outcome.value for record in lab.visits().values()]
    assert [] == lab.left_behind()


def test_a_hostile_plan_is_measured_or_refused_but_never_obeyed(lab: Lab) -> None:
    script = lab.base / "own '\"$(touch hit)`.sql"
    script.write_text("\\set a random(1, 10)\nSELECT 'no variable \" ; -- $(touch hit)', :a + 1;\n")
    endless = lab.plan(('"Small"', json.dumps("x" * 10_000)), name="endless.toml")
    assert "title: found 'xxx" in lab.run(endless, status=2)
    title = "<script>alert(1)</script>[red]{{ 7 * 7 }}"
    plan = lab.plan(
        ('"Small"', json.dumps(title)),
        ('script = "read-only"', f"script = {json.dumps(script.name)}"),
    )
    said = lab.call("plan", plan, "--json")
    lab.run(plan)
    lab.call("report", lab.study, "-o", lab.base / "report.html")
    assert "<script>alert(1)</script>" not in (lab.base / "report.html").read_text()
    assert title == json.loads(said)["title"]
    lab.call("show", lab.study)
    lab.call("status", lab.study)
    assert [] == [path for path in (Path("/hit"), lab.base / "hit") if path.exists()]
    latin = os.fsdecode(bytes(lab.base) + b"/\xe4")
    assert "no UTF-8" in lab.call("run", plan, "--study", latin, status=2)


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


@contextmanager
def loop_device(lab: Lab) -> Iterator[tuple[str, Path]]:
    """A loop device under a stable name of its own."""
    image = lab.base / "disk.image"
    with image.open("wb") as file:
        file.truncate(512 * 2**20)
    done = Commands().run(["losetup", "--find", "--show", "--direct-io=on", str(image)])
    node = done.stdout.strip()
    name = Path(f"/dev/disk/by-id/bedplate-test-{os.getpid()}")
    name.parent.mkdir(parents=True, exist_ok=True)
    name.symlink_to(node)
    try:
        yield node, name
    finally:
        name.unlink()
        Commands().run(["losetup", "--detach", node])
        for folder in (name.parent, name.parent.parent):
            if not any(folder.iterdir()):
                folder.rmdir()


def test_a_device_is_erased_only_when_it_is_named_again_and_its_queue_is_restored(lab: Lab) -> None:
    with loop_device(lab) as (node, name):
        queue = Path("/sys/class/block") / Path(node).name / "queue"
        read_ahead, cache = ((queue / key).read_text() for key in ("read_ahead_kb", "write_cache"))
        device = f'device = "{name}"\nread_ahead = "512 kB"'
        plan = lab.plan(('image_size = "512 MB"', device), ('"ext4"', '"ext4"\nbarrier = false'))
        assert f"--erase {name}" in lab.run(plan, status=2)
        assert "erases no device" in lab.run(lab.plan(name="image.toml"), "--erase", name, status=2)
        unstable = lab.plan(('image_size = "512 MB"', f'device = "{node}"'), name="unstable.toml")
        assert "may be another disk after the next boot" in lab.run(unstable, "--erase", node, status=2)

        Commands().run(["mkfs.ext4", "-q", "-F", "-L", "letters", node])
        said = lab.run(plan, "--erase", name, status=3)
        assert "--erase-foreign allows to erase it" in said
        assert "letters" in said
        assert not lab.study.exists()
        lab.run(plan, "--erase", name, "--erase-foreign")
        (record,) = lab.visits().values()
        assert "completed" == record.outcome.value
        assert (read_ahead, cache) == tuple(
            (queue / key).read_text() for key in ("read_ahead_kb", "write_cache")
        )
        # What is on it now is bedplate's own.
        lab.call("extend", lab.study, "--repetitions", "2", "--erase", name)
        assert 2 == len(lab.visits())
        assert [] == lab.left_behind()


def test_a_reader_that_went_away_does_not_stop_a_study(lab: Lab) -> None:
    process = lab.start("run", lab.plan(), "--study", lab.study)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert 0 == process.wait(timeout=60)
    assert ["completed"] == [record.outcome.value for record in lab.visits().values()]
