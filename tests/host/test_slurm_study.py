"""plans/fleet-quick.toml end to end on two nodes: real visits on images, as root, and the report of them.

The daemons are root's here, as a visit needs root and sudo's rules are not a test's to change. They listen on
loopback and authenticate by a munge key that was made for the test and that root alone can read: nobody else can
have them run anything. Both nodes are this machine, so their visits take turns on the place of images.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from tests.support.fleets.slurm_lab import SlurmLab, lacking_programs, slurm_lab
from tests.support.studies.study_lab import SOURCES
from tests.support.tools.patience import AT_MOST_S

from bedplate.host.lock import IMAGE_FILES, study_lock
from bedplate.host.mount import read_mount_table
from bedplate.model import codec
from bedplate.model.visit import VisitRecord, VisitRequest


class Bench(Protocol):
    def request(self) -> VisitRequest: ...


pytestmark = [
    pytest.mark.host,
    pytest.mark.third_lane,
    pytest.mark.skipif(
        bool(lacking_programs()) or shutil.which("munged", path="/usr/sbin:/usr/bin") is None,
        reason="no Slurm here (packages slurmctld slurmd slurm-client munge)",
    ),
]
# What takes long and is not the fleet's.
_SHORTER = (
    ("repetitions = 4", "repetitions = 2"),
    ('vary = ["ext4", "xfs"]', 'vary = ["ext4", "ext2"]'),
    ('warmup = "2 s"', 'warmup = "0 s"'),
    ('duration = "6 s"', 'duration = "2 s"\nrate = 1000'),
    ("scale = 5", "scale = 1"),
    ('image_size = "2 GB"', 'image_size = "512 MB"'),
)


@pytest.fixture
def cluster() -> Iterator[SlurmLab]:
    with slurm_lab(as_root=True) as lab:
        yield lab


def plan_in(lab: SlurmLab) -> Path:
    text = (SOURCES / "plans" / "fleet-quick.toml").read_text()
    local = lab.base / "local"
    local.mkdir()
    for old, new in (
        *_SHORTER,
        ('nodes = ["n1", "n2"]', f'nodes = ["n1", "n2"]\nlocal_directory = "{local}"'),
        ("# gres =", "gres ="),
    ):
        assert old in text
        text = text.replace(old, new)
    path = lab.base / "studies" / "plan.toml"
    path.write_text(f"{text}\n[canary]\nenabled = false\n")
    return path


def test_the_quick_plan_of_a_fleet_runs_on_two_nodes_and_is_reported_with_the_node_as_block(
    cluster: SlurmLab,
) -> None:
    plan, study = plan_in(cluster), cluster.base / "studies" / "study"
    environment = {"BEDPLATE_STATE": str(cluster.base / "bedplate-state")}

    def call(*words: str | Path) -> str:
        process = cluster.start_python("-m", "bedplate", *words, environment=environment)
        said, _ = process.communicate(timeout=AT_MOST_S)
        assert 0 == process.returncode, said + cluster.logs()
        return said

    said = call("run", plan, "--study", study)
    assert "looking at 2 nodes" in said
    assert "4 visits completed, 0 failed" in said
    records = [codec.read(VisitRecord, path) for path in study.glob("visits/*/*/*/visit.json")]
    assert {(1, "n1"), (2, "n2")} == {(r.key.repetition, r.provenance["node"]) for r in records}
    assert {"slurm"} == {r.executor for r in records}
    assert 1 == len({r.provenance["machine"] for r in records})
    nodes = json.loads(call("show", study, "--status", "--json"))["nodes"]
    assert [("n1", 2, 0), ("n2", 2, 0)] == [(n["node"], n["completed"], n["left"]) for n in nodes]
    shown = " ".join(call("show", study).split())
    assert "a node is a block" in shown
    assert "one machine" in shown
    assert "no speed" in shown
    page = cluster.base / "page.html"
    call("report", study, "-o", page)
    assert page.stat().st_size > 0
    assert "is complete" in call("run", plan, "--study", study)
    assert [] == [e.target for e in read_mount_table() if str(cluster.base) in e.target]
    assert [] == list((cluster.base / "local").rglob("*.img"))


def test_a_visit_waits_for_who_has_the_device_and_ends_when_its_job_does(
    bench: Bench, tmp_path: Path
) -> None:
    state, visit = tmp_path / "state", tmp_path / "visit"
    visit.mkdir()
    stop = tmp_path / "stop"
    request = tmp_path / "request.json"
    codec.write(request, bench.request())
    with study_lock(state, IMAGE_FILES, study="an orphan's"):
        process = subprocess.Popen(
            [
                *(sys.executable, "-S", "-P", "-m", "bedplate", "run-visit-on-node"),
                *("--stop-file", str(stop), str(request), str(visit)),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": str(SOURCES / "src"), "BEDPLATE_STATE": str(state)},
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "waiting" in line
        assert "an orphan's" in line
        assert process.poll() is None
        stop.touch()
        assert 130 == process.wait(timeout=AT_MOST_S)
        process.stdout.close()
    assert not (visit / "visit.json").exists()
