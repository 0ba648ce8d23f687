"""What a cut lost, as parts that can be chosen one by one: the same cut again, and any smaller one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.tools.written_log import DISCARD, FLUSH, FUA, MARK, Written, medium, written_log

from bedplate.cuts.blame import WrittenPlace
from bedplate.cuts.log import Log, Piece, losses, read_log, window
from bedplate.cuts.records import CutPoint, Placement, Profile
from bedplate.filesystem.blocks import DIRECTORY, BlockOwners, Layout
from bedplate.model.cell import FilesystemLevels
from bedplate.workloads.power_cut.bench import rebuild
from bedplate.workloads.power_cut.tearing import ImageNames, Named

SIZE = 1024 * 512
WINDOW = 10**6


def entries() -> list[Written]:
    draw = random.Random(2)
    made: list[Written] = []
    for _ in range(60):
        flags = draw.choices([0, FLUSH, FUA, MARK, DISCARD], [80, 3, 4, 8, 6])[0]
        if flags == MARK:
            made.append(Written(flags=MARK, text=b"A 0 1 1"))
        elif flags == DISCARD:
            made.append(Written(0, draw.randrange(900), flags=DISCARD, discarded_sectors=draw.randint(1, 90)))
        else:
            late = min(len(made), draw.choice([0, 0, 0, 3]))
            data = draw.randbytes(512 * draw.randint(1, 40))
            made.append(Written(0, draw.randrange(900), data, flags, late=late))
    return made


def image(log: Log, point: CutPoint, folder: Path) -> bytes:
    folder.mkdir(exist_ok=True)
    return rebuild(log, point, folder, (SIZE,), window_bytes=WINDOW).disk.read_bytes()


@pytest.mark.parametrize("control", [False, True])
@pytest.mark.parametrize("profile", list(Profile))
def test_the_chosen_cut_is_the_drawn_one(profile: Profile, control: bool, tmp_path: Path) -> None:
    with read_log(written_log(tmp_path / "log", entries())) as log:
        for position in (20, 41, 60):
            point = CutPoint(0, position, profile, Placement.UNIFORM, position, control)
            lost = losses(log, point, WINDOW)
            assert image(log, point, tmp_path / "a") == image(log, lost.point, tmp_path / "b")
            assert lost.point == lost.only(lost.parts)


def test_a_cut_that_loses_nothing_is_everything_that_was_issued(tmp_path: Path) -> None:
    made = entries()
    with read_log(written_log(tmp_path / "log", made)) as log:
        point = CutPoint(0, 60, Profile.SUBSET_512, Placement.UNIFORM, 1)
        ordered = CutPoint(0, 60, Profile.ORDERED, Placement.UNIFORM, 0)
        (expected,) = medium(made, ordered, (SIZE,), window_bytes=WINDOW, measured_from=0)
        assert expected == image(log, losses(log, point, WINDOW).only(()), tmp_path / "a")


def test_one_lost_part_is_the_only_difference(tmp_path: Path) -> None:
    with read_log(written_log(tmp_path / "log", [Written(sector=3, data=b"x" * 8192)])) as log:
        point = CutPoint(0, 1, Profile.SUBSET_4K, Placement.UNIFORM, 5)
        lost = losses(log, replace_profile(point, Profile.LOST), WINDOW)
        assert {0: (0, 0, 8192)} == {number: tuple(piece) for number, piece in lost.parts.items()}
        torn = losses(log, point, WINDOW)
        # Blocks of the device's grid, of which the write fills three in part.
        assert 3 == len(torn.parts) + torn.kept
        alone = window(log, torn.only((1,)), WINDOW)
        assert [(0, 0, 2560), (0, 6656, 1536)] == [tuple(piece) for piece in alone.kept]


def replace_profile(point: CutPoint, profile: Profile) -> CutPoint:
    return CutPoint(point.number, point.position, profile, point.placement, point.seed)


def test_a_cut_in_order_lost_what_was_on_its_way(tmp_path: Path) -> None:
    late: Sequence[Written] = [
        Written(sector=0, data=b"a" * 512),
        Written(flags=FLUSH),
        Written(sector=8, data=b"b" * 512, late=2),
    ]
    with read_log(written_log(tmp_path / "log", late)) as log:
        lost = losses(log, CutPoint(0, 1, Profile.ORDERED, Placement.UNIFORM, 0), WINDOW)
        assert [2] == [piece.entry for piece in lost.parts.values()]


def test_a_lost_discard_is_a_part_that_has_no_name_of_its_own(tmp_path: Path) -> None:
    made = [Written(0, 8, b"old" + bytes(509)), Written(0, 8, flags=DISCARD, discarded_sectors=1)]
    with read_log(written_log(tmp_path / "log", made)) as log:
        lost = losses(log, CutPoint(0, 2, Profile.LOST, Placement.UNIFORM, 1), WINDOW)
        assert [(0, 0), (1, 0)] == [(piece.entry, piece.start) for piece in lost.parts.values()]
        alone = lost.only([1])
        assert b"old" == image(log, alone, tmp_path / "undone")[8 * 512 : 8 * 512 + 3]
        assert bytes(3) == image(log, lost.only([]), tmp_path / "done")[8 * 512 : 8 * 512 + 3]
        names = list(ImageNames((), None).of(log, lost.parts[1]))
    assert [Named(WrittenPlace.UNKNOWN, "a discard")] == names


def test_a_torn_block_of_the_file_systems_own_is_named_by_the_beginning_that_was_kept(tmp_path: Path) -> None:
    block = b"XDD3".ljust(4096, b"x")
    made = [Written(0, 80, bytes(4096) + block + bytes(4096))]
    owners = BlockOwners(FilesystemLevels("xfs"), Layout(), [])
    with read_log(written_log(tmp_path / "log", made)) as log:
        names = ImageNames((owners,), None)
        for start, length in ((4096 + 512, 512), (4096, 4096), (8192 - 512, 512)):
            assert [Named(WrittenPlace.METADATA, DIRECTORY)] == list(names.of(log, Piece(0, start, length)))
        (unknown,) = names.of(log, Piece(0, 8192, 512))
        assert WrittenPlace.UNKNOWN is unknown.place
