"""In a folder of everybody's, a file or folder with a name of bedplate's may be a stranger's: it is left alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bedplate.errors import RequirementMissing
from bedplate.host import ledger
from bedplate.host.command import Commands
from bedplate.host.ledger import Holding, Ledger
from bedplate.host.scratch_device import image_reasons, write_image
from bedplate.units import MIB

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to somebody else, which root alone may")


@pytest.fixture
def everybodys(tmp_path: Path) -> Path:
    folder = tmp_path / "everybodys"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def planted(folder: Path, way: str) -> Path:
    image, other = folder / "bedplate-scratch.img", folder / "other"
    other.write_bytes(b"theirs")
    if way == "a second name":
        image.hardlink_to(other)
    else:
        image.write_bytes(b"theirs")
        os.chown(image, 12345, 12345)
    return image


@pytest.mark.parametrize("way", ["a second name", pytest.param("another owner", marks=as_root)])
def test_a_strangers_file_is_neither_written_nor_removed(everybodys: Path, tmp_path: Path, way: str) -> None:
    image = planted(everybodys, way)
    assert any("move it away" in reason for reason in image_reasons(image, MIB, margin_bytes=0))
    with pytest.raises(RequirementMissing, match="move it away"):
        write_image(image, MIB, margin_bytes=0)
    with Ledger.open(tmp_path / "state", "a") as ledger:
        ledger.note(Holding("image", str(image)))
        (problem,) = ledger.release(Commands())
    assert "left alone" in problem
    assert b"theirs" == image.read_bytes()


def test_one_that_comes_between_the_look_and_the_writing_is_not_written(
    everybodys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = planted(everybodys, "a second name")
    monkeypatch.setattr("bedplate.host.scratch_device.image_reasons", lambda *_, **__: ())
    with pytest.raises(RequirementMissing, match="has 2 names"):
        write_image(image, MIB, margin_bytes=0)
    assert b"theirs" == image.read_bytes()


def test_what_has_another_name_is_not_written_in_an_own_folder_either(tmp_path: Path) -> None:
    """Unpacked with a study, the other name may be any file of the machine."""
    image = planted(tmp_path, "a second name")
    with pytest.raises(RequirementMissing, match="has 2 names"):
        write_image(image, MIB, margin_bytes=0)
    assert b"theirs" == image.read_bytes()


def test_no_image_is_removed_through_a_link_that_came_since(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "bedplate-scratch.img").write_bytes(b"theirs")
    (tmp_path / "scratch").symlink_to(other)
    with Ledger.open(tmp_path / "state", "a") as ledger:
        ledger.note(Holding("image", str(tmp_path / "scratch" / "bedplate-scratch.img")))
        (problem,) = ledger.release(Commands())
    assert "is a link by now" in problem
    assert b"theirs" == (other / "bedplate-scratch.img").read_bytes()


@as_root
def test_an_own_folders_files_are_its_owners_affair(tmp_path: Path) -> None:
    image = planted(tmp_path, "another owner")
    assert () == image_reasons(image, MIB, margin_bytes=0)


@as_root
def test_a_strangers_folder_of_logs_is_left_alone(everybodys: Path) -> None:
    folder = everybodys / "bedplate-77"
    folder.mkdir()
    (folder / "log").touch()
    os.chown(folder, 12345, 12345)
    holding = Holding("log_directory", str(folder))
    outcome = ledger.give_back(holding, Commands(), directory=everybodys, sweep=lambda: None)
    assert outcome.problem == f"{folder} belongs to uid 12345; left alone"
    assert (folder / "log").exists()
