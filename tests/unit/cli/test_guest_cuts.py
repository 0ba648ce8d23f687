"""What was recorded in a guest is recovered in one: who goes there, what it is given, and what it must say."""

from __future__ import annotations

import lzma
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.studies.answering_guests import CUT, RECORDED, Guests, came_of
from tests.support.studies.synthetic_power_cuts import power_cut_study
from tests.support.tools.written_log import FLUSH, MARK, Written, written_log
from tests.unit.cli.test_stored_job import JOB
from tests.unit.model.test_fault_of_a_cut import LOST

from bedplate.cli import cut_tools
from bedplate.cli.cut_tools import GuestCuts, bad_points
from bedplate.cli.cuts import blame, bundle, cut_log_again, find_run, recovered_in_guest, replay
from bedplate.cuts.blame import BlameEvidence, Found
from bedplate.cuts.records import (
    LOG_FILE,
    POINTS_FILE,
    RECOVERY_LOG_FILE,
    SECOND_RECOVERY_LOG_FILE,
    CutPoint,
    Placement,
    PointOutcome,
    PointRecord,
    Profile,
)
from bedplate.errors import BedplateError, RequirementMissing, StudyError
from bedplate.executors.qemu.slot import Errand
from bedplate.model import codec
from bedplate.model.cell import FilesystemLevels, KernelLevels
from bedplate.model.levels import Levels
from bedplate.model.visit import VisitRecord
from bedplate.study.power_cut_stories import read_stories
from bedplate.units import GIB
from bedplate.visit.cuts import END, START
from bedplate.workloads.power_cut import cut_questions
from bedplate.workloads.power_cut.bench import JOB_FILE, ReplayJob
from bedplate.workloads.power_cut.bundle import MENDED, NO_VERDICT, TRY_LIMIT_S, ScriptQuestion, TriedScript
from bedplate.workloads.power_cut.cut_questions import IS_LAST, CutQuestion, answer_events, is_for_guest

NEWER = "6.1.0-2-amd64"


@pytest.fixture
def guests(monkeypatch: pytest.MonkeyPatch) -> Guests:
    made = Guests()
    monkeypatch.setattr(cut_tools, "prepare_guests", made.prepare)
    monkeypatch.setattr(cut_tools, "find_kernel", made.find)
    monkeypatch.setattr("bedplate.executors.qemu.slot.ErrandRunner.run", lambda _, *given: made.run(*given))

    def no_root() -> None:
        raise RequirementMissing("root")

    monkeypatch.setattr("bedplate.cli.cuts.require_root", no_root)
    return made


def of_guest(study: Path, name: str, **provenance: str) -> Path:
    """The run of a cell as one that was made in a guest with 6.1, and kept its log."""
    run = find_run(study, name)
    visit = run.parent.parent / "visit.json"
    record = codec.read(VisitRecord, visit)
    cell = replace(record.cell, kernel=KernelLevels("6.1"))
    codec.write(visit, replace(record, executor="qemu", cell=cell, provenance=provenance))
    (run / LOG_FILE).write_bytes(b"")
    codec.write(run / JOB_FILE, replace(JOB, points=tuple(bad_points(run, every=True))))
    return run


@pytest.fixture
def study(tmp_path: Path) -> Path:
    made = power_cut_study(tmp_path / "study")
    of_guest(made, "btrfs", kernel=RECORDED, kernel_digest=f"digest {RECORDED}")
    (made / "plan.toml").write_text('executor = "qemu"\n[guest]\nmemory = "3 GB"\n')
    return made


def lacks(monkeypatch: pytest.MonkeyPatch, *kinds: str) -> None:
    monkeypatch.setattr(cut_questions, "lacking_here", lambda type_: "no such" if type_ in kinds else None)


def numbers(run: Path) -> list[int]:
    return [point.number for point in bad_points(run, every=True)]


def test_a_guest_is_for_what_the_kernel_lacks_or_for_whoever_asks(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, here = find_run(study, "btrfs"), find_run(study, "xfs")
    lacks(monkeypatch)
    assert [False, True] == [is_for_guest(run), is_for_guest(run, anyway=True)]
    assert not is_for_guest(here, anyway=True)
    lacks(monkeypatch, "btrfs")
    assert is_for_guest(run)
    lacks(monkeypatch, "xfs")
    assert not is_for_guest(here), "it was recorded on a machine, whose kernel no guest has"


def test_the_guest_is_given_the_job_and_needs_no_root(
    study: Path, guests: Guests, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacks(monkeypatch, "btrfs")
    run = find_run(study, "btrfs")
    assert 0 == blame(study, "btrfs", None, every=True, most=9)
    (errand,) = guests.errands
    assert ("btrfs", 3 * GIB) == (errand.filesystem, errand.memory_bytes)
    question = errand.program.request
    assert isinstance(question, CutQuestion)
    assert (str(run.resolve()), 9) == (question.folder, question.most)
    assert numbers(run) == [point.number for point in question.points]
    assert set(numbers(run)) == read_stories(study, run).keys()
    said = capsys.readouterr()
    assert len(numbers(run)) == said.out.count("\n  fault: ")
    assert "note:" not in said.err, "it is the very kernel"
    # A single cut; and all that have no story yet, which is none.
    assert 0 == blame(study, "btrfs", numbers(run)[-1], most=9)
    assert 0 == blame(study, "btrfs", None, every=True, most=9)
    assert 2 == len(guests.errands)


def test_the_recorded_release_is_taken_before_a_newer_one(
    study: Path, guests: Guests, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacks(monkeypatch, "btrfs")
    guests.kernels = (RECORDED, NEWER)
    assert 0 == blame(study, "btrfs", None)
    assert [RECORDED] == guests.asked
    assert RECORDED == guests.errands[-1].kernel.release
    # It is gone: the newest that the plan allows, and it is said.
    guests.kernels = (NEWER,)
    assert 0 == blame(study, "btrfs", None)
    assert "6.1" == guests.asked[-1]
    assert (
        f"recorded and judged under kernel {RECORDED}, and recovered here under {NEWER}"
        in capsys.readouterr().err
    )


def test_another_build_of_the_same_release_is_said(
    study: Path, guests: Guests, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacks(monkeypatch, "btrfs")
    of_guest(study, "btrfs", kernel=RECORDED, kernel_digest="another")
    assert 0 == blame(study, "btrfs", None)
    assert guests.errands
    assert "recovered here under another build of it" in capsys.readouterr().err


def test_what_is_not_for_a_guest_needs_root_as_before(
    study: Path, guests: Guests, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacks(monkeypatch)
    with pytest.raises(RequirementMissing, match="root"):
        blame(study, "btrfs", None)
    assert not guests.errands


def test_a_guest_that_said_nothing_of_a_cut_is_no_end_of_it(
    study: Path, guests: Guests, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacks(monkeypatch, "btrfs")
    guests.silent = 1
    run = find_run(study, "btrfs")
    every = numbers(run)
    with pytest.raises(BedplateError, match=f"said nothing of 1 cut: {every[-1]}"):
        blame(study, "btrfs", None, every=True, most=9)
    assert set(every[:-1]) == read_stories(study, run).keys(), "what was told is kept"


def test_a_guest_that_fails_is_named_and_the_other_runs_are_told(
    study: Path, guests: Guests, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = next(
        name for name in ("ext4-pg8k-nobarrier", "xfs") if bad_points(find_run(study, name), every=True)
    )
    run = of_guest(study, other, kernel=RECORDED)
    lacks(monkeypatch, "btrfs", other.partition("-")[0])
    guests.dead = {"btrfs"}
    assert 1 == blame(study, None, None, every=True, most=9)
    assert set(numbers(run)) == read_stories(study, run).keys()
    assert {} == read_stories(study, find_run(study, "btrfs"))
    assert "in the guest it ended with status 1: no" in capsys.readouterr().err


def test_points_that_the_run_has_not_are_recovered_in_a_guest_too(
    study: Path, guests: Guests, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = find_run(study, "btrfs")
    points = [replace(CUT, number=number, profile=Profile.UNTORN_16K) for number in (7, 3)]
    lacks(monkeypatch)
    with ExitStack() as stack:
        with pytest.raises(RequirementMissing, match="root"):
            recovered_in_guest(study, run, stack, anyway=False)
        assert recovered_in_guest(study, run, stack, anyway=True) is not None
    lacks(monkeypatch, "btrfs")
    with ExitStack() as stack:
        recover = recovered_in_guest(study, run, stack, anyway=False)
        assert recover is not None
        assert tuple(map(came_of, reversed(points))) == recover(points)
        question = guests.errands[-1].program.request
        assert isinstance(question, CutQuestion)
        assert (str(run.resolve()), tuple(points), None) == (question.folder, question.points, question.most)
        guests.silent = 1
        with pytest.raises(BedplateError, match="said nothing of 1 cut: 3"):
            recover(points)


def with_log(run: Path) -> CutPoint:
    """The run has a log of twenty windows, and one cut in its middle that lost something."""
    page = Written(data=b"p" * 4096)
    windows = [replace(page, sector=8 * place) for place in range(60)]
    body = [each for place in range(0, 60, 3) for each in (*windows[place : place + 3], Written(flags=FLUSH))]
    ends = (Written(flags=MARK, text=text.encode()) for text in (START, END))
    log = written_log(run / "log", [next(ends), *body, next(ends)])
    (run / LOG_FILE).write_bytes(lzma.compress(log.read_bytes()))
    log.unlink()
    lost = replace(came_of(replace(CUT, position=43)), outcome=PointOutcome.LOST, lost_transactions=1)
    subject = replace(JOB.subject, drivers=Levels(power_cut_lmdb="/usr/bin/env"))
    codec.write(run / JOB_FILE, replace(JOB, points=(lost.point,), image_bytes=1 << 20, subject=subject))
    (run / POINTS_FILE).write_text(codec.dumps(lost, indent=None) + "\n")
    return lost.point


def test_a_log_is_cut_anew_in_a_guest_and_needs_no_root(
    study: Path, guests: Guests, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = find_run(study, "btrfs")
    with_log(run)
    lacks(monkeypatch, "btrfs")
    assert 0 == cut_log_again(study, "btrfs", ["untorn-16k", "ordered"], points=6, seed=1)
    (errand,) = guests.errands
    asked = errand.program.request
    assert isinstance(asked, CutQuestion)
    assert {Profile.UNTORN_16K: 3, Profile.ORDERED: 3} == Counter(
        point.profile for point in asked.points if not point.control
    )
    said = capsys.readouterr().out
    assert "untorn-16k  bad 0 of 3" in said
    assert "controls    bad 6 of 6" in said
    lacks(monkeypatch)
    with pytest.raises(RequirementMissing, match="root"):
        cut_log_again(study, "btrfs", ["untorn-16k"], points=2, seed=1)


def test_the_image_of_a_cut_is_here_and_what_came_of_it_from_the_guest(
    study: Path,
    guests: Guests,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    point = with_log(find_run(study, "btrfs"))
    lacks(monkeypatch, "btrfs")
    monkeypatch.setattr(
        "bedplate.workloads.power_cut.cut_questions.lacking_here", lambda _: "kernel 9 has no btrfs"
    )
    # The guest finds nothing wrong, and the study's record says otherwise.
    assert 1 == replay(study, "btrfs", point.number, keep=tmp_path / "a" / "image")
    said = capsys.readouterr()
    assert f"cut at entry {point.position}" in said.out
    assert "kernel 9 has no btrfs; what follows needs a machine whose kernel has it" in said.out
    assert "the study's record of this point says lost" in said.err
    assert (tmp_path / "a" / "image" / "disk").read_bytes().count(b"p" * 4096) >= 30
    (errand,) = guests.errands
    assert errand.limit_s >= 3600, "a single repair may take ten minutes"


def test_a_refused_replay_starts_no_guest_and_gives_nothing_away(
    study: Path, guests: Guests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = with_log(find_run(study, "btrfs"))
    lacks(monkeypatch, "btrfs")
    given: list[Path] = []
    monkeypatch.setattr("bedplate.cli.cuts.give_to_caller", given.append)
    keep = tmp_path / "keep"
    keep.mkdir()
    (keep / "mine").touch()
    with pytest.raises(StudyError, match="is not an empty directory"):
        replay(study, "btrfs", point.number, keep=keep)
    with pytest.raises(StudyError, match="is not an empty directory"):
        replay(study, "btrfs", point.number, keep=keep / "mine")
    assert ([], []) == (given, guests.errands)
    (keep / "mine").unlink()
    log = find_run(study, "btrfs") / LOG_FILE
    log.rename(tmp_path / "elsewhere")
    log.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StudyError, match=r"log\.xz is missing, a link, or no file"):
        replay(study, "btrfs", point.number, keep=keep)
    assert ([], [], []) == (given, guests.errands, list(keep.iterdir()))


def test_a_bundle_is_made_here_and_its_script_tried_in_the_guest_without_root(
    study: Path,
    guests: Guests,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    point, output = with_log(find_run(study, "btrfs")), tmp_path / "a" / "bundle"
    lacks(monkeypatch, "btrfs")
    assert 0 == bundle(study, "btrfs", point.number, output=output, most=9)
    inquest, bad, mended = guests.errands
    assert isinstance(inquest.program.request, CutQuestion)
    assert ((point,), 9) == (inquest.program.request.points, inquest.program.request.most)
    for errand, words in ((bad, ()), (mended, (MENDED,))):
        asked = errand.program.request
        assert isinstance(asked, ScriptQuestion)
        assert (str(output), words) == (asked.folder, asked.words)
        assert errand.limit_s > TRY_LIMIT_S
    assert f"was tried in a guest with kernel {RECORDED}, and gave the bad verdict" in capsys.readouterr().out
    tried = f"it was tried in a guest with kernel {RECORDED}, and it gave the bad verdict"
    assert tried in (output / "README.md").read_text()
    assert {"disk.tar.xz", "log.txt", "story.txt", MENDED} <= {path.name for path in output.iterdir()}

    # A tool is missing there.
    guests.scripts[()] = TriedScript(NO_VERDICT, "no verdict: fsck.btrfs is not installed")
    assert 1 == bundle(study, "btrfs", point.number, output=tmp_path / "b", most=9)
    assert "fsck.btrfs is not installed" in capsys.readouterr().err
    # The running kernel has it all, and nobody asked for a guest.
    lacks(monkeypatch)
    with pytest.raises(RequirementMissing, match="root"):
        bundle(study, "btrfs", point.number, output=tmp_path / "c", most=9)
    assert not (tmp_path / "c").exists()


def test_a_bundle_that_a_guest_cannot_see_or_that_is_refused_starts_none(
    study: Path, guests: Guests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = with_log(find_run(study, "btrfs"))
    lacks(monkeypatch, "btrfs")
    monkeypatch.setattr(cut_tools, "_HIDDEN", (tmp_path / "hidden",))
    with pytest.raises(RequirementMissing, match="a guest does not see"):
        bundle(study, "btrfs", point.number, output=tmp_path / "hidden" / "bundle")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "own").touch()
    with pytest.raises(StudyError, match="is not an empty directory"):
        bundle(study, "btrfs", point.number, output=tmp_path / "mine")
    assert ([], []) == (guests.errands, guests.asked)
    assert not (tmp_path / "hidden").exists()


def test_cuts_of_recoveries_are_asked_for_with_the_log_of_theirs(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = find_run(study, "btrfs")
    with_log(run)
    (run / RECOVERY_LOG_FILE.format(first=0)).write_bytes(lzma.compress(b"a recovery"))
    behind = SECOND_RECOVERY_LOG_FILE.format(first=0, second=17)
    (run / behind).write_bytes(lzma.compress(b"behind a second cut"))
    again = replace(CUT, number=7, recovery_of=0)
    points = (again, CUT, replace(again, number=8), replace(again, number=9, second=17))

    def replayed(
        _: Path, job: ReplayJob, report: Callable[[str], None], **__: object
    ) -> Iterator[PointRecord]:
        report("said")
        return map(came_of, job.points)

    def judged(
        _: Path, job: ReplayJob, point: CutPoint, *, recoveries: Sequence[Path], **__: object
    ) -> PointRecord:
        contents = [b"a recovery"] if point.second is None else [b"a recovery", b"behind a second cut"]
        assert contents == [path.read_bytes() for path in recoveries]
        return came_of(point)

    monkeypatch.setattr(cut_questions, "replayed", replayed)
    monkeypatch.setattr(cut_questions, "judge_alone", judged)
    told: list[str] = []
    found = list(cut_questions.outcomes(CutQuestion(str(run), JOB, points), told.append))
    assert [0, 7, 8, 9] == [record.point.number for record in found]
    assert ["said"] == told


def test_a_log_that_is_a_link_goes_to_no_guest(
    study: Path, guests: Guests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacks(monkeypatch, "btrfs")
    log = find_run(study, "btrfs") / LOG_FILE
    log.unlink()
    (tmp_path / "secret").write_text("secret")
    log.symlink_to(tmp_path / "secret")
    with pytest.raises(StudyError, match=r"log\.xz is missing, a link, or no file"):
        blame(study, "btrfs", None)
    assert not guests.errands


def test_a_study_that_a_guest_cannot_see_is_refused(
    study: Path, guests: Guests, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacks(monkeypatch, "btrfs")
    monkeypatch.setattr(cut_tools, "_HIDDEN", (study.parent,))
    with pytest.raises(RequirementMissing, match="a guest does not see"):
        blame(study, "btrfs", None)
    assert not guests.errands


@pytest.mark.parametrize("mode", [0o666, 0o600])
def test_a_kernel_that_may_be_a_strangers_is_not_started(
    study: Path, guests: Guests, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    """One that others may write, and one that came with the study."""
    lacks(monkeypatch, "btrfs")
    place = study if mode == 0o600 else study.parent
    image = place / "bzImage"
    image.touch()
    image.chmod(mode)
    run = find_run(study, "btrfs")
    visit = run.parent.parent / "visit.json"
    record = codec.read(VisitRecord, visit)
    codec.write(visit, replace(record, cell=replace(record.cell, kernel=KernelLevels(str(image)))))
    with pytest.raises(StudyError, match="may be a stranger's, and no guest was started"):
        blame(study, "btrfs", None)
    assert not guests.errands


def test_a_kernel_of_the_callers_own_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = tmp_path / "bzImage"
    image.touch(mode=0o600)
    # Whatever folder the tests lie in.
    monkeypatch.setattr(
        cut_questions, "_is_trusted", lambda path, owners: os.geteuid() in owners and path == image
    )
    cut_questions.require_trusted_kernel(KernelLevels(str(image)), tmp_path / "study")
    cut_questions.require_trusted_kernel(KernelLevels("6.1"), tmp_path / "study")


def test_the_memory_of_guests_is_all_that_is_read_of_a_plan(study: Path, guests: Guests) -> None:
    (study / "plan.toml").write_text('[sources]\nnowhere = 1\n[guest]\nmemory = "much"\n')
    with pytest.raises(StudyError, match="the memory of its guests cannot be read"):
        GuestCuts(study)
    (study / "plan.toml").write_text("[sources]\nnowhere = 1\n")
    GuestCuts(study).close()
    assert not guests.errands


def test_a_file_system_that_nobody_knows_is_lacking_and_no_crash(study: Path) -> None:
    run = find_run(study, "btrfs")
    visit = run.parent.parent / "visit.json"
    record = codec.read(VisitRecord, visit)
    strange = replace(record.cell, filesystem=FilesystemLevels("strangefs"))
    codec.write(visit, replace(record, cell=strange))
    assert is_for_guest(run)
    assert cut_questions.lacking_here("strangefs") is not None


def test_evidence_of_thousands_of_writes_comes_in_pieces_below_the_end_of_a_line() -> None:
    (write,) = LOST.smallest
    large = replace(LOST, smallest=(replace(write, names=("é" * 200,)),) * 5000)
    events = list(answer_events(large))
    assert len(events) > 10
    assert [False] * (len(events) - 1) + [True] == [event[IS_LAST] for event in events]
    assert max(len(codec.dumps(dict(event), indent=None)) for event in events) < 1 << 20
    heard: list[BlameEvidence] = []
    guest = cut_tools._Heard(BlameEvidence, heard.append)
    for event in events:
        guest.hear(event)
    assert [large] == heard


def test_a_cut_that_nobody_asked_a_guest_of_is_no_answer(
    study: Path, guests: Guests, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacks(monkeypatch, "btrfs")

    def run(_: object, errand: Errand, on_event: Callable[[Mapping[str, Any]], None]) -> None:
        point = CutPoint(10**6, 1, Profile.ORDERED, Placement.UNIFORM, 1)
        (answer,) = answer_events(Found(replace(LOST, point=point.number), point))
        on_event(answer)

    monkeypatch.setattr("bedplate.executors.qemu.slot.ErrandRunner.run", run)
    with pytest.raises(BedplateError, match="spoke of cut 1000000, of which nobody asked it"):
        blame(study, "btrfs", None)
    assert {} == read_stories(study, find_run(study, "btrfs"))
