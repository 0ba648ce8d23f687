"""Cuts of a study whose file system this kernel may lack: recovered in a guest, as they were recorded."""

from __future__ import annotations

import re

import pytest
from tests.support.studies.study_lab import Lab

from bedplate.cli.cut_tools import bad_points
from bedplate.cli.cuts import find_run
from bedplate.cuts.blame import Party, Repeatability
from bedplate.cuts.points import read_cuts
from bedplate.cuts.records import LOG_FILE
from bedplate.study.power_cut_stories import read_stories
from bedplate.workloads.power_cut.bundle import README, REPRODUCE

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

# JFS flushes nothing, and few repairs of it replay its log: every cut that loses something is bad.
PLAN = """
title = "JFS in a guest"
seed = 7
repetitions = 1
executor = "qemu"
[scratch_device]
image_size = "512 MB"
[[filesystem]]
type = "jfs"
[lmdb]
sync = "full"
[[workload]]
type = "power_cut"
engine = "lmdb"
points = 4
duration = "3 s"
[canary]
enabled = false
"""


def test_cuts_of_a_guest_are_explained_in_a_guest_of_its_kernel(lab: Lab) -> None:
    path = lab.base / "plan.toml"
    path.write_text(PLAN)
    lab.run(path)
    (record,) = lab.visits().values()
    said = lab.call("power-cut", "blame", lab.study, "--guest", "--replays", "8")
    run = find_run(lab.study, "jfs")
    told = read_stories(lab.study, run)
    assert told.keys() == {point.number for point in bad_points(run, every=False)}
    assert told
    for story in told.values():
        assert Party.FILE_SYSTEM is story.party, story.lines
        assert story.reason.code in ("flushes-missing", "journal-not-replayed"), story.lines
        assert story.evidence.steadiness is not Repeatability.NOT_BAD_AGAIN, story.lines
        assert "cannot be mounted" not in story.evidence.first_problem, "JFS is always repaired first"
        assert story.lines[0] in said
    # The same kernel, so nothing is to be noted.
    assert "recovered here under" not in said
    assert record.provenance["kernel"] not in said
    assert [] == lab.left_behind()
    assert [] == list((lab.study / "scratch").iterdir())

    # One of them once more: its image is here, and what came of it from the guest.
    point, keep = bad_points(run, every=False)[0], lab.base / "image"
    said = lab.call("power-cut", "replay", lab.study, "jfs", str(point.number), "--keep", keep, "--guest")
    assert f"point {point.number}: cut at entry {point.position}" in said
    stored = next(each for each in read_cuts(run).points if each.point == point)
    assert f"outcome: {stored.outcome.value}\n" in said
    assert (keep / "disk").stat().st_size >= 1 << 29
    # And as another device would leave it.
    said = lab.call(
        "power-cut", "replay", lab.study, "jfs", "--profile", "ordered", "--points", "2", "--guest"
    )
    assert re.search(r"^ordered +bad \d of 2", said, re.MULTILINE), said
    assert re.search(r"^controls +bad [4-6] of 6", said, re.MULTILINE), said
    assert [] == lab.left_behind()

    # And for others: its image is made here, and its script tried there, which no mount of this kernel could be.
    made = lab.base / "bundle"
    words = ("bundle", lab.study, "jfs", str(point.number), "--output", made, "--replays", "8", "--guest")
    said = lab.call("power-cut", *words)
    guest = f"a guest with kernel {record.provenance['kernel']}"
    assert f"{made / REPRODUCE} was tried in {guest}, and gave the bad verdict" in said
    assert f"it was tried in {guest}, and it gave the bad verdict" in (made / README).read_text()
    assert [] == lab.left_behind()

    (run / LOG_FILE).write_bytes(b"no log" * 1000)
    said = lab.call("power-cut", "blame", lab.study, "--guest", "--replays", "12", status=1)
    assert f"{LOG_FILE} is damaged" in said
    assert told == read_stories(lab.study, run)
    assert [] == lab.left_behind()
