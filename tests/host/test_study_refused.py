"""Whole studies through the real command line: what is refused, what is pruned, what must not be erased."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.studies.study_lab import Lab, identities, tmpfs
from tests.support.tools.patience import AT_MOST_S

from bedplate.host.command import Commands
from bedplate.host.process import wait_until
from bedplate.host.scratch_device import losetup
from bedplate.model.visit import FORMAT_VERSION

pytestmark = pytest.mark.host


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
        (f'"format_version": {FORMAT_VERSION}', '"format_version": 99', "format 99"),
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
    # A damaged visit is set aside by name; asked to, bedplate does it again, beside what is there.
    damaged = record.read_text()
    assert "visit.json" in lab.call("show", lab.study, "--status")
    lab.run(plan, "--retry-failed")
    assert damaged == record.read_text()
    assert {"1.1", "1.2"} == {path.name for path in lab.study.glob("visits/*/*/*")}


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
    assert process.stdout is not None
    assert any("file systems of the plan on this kernel" in line for line in process.stdout)
    # From its trials on a start has mounts of its own, of which nobody else's namespace keeps a copy.
    assert Path(f"/proc/{process.pid}/ns/mnt").readlink() != Path("/proc/self/ns/mnt").readlink()
    wait_until((lab.study / "study.json").exists, deadline_s=AT_MOST_S)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=AT_MOST_S)
    found = json.loads(lab.call("plan", plan, "--json", environment=environment))
    assert (1, 1) == (len(found["cells"]), len(found["pruned"]))
    (reason,) = found["pruned"][0]["reasons"]
    assert "errors=nonsense" in reason
    assert "/dev/loop" not in reason
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
    lab.call("show", lab.study, "--status")
    assert [] == [path for path in (Path("/hit"), lab.base / "hit") if path.exists()]
    latin = os.fsdecode(bytes(lab.base) + b"/\xe4")
    assert "no UTF-8" in lab.call("run", plan, "--study", latin, status=2)


@contextmanager
def loop_device(lab: Lab) -> Iterator[tuple[str, Path]]:
    """A loop device under a stable name of its own."""
    image = lab.base / "disk.image"
    with image.open("wb") as file:
        file.truncate(512 * 2**20)
    node = f"/dev/{losetup(image, Commands(), '--direct-io=on')}"
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
        lab.call("run", lab.study, "--repetitions", "2", "--erase", name)
        assert 2 == len(lab.visits())
    # The device is the test's own until here.
    assert [] == lab.left_behind()
