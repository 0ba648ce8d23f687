"""What may never be erased, by what stands on it: read by libblkid from files that play disks."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.tools.block_contents import (
    ENCRYPTED,
    FOREIGN,
    MEMBERS,
    Pieces,
    bcachefs_of,
    btrfs_of,
    pool_member,
    write_pieces,
)

from bedplate.host.block_tree import Signature, _spans, read_signatures
from bedplate.host.command import Commands

SIZE = 64 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    path = tmp_path / "disk"
    with path.open("wb") as file:
        file.truncate(SIZE)
    return path


def found(disk: Path, pieces: Pieces) -> tuple[Signature, ...]:
    write_pieces(disk, pieces, SIZE)
    return read_signatures(str(disk), Commands())


@pytest.mark.parametrize("kind", MEMBERS)
def test_a_part_of_something_is_a_member_and_never_bedplates_own(disk: Path, kind: str) -> None:
    signatures = found(disk, MEMBERS[kind])
    assert [True] == sorted({each.is_member for each in signatures})
    assert not any(each.is_own for each in signatures)


@pytest.mark.parametrize("kind", ENCRYPTED)
def test_what_is_closed_is_encrypted(disk: Path, kind: str) -> None:
    (signature,) = found(disk, ENCRYPTED[kind])
    assert (True, False, False) == (signature.is_encrypted, signature.is_member, signature.is_own)


@pytest.mark.parametrize("kind", FOREIGN)
def test_what_stands_alone_is_foreign_and_no_more(disk: Path, kind: str) -> None:
    for signature in found(disk, FOREIGN[kind]):
        assert (False, False, False) == (signature.is_encrypted, signature.is_member, signature.is_own)


@pytest.mark.parametrize("pieces", [btrfs_of(1, label="bedplate"), pool_member("bedplate")])
def test_what_bedplate_made_on_one_device_is_no_member(disk: Path, pieces: Pieces) -> None:
    signatures = found(disk, pieces)
    assert {(False, True)} == {(each.is_member, each.is_own) for each in signatures}


def test_a_strangers_pool_is_a_member_by_whatever_name(disk: Path) -> None:
    assert {("tank", True)} == {(each.label, each.is_member) for each in found(disk, pool_member("tank"))}


@pytest.mark.parametrize(("devices", "expected"), [(1, False), (2, True)])
def test_a_bcachefs_says_how_many_devices_it_has(disk: Path, devices: int, expected: bool) -> None:
    write_pieces(disk, bcachefs_of(devices), SIZE)
    assert expected == _spans(str(disk), "bcachefs")


def test_what_cannot_be_read_counts_as_a_part_of_something(disk: Path) -> None:
    assert _spans(str(disk), "btrfs")  # no superblock where one should be
    assert _spans(str(disk.with_name("none")), "btrfs")
