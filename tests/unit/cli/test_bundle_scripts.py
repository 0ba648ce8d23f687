"""The scripts of a bundle are shell from their first line to their last: a run may end before it comes to a mistake."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from bedplate import registry
from bedplate.engines.external.prepare import PROGRAMS_KEY
from bedplate.errors import RequirementMissing, StudyError
from bedplate.host import requirement
from bedplate.host.command import Account
from bedplate.model.cell import FilesystemLevels
from bedplate.model.levels import Levels
from bedplate.model.visit import EngineBuild
from bedplate.visit.cuts import Reproduction, Subject
from bedplate.workloads.power_cut import bundle
from bedplate.workloads.power_cut.bench import ReplayJob
from bedplate.workloads.power_cut.bundle import (
    CHECK_LIMIT_S,
    LINES_MOST,
    REPRODUCE,
    TOOLS,
    TRY_LIMIT_S,
    bundled,
    scripts,
)

TOY = Path(__file__).resolve().parents[3] / "examples" / "engines" / "toy"
BUILD = EngineBuild("/", "18.1", 8192, 8192, "0" * 64, "here", "cc", (), "1" * 64)
ENGINES = registry.engines_with("reproduction")


def reproduce(levels: FilesystemLevels, *images: str) -> str:
    """The script that root starts, of an engine that needs no build."""
    job = ReplayJob(levels, Subject("lmdb", 1, Levels(), Levels()), (), 2**20, 2**20, 0)
    return scripts(job, images or ("disk",), (), has_mended=True)[REPRODUCE]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "levels",
    [
        FilesystemLevels("ext4"),
        FilesystemLevels("ext2", mount_options=("noatime",)),
        FilesystemLevels("xfs", journal="external"),
        FilesystemLevels("ext4", journal="external"),
        FilesystemLevels("btrfs"),
        FilesystemLevels("jfs", journal="external"),
    ],
)
def test_they_are_read_to_their_end_and_short(engine: str, levels: FilesystemLevels, tmp_path: Path) -> None:
    subject = Subject(engine, 10_000, Levels(), Levels({PROGRAMS_KEY: str(TOY)}), oracle=2)
    if engine in {"postgresql", "mariadb"}:
        subject = replace(subject, build=BUILD)
    job = ReplayJob(levels, subject, (), 2**20, 2**20, 0)
    reproduction: Reproduction = registry.engine_part(engine, "reproduction")
    lines = reproduction.lines(subject, Account("an 'odd' name", 1, 1))
    images = ("disk", "journal") if levels.journal == "external" else ("disk",)
    for name, text in scripts(job, images, lines, has_mended=True).items():
        (tmp_path / name).write_text(text)
        done = subprocess.run(["sh", "-n", tmp_path / name], capture_output=True, text=True, check=False)
        assert (0, "") == (done.returncode, done.stderr), name
        assert len(text.splitlines()) <= LINES_MOST


@pytest.mark.parametrize("tools", [True, False])
def test_tools_of_a_guest_are_found_before_the_systems(tmp_path: Path, *, tools: bool) -> None:
    (tmp_path / "mount").write_text("#!/bin/false\n")
    (tmp_path / "mount").chmod(0o755)
    (path,) = (line for line in reproduce(FilesystemLevels("ext4")).splitlines() if line.startswith("PATH="))
    (tmp_path / "asked").write_text(f"{path}\ncommand -v mount\n")
    done = subprocess.run(
        ["/bin/sh", tmp_path / "asked"],
        env={"PATH": "/usr/bin:/bin", **({TOOLS: str(tmp_path)} if tools else {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert tools == (Path(done.stdout.strip()).parent == tmp_path)


def test_a_pool_is_refused_before_anything_is_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = ReplayJob(FilesystemLevels("zfs"), Subject("lmdb", 1, Levels(), Levels()), (), 2**20, 2**20, 0)
    monkeypatch.setattr(bundle, "job_of", lambda *_, **__: job)
    with pytest.raises(StudyError, match="a pool of ZFS is not mounted"):
        bundled(tmp_path / "no study", cast("Any", None), tmp_path, most=4)


def test_what_packs_an_image_is_asked_for_before_anything_is_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"find": lambda name: None if name == "xz" else Path("/bin", name)}
    monkeypatch.setattr(requirement.look, "__kwdefaults__", found)
    with pytest.raises(RequirementMissing, match=r"xz is missing \(package xz-utils\)"):
        bundled(tmp_path / "no study", cast("Any", None), tmp_path, most=4)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("", ["client 1: transactions up to 5 were acknowledged, and the last one there is 0"]),
        ("present 1 3\n", ["client 1: transactions up to 5 were acknowledged, and the last one there is 3"]),
        ("bad words\npresent 1 6\n", []),
        ("present 1 5\npresent 2 4\n", ["client 2: transaction 4 is there, and 0 was the last acknowledged"]),
    ],
)
def test_what_was_promised_is_missing_where_nothing_is_there(
    answer: str, said: list[str], tmp_path: Path
) -> None:
    text = reproduce(FilesystemLevels("ext4"))
    compared = text[text.index("\nawk ") : text.rindex("\nverdict")]
    (tmp_path / "answer").write_text(answer)
    (tmp_path / "promised.txt").write_text("1 5\n")
    subprocess.run(["sh", "-euc", f"work={tmp_path}; here=$work\n{compared}"], check=True)
    assert said == (tmp_path / "bad").read_text().splitlines()


def test_jfs_notes_its_external_journal_after_a_repair() -> None:
    text = reproduce(FilesystemLevels("jfs", journal="external"), "disk", "journal")
    (tries,) = (line for line in text.splitlines() if line.startswith("try ||"))
    fsck, attached = tries.index('fsck.jfs -f -p -j "$journal" "$disk"'), tries.index("jfs_tune -J device=")
    assert fsck < attached < tries.rindex("try;")
    (tools,) = (line for line in text.splitlines() if line.startswith("for tool in"))
    assert "jfs_tune" in tools
    assert "jfs_tune" not in reproduce(FilesystemLevels("jfs"))


def test_devices_of_btrfs_that_are_gone_are_forgotten_before_a_mount() -> None:
    text = reproduce(FilesystemLevels("btrfs"))
    assert text.index("unpack disk") < text.index("btrfs device scan --forget") < text.index("try ||")
    assert "btrfs" not in reproduce(FilesystemLevels("ext4"))


@pytest.mark.parametrize("signal", ["INT", "TERM", "HUP"])
def test_nothing_stays_of_a_script_that_is_ended(signal: str, tmp_path: Path) -> None:
    text = reproduce(FilesystemLevels("ext4"))
    work = text[text.index("work=$(mktemp") : text.index("bad() ")]
    # A shell cannot trap what its caller ignores, as nohup(1) does.
    argv = [
        "env",
        f"--default-signal={signal}",
        "sh",
        "-uc",
        f'{work}\n[ -d "$work/mount" ] || exit 9; kill -{signal} $$; sleep 9',
    ]
    done = subprocess.run(argv, env={"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"}, check=False)
    assert (130, []) == (done.returncode, list(tmp_path.iterdir()))


def test_a_script_whose_tools_take_too_long_says_so_itself() -> None:
    assert f"--kill-after=10 {CHECK_LIMIT_S} " in reproduce(FilesystemLevels("ext4"))
    assert CHECK_LIMIT_S + 600 <= TRY_LIMIT_S
