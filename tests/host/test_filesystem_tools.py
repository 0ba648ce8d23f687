"""The tools of types that this kernel may lack, on a loop device without mounting: made, recognised, damage seen."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.tools.filesystem_site import site_on
from tests.support.tools.scratch_disk import looped

from bedplate.filesystem.blocks import Nilfs2AtRest, read_superblocks
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.block_tree import read_signatures
from bedplate.host.command import Commands
from bedplate.host.requirement import look
from bedplate.model.cell import FilesystemLevels
from bedplate.units import KIB, MIB

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

_TYPES = ("jfs", "reiserfs", "nilfs2", "f2fs", "ntfs3", "ntfs-3g")


@pytest.fixture
def commands() -> Commands:
    return Commands()


@pytest.fixture
def devices() -> Iterator[tuple[Path, Path]]:
    with (
        tempfile.TemporaryDirectory(prefix="bedplate-test-tools-", dir="/dev/shm") as folder,
        looped(Path(folder), size_bytes=256 * MIB, name="data") as data,
        looped(Path(folder), size_bytes=64 * MIB, name="journal") as journal,
    ):
        yield Path(data), Path(journal)


@pytest.fixture(params=_TYPES)
def type_(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    missing = [item.sentence for item in look(filesystem_for(name).needs) if not item.found]
    if missing:
        pytest.skip(missing[0])
    return name


def _overwrite(device: Path, first: int, length: int) -> None:
    with device.open("r+b", buffering=0) as disk:
        disk.seek(first)
        disk.write(b"\xa5" * length)
        os.fsync(disk.fileno())


def test_a_fresh_one_is_clean_and_known_for_ours(
    type_: str, devices: tuple[Path, Path], commands: Commands
) -> None:
    filesystem = filesystem_for(type_)
    site = site_on(FilesystemLevels(type_, 4096), str(devices[0]), commands)
    assert () == filesystem.mkfs(site)
    (signature,) = read_signatures(str(devices[0]), commands)
    assert signature.is_own
    assert filesystem.check(site).clean
    assert all(version[0].isdigit() for version in filesystem.versions(commands=commands).values())


def test_damage_is_seen(type_: str, devices: tuple[Path, Path], commands: Commands) -> None:
    filesystem = filesystem_for(type_)
    site = site_on(FilesystemLevels(type_, 4096), str(devices[0]), commands)
    filesystem.mkfs(site)
    # nilfs2 has no fsck: of it only the superblocks are looked at, one at each end.
    if type_ == "nilfs2":
        _overwrite(devices[0], 1 * KIB, KIB)
        primary, secondary = read_superblocks(devices[0])
        assert (True, False) == (primary is None, secondary is None)
        _overwrite(devices[0], 256 * MIB - 4 * KIB, KIB)
    else:
        # Behind the first superblock, over the tables of all of them.
        _overwrite(devices[0], 44 * KIB, 200 * KIB)
        _overwrite(devices[0], 16 * MIB, 48 * MIB)
    checked = filesystem.check(site)
    assert not checked.clean
    assert checked.text


def test_the_metadata_of_nilfs2_is_where_its_own_tool_shows_it(
    devices: tuple[Path, Path], commands: Commands
) -> None:
    filesystem = filesystem_for("nilfs2")
    missing = [item.sentence for item in look(filesystem.needs) if not item.found]
    if missing:
        pytest.skip(missing[0])
    filesystem.mkfs(site_on(FilesystemLevels("nilfs2", 2048), str(devices[0]), commands))
    shown = commands.run(["dumpseg", str(devices[0]), "0"]).stdout
    (begin,), (count,) = (
        re.findall(r"partial segment: blocknr = (\d+), nblocks = (\d+)", shown),
        re.findall(r"nblocks = (\d+)\n +creation", shown),
    )
    first, blocks = int(begin[0]), int(count)
    files = re.split(r"\n +finfo\n", shown)[1:]
    own = {
        int(block)
        for text in files
        if re.search(r"ino = [3456],", text)
        for block in re.findall(r" blocknr = (\d+)", text)
    }
    assert own
    assert len(own) < blocks - 2, "the root directory is none of its own"
    placed = min(int(block) for text in files for block in re.findall(r" blocknr = (\d+)", text))
    expected = own | {*range(first, placed), first + blocks - 1}
    found = Nilfs2AtRest([devices[0]], commands).metadata()
    assert expected == {
        block // 2048 for each in found.ranges for block in range(each.start, each.start + each.length, 2048)
    }


@pytest.mark.parametrize("name", ["jfs", "reiserfs"])
def test_an_external_journal_is_made_and_checked(
    name: str, devices: tuple[Path, Path], commands: Commands
) -> None:
    filesystem = filesystem_for(name)
    missing = [item.sentence for item in look(filesystem.needs) if not item.found]
    if missing:
        pytest.skip(missing[0])
    levels = FilesystemLevels(name, 4096, journal="external", journal_device="ram")
    site = site_on(levels, str(devices[0]), commands, journal=str(devices[1]))
    filesystem.mkfs(site)
    assert filesystem.check(site).clean
