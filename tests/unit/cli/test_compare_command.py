"""`compare` and `effects` as commands: exit codes that bisecting understands, documents, wrong calls.

Git asks real processes for their exit codes; everything else is called here.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.studies.known_study import KNOWN, Place, known_study
from tests.support.studies.read_once import studies_read_once  # noqa: F401 -- for every test here
from tests.support.tools.command_line import Done, call_here

from bedplate.cli.status import NothingTold, bisectable

SLOWER = 0.7
FAST, UNCLEAR, SLOW = "type=xfs build.block_size=8k", "type=ext4", "type=btrfs"


def tps(place: Place) -> float:
    """Btrfs is slower by three tenths than XFS, and ext4 scatters wildly."""
    random_ = random.Random(f"{place.cell.id} {place.repetition}")
    if place.cell.filesystem.type == "ext4":
        return 1000.0 * random_.choice((0.3, 1.0, 3.0))
    return {"xfs": 1000.0, "btrfs": 1000.0 * SLOWER}[place.cell.filesystem.type] * random_.gauss(1, 0.005)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return known_study(tmp_path_factory.mktemp("compare") / "study", tps, KNOWN)


def compare(study: Path, baseline: str, contender: str, *more: str) -> Done:
    return call_here("compare", study, "--baseline", baseline, "--contender", contender, *more, COLUMNS="80")


@pytest.mark.parametrize(
    ("contender", "condition", "status"),
    [
        ("btrfs nodatacow", "slower 5%", 1),
        ("btrfs nodatacow", "slower", 1),
        ("btrfs nodatacow", "slower 60%", 0),
        ("btrfs nodatacow", "faster 5%", 0),
        ("type=ext4", "slower 5%", 125),
    ],
)
def test_the_exit_code_is_that_of_the_condition(
    study: Path, contender: str, condition: str, status: int
) -> None:
    done = compare(study, "type=xfs", contender, "--fail-if", condition)
    assert status == done.returncode, done.stderr
    assert f"exit code {status}" in done.stdout


def test_what_goes_into_a_pipe_is_as_wide_as_the_terminal_is_said_to_be(study: Path) -> None:
    done = compare(study, "type=xfs", "btrfs nodatacow")
    assert 60 < max(map(len, done.stdout.splitlines())) <= 80


def test_without_a_condition_a_verdict_is_no_failure(study: Path) -> None:
    done = compare(study, "type=xfs", "btrfs nodatacow")
    assert (0, "") == (done.returncode, done.stderr)
    assert "slower" in done.stdout
    assert "exit code" not in done.stdout


def test_the_document_says_what_the_table_says(study: Path) -> None:
    done = compare(
        study,
        "type=xfs",
        "btrfs nodatacow",
        "--json",
        "--metric",
        "tps",
        "--metric",
        "tps_cv",
        "--fail-if",
        "worse 5%",
    )
    assert 1 == done.returncode
    found = json.loads(done.stdout)
    assert ["tps"] * 4 + ["tps_cv"] * 4 == [each["metric"] for each in found["comparisons"]]
    assert ["slower"] * 4 == [each["verdict"] for each in found["comparisons"][:4]]
    assert 1 == found["condition"]["exit_status"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--margin", "5"), "'5' is no share"),
        (("--metric", "speed"), "metric 'speed' is not known"),
        (("--workload", "tpch"), "there are read-write"),
        (("--factor", "weather"), "weather"),
    ],
)
def test_a_wrong_call_ends_with_2_and_prints_no_table(study: Path, more: tuple[str, ...], words: str) -> None:
    done = compare(study, "type=xfs", "btrfs nodatacow", *more)
    assert (2, "") == (done.returncode, done.stdout)
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--fail-if", "slowish 5%"), "these would do: 'slower 10%'"),
        (("--fail-if", "slower", "--metric", "tps_cv"), "tps_cv is no speed"),
        (("--fail-if", "slower", "--metric", "speed"), "metric 'speed' is not known"),
    ],
)
def test_with_a_condition_a_wrong_call_is_no_bad_commit(
    study: Path, more: tuple[str, ...], words: str
) -> None:
    done = compare(study, "type=xfs", "btrfs nodatacow", *more)
    assert (125, "") == (done.returncode, done.stdout)
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_with_a_condition_a_study_that_is_not_there_is_no_bad_commit(tmp_path: Path) -> None:
    done = compare(tmp_path / "none", "type=xfs", "type=ext4", "--fail-if", "slower")
    assert 125 == done.returncode
    assert "none" in done.stderr
    assert 2 == compare(tmp_path / "none", "type=xfs", "type=ext4").returncode


def test_an_error_of_our_own_is_no_bad_commit(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NothingTold, match="bedplate itself failed") as told, bisectable():
        raise ZeroDivisionError
    assert 125 == told.value.exit_code
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_an_interrupt_stays_one() -> None:
    with pytest.raises(KeyboardInterrupt), bisectable():
        raise KeyboardInterrupt


def test_a_filter_that_selects_nothing_is_a_wrong_call(study: Path) -> None:
    done = compare(study, "type=zfs", "type=xfs")
    assert (2, "") == (done.returncode, done.stdout)
    assert "filesystem.type is nowhere 'zfs'; there are ext4, xfs, btrfs" in done.stderr


def test_effects_are_told_and_refused(study: Path) -> None:
    done = call_here("show", study, "--effects")
    assert (0, "") == (done.returncode, done.stderr)
    assert "share of the" in done.stdout
    assert json.loads(call_here("show", study, "--effects", "--json").stdout)["effects"]
    assert 2 == call_here("show", study, "--effects", "--metric", "fast_transaction_share").returncode


def test_git_bisect_finds_the_commit_that_made_it_slow(study: Path, tmp_path: Path) -> None:
    """The commits of a small repository name what was measured; XFS is the past, Btrfs the future."""
    repository = tmp_path / "repository"
    repository.mkdir()

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words],
            cwd=repository,
            capture_output=True,
            text=True,
            check=True,
            env={
                **os.environ,
                "PYTHONPATH": str(Path(__file__).parents[3] / "src"),
                "GIT_CONFIG_GLOBAL": os.devnull,
            },
        )
        return done.stdout.strip()

    git("init", "-q")
    commits = []
    for number, contender in enumerate((FAST, FAST, UNCLEAR, FAST, SLOW, SLOW)):
        (repository / "contender").write_text(f"{contender}\n{number}")
        git("add", "contender")
        git("commit", "-q", "-m", f"commit {number}")
        commits.append(git("rev-parse", "HEAD"))
    script = tmp_path / "judge.sh"
    script.write_text(
        "#!/bin/sh\n"
        f"exec '{sys.executable}' -m bedplate compare '{study}' --baseline 'type=xfs build.block_size=2k' "
        "--contender \"$(head -n 1 contender)\" --fail-if 'slower 5%'\n"
    )
    git("bisect", "start", commits[-1], commits[0])
    git("bisect", "run", "sh", str(script))
    log = git("bisect", "log")
    assert f"# first bad commit: [{commits[4]}]" in log
    assert f"# skip: [{commits[2]}]" in log
