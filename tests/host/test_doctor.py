"""`bedplate doctor` on the real kernel: root finds out what it refuses, and everybody may read that."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.studies.study_lab import NOBODY, Lab
from tests.support.tools.patience import AT_MOST_S

from bedplate.host.files import SYSTEM_CACHE

pytestmark = pytest.mark.host

# Answers that this machine has already are out of sight: everybody reads root's.
_KEPT = SYSTEM_CACHE / "refusals"
_FORGETFUL = ("unshare", "--mount", "sh", "-c", '[ ! -d "$0" ] || mount -t tmpfs none "$0"; exec "$@"', _KEPT)


def examine(lab: Lab, *, before: tuple[str, ...] = ()) -> tuple[str, dict[str, Any]]:
    process = lab.start(
        "doctor",
        "--json",
        environment={"BEDPLATE_CACHE": str(lab.base / "cache")},
        before=(*map(str, _FORGETFUL), *before),
    )
    said, _ = process.communicate(timeout=AT_MOST_S)
    # 3: a package for building PostgreSQL may be missing, which is another matter.
    assert process.returncode in {0, 3}, said
    progress, brace, document = said.partition("{")
    return progress, json.loads(brace + document)


def test_root_tries_once_and_everybody_reads_the_answers(lab: Lab) -> None:
    said, found = examine(lab, before=NOBODY)
    assert "trying" not in said
    assert {None} == {entry["taken"] for entry in found["levels"]}

    said, tried = examine(lab)
    assert "trying" in said
    taken = {entry["name"]: entry["taken"] for entry in tried["levels"]}
    assert taken["ext4"]
    assert taken["ext4 4 KiB blocks"]
    # Where one level of a type could be tried, all could.
    known = {entry["levels"]["type"] for entry in tried["levels"] if entry["taken"] is not None}
    assert {entry["name"] for entry in tried["levels"] if entry["taken"] is None} == {
        entry["name"] for entry in tried["levels"] if entry["levels"]["type"] not in known
    }
    for entry in tried["levels"]:
        assert (entry["taken"] is False) == bool(entry["reasons"])
        assert not any("/dev/loop" in reason for reason in entry["reasons"])
    assert [] == lab.left_behind()

    said, found = examine(lab, before=NOBODY)
    assert "trying" not in said
    assert tried["levels"] == found["levels"]
