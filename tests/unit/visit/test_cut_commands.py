"""A program that was killed from outside has found nothing about the image of a cut."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.tools.filesystem_site import site_on

from bedplate.errors import CommandFailed, KilledFromOutside
from bedplate.filesystem.after_cut import repair
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.command import Account
from bedplate.model.cell import FilesystemLevels
from bedplate.visit import cuts
from bedplate.workloads.power_cut.bench import CutCommands

ANYBODY = Account("me", os.getuid(), os.getgid())


def program(directory: Path, name: str, body: str) -> Path:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("check", [True, False])
def test_a_program_that_was_killed_raises_whatever_status_is_asked_for(tmp_path: Path, check: bool) -> None:
    killed = program(tmp_path, "tool", "kill -9 $$")
    with pytest.raises(KilledFromOutside, match="tool was killed from outside"):
        CutCommands().run([str(killed)], check=check)


def test_other_signals_and_its_own_time_limit_are_what_they_were(tmp_path: Path) -> None:
    broken = program(tmp_path, "broken", "kill -BUS $$")
    assert CutCommands().run([str(broken)], check=False).status == -7
    endless = program(tmp_path, "endless", "read never < /dev/zero")
    with pytest.raises(CommandFailed, match="did not end within"):
        CutCommands().run([str(endless)], timeout_s=0.2)


def test_a_killed_reader_of_lmdb_has_met_no_damage(tmp_path: Path) -> None:
    reader = program(tmp_path, "reader", "kill -9 $$")
    with pytest.raises(KilledFromOutside):
        cuts.examine(tmp_path, str(reader), {}, account=ANYBODY, commands=CutCommands())


def test_a_killed_repair_or_check_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "e2fsck", "kill -9 $$")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    site = site_on(FilesystemLevels("ext4"), "/dev/nothing", CutCommands())
    with pytest.raises(KilledFromOutside):
        repair(site, 0)
    with pytest.raises(KilledFromOutside):
        filesystem_for("ext4").check(site)
