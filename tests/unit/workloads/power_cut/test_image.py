"""An image is what the medium would hold: the builder, a rebuilding from nothing and the plainest model agree."""

from __future__ import annotations

import errno
import fcntl
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.tools.written_log import DISCARD, FLUSH, FUA, MARK, Written, medium, written_log

from bedplate.cuts.choice import building_order
from bedplate.cuts.log import JOURNAL, read_log
from bedplate.cuts.records import CutPoint, Placement, Profile
from bedplate.errors import BedplateError
from bedplate.host import scratch_device
from bedplate.workloads.power_cut import bench
from bedplate.workloads.power_cut.bench import ImageBuilder, rebuild

SECTORS = 64
SIZES = (SECTORS * 512, SECTORS * 512)


def a_write(device: int, sector: int, sectors: int, fill: int, flags: int) -> Written:
    sectors = min(sectors, SECTORS - sector)
    return Written(
        device,
        sector,
        b"".join(bytes([fill, k]) * 256 if fill else bytes(512) for k in range(sectors)),
        flags,
    )


DEVICE, SECTOR = st.integers(0, 1), st.integers(0, SECTORS - 1)
ENTRY = st.one_of(
    st.builds(
        a_write,
        DEVICE,
        SECTOR,
        st.integers(1, 20),
        st.integers(0, 255),
        st.sampled_from([0, 0, 0, FLUSH, FUA]),
    ),
    st.builds(lambda device: Written(device, flags=FLUSH), DEVICE),
    st.builds(
        lambda device, sector, sectors: Written(
            device, sector, flags=DISCARD, discarded_sectors=min(sectors, SECTORS - sector)
        ),
        DEVICE,
        SECTOR,
        st.integers(1, 30),
    ),
    st.just(Written(flags=MARK, text=b"A 0 1 1")),
)
LATE = st.sampled_from([0, 0, 0, 1, 2, 6])
CUT = st.tuples(st.integers(0, 40), st.sampled_from(Profile), st.integers(0, 2**48 - 1), st.booleans())


def point_at(position: int, profile: Profile, seed: int = 1, *, control: bool = False) -> CutPoint:
    return CutPoint(0, position, profile, Placement.UNIFORM, seed, control)


@settings(deadline=None, max_examples=100)
@given(
    timed=st.lists(st.tuples(ENTRY, LATE), min_size=1, max_size=40),
    cuts=st.lists(CUT, min_size=1, max_size=6),
    # Most windows are to be open: bounded by a flush, and not by these.
    window_bytes=st.one_of(st.just(10**6), st.integers(0, 40 * 512)),
    measured_from=st.one_of(st.just(0), st.integers(0, 40)),
    in_order=st.booleans(),
)
def test_the_builder_a_rebuilding_and_the_model_agree_bit_for_bit(
    *,
    timed: list[tuple[Written, int]],
    cuts: list[tuple[int, Profile, int, bool]],
    window_bytes: int,
    measured_from: int,
    in_order: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    entries = [replace(entry, late=min(late, index)) for index, (entry, late) in enumerate(timed)]
    directory = tmp_path_factory.mktemp("images")
    again = directory / "again"
    again.mkdir()
    points = [
        CutPoint(number, min(position, len(entries)), profile, Placement.UNIFORM, seed, control)
        for number, (position, profile, seed, control) in enumerate(cuts)
    ]
    model = partial(medium, window_bytes=window_bytes, measured_from=measured_from)
    builder_of = partial(ImageBuilder, window_bytes=window_bytes, measured_from=measured_from)
    rebuilding = partial(rebuild, window_bytes=window_bytes, measured_from=measured_from)
    with (
        read_log(written_log(directory / "log", entries)) as log,
        builder_of(log, directory, SIZES) as builder,
    ):
        for point in building_order(points) if in_order else points:
            expected = model(entries, point, SIZES)
            built = builder.build(point, directory)
            assert expected == [path.read_bytes() for path in built.images]
            rebuilt = rebuilding(log, point, again, SIZES)
            assert expected == [path.read_bytes() for path in rebuilt.images]
            assert built.window == rebuilt.window
    assert ["again", "disk", "journal", "log"] == sorted(path.name for path in directory.iterdir())


def test_the_bits_are_drawn_in_the_logs_order_over_both_devices(tmp_path: Path) -> None:
    entries = [a_write(1, 0, 20, 7, 0), a_write(0, 0, 20, 8, 0), a_write(1, 30, 20, 9, 0)]
    point = point_at(3, Profile.SUBSET_512)
    with read_log(written_log(tmp_path / "log", entries)) as log:
        built = rebuild(log, point, tmp_path, SIZES, window_bytes=10**6)
    expected = medium(entries, point, SIZES, window_bytes=10**6, measured_from=0)
    assert expected == [path.read_bytes() for path in built.images]


def test_two_seeds_keep_other_blocks_and_one_seed_the_same(tmp_path: Path) -> None:
    entries = [a_write(0, 0, 20, 7, 0), a_write(0, 30, 20, 8, 0)]
    with read_log(written_log(tmp_path / "log", entries)) as log:
        images = [
            rebuild(
                log, point_at(2, Profile.SUBSET_512, seed), tmp_path, SIZES[:1], window_bytes=10**6
            ).disk.read_bytes()
            for seed in (1, 2, 1)
        ]
    assert images[0] == images[2] != images[1]


def test_the_image_of_a_seed_is_the_same_for_ever(tmp_path: Path) -> None:
    # Points of studies are rebuilt by later versions; these are the blocks that seed 20 always kept.
    with read_log(written_log(tmp_path / "log", [a_write(0, 0, 20, 7, 0)])) as log:
        built = rebuild(log, point_at(1, Profile.SUBSET_512, 20), tmp_path, SIZES[:1], window_bytes=10**6)
    content = built.disk.read_bytes()
    assert "01010110111011010100" == "".join(
        str(int(any(content[at : at + 512]))) for at in range(0, 20 * 512, 512)
    )


def test_what_stands_in_memory_is_blank_after_a_cut(tmp_path: Path) -> None:
    entries = [
        a_write(0, 0, 2, 1, 0),
        a_write(1, 0, 2, 2, 0),
        Written(1, flags=FLUSH),
        a_write(1, 2, 2, 3, 0),
    ]
    with read_log(written_log(tmp_path / "log", entries)) as log:
        built = rebuild(
            log, point_at(4, Profile.ORDERED), tmp_path, SIZES, window_bytes=10**6, lost_devices={JOURNAL}
        )
    assert built.journal is not None
    assert bytes(SIZES[1]) == built.journal.read_bytes()
    assert any(built.disk.read_bytes())


@pytest.mark.parametrize("holder", [(), ("loop7",)])
def test_a_former_image_is_written_over_unless_a_device_still_holds_it(
    holder: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "attached_to", lambda _: holder)
    with (
        read_log(written_log(tmp_path / "log", [a_write(0, 0, 4, 9, 0)])) as log,
        ImageBuilder(log, tmp_path, SIZES[:1], window_bytes=0) as builder,
    ):
        former = builder.build(point_at(1, Profile.LOST), tmp_path)
        with former.disk.open("r+b", buffering=0) as held:
            # What the examined system wrote, in a hole too.
            held.seek(8192)
            held.write(b"recovered")
            image = builder.build(point_at(0, Profile.LOST), tmp_path)
            held.seek(0)
            assert (9 if holder else 0) == held.read(1)[0]
        assert bytes(SIZES[0]) == image.disk.read_bytes()
        assert former.journal is None


def test_zeros_take_no_room(tmp_path: Path) -> None:
    entries = [a_write(0, 0, 16, 5, 0), a_write(0, 0, 16, 0, 0), a_write(0, 40, 8, 0, 0)]
    with read_log(written_log(tmp_path / "log", entries)) as log:
        built = rebuild(log, point_at(3, Profile.LOST), tmp_path, SIZES[:1], window_bytes=0)
    assert 0 == built.disk.stat().st_blocks
    assert bytes(SIZES[0]) == built.disk.read_bytes()


def test_a_write_beyond_the_device_is_named(tmp_path: Path) -> None:
    with (
        read_log(written_log(tmp_path / "log", [Written(0, SECTORS - 1, bytes(1024))])) as log,
        pytest.raises(BedplateError, match=r"entry 0 .* reaches to byte 33280 of the disk, which has 32768"),
    ):
        rebuild(log, point_at(1, Profile.ORDERED), tmp_path, SIZES[:1], window_bytes=0)


def test_a_journal_that_was_written_needs_a_size(tmp_path: Path) -> None:
    with (
        read_log(written_log(tmp_path / "log", [a_write(1, 0, 1, 1, 0)])) as log,
        pytest.raises(BedplateError, match="and 1 sizes were given"),
    ):
        ImageBuilder(log, tmp_path, SIZES[:1], window_bytes=0)
    assert ["log"] == [path.name for path in tmp_path.iterdir()]


def test_a_position_beyond_the_log_is_refused(tmp_path: Path) -> None:
    with (
        read_log(written_log(tmp_path / "log", [a_write(0, 0, 1, 1, 0)])) as log,
        pytest.raises(ValueError, match="has 1 entries"),
    ):
        rebuild(log, point_at(2, Profile.LOST), tmp_path, SIZES[:1], window_bytes=0)


@pytest.fixture
def shares_no_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EOPNOTSUPP, "not here")

    monkeypatch.setattr(fcntl, "ioctl", refuse)


@pytest.mark.usefixtures("shares_no_blocks")
@pytest.mark.parametrize("refuses", ["nothing", "copy_file_range", "copies nothing", "holes", "punching"])
def test_kernels_that_cannot_share_or_punch_copy_and_write(
    refuses: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSYS, "not here")

    seek = os.lseek

    def knows_no_holes(descriptor: int, at: int, how: int) -> int:
        if how in (os.SEEK_DATA, os.SEEK_HOLE):
            raise OSError(errno.EINVAL, "not here")
        return seek(descriptor, at, how)

    if refuses == "copy_file_range":
        monkeypatch.setattr(os, "copy_file_range", refuse)
    elif refuses == "copies nothing":
        monkeypatch.setattr(os, "copy_file_range", lambda *_: 0)
    elif refuses == "holes":
        monkeypatch.setattr(os, "lseek", knows_no_holes)
    elif refuses == "punching":
        monkeypatch.setattr(scratch_device, "_PUNCH_HOLE", 0x4000)  # a mode that no file system knows
    entries = [
        a_write(0, 0, 20, 5, 0),
        Written(0, 3, flags=DISCARD, discarded_sectors=9),
        a_write(0, 40, 3, 6, 0),
    ]
    point = point_at(3, Profile.ORDERED)
    base, places = tmp_path / "base", [tmp_path / name for name in ("work", "images")]
    base.write_bytes(bytes(SIZES[0]))
    for place in places:
        place.mkdir()
    with (
        read_log(written_log(tmp_path / "log", entries)) as log,
        ImageBuilder(log, places[0], SIZES[:1], window_bytes=0, base=(base,)) as builder,
    ):
        # Twice: into a new file, and over the former one.
        images = [builder.build(point, places[1]).disk.read_bytes() for _ in range(2)]
    assert medium(entries, point, SIZES[:1], window_bytes=0, measured_from=0) * 2 == images


@pytest.mark.usefixtures("shares_no_blocks")
def test_a_full_file_system_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "pwrite", full)
    with (
        read_log(written_log(tmp_path / "log", [a_write(0, 0, 4, 9, 0)])) as log,
        pytest.raises(OSError, match="full"),
    ):
        rebuild(log, point_at(1, Profile.LOST), tmp_path, SIZES[:1], window_bytes=0)


def test_a_log_may_begin_on_images_which_it_leaves_as_they_are(tmp_path: Path) -> None:
    base = (tmp_path / "base",)
    base[0].write_bytes(bytes([7]) * SIZES[0])
    written = Written(sector=2, data=b"w" * 512)
    places = [tmp_path / name for name in ("work", "images")]
    for place in places:
        place.mkdir()
    with (
        read_log(written_log(tmp_path / "log", [written, Written(flags=FLUSH)])) as log,
        ImageBuilder(log, places[0], SIZES[:1], window_bytes=10**6, base=base) as builder,
    ):
        # The last one is before what is durable already, and begins anew.
        contents = [
            builder.build(point_at(position, Profile.LOST), places[1]).disk.read_bytes()
            for position in (1, 2, 1)
        ]
    before = base[0].read_bytes()
    assert bytes([7]) * SIZES[0] == before == contents[0] == contents[2]
    assert before[:1024] + b"w" * 512 + before[1536:] == contents[1]
