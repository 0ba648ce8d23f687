"""What became of a job: the folder decides, Slurm explains, and an order is never open to two jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from bedplate.executors.slurm.controller import JobState
from bedplate.executors.slurm.job_folder import (
    ORDER_VERSION,
    WITHDRAWN,
    JobClaim,
    JobEnd,
    JobFolder,
    JobFolders,
    JobOrder,
    Settled,
    Submission,
)
from bedplate.executors.slurm.nodes import FILE_GRACE_S, LISTING_GRACE_S, Fate, Judge

NAME = "bedplate-x-1.1"
CLAIM = JobClaim("7", "n1", "boot", 1.0)


@pytest.fixture
def job(tmp_path: Path) -> JobFolder:
    folder = JobFolder(tmp_path / "jobs" / "1.1")
    order = JobOrder(ORDER_VERSION, NAME, "n1", 1, (), ("true",), "/var/tmp", 3600.0)
    folder.lay_out(order, {}, "#!/bin/sh\n")
    return folder


def listed(state: str, reason: str = "None") -> dict[str, JobState]:
    return {NAME: JobState("7", state, reason, NAME, "n1")}


def fate(
    job: JobFolder,
    listing: dict[str, JobState] | None,
    *,
    after_s: float = 1000.0,
    judge: Judge | None = None,
) -> Fate | None:
    """The fate after a second look, so much later."""
    judge = judge or Judge()
    verdict = judge.judge(job, job.order, listing, results=lambda: 0, now_s=1.0)
    verdict = verdict or judge.judge(job, job.order, listing, results=lambda: 0, now_s=1.0 + after_s)
    return verdict.fate if verdict else None


@pytest.mark.parametrize("listing", [None, {}, listed("RUNNING"), listed("NODE_FAIL"), listed("FAILED")])
def test_a_job_that_says_it_is_done_is_done_whatever_slurm_says(
    job: JobFolder, listing: dict[str, JobState] | None
) -> None:
    job.take(CLAIM)
    job.note_end(JobEnd("done", "every visit has ended", 1.0))
    assert Fate.DONE is fate(job, listing, after_s=0)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("NODE_FAIL", Fate.LOST),
        ("FAILED", Fate.LOST),
        ("OUT_OF_MEMORY", Fate.LOST),
        ("BOOT_FAIL", Fate.LOST),
        # Files that do not come: never believed for its state alone.
        ("COMPLETED", Fate.LOST),
        ("TIMEOUT", Fate.LIMIT),
        ("CANCELLED", Fate.STOPPED),
        ("PREEMPTED", Fate.STOPPED),
        ("RUNNING", None),
        ("COMPLETING", None),
        ("SUSPENDED", None),
        ("A_STATE_OF_A_NEWER_SLURM", None),
    ],
)
def test_slurms_state_explains_a_job_that_did_not_say(
    job: JobFolder, state: str, expected: Fate | None
) -> None:
    job.take(CLAIM)
    assert expected is fate(job, listed(state))


def test_files_of_another_machine_are_given_time_to_appear(job: JobFolder) -> None:
    job.take(CLAIM)
    assert fate(job, listed("COMPLETED"), after_s=10.0) is None
    judge = Judge()
    assert judge.judge(job, job.order, listed("COMPLETED"), results=lambda: 0, now_s=1.0) is None
    job.note_end(JobEnd("done", "every visit has ended", 1.0))
    verdict = judge.judge(job, job.order, listed("COMPLETED"), results=lambda: 0, now_s=5.0)
    assert verdict is not None
    assert Fate.DONE is verdict.fate


def test_a_silent_controller_decides_nothing(job: JobFolder) -> None:
    job.note_submission(Submission("7", 1.0))
    assert fate(job, None, after_s=1e6) is None
    assert not job.is_taken()


def test_a_job_that_was_asked_to_end_waits_for_slurms_word_why(job: JobFolder) -> None:
    job.take(CLAIM)
    job.note_end(JobEnd("stopped", "the job got a signal to end", 1.0))
    assert fate(job, listed("RUNNING")) is None
    assert Fate.LIMIT is fate(job, listed("TIMEOUT"))
    assert Fate.STOPPED is fate(job, listed("CANCELLED"))
    assert Fate.STOPPED is fate(job, {})


def test_an_order_that_was_never_submitted_is_taken_back_and_then_nobody_can_begin_it(job: JobFolder) -> None:
    assert fate(job, {}, after_s=5.0) is None
    assert Fate.WITHDRAWN is fate(job, {})
    claim = job.claim
    assert claim is not None
    assert WITHDRAWN == claim.by
    assert not job.take(CLAIM)


def test_a_job_that_begins_while_its_order_is_taken_back_keeps_it(
    job: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The answer was "nobody has it" and is false by now.
    monkeypatch.setattr(JobFolder, "is_taken", lambda _self: False)
    job.take(CLAIM)
    assert fate(job, {}) is None


def test_a_job_that_slurm_forgot_is_lost_after_a_while(job: JobFolder) -> None:
    job.note_submission(Submission("7", 1.0))
    job.take(CLAIM)
    assert fate(job, {}, after_s=5.0) is None
    assert Fate.LOST is fate(job, {})


def test_a_job_whose_start_failed_and_that_is_held_is_lost_and_cannot_begin_later(job: JobFolder) -> None:
    assert Fate.LOST is fate(job, listed("PENDING", "launch_failed_requeued_held"), after_s=0)
    assert not job.take(CLAIM)


@pytest.mark.parametrize(
    "reason", ["Priority", "Resources", "JobHeldUser", "ReqNodeNotAvail, May be reserved"]
)
def test_a_job_that_has_not_begun_is_waited_for(job: JobFolder, reason: str) -> None:
    assert fate(job, listed("PENDING", reason), after_s=1e6) is None
    assert not job.is_taken()


def test_a_job_that_began_and_waits_again_was_put_back_and_is_lost(job: JobFolder) -> None:
    job.take(CLAIM)
    # The listing may be a moment older than the claim.
    assert fate(job, listed("PENDING", "BeginTime"), after_s=5.0) is None
    assert Fate.LOST is fate(job, listed("PENDING", "BeginTime"))
    judge = Judge()
    assert judge.judge(job, job.order, listed("PENDING"), results=lambda: 0, now_s=1.0) is None
    assert judge.judge(job, job.order, listed("RUNNING"), results=lambda: 0, now_s=2.0) is None
    assert judge.judge(job, job.order, listed("PENDING"), results=lambda: 0, now_s=17.0) is None


def test_one_alone_can_take_an_order(job: JobFolder) -> None:
    assert [True, False, False] == [job.take(JobClaim(str(number))) for number in range(3)]
    claim = job.claim
    assert claim is not None
    assert "0" == claim.by


def test_folders_are_new_numbered_and_settled_ones_left_out(job: JobFolder) -> None:
    folders = JobFolders(job.directory.parent)
    assert "1.2" == folders.new(1).directory.name
    assert "2.1" == folders.new(2).directory.name
    (job.directory.parent / "notes").mkdir()
    assert [job.directory] == [found.directory for found in folders.unsettled()]
    job.note_settled(Settled("COMPLETED", "", 1.0))
    assert () == folders.unsettled()


def test_half_a_result_is_none(job: JobFolder) -> None:
    for name in (".000.part", "000", "1", "notes"):
        (job.results / name).mkdir()
    assert (0,) == job.finished()


@pytest.mark.parametrize(
    ("why", "expected"),
    [("done", Fate.DONE), ("limit", Fate.LIMIT), ("unfit", Fate.UNFIT), ("refused", Fate.LOST)],
)
def test_what_a_job_says_itself_is_believed_whatever_its_state(
    job: JobFolder, why: str, expected: Fate
) -> None:
    job.take(CLAIM)
    job.note_end(JobEnd(why, "its words", 1.0))
    for listing in (None, {}, listed("FAILED"), listed("RUNNING")):
        assert expected is fate(job, listing)


@pytest.mark.parametrize("why", ["done", "limit", "unfit", "refused", "stopped"])
def test_results_that_are_seen_later_than_the_jobs_word_are_waited_for(job: JobFolder, why: str) -> None:
    job.take(CLAIM)
    job.note_end(JobEnd(why, "", 1.0, results=2))
    judge = Judge()
    listing = listed("COMPLETED")

    def look(seen: int, now_s: float) -> bool:
        return judge.judge(job, job.order, listing, results=lambda: seen, now_s=now_s) is not None

    assert [False, False] == [look(1, 1.0), look(1, 1.0 + FILE_GRACE_S - 1)]
    assert look(2, 1.0 + FILE_GRACE_S - 1)
    # Whoever removed them has the last word.
    assert look(1, 1.0 + FILE_GRACE_S)


def test_one_that_began_since_slurm_was_asked_is_not_forgotten_by_it(job: JobFolder) -> None:
    judge = Judge()
    for now_s in (1.0, 1.0 + LISTING_GRACE_S - 1):
        assert judge.judge(job, job.order, {}, results=lambda: 0, now_s=now_s) is None
    job.take(CLAIM)
    now_s = 1.0 + LISTING_GRACE_S + 1
    assert judge.judge(job, job.order, {}, results=lambda: 0, now_s=now_s) is None
    assert judge.judge(job, job.order, listed("RUNNING"), results=lambda: 0, now_s=now_s + 1000) is None


@pytest.mark.parametrize(("submitted", "expected"), [(True, Fate.STOPPED), (False, Fate.WITHDRAWN)])
def test_an_order_that_was_taken_back_is_none_that_slurm_lost(
    job: JobFolder, submitted: bool, expected: Fate
) -> None:
    job.take(JobClaim(WITHDRAWN))
    if submitted:
        job.note_submission(Submission("7", 1.0))
    assert expected is fate(job, {})


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (None, "it left no log"),
        ("", "job.log"),
        ("begins\nHOME: must be set\n\n", "job.log (“HOME: must be set”)"),
        ("x" * 10_000 + " the end", f"job.log (“{'x' * 292} the end”)"),
    ],
)
def test_a_job_that_failed_is_explained_by_the_last_line_of_its_log(
    job: JobFolder, log: str | None, expected: str
) -> None:
    job.take(CLAIM)
    if log is not None:
        job.log.write_text(log, encoding="utf-8")
    judge = Judge()
    for now_s in (1.0, 1000.0):
        verdict = judge.judge(job, job.order, listed("FAILED"), results=lambda: 0, now_s=now_s)
    assert verdict is not None
    assert verdict.sentence.endswith(expected)
