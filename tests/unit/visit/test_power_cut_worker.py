"""What a worker makes of an image: damage that is found late, engines that cannot start, memory that runs out."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.tools.filesystem_site import device_at

from bedplate.cuts.faults import ByteRange
from bedplate.cuts.log import Acknowledged, CrashState
from bedplate.cuts.records import CutPoint, Placement, PointOutcome, Profile
from bedplate.engines.lmdb import oracle as lmdb
from bedplate.engines.postgresql import oracle
from bedplate.errors import BedplateError, CommandNotStarted, KilledFromOutside
from bedplate.filesystem.adapter import CheckResult
from bedplate.filesystem.after_cut import Repaired
from bedplate.host.command import Account, Commands
from bedplate.host.kernel_log import KernelLog
from bedplate.host.mount import MountRefused
from bedplate.host.scratch_device import AttachedDevice
from bedplate.model.cell import FilesystemLevels
from bedplate.model.levels import Levels
from bedplate.model.visit import EngineBuild
from bedplate.visit import cuts
from bedplate.visit.cuts import OracleAnswer, Subject
from bedplate.workloads.power_cut import log
from bedplate.workloads.power_cut import worker as power_cut_worker
from bedplate.workloads.power_cut.bench import Built, Recovered, ReplayJob, judge
from bedplate.workloads.power_cut.log import NoRoomForImages
from bedplate.workloads.power_cut.worker import CutSite

POINT = CutPoint(7, 100, Profile.LOST, Placement.UNIFORM, 1)
WINDOW = CrashState((90,), (90,), volatile_writes=8, volatile_bytes=4096, kept_writes=0, kept=())
# Three transactions, of which none can be missing: what is lost is another test's.
PROMISED = Acknowledged(3, {0: 3}, None, cast("Any", None), {})
WHOLE = OracleAnswer({0: 3}, start_s=0.2, oracle_s=0.1)


@dataclass
class Play:
    """A file system that mounts; what its check finds, what its repair does, what the engine answers each time."""

    damage: str = ""
    answers: list[OracleAnswer] = field(default_factory=lambda: [WHOLE])
    repaired: bool = True
    mounts: int = 0
    traits: Any = field(default_factory=lambda: SimpleNamespace(checked_by_fsck=lambda _: False))
    told: list[str] = field(default_factory=list)
    counted: tuple[str, ...] = ()
    mended: bool = False

    def complaints(self, _: Any) -> tuple[str, ...]:
        self.told.append("complaints")
        return self.counted

    def mount(self, *_: Any, **__: Any) -> None:
        self.told.append("mount")

    def unmount(self, *_: Any, **__: Any) -> None:
        self.told.append("unmount")

    def check(self, *_: Any, **__: Any) -> Any:
        self.told.append("check")
        return CheckResult(not self.damage, self.damage, mended=self.mended)

    def repair(self, *_: Any, **__: Any) -> Repaired:
        self.told.append("repair")
        return Repaired(self.repaired, "the tool: mended" if self.repaired else "the tool: no")

    def ask(self, _: Mapping[int, int]) -> OracleAnswer:
        self.told.append("ask")
        return self.answers.pop(0)


BUILD = EngineBuild("/nowhere", "18.0", 8192, 8192, "", "", "", (), "d")


def job(engine: str = "lmdb") -> ReplayJob:
    return ReplayJob(
        filesystem=FilesystemLevels("ext4"),
        subject=Subject(engine, 1, Levels(), Levels({lmdb.DRIVER.name: "/nowhere/driver"}), BUILD),
        points=(POINT,),
        image_bytes=1 << 20,
        window_bytes=1 << 20,
        measured_from=1,
    )


@contextmanager
def no_loop(path: Path, _sector_bytes: int) -> Iterator[AttachedDevice]:
    yield device_at(str(path))


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    found = Play()
    monkeypatch.setattr(power_cut_worker, "filesystem_for", lambda _: found)
    monkeypatch.setattr(power_cut_worker, "passing_loop", no_loop)
    monkeypatch.setattr(power_cut_worker, "follow_no_links", lambda _: None)
    monkeypatch.setattr(power_cut_worker, "repair", found.repair)
    monkeypatch.setattr(
        power_cut_worker, "write_back", lambda path: found.told.append(f"write {Path(path).name}")
    )
    monkeypatch.setattr(power_cut_worker, "server_account", lambda: Account("me", -1, -1))
    monkeypatch.setattr(CutSite, "_ask", lambda _, promised: found.ask(promised))
    return found


def examined(play: Play, directory: Path) -> tuple[Any, OracleAnswer | None]:
    del play
    built = Built(WINDOW, (directory / "disk",))
    built.disk.write_bytes(b"")
    (directory / "site").mkdir()
    return CutSite(job(), directory / "site", commands=Commands()).examine(built, {0: 3})


@pytest.mark.parametrize(
    ("listens", "said"),
    [(True, ("NILFS (disk): broken superblock, retrying with spare superblock",)), (False, None)],
)
def test_what_the_file_system_says_of_an_image_is_heard_by_who_listens(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listens: bool, said: tuple[str, ...] | None
) -> None:
    heard = ("NILFS (disk): broken superblock, retrying with spare superblock", "NILFS (other): error")
    kernel = SimpleNamespace(messages=lambda about: heard, lost_count=0)
    monkeypatch.setattr(power_cut_worker, "KernelLog", lambda: nullcontext(kernel))
    built = Built(WINDOW, (tmp_path / "disk",))
    built.disk.write_bytes(b"")
    (tmp_path / "site").mkdir()
    asked = replace(job(), listens=listens)
    recovered, _ = CutSite(asked, tmp_path / "site", commands=Commands()).examine(built, {0: 3})
    assert said == recovered.kernel_said
    assert said == judge(POINT, WINDOW, PROMISED, recovered, WHOLE).kernel_said


def test_what_was_said_before_an_image_had_its_device_is_anothers(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (log := tmp_path / "kmsg").touch()

    def say(number: int, device: str) -> None:
        with log.open("a") as file:
            file.write(f"3,{number},9,-;EXT4-fs error (device {device}): bad block {number}\n")

    @contextmanager
    def attached(path: Path, _: int) -> Iterator[AttachedDevice]:
        say(1 if path.name == "disk" else 2, path.name)
        yield device_at(str(path))
        say(9, path.name)

    monkeypatch.setattr(power_cut_worker, "passing_loop", attached)
    monkeypatch.setattr(power_cut_worker, "KernelLog", lambda: KernelLog(log))

    # Of an external journal the kernel names that device.
    def mount(*_: object, **__: object) -> None:
        say(3, "disk")
        say(4, "journal")

    monkeypatch.setattr(play, "mount", mount)
    built = Built(WINDOW, (tmp_path / "disk", tmp_path / "journal"))
    for path in built.images:
        path.write_bytes(b"")
    (tmp_path / "site").mkdir()
    asked = replace(job(), listens=True)
    recovered, _ = CutSite(asked, tmp_path / "site", commands=Commands()).examine(built, {0: 3})
    said = [
        f"EXT4-fs error (device {name}): bad block {number}" for name, number in (("disk", 3), ("journal", 4))
    ]
    assert said == [*(recovered.kernel_said or ())]


def test_a_part_that_can_be_read_no_more_is_ordered_of_a_recorder_below_the_image(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = Built(WINDOW, (tmp_path / "disk",))
    built.disk.write_bytes(b"")
    (tmp_path / "site").mkdir()
    ordered: list[str] = []

    @contextmanager
    def below(
        asked: ReplayJob, found: Built, driver: Path, folder: Path, **_: object
    ) -> Iterator[tuple[Any, list[AttachedDevice]]]:
        assert (built, Path("recorder"), True) == (found, driver, folder.is_dir())
        yield SimpleNamespace(order_fault=ordered.append), [device_at("/dev/below")]

    monkeypatch.setattr(power_cut_worker, "below_recorder", below)
    asked = replace(job(), unreadable=(ByteRange(8192, 4096),))
    with pytest.raises(BedplateError, match="no recorder is named"):
        CutSite(asked, tmp_path / "site", commands=Commands()).examine(built, {0: 3})
    (tmp_path / "other").mkdir()
    site = CutSite(asked, tmp_path / "other", commands=Commands(), recorder=Path("recorder"))
    recovered, _ = site.examine(built, {0: 3})
    assert recovered.mounted
    assert ["read unreadable 0 0 8192+4096"] == ordered
    assert not (tmp_path / "other" / "unreadable").exists()


@pytest.mark.parametrize("heard", [("ZFS (disk): error",), (), None])
def test_errors_that_a_file_system_counts_are_asked_for_before_it_is_unmounted(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heard: tuple[str, ...] | None
) -> None:
    monkeypatch.setattr(power_cut_worker, "complaints_of", lambda *_: heard)
    monkeypatch.setattr(power_cut_worker, "KernelLog", lambda: nullcontext(object()))
    (tmp_path / "site").mkdir()
    site = CutSite(replace(job(), listens=True), tmp_path / "site", commands=Commands())
    for number, counted in enumerate(((), ("zpool status: 1 data errors",))):
        play.counted, play.answers = counted, [WHOLE]
        built = Built(WINDOW, (tmp_path / f"disk{number}",))
        built.disk.write_bytes(b"")
        recovered, _ = site.examine(built, {0: 3})
        # What nobody counts does not stand for a log that could not be read.
        assert (((heard or ()) + counted) or heard) == recovered.kernel_said
    assert ["mount", "ask", "complaints", "unmount", "check"] == play.told[:5]


def test_a_whole_file_system_is_asked_once(play: Play, tmp_path: Path) -> None:
    recovered, answer = examined(play, tmp_path)
    assert play.told == ["mount", "ask", "unmount", "check"]
    assert (recovered.unclean, answer) == (False, WHOLE)


def test_damage_that_is_found_late_is_repaired_and_the_engine_asked_again(play: Play, tmp_path: Path) -> None:
    play.damage = "block bitmap differs"
    play.answers = [WHOLE, OracleAnswer({0: 2}, start_s=0.9)]
    recovered, answer = examined(play, tmp_path)
    assert play.told == [
        "mount",
        "ask",
        "unmount",
        "check",
        "repair",
        "write disk",
        "mount",
        "ask",
        "unmount",
    ]
    assert answer is not None
    # The repair took a commit with it; the time until the engine answered is that of the first start.
    assert (answer.present, answer.start_s) == ({0: 2}, 0.2)
    assert (recovered.mounted, recovered.repaired, recovered.unclean) == (True, False, True)
    assert recovered.fsck_s is not None
    assert recovered.problems[0] == "it mounted, and a check finds errors: block bitmap differs"


def test_damage_that_no_repair_mends_is_silent_and_not_whole(play: Play, tmp_path: Path) -> None:
    play.damage, play.repaired = "block bitmap differs", False
    recovered, answer = examined(play, tmp_path)
    assert answer is not None
    assert recovered.mounted
    assert "no repair mends them" in answer.silent[0]
    record = judge(POINT, WINDOW, PROMISED, recovered, answer)
    assert record.outcome is PointOutcome.SILENT


def test_damage_that_the_check_itself_mends_is_looked_at_again_without_a_repair(
    play: Play, tmp_path: Path
) -> None:
    play.damage, play.mended = "scrub repaired 128K in 00:00:00 with 0 errors", True
    play.answers = [WHOLE, WHOLE]
    recovered, answer = examined(play, tmp_path)
    assert ["mount", "ask", "unmount", "check", "mount", "ask", "unmount"] == play.told
    assert (True, True, False) == (recovered.mounted, recovered.unclean, recovered.repaired)
    record = judge(POINT, WINDOW, PROMISED, recovered, answer)
    assert PointOutcome.NEEDS_FSCK is record.outcome
    assert "scrub repaired 128K" in record.problems[0]


def test_a_mount_that_was_killed_is_no_file_system_that_is_lost(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any, **__: Any) -> None:
        raise KilledFromOutside("mount")

    monkeypatch.setattr(play, "mount", killed)
    with pytest.raises(KilledFromOutside, match="mount was killed"):
        examined(play, tmp_path)
    assert "repair" not in play.told


@pytest.mark.parametrize(
    ("said", "repaired"),
    [
        ("sysfs: cannot create duplicate filename '/fs/btrfs/db822d43'\nopen_ctree failed: -17", False),
        (
            "superblock fsid doesn't match fsid of fs_devices: 743f03db != c5b043bc\nopen_ctree failed: -22",
            False,
        ),
        ("BTRFS error (device loop3): open_ctree failed: -5", True),
    ],
)
def test_only_a_mount_that_met_a_twin_is_made_again_as_it_was(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, *, repaired: bool
) -> None:
    tried: list[str] = []

    def failed_once(*_: Any, **__: Any) -> None:
        tried.append("mount")
        if len(tried) == 1:
            raise MountRefused(f"mount: {said}", output=said)

    monkeypatch.setattr(play, "mount", failed_once)
    recovered, _ = examined(play, tmp_path)
    # What says something of the image is a finding, and a repair comes before the next attempt.
    assert (True, repaired, repaired) == (recovered.mounted, recovered.repaired, bool(recovered.problems))


class Rebuilding:
    """Builds the image of a point as often as it is asked to."""

    def __init__(self) -> None:
        self.built = 0

    def build(self, _: CutPoint, folder: Path) -> Built:
        self.built += 1
        (folder / "disk").write_bytes(b"image")
        return Built(WINDOW, (folder / "disk",))


@pytest.mark.parametrize(
    ("refusals", "expected"),
    [
        (0, (PointOutcome.OK, None)),
        # The repair of the first try did not help, and the image is another one behind it.
        (2, (PointOutcome.OK, "mount: open_ctree failed: -5")),
        (4, (PointOutcome.FILE_SYSTEM_LOST, None)),
    ],
)
def test_a_file_system_is_lost_only_where_a_copy_of_the_image_does_not_mount_either(
    play: Play,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refusals: int,
    expected: tuple[PointOutcome, str | None],
) -> None:
    tried: list[str] = []

    def refused(*_: Any, **__: Any) -> None:
        tried.append("mount")
        if len(tried) <= refusals:
            raise MountRefused("mount: open_ctree failed: -5", output="open_ctree failed: -5")

    monkeypatch.setattr(play, "mount", refused)
    builder = Rebuilding()
    record = CutSite(job(), tmp_path, commands=Commands()).replay(POINT, cast("Any", builder), PROMISED)
    assert expected == (record.outcome, record.failed_once)
    assert builder.built == (2 if refusals else 1)


@pytest.mark.parametrize(
    ("late", "expected"),
    [
        (1, (PointOutcome.OK, "the checker did not end within 30 s")),
        (2, (PointOutcome.DETECTED, None)),
    ],
)
def test_an_engine_that_is_out_of_time_is_asked_once_more_on_a_copy(
    play: Play, tmp_path: Path, late: int, expected: tuple[PointOutcome, str | None]
) -> None:
    silent = OracleAnswer(None, detected=("the checker did not end within 30 s",), out_of_time=True)
    play.answers = [*(silent for _ in range(late)), WHOLE]
    builder = Rebuilding()
    record = CutSite(job(), tmp_path, commands=Commands()).replay(POINT, cast("Any", builder), PROMISED)
    assert (*expected, 2) == (record.outcome, record.failed_once, builder.built)


@pytest.mark.parametrize("engine", ["lmdb", "postgresql"])
def test_an_engine_that_cannot_be_started_has_found_nothing(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(power_cut_worker, "server_account", lambda: Account("me", -1, -1))

    def refuse(*_: Any, **__: Any) -> OracleAnswer:
        raise FileNotFoundError(2, "No such file or directory", "/opt/postgres")

    monkeypatch.setattr(cuts, "examine", refuse)
    monkeypatch.setattr(oracle, "examine", refuse)
    site = CutSite(job(engine), tmp_path, commands=Commands())
    with pytest.raises(BedplateError, match="/opt/postgres: No such file"):
        site._ask({0: 3})

    def broken(*_: Any, **__: Any) -> OracleAnswer:
        raise OSError(5, "Input/output error", str(tmp_path / "mount" / "data" / "postmaster.pid"))

    monkeypatch.setattr(cuts, "examine", broken)
    monkeypatch.setattr(oracle, "examine", broken)
    assert "Input/output error" in site._ask({0: 3}).detected[0]


def test_a_folder_of_data_that_cannot_be_looked_at_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(power_cut_worker, "server_account", lambda: Account("me", -1, -1))
    site = CutSite(job(), tmp_path, commands=Commands())

    def damaged(path: Path) -> bool:
        raise OSError(errno.EUCLEAN, "Structure needs cleaning", str(path))

    monkeypatch.setattr(Path, "is_symlink", damaged)
    found = site._ask({0: 3})
    assert (None, f"{tmp_path}/mount/data: Structure needs cleaning") == (found.present, *found.detected)


@pytest.mark.parametrize("mode", [None, 0o644])
def test_a_reader_of_lmdb_that_does_not_start_raises(tmp_path: Path, mode: int | None) -> None:
    driver = tmp_path / "driver"
    if mode is not None:
        driver.write_text("#!/bin/sh\n")
        driver.chmod(mode)
    account = Account("me", os.getuid(), os.getgid())
    with pytest.raises(CommandNotStarted, match="cannot be started"):
        cuts.examine(tmp_path, str(driver), {}, account=account, commands=Commands())


def test_a_reader_of_lmdb_that_does_not_end_has_met_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = tmp_path / "driver"
    driver.write_text("#!/bin/sh\nread never < /dev/zero\n")
    driver.chmod(0o755)
    monkeypatch.setattr(cuts, "_CHECK_LIMIT_S", 0.2)
    answer = cuts.examine(
        tmp_path, str(driver), {}, account=Account("me", os.getuid(), os.getgid()), commands=Commands()
    )
    assert "did not end within" in answer.detected[0]


@pytest.mark.parametrize("when", ["before", "after", "building"])
def test_memory_that_runs_out_is_an_error_and_no_verdict(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = tmp_path / "disk"
    image.write_bytes(b"x" * 4096)
    room = SimpleNamespace(f_bavail=log.RECOVERY_BYTES if when == "after" else 0, f_frsize=1)
    monkeypatch.setattr(os, "statvfs", lambda _: room)
    monkeypatch.setattr(power_cut_worker, "server_account", lambda: Account("me", -1, -1))
    (tmp_path / "site").mkdir()
    site = CutSite(job(), tmp_path / "site", commands=Commands())

    def build(*_: Any) -> Built:
        if when == "building":
            raise OSError(28, "No space left on device")
        return Built(WINDOW, (image,))

    def examine(*_: Any) -> Any:
        room.f_bavail = 0
        return Recovered(mounted=True), OracleAnswer(None, detected=("invalid page in block 7",))

    monkeypatch.setattr(site, "examine", examine)
    builder = SimpleNamespace(build=build)
    with pytest.raises(NoRoomForImages):
        site.replay(POINT, cast("Any", builder), PROMISED)


class Unwatched(nullcontext[None]):
    """In place of what looks at a recovery's pages."""

    untorn = places = None

    def facts(self) -> None:
        """Nobody looked."""


def test_a_look_is_at_a_copy_that_is_thrown_away_and_a_recorded_recovery_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def examine(site: Any, *_: Any) -> OracleAnswer:
        seen.append(site.thrown_away)
        return OracleAnswer({})

    monkeypatch.setattr(power_cut_worker, "server_account", lambda: Account("me", -1, -1))
    monkeypatch.setattr(power_cut_worker, "hand_over", lambda *_: None)
    monkeypatch.setattr(
        power_cut_worker, "cut_engine", lambda _: SimpleNamespace(examine=examine, may_link=False)
    )
    monkeypatch.setattr(power_cut_worker, "unmount_beside_twins", lambda *_: None)
    site = CutSite(job(), tmp_path, commands=Commands())
    monkeypatch.setattr(site, "_mount", lambda *_, **__: Recovered(mounted=True))
    monkeypatch.setattr(site, "_needs_repair", lambda _: False)
    monkeypatch.setattr(power_cut_worker, "NameCommits", lambda *_: nullcontext())
    monkeypatch.setattr(site._commands, "run", lambda *_, **__: None)
    monkeypatch.setattr(site, "_recovery_watch", Unwatched)
    site.recover([device_at("/dev/loop0")], {}, lambda: None)
    site._ask({})
    assert [False, True] == seen
