"""What is said to Slurm, and what is read of its words; the golden lines are a real squeue's, 22.05."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.errors import BedplateError, CommandFailed, OutputNotUnderstood, RequirementMissing
from bedplate.executors.slurm import controller
from bedplate.executors.slurm.controller import (
    ControllerSilent,
    JobState,
    QueueFull,
    Slurm,
    parse_jobs,
    submission,
)
from bedplate.host.command import Commands, Completed
from bedplate.model.machine import Fleet

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "slurm" / "squeue-22.05.txt"


class Played(Commands):
    """Answers in place of Slurm."""

    def __init__(self, answer: str | CommandFailed) -> None:
        super().__init__()
        self._answer = answer

    def run(self, argv: Sequence[str], **_more: Any) -> Completed:
        self.record.append(tuple(argv))
        if isinstance(self._answer, CommandFailed):
            raise self._answer
        return Completed(tuple(argv), 0, self._answer, "", 0.0)


def failed(words: str) -> CommandFailed:
    return CommandFailed(f"sbatch ended with status 1: {words}", argv=["sbatch"], status=1, output=words)


def test_a_real_listing_is_read() -> None:
    found = parse_jobs(GOLDEN.read_text())
    assert 8 == len(found)
    states = {name.removeprefix("bedplate-").partition("-")[0]: job.state for name, job in found.items()}
    assert {
        "cancel": "CANCELLED",
        "done": "COMPLETED",
        "exit": "FAILED",
        "lost": "NODE_FAIL",
        "wait": "PENDING",
        "down": "PENDING",
        "held": "PENDING",
        "run": "RUNNING",
    } == states
    ended = {name.removeprefix("bedplate-").partition("-")[0] for name, job in found.items() if job.has_ended}
    assert {"cancel", "done", "exit", "lost"} == ended
    assert {"wait", "down", "held"} == {
        name.removeprefix("bedplate-").partition("-")[0] for name, job in found.items() if job.waits
    }
    # Held by its user, who will let it go.
    assert not any(job.is_held for job in found.values())
    assert "NODE_FAIL (NodeDown)" == found["bedplate-lost-3.1"].words


@pytest.mark.parametrize("line", ["1|RUNNING", "x|RUNNING|None|a|n1", "slurm_load_jobs error: refused"])
def test_a_line_of_another_form_is_quoted_and_not_guessed(line: str) -> None:
    with pytest.raises(OutputNotUnderstood, match="squeue"):
        parse_jobs(line)


@settings(deadline=None)
@given(st.text(max_size=200))
def test_whatever_is_printed_is_read_or_refused(text: str) -> None:
    try:
        found = parse_jobs(text)
    except BedplateError:
        return
    assert all(isinstance(job, JobState) for job in found.values())


@pytest.mark.parametrize(("said", "number"), [("17\n", "17"), ("17;lab\n", "17")])
def test_the_number_of_a_job_is_read_with_a_clusters_name_behind_it(said: str, number: str) -> None:
    assert number == Slurm(Played(said)).submit(["job.sh"])


def test_a_submission_that_says_no_number_is_not_taken_for_one() -> None:
    with pytest.raises(OutputNotUnderstood):
        Slurm(Played("Submitted batch job")).submit(["job.sh"])


@pytest.mark.parametrize(
    "words",
    [
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
    ],
)
def test_a_silent_controller_is_no_refusal(words: str) -> None:
    with pytest.raises(ControllerSilent):
        Slurm(Played(failed(words))).submit(["job.sh"])


def test_a_submission_that_ran_into_its_limit_is_no_refusal() -> None:
    late = CommandFailed("sbatch did not end", argv=["sbatch"], status=None, output="")
    with pytest.raises(ControllerSilent):
        Slurm(Played(late)).submit(["job.sh"])


def test_a_refusal_is_no_silence() -> None:
    words = "sbatch: error: Batch job submission failed: Invalid partition name specified"
    with pytest.raises(CommandFailed) as caught:
        Slurm(Played(failed(words))).submit(["job.sh"])
    assert not isinstance(caught.value, ControllerSilent)


def words_for(fleet: Fleet, *, limit_s: float = 7200.0, log: str = "/s/fleet/jobs/1.1/job.log") -> list[str]:
    return submission(
        fleet, name="b-1.1", node="n1", limit_s=limit_s, script=Path("/s/job.sh"), log=Path(log)
    )


def test_a_job_has_its_node_alone_once_and_with_nothing_of_our_environment() -> None:
    words = words_for(Fleet(("n1",), partition="bench", constraint="nvme", gres="scratch_device:1"))
    assert {
        *("--no-requeue", "--exclusive", "--nodelist=n1", "--nodes=1", "--time=120", "--export=NIL"),
        *("--partition=bench", "--constraint=nvme", "--gres=scratch_device:1"),
    } <= set(words)
    assert "/s/job.sh" == words[-1]
    assert not any(word.startswith("--account") for word in words)


def test_a_per_cent_sign_in_a_path_is_no_pattern_of_slurms() -> None:
    assert "--output=/s/50%%/job.log" in words_for(Fleet(("n1",)), log="/s/50%/job.log")


@pytest.mark.parametrize(
    ("limit_s", "minutes", "warned"), [(1, 1, False), (61, 2, False), (86400, 1440, True)]
)
def test_a_limit_is_in_whole_minutes_and_a_long_one_is_told_ahead(
    limit_s: float, minutes: int, warned: bool
) -> None:
    words = words_for(Fleet(("n1",)), limit_s=limit_s)
    assert f"--time={minutes}" in words
    assert warned == ("--signal=B:TERM@180" in words)


def test_where_slurm_is_not_its_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "find_tool", lambda _name: None)
    with pytest.raises(RequirementMissing, match="slurm-client"):
        controller.require_slurm()


def test_other_jobs_of_the_user_have_what_names_they_like() -> None:
    found = parse_jobs(
        "7|RUNNING|None|a|b||n1\n8_[1-4]|PENDING|Priority||\n9|RUNNING|None|bedplate-x-1.1|n1\n"
    )
    assert {"a|b|", "", "bedplate-x-1.1"} == set(found)
    assert "n1" == found["a|b|"].node


def test_a_line_in_the_name_of_another_job_hides_none_of_ours() -> None:
    found = parse_jobs("3|PENDING|JobHeldUser|a\nb|c|\n9|RUNNING|None|bedplate-x-1.1|n1\n")
    assert "RUNNING" == found["bedplate-x-1.1"].state
    with pytest.raises(OutputNotUnderstood, match=r"bedplate-x-1\.1"):
        parse_jobs("3|PENDING|None|a|\nRUNNING bedplate-x-1.1\n")


@pytest.mark.parametrize(
    "limit", ["AssocMaxSubmitJobLimit", "QOSMaxSubmitJobPerUserLimit", "AssocGrpSubmitJobsLimit"]
)
def test_too_many_jobs_are_no_refusal_of_this_one(limit: str) -> None:
    words = f"sbatch: error: {limit}\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy"
    with pytest.raises(QueueFull):
        Slurm(Played(failed(words))).submit(["job.sh"])


def test_what_a_shell_sets_for_slurms_commands_hides_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played("")
    for name in ("SQUEUE_PARTITION", "SBATCH_WAIT", "SBATCH_ACCOUNT"):
        monkeypatch.setenv(name, "x")
    Slurm(played).jobs()
    unset = ("env", "-u", "SBATCH_WAIT", "-u", "SQUEUE_PARTITION")
    assert (*unset, "squeue", "--noheader") == played.record[0][:7]


@pytest.mark.parametrize(
    ("state", "reason", "said"),
    [
        ("PENDING", "Resources", None),
        ("PENDING", "PartitionTimeLimit", "PartitionTimeLimit"),
        ("PENDING", "JobHeldAdmin", "JobHeldAdmin"),
        ("RUNNING", "None", None),
        ("FAILED", "NonZeroExitCode", None),
    ],
)
def test_why_a_job_waits_is_told_where_it_is_not_its_turn(state: str, reason: str, said: str | None) -> None:
    assert said == JobState("7", state, reason, "a").waits_for
