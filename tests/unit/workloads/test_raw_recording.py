"""The place of a tool on the scratch device: gone afterwards, and what is said when it cannot be had or is full."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from bedplate.errors import BedplateError, CommandFailed, VisitFailed
from bedplate.host.command import Account, Commands
from bedplate.model.cell import RunSpec
from bedplate.units import GIB
from bedplate.visit.recording import RawRecording, VisitContext, time_limit_s


def recording(directory: Path, mount_point: Path | None = None) -> RawRecording:
    context = SimpleNamespace(
        account=Account("me", os.getuid(), os.getgid()),
        commands=Commands(),
        data_directory=directory,
        mount_point=mount_point or directory,
        memory_bytes=GIB,
    )
    return RawRecording(RunSpec("one", "fio"), cast("VisitContext", context), directory)


def test_what_a_tool_leaves_is_gone_whether_it_failed_or_not(tmp_path: Path) -> None:
    with recording(tmp_path).place() as place:
        (place / "file").write_text("x")
    assert not place.exists()

    def fail() -> None:
        with recording(tmp_path).place() as place:
            (place / "file").write_text("x")
            raise BedplateError("fio ended with status 1: no")

    with pytest.raises(BedplateError, match="fio ended"):
        fail()
    assert [] == list(tmp_path.iterdir())


def test_a_place_that_cannot_be_made_is_a_reason_and_no_crash(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    with pytest.raises(BedplateError, match="raw cannot be made: File exists"), recording(tmp_path).place():
        pass


def test_a_tool_that_found_no_space_gets_the_way_out_beside_its_words(tmp_path: Path) -> None:
    said = "Can't write block.: No space left on device"
    with pytest.raises(BedplateError) as caught, recording(tmp_path).place():
        raise CommandFailed("bonnie++ ended with status 1", argv=("bonnie++",), status=1, output=said)
    assert ["bonnie++ ended", "the scratch device is full"] == [
        reason[:26].removesuffix(" with status") for reason in caught.value.reasons
    ]


def test_a_failure_with_room_left_is_said_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(BedplateError) as caught, recording(tmp_path).place():
        raise BedplateError("fio was killed by SIGKILL: (it printed nothing)")
    assert ("fio was killed by SIGKILL: (it printed nothing)",) == caught.value.reasons


def test_a_file_system_that_does_not_answer_is_named(tmp_path: Path) -> None:
    with pytest.raises(BedplateError) as caught, recording(tmp_path, tmp_path / "gone").place():
        raise BedplateError("fio ended with status 1: no")
    assert "does not answer: No such file or directory" in caught.value.reasons[1]


def test_a_stand_that_fell_is_not_the_tools_failure(tmp_path: Path) -> None:
    with pytest.raises(VisitFailed) as caught, recording(tmp_path).place():
        raise VisitFailed("cold", "the file system is not mounted as before")
    assert "cold" == caught.value.step


def test_the_limit_is_far_beyond_any_disk() -> None:
    # 100 MiB/s are slow: the limit is a hundred times as long.
    assert time_limit_s(100 * GIB, times=1) > 50 * 100 * GIB / (100 << 20)
    assert time_limit_s(0, times=0, more_s=3.0) > 60
