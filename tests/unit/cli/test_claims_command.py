"""`claims` as a command: the shipped files, own ones, documents, wrong calls; and the page that explains the keys."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.support.studies.known_study import KNOWN, Place, known_study
from tests.support.studies.read_once import studies_read_once  # noqa: F401 -- for every test here
from tests.support.studies.xfs_claim import xfs_claim
from tests.support.tools.command_line import call_here

from bedplate.analysis.claims import parse_claims

ROOT = Path(__file__).parents[3]
CLAIM = xfs_claim("at_most = 1.0")


def tps(place: Place) -> float:
    """XFS is slower by a fifth; each repetition is a little slower for all, and ext4 more so."""
    speed = 800.0 if place.cell.filesystem.type == "xfs" else 1000.0 + place.repetition
    return speed - place.repetition


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return known_study(tmp_path_factory.mktemp("claims") / "study", tps, KNOWN)


def test_own_claims_are_judged(study: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(CLAIM)
    done = call_here("show", study, "--claims", "--file", tmp_path / "mine.toml", "--json")
    assert (0, "") == (done.returncode, done.stderr)
    document = json.loads(done.stdout)
    assert [["Mine", "holds"]] == [
        [file["title"], file["claims"][0]["finding"]] for file in document["files"]
    ]


def test_the_shipped_claims_are_judged_without_a_file(study: Path) -> None:
    done = call_here("show", study, "--claims", COLUMNS="80")
    assert (0, "") == (done.returncode, done.stderr)
    for words in ("T. Vondra, 2011", "H. Chu, 2012", "bonnie++", "not measured", "30 claims"):
        assert words in done.stdout


def test_a_wrong_file_and_a_missing_one_are_two_reasons_and_exit_2(study: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text(CLAIM.replace("at_most", "at_moist"))
    done = call_here(
        "show", study, "--claims", "--file", tmp_path / "wrong.toml", "--file", tmp_path / "none.toml"
    )
    assert 2 == done.returncode
    assert "did you mean at_most?" in done.stderr
    assert "none.toml: cannot be read" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_no_study_is_refused(tmp_path: Path) -> None:
    assert 2 == call_here("show", tmp_path, "--claims").returncode


def test_the_documented_claim_is_one() -> None:
    text = (ROOT / "docs" / "CLAIMS.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert "xfs-not-slower" == parse_claims(example).claim[0].id


def test_a_study_that_measured_none_of_the_claims_is_one_line(study: Path, tmp_path: Path) -> None:
    text = CLAIM.replace('metric = "tps"', 'metric = "test_operations_per_s"')
    (tmp_path / "other.toml").write_text(text)
    done = call_here("show", study, "--claims", "--file", tmp_path / "other.toml", COLUMNS="200")
    assert (0, "none of 1 claim was measured here: no run has a value of test_operations_per_s.\n") == (
        done.returncode,
        done.stdout,
    )
    # Beside a file of which something was measured, the other one is a line.
    (tmp_path / "mine.toml").write_text(CLAIM)
    both = call_here(
        "claims",
        study,
        "--claims",
        tmp_path / "mine.toml",
        "--claims",
        tmp_path / "other.toml",
        COLUMNS="200",
    )
    assert "Mine: none of 1 claim was measured here" in both.stdout
    assert "2 claims: 1 holds, 1 was not measured." in both.stdout
