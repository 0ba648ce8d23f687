"""`bedplate power-cut replay`: which run is meant, what is refused before anything is touched, what is said."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import click
import pytest
from tests.support.studies.synthetic_power_cuts import RECORDING

from bedplate.cli.cut_tools import CutAgain, by_hand
from bedplate.cli.cuts import (
    PLANT_NAMES,
    PROFILE_NAMES,
    cut_log_again,
    described,
    find_run,
    power_cut,
    replay,
)
from bedplate.cuts.log import CrashState
from bedplate.cuts.records import (
    LOG_FILE,
    POINTS_FILE,
    ChosenState,
    CutPoint,
    Placement,
    PointOutcome,
    PointRecord,
    Profile,
)
from bedplate.engines.external.prepare import PLANTS
from bedplate.errors import PlanError, StudyError
from bedplate.host.command import Account
from bedplate.model import codec
from bedplate.model.cell import FilesystemLevels
from bedplate.model.levels import Levels
from bedplate.model.visit import EngineBuild
from bedplate.visit.cuts import Subject
from bedplate.workloads.power_cut.bench import JOB_FILE, Built, ReplayJob

POINT = CutPoint(0, 100, Profile.SUBSET_4K, Placement.WEIGHTED, 17)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Two runs of power cuts, and one of something else."""
    for cell, run in (
        ("ext4-barrier", "power-cut"),
        ("ext4-nobarrier", "power-cut"),
        ("ext4-barrier", "pgbench"),
    ):
        folder = tmp_path / "visits" / cell / "dataset" / "1.1" / "runs" / f"01-{run}-1a2b"
        folder.mkdir(parents=True)
        if run == "power-cut":
            (folder / POINTS_FILE).touch()
            job = ReplayJob(
                filesystem=FilesystemLevels("ext4"),
                subject=Subject("postgresql", 40_000, Levels(), Levels()),
                points=(POINT,),
                image_bytes=1 << 29,
                window_bytes=1 << 23,
                measured_from=7,
            )
            codec.write(folder / JOB_FILE, job)
    return tmp_path


def test_a_run_is_found_by_what_no_other_path_has(study: Path) -> None:
    assert "ext4-nobarrier" in str(find_run(study, "nobarrier"))
    assert "ext4-barrier" in str(find_run(study, "ext4-barrier"))


def test_a_name_of_several_runs_lists_them(study: Path) -> None:
    with pytest.raises(StudyError, match="several runs of power cuts fit 'power-cut'") as caught:
        find_run(study, "power-cut")
    assert len(caught.value.reasons) == 3


def test_a_name_of_no_run_lists_all(study: Path) -> None:
    with pytest.raises(StudyError, match="no run of power cuts fits 'xfs'") as caught:
        find_run(study, "xfs")
    assert len(caught.value.reasons) == 3


def test_a_study_without_power_cuts_says_so(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="has no run of power cuts"):
        find_run(tmp_path, "power-cut")


def test_a_log_that_was_not_kept_is_told_before_anything_is_made(study: Path, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="was not kept"):
        replay(study, "nobarrier", 0, keep=tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_a_point_that_is_not_there_is_told(study: Path, tmp_path: Path) -> None:
    (find_run(study, "nobarrier") / LOG_FILE).touch()
    with pytest.raises(StudyError, match="has points 0 to 0, and no 3"):
        replay(study, "nobarrier", 3, keep=tmp_path / "kept")


def test_what_is_said_names_the_cut_its_outcome_and_the_image() -> None:
    record = PointRecord(
        POINT,
        PointOutcome.LOST,
        flush_position=90,
        volatile_writes=8,
        volatile_bytes=4096,
        kept_writes=3,
        acknowledged=50,
        lost_transactions=2,
        mount_s=0.02,
        problems=("2 of 50 acknowledged transactions are missing",),
    )
    assert described(record, [Path("kept/disk")]) == [
        "point 0: cut at entry 100, subset-4k, weighted, seed 17",
        "volatile: 8 writes, 4096 bytes; 3 writes kept",
        "outcome: lost",
        "  2 of 50 acknowledged transactions are missing",
        "mount: 0.020 s",
        "image: kept/disk",
    ]


def lines_by_hand(levels: FilesystemLevels, subject: Subject, *, journal: bool = False) -> list[str]:
    job = ReplayJob(
        filesystem=levels,
        subject=subject,
        points=(POINT,),
        image_bytes=1 << 29,
        window_bytes=1 << 23,
        measured_from=7,
    )
    window = CrashState((0,), (None,), 0, 0, 0, ())
    images = (Path("/kept here/disk"), *((Path("/kept here/journal"),) if journal else ()))
    return list(by_hand(job, Built(window, images), Account("nobody", 65534, 65534)))


def test_the_next_commands_mount_a_copy_and_start_the_server_as_its_account() -> None:
    build = EngineBuild("/builds/eighteen", "18.6", 8192, 8192, "", "", "", (), "")
    lines = lines_by_hand(FilesystemLevels("xfs"), Subject("postgresql", 1, Levels(), Levels(), build))
    assert lines[1:4] == [
        "  cp --sparse=always '/kept here/disk' '/kept here/disk.tried'",
        "  disk=$(losetup --find --show '/kept here/disk.tried'); blockdev --setrw $disk",
        "  mkdir -p '/kept here/mount'",
    ]
    # The kernel mounts no two of XFS with one UUID: the recorded one may still be there.
    assert lines[4].startswith("  mount -t xfs -o ")
    assert "nouuid" in lines[4]
    assert "xfs_repair $disk; xfs_repair -L $disk" in lines[5]
    text = "\n".join(lines)
    assert "(cd '/kept here/mount/data' && rm -f postgresql.auto.conf postmaster.pid " in text
    started = "unshare --net setpriv --no-new-privs --reuid=65534 --regid=65534 --clear-groups /builds/eighteen/bin/postgres -D '/kept here/mount/data'"
    assert started in text
    assert "-c 'config_file=/kept here/configuration/postgresql.conf'" in text


def test_the_next_commands_name_an_external_journal_and_the_reader_of_lmdb() -> None:
    drivers = Levels({"power_cut_lmdb": "/drivers/reader"})
    lines = lines_by_hand(
        FilesystemLevels("ext4", journal="external"), Subject("lmdb", 1, Levels(), drivers), journal=True
    )
    text = "\n".join(lines)
    assert "journal=$(losetup --find --show '/kept here/journal.tried')" in text
    assert "journal_path=$journal,nosuid,nodev,noexec $disk" in text
    assert "e2fsck -f -y -j $journal $disk" in text
    assert "/drivers/reader check --directory='/kept here/mount/data'" in text
    assert "losetup --detach $disk $journal" in text


def test_the_next_commands_tell_jfs_where_its_external_journal_is() -> None:
    subject = Subject("lmdb", 1, Levels(), Levels({"power_cut_lmdb": "/drivers/reader"}))
    text = "\n".join(lines_by_hand(FilesystemLevels("jfs", journal="external"), subject, journal=True))
    assert "fsck.jfs -f -p -j $journal $disk; jfs_tune -J device=$journal $disk" in text


def test_the_study_of_an_engine_does_not_stand_in_the_engines_folder(tmp_path: Path) -> None:
    words = ["try", str(tmp_path), "--directory", str(tmp_path / "cuts")]
    with pytest.raises(PlanError, match="name another --directory"):
        power_cut.main(words, standalone_mode=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", [".", "writer"])
def test_an_engine_that_others_may_change_is_not_begun_with(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = Path(__file__).resolve().parents[3] / "examples" / "engines" / "toy"
    engine, cuts = Path(shutil.copytree(toy, tmp_path / "toy")), tmp_path / "cuts"
    (engine / place).chmod(0o777)
    cuts.mkdir()
    monkeypatch.chdir(cuts)
    with pytest.raises(PlanError, match=r"others may write to .*; take that right away: chmod -R go-w"):
        power_cut.main(["try", str(engine), "--on", "ext4"], standalone_mode=False)
    assert not list(cuts.iterdir())


def test_the_profiles_of_the_command_are_all_there_are() -> None:
    assert PROFILE_NAMES == tuple(profile.value for profile in Profile)


def test_the_plants_of_the_command_are_those_of_the_library() -> None:
    source = Path(__file__).resolve().parents[3] / "drivers/planted_sync.c"
    (names,) = re.findall(r"names\[\] = \{(.*)\};", source.read_text())
    assert list(PLANT_NAMES) == list(PLANTS) == re.findall(r'"(.*?)"', names)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give the number of a cut, or --profile"),
        (["3", "--profile", "untorn-8k"], "give the number of a cut, or --profile"),
        (["3"], "--keep DIR goes with the number of a cut"),
        (["--profile", "untorn-8k", "--keep", "there"], "--keep DIR goes with the number of a cut"),
    ],
)
def test_a_cut_is_named_or_the_log_is_cut_anew(words: list[str], said: str, study: Path) -> None:
    with pytest.raises(click.UsageError, match=said):
        power_cut.main(["replay", str(study), "nobarrier", *words], standalone_mode=False)


def test_a_log_that_was_not_kept_is_not_cut_anew(study: Path) -> None:
    with pytest.raises(StudyError, match="was not kept"):
        cut_log_again(study, "nobarrier", ["untorn-16k"], points=4, seed=1)


def test_cuts_made_anew_are_counted_by_profile_and_the_controls_apart() -> None:
    torn = replace(PointRecord(POINT, PointOutcome.DETECTED, None, 8, 4096, 3, 50), lost_transactions=0)
    whole = replace(torn, point=replace(POINT, number=1, profile=Profile.UNTORN_16K), outcome=PointOutcome.OK)
    control = replace(torn, point=replace(POINT, number=2, control=True))
    found = CutAgain((torn, whole, control), RECORDING)
    assert [
        "subset-4k   bad 1 of 1: 1 corrupt, detected",
        "untorn-16k  bad 0 of 1, < 98 %",
        "controls    bad 1 of 1",
    ] == list(found.lines((Profile.SUBSET_4K, Profile.UNTORN_16K)))
    assert found.sees_losses
    assert not CutAgain((torn, whole, replace(control, outcome=PointOutcome.OK)), RECORDING).sees_losses


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (ChosenState((0, 3), kept=True), "keeps parts 0, 3"),
        (ChosenState((), kept=True), "keeps nothing"),
        (ChosenState((7,), kept=False), "keeps all parts but 7"),
    ],
)
def test_a_state_is_said_instead_of_a_seed(state: ChosenState, words: str) -> None:
    point = replace(POINT, placement=Placement.ENUMERATED, state=state)
    first = described(PointRecord(point, PointOutcome.OK, None, 8, 4096, 3, 50), [])[0]
    assert f"point 0: cut at entry 100, subset-4k, enumerated, {words}" == first
