"""What a stored run would mount and start is checked before root does either: the study may be a stranger's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bedplate.errors import RequirementMissing, StudyError
from bedplate.host.command import Account
from bedplate.host.facts import read_machine
from bedplate.host.files import cache_directory
from bedplate.model import codec
from bedplate.model.cell import FilesystemLevels
from bedplate.model.levels import Levels
from bedplate.model.visit import EngineBuild
from bedplate.visit.cuts import Subject
from bedplate.workloads.power_cut.bench import JOB_FILE, ReplayJob
from bedplate.workloads.power_cut.cut_questions import job_of

BUILD = EngineBuild("/", "18.1", 8192, 8192, "0" * 64, "here", "cc", (), "1" * 64)
JOB = ReplayJob(
    FilesystemLevels("ext4", mount_options=("noatime",)),
    Subject("lmdb", 0, Levels(), Levels()),
    (),
    2**20,
    2**20,
    0,
)


def read(folder: Path, job: ReplayJob) -> ReplayJob:
    codec.write(folder / JOB_FILE, job)
    return job_of(folder)


def test_what_a_plan_may_have_and_what_lies_in_the_cache_is_taken(tmp_path: Path) -> None:
    drivers = Levels(power_cut=str(cache_directory() / "drivers" / "power_cut"))
    job = replace(JOB, subject=replace(JOB.subject, drivers=drivers, build=BUILD))
    assert job == read(tmp_path, job)


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        (FilesystemLevels("ext4", mount_options=("noatime;reboot",)), "characters"),
        (FilesystemLevels("ext4", mount_options=("$(reboot)",)), "characters"),
        (FilesystemLevels("ext4", mount_options=("a\nb",)), "characters"),
        (FilesystemLevels("ext4", journal="internal", features=Levels(data="x' y")), "characters"),
        (FilesystemLevels("ext4", mount_options=("journal_path=/dev/sda",)), "another device"),
        (FilesystemLevels("ext4", mount_options=("X-mount.mkdir",)), "another device"),
        (FilesystemLevels("ext4", mount_options=("errors=panic",)), "panic"),
    ],
)
def test_a_hostile_mount_option_is_refused(tmp_path: Path, levels: FilesystemLevels, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        read(tmp_path, replace(JOB, filesystem=levels))


def test_a_file_system_that_the_running_kernel_lacks_is_no_lost_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = replace(read_machine(), kernel_release="6.1", filesystems=("ext4", "xfs"))
    monkeypatch.setattr("bedplate.workloads.power_cut.cut_questions.read_machine", lambda: here)
    assert JOB == read(tmp_path, JOB)
    with pytest.raises(RequirementMissing, match=r"kernel 6\.1 has no jfs"):
        read(tmp_path, replace(JOB, filesystem=FilesystemLevels("jfs")))


@pytest.mark.parametrize(
    "account", [Account("root", 0, 0), Account("bedplate", 0, 998), Account("x'; reboot", 998, 997)]
)
def test_an_account_that_is_none_of_servers_is_refused(tmp_path: Path, account: Account) -> None:
    job = replace(JOB, subject=replace(JOB.subject, account=Account("bedplate", 998, 997)))
    assert job == read(tmp_path, job)
    with pytest.raises(StudyError, match="none that servers run as"):
        read(tmp_path, replace(JOB, subject=replace(JOB.subject, account=account)))


@pytest.mark.parametrize("kind", ["driver", "build", "relative", "link"])
def test_a_program_that_a_study_brings_is_not_started(tmp_path: Path, kind: str) -> None:
    tmp_path.chmod(0o777)
    mine = tmp_path / "mine"
    mine.mkdir()
    subject = replace(JOB.subject, drivers=Levels(power_cut=str(mine / "driver")))
    if kind == "build":
        subject = replace(JOB.subject, build=replace(BUILD, prefix=str(mine)))
    elif kind == "relative":
        subject = replace(JOB.subject, drivers=Levels(power_cut="driver"))
    elif kind == "link":
        (mine / "driver").symlink_to(mine)
    with pytest.raises(StudyError, match="nothing was started"):
        read(tmp_path, replace(JOB, subject=subject))


@pytest.mark.parametrize(
    ("engine", "name", "value", "said"),
    [
        ("mariadb", "plugin_load_add", "evil.so", "load or run"),
        ("mariadb", "PLUGIN-LOAD", "evil.so", "load or run"),
        ("mariadb", "init-file", "/tmp/evil.sql", "where the server and its files are"),
        ("mariadb", "datadir", "/", "where the server and its files are"),
        ("mariadb", "bind_address", "*", "private Unix socket"),
        ("mariadb", "init-file; rm", "x", "letters, digits and underscores"),
        ("mariadb", "innodb_flush_method", "a\nb", "printable"),
        ("mariadb", "innodb_page_size", "16384; rm", "page size"),
        ("postgresql", "archive_command", "rm -rf /", "bedplate sets archive_command itself"),
        ("postgresql", "shared_preload_libraries", "/tmp/evil.so", "loads code into the server"),
        ("postgresql", "work mem", "1MB", "letters, digits and underscores"),
    ],
)
def test_a_setting_that_no_plan_may_have_starts_no_server(
    tmp_path: Path, engine: str, name: str, value: str, said: str
) -> None:
    subject = replace(JOB.subject, engine=engine, settings=Levels({name: value}))
    with pytest.raises(StudyError, match=f"{said}.*nothing was started"):
        read(tmp_path, replace(JOB, subject=subject))


@pytest.mark.parametrize(
    ("engine", "settings"),
    [
        ("mariadb", {"innodb_page_size": 4096, "innodb_doublewrite": "OFF"}),
        ("postgresql", {"full_page_writes": "off", "shared_preload_libraries": "pg_stat_statements"}),
        ("sqlite", {"journal_mode": "wal"}),
        ("lmdb", {"sync": "nosync"}),
    ],
)
def test_settings_that_a_plan_may_have_are_taken(
    tmp_path: Path, engine: str, settings: dict[str, str | int]
) -> None:
    job = replace(JOB, subject=replace(JOB.subject, engine=engine, settings=Levels(settings)))
    assert job == read(tmp_path, job)
