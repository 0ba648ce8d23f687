"""Aged file systems: each is made once, kept in the cache by everything that made it, and copied onto the device of each visit.

    <cache>/aged/KEY/
        image         the aged file system, unmounted; holes where it is zeros
        aged.json     what made it: a folder without it is none

Made on a sparse image in the cache. It holds no data, as files are allocated and not written, so what is kept and copied are tens of MiB
of metadata; a device that is all zeros behind them is then the same device, byte for byte.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import random
import re
import struct
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from bedplate.errors import RequirementMissing, VerifyFailed, VisitFailed
from bedplate.filesystem.adapter import FILL_FACT, Site, fact
from bedplate.filesystem.refusals import disk_on_sparse_image
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.cache import lock_of, put_in_place, work_place
from bedplate.host.files import cache_directory, file_lock
from bedplate.host.ledger import Ledger
from bedplate.host.process import wait_until
from bedplate.host.scratch_device import create_blank, fill_from
from bedplate.model import codec
from bedplate.model.cell import digest
from bedplate.model.filesystem import AGE_PROFILES, AGEING_VERSION, AgeProfile, age_of, without_age
from bedplate.model.free_space import FreeSpace, in_pieces
from bedplate.model.reason import because
from bedplate.model.visit import ReadBack
from bedplate.units import KIB, MIB, format_size, percent

_LIBRARY = ctypes.CDLL(None, use_errno=True)
_SETTLING_S = 2.0
_SET_BITS = re.compile("1+")

# include/uapi/linux/fsmap.h: FS_IOC_GETFSMAP, struct fsmap_head without its keys, struct fsmap.
_GETFSMAP = 0xC0C0583B

_FSMAP_HEAD = struct.Struct("=IIII48x")
_FSMAP = struct.Struct("=IIQQQQ24x")
_FSMAP_AT_ONCE = 4096
_FSMAP_SPECIAL, _FSMAP_LAST = 0x10, 0x20
_FSMAP_FREE = 1
_LOWEST, _HIGHEST = (0,) * 6, (2**32 - 1, 2**32 - 1, 2**64 - 1, 2**64 - 1, 2**64 - 1, 0)

# include/uapi/linux/btrfs.h and btrfs_tree.h: BTRFS_IOC_TREE_SEARCH_V2, BTRFS_IOC_DEV_INFO, and their structures.
_TREE_SEARCH, _DEVICE_INFO = 0xC0709411, 0xD000941E

_SEARCH = struct.Struct("=7Q4I4QQ")
_ITEM = struct.Struct("=QQQII")
_SEARCH_BYTES = 1 << 20
_CHUNK = struct.Struct("<QQQQ")
_DEVICE = struct.Struct("=Q16xQQ")
_DEVICE_BYTES = 4096
_CHUNK_TREE, _FREE_SPACE_TREE = 3, 10
_CHUNK_ITEM, _FREE_EXTENT, _FREE_BITMAP = 228, 199, 200
_OF_DATA = 1
_MOST = 2**64 - 1


def free_space_of(kind: str, mount_point: Path, moment: str) -> FreeSpace:
    """Of the file system of that type at a mount point, all of which is written back first; without pieces where nothing tells them."""
    place = os.open(mount_point, os.O_RDONLY | os.O_DIRECTORY)
    try:
        tell = _PIECES.get(kind)
        found = None
        if tell is not None:
            # What dirty pages will take is still free on the disk.
            _sync(place, mount_point)
            with contextlib.suppress(OSError):
                found = _settled(tell, place)
        space = os.fstatvfs(place)
    finally:
        os.close(place)
    unit = space.f_frsize
    return FreeSpace(
        moment,
        filesystem_bytes=space.f_blocks * unit,
        used_bytes=(space.f_blocks - space.f_bfree) * unit,
        available_bytes=space.f_bavail * unit,
        **in_pieces(found),
    )


def _settled(tell: Callable[[int], tuple[int, ...] | None], place: int) -> tuple[int, ...] | None:
    """Counted until three counts are alike, for two seconds at most: XFS frees what deleted files had behind the call."""
    found = [tell(place)]

    def is_steady() -> bool:
        # It begins with that when somebody asks how much is free (xfs_inodegc_push).
        os.fstatvfs(place)
        found.append(tell(place))
        return len(found) > 2 and found[-3] == found[-2] == found[-1]

    wait_until(is_steady, deadline_s=_SETTLING_S, pause_s=0.1)
    return found[-1]


def write_back(mount_point: Path) -> None:
    """Everything of one file system goes to its device; OSError where it does not."""
    place = os.open(mount_point, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _sync(place, mount_point)
    finally:
        os.close(place)


def _sync(place: int, mount_point: Path) -> None:
    if _LIBRARY.syncfs(place):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(mount_point))


def _by_map(place: int) -> tuple[int, ...]:
    """By GETFSMAP: bytes of each run that is free."""
    found: list[int] = []
    low = _LOWEST
    while True:
        buffer = bytearray(_FSMAP_HEAD.size + (2 + _FSMAP_AT_ONCE) * _FSMAP.size)
        _FSMAP_HEAD.pack_into(buffer, 0, 0, 0, _FSMAP_AT_ONCE, 0)
        _FSMAP.pack_into(buffer, _FSMAP_HEAD.size, *low)
        _FSMAP.pack_into(buffer, _FSMAP_HEAD.size + _FSMAP.size, *_HIGHEST)
        fcntl.ioctl(place, _GETFSMAP, buffer)
        entries = _FSMAP_HEAD.unpack_from(buffer)[3]
        flags = _FSMAP_LAST
        for index in range(entries):
            low = _FSMAP.unpack_from(buffer, _FSMAP_HEAD.size + (2 + index) * _FSMAP.size)
            flags, owner, length = low[1], low[3], low[5]
            if flags & _FSMAP_SPECIAL and owner == _FSMAP_FREE:
                found.append(length)
        if flags & _FSMAP_LAST:
            return tuple(found)


def _by_trees(place: int) -> tuple[int, ...] | None:
    """By Btrfs' free space tree, of its chunks for data; what no chunk has taken yet is one piece. None without that tree."""
    chunks = {
        start: start + _CHUNK.unpack_from(data)[0]
        for _, _, start, data in _items(place, _CHUNK_TREE, _CHUNK_ITEM, _CHUNK_ITEM)
        if _CHUNK.unpack_from(data)[3] & _OF_DATA
    }
    sector = os.fstatvfs(place).f_bsize
    found: list[tuple[int, int]] = []
    seen = False
    for kind, start, length, data in _items(place, _FREE_SPACE_TREE, _FREE_EXTENT - 1, _FREE_BITMAP):
        seen = True
        if not any(first <= start < end for first, end in chunks.items()):
            continue
        if kind == _FREE_EXTENT:
            found.append((start, length))
        elif kind == _FREE_BITMAP:
            found += in_bitmap(start, data, sector)
    if not seen:
        return None
    buffer = bytearray(_DEVICE_BYTES)
    _DEVICE.pack_into(buffer, 0, 1, 0, 0)
    fcntl.ioctl(place, _DEVICE_INFO, buffer)
    _, used_bytes, total_bytes = _DEVICE.unpack_from(buffer)
    pieces = joined_pieces(found)
    return (*pieces, total_bytes - used_bytes) if total_bytes > used_bytes else pieces


def joined_pieces(pieces: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Lengths of pieces by start and length, those that touch as one: a bitmap ends where another begins."""
    lengths: list[int] = []
    reached = None
    for start, length in sorted(pieces):
        if start == reached:
            lengths[-1] += length
        else:
            lengths.append(length)
        reached = start + length
    return tuple(lengths)


def in_bitmap(start: int, data: bytes, sector: int) -> Iterator[tuple[int, int]]:
    """Runs of set bits, each a sector that is free."""
    bits = bin(int.from_bytes(data, "little"))[:1:-1]
    for run in _SET_BITS.finditer(bits):
        yield start + run.start() * sector, (run.end() - run.start()) * sector


def _items(place: int, tree_number: int, first: int, last: int) -> Iterator[tuple[int, int, int, bytes]]:
    """Type, the key's two numbers and content of a tree's items of these types."""
    start, kind, offset = 0, first, 0
    while True:
        buffer = bytearray(_SEARCH.size + _SEARCH_BYTES)
        key = (tree_number, start, _MOST, offset, _MOST, 0, _MOST, kind, 255, 2**32 - 1, 0, 0, 0, 0, 0)
        _SEARCH.pack_into(buffer, 0, *key, _SEARCH_BYTES)
        fcntl.ioctl(place, _TREE_SEARCH, buffer)
        number, at = _SEARCH.unpack_from(buffer)[9], _SEARCH.size
        if not number:
            return
        for _ in range(number):
            _, start, offset, kind, length = _ITEM.unpack_from(buffer, at)
            at += _ITEM.size
            if first <= kind <= last:
                yield kind, start, offset, bytes(buffer[at : at + length])
            at += length
        if offset == _MOST:
            return
        offset += 1


_PIECES: Mapping[str, Callable[[int], tuple[int, ...] | None]] = {
    "ext4": _by_map,
    "xfs": _by_map,
    "btrfs": _by_trees,
}

# Where they all are, below the mount point; the engine's directory stands beside it.
AGE_FOLDER = "aged"

# A type spreads folders over its groups, and with them the files.
_FOLDERS = 64

_BLOCK_BYTES = 4 * KIB

# A round may change the mean piece of free space by so much, twice in a row, and it counts as settled.
_SETTLED_CHANGE = 0.05

_ROUNDS_MOST = 10

# Of what comes: the rest is new files.
_GROWS, _REPLACED = 0.2, 0.1

# So far above the share that is to be left no more is deleted: the rest is metadata.
_NEAR_AGE = 0.01

# statvfs costs as much as a file.
_FILES_BETWEEN_LOOKS = 64


@dataclass(frozen=True)
class AgedState:
    """What ageing came to: `rounds` of filling and deleting, whether the free space had `settled`, and how many files stay."""

    rounds: int
    settled: bool
    files: int


def age(kind: str, mount_point: Path, profile: str, seed: int) -> AgedState:
    """Age the file system of that type, which is mounted and empty; OSError where it takes no files before it is full."""
    return _Ageing(kind, mount_point, AGE_PROFILES[profile], random.Random(seed)).run()  # noqa: S311 -- drawn again from its seed


class _Ageing:
    def __init__(self, kind: str, mount_point: Path, profile: AgeProfile, generator: random.Random) -> None:
        self._kind, self._mount_point, self._profile, self._drawn = kind, mount_point, profile, generator
        self._sizes: dict[int, int] = {}
        self._names: list[int] = []
        self._next = 0
        space = os.statvfs(mount_point)
        self._size_bytes = space.f_blocks * space.f_frsize
        root = mount_point / AGE_FOLDER
        root.mkdir(mode=0o700)
        self._folders = tuple(root / f"{number:02d}" for number in range(_FOLDERS))
        for folder in self._folders:
            folder.mkdir(mode=0o700)

    def run(self) -> AgedState:
        """Rounds until it has settled, or no more are made."""
        before, calm, done = None, 0, 0
        while calm < 2 and done < _ROUNDS_MOST:
            done += 1
            self._fill()
            self._empty()
            mean = free_space_of(self._kind, self._mount_point, "").mean_bytes
            if mean is None:
                raise OSError(
                    errno.EOPNOTSUPP, "nothing tells the pieces of its free space", str(self._mount_point)
                )
            calm = calm + 1 if before is not None and abs(mean - before) <= _SETTLED_CHANGE * before else 0
            before = mean
        return AgedState(done, calm == 2, len(self._names))

    def _used_share(self) -> float:
        space = os.statvfs(self._mount_point)
        return 1 - space.f_bavail / space.f_blocks

    def _fill(self) -> None:
        while self._used_share() < self._profile.full_share:
            for _ in range(_FILES_BETWEEN_LOOKS):
                try:
                    self._come()
                except OSError as error:
                    if error.errno != errno.ENOSPC or len(self._names) < _FILES_BETWEEN_LOOKS:
                        raise
                    return

    def _come(self) -> None:
        """One file comes, grows, or is saved anew as editors do it."""
        choice = self._drawn.random()
        size = self._size()
        if choice < _GROWS and self._names:
            name = self._names[self._drawn.randrange(len(self._names))]
            _allocate(self._path(name), self._sizes[name], size)
            self._sizes[name] += size
        elif choice < _GROWS + _REPLACED and self._names:
            name = self._names[self._drawn.randrange(len(self._names))]
            fresh = self._path(name).with_suffix(".new")
            _allocate(fresh, 0, self._sizes[name])
            fresh.replace(self._path(name))
        else:
            _allocate(self._path(self._next), 0, size)
            self._sizes[self._next] = size
            self._names.append(self._next)
            self._next += 1

    def _empty(self) -> None:
        while self._names and (over := self._used_share() - self._profile.left_share) > _NEAR_AGE:
            self._delete(over * self._size_bytes)
            # Btrfs gives the room back with its next commit only.
            write_back(self._mount_point)

    def _delete(self, size_bytes: float) -> None:
        """Files at random, of so many bytes together."""
        while self._names and size_bytes > 0:
            at = self._drawn.randrange(len(self._names))
            self._names[at], name = self._names[-1], self._names[at]
            self._names.pop()
            size_bytes -= self._sizes.pop(name)
            self._path(name).unlink()

    def _size(self) -> int:
        """Small files are many: each doubling of the size is as likely."""
        smallest, largest = self._profile.smallest_bytes, self._profile.largest_bytes
        size: float = smallest * (largest / smallest) ** self._drawn.random()
        return max(1, round(size / _BLOCK_BYTES)) * _BLOCK_BYTES

    def _path(self, name: int) -> Path:
        return self._folders[name % _FOLDERS] / str(name)


def _allocate(path: Path, start: int, length: int) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(file, start, length)
    except OSError:
        if not start:
            path.unlink()
        raise
    finally:
        os.close(file)


AGED_STEP = "aged image"
RECORD = "aged.json"

_FOLDER = "aged"
_IMAGE = "image"

# One layout for each profile: every repetition stands on the same one.
_SEED = 1

# Kept is less than a tenth of the size; a Btrfs of small files came to the most.
_ROOM_SHARE = 5


@dataclass(frozen=True)
class AgedImage:
    """An aged file system in the cache. `key` is of everything that made it, `identity` is drawn each time one is made."""

    key: str
    identity: str
    profile: str
    size_bytes: int
    seed: int
    rounds: int
    settled: bool
    files: int
    seconds: float
    kernel: str
    versions: Mapping[str, str]

    def facts(self) -> Iterator[ReadBack]:
        """For the record of a visit; the identity, as a UUID, makes no other configuration."""
        for name in ("key", "identity", "profile", "settled"):
            yield fact(
                f"filesystem.aged.{name}", getattr(self, name), f"the cache's {_FOLDER}/{self.key}/{RECORD}"
            )


def aged_directory(cache: Path) -> Path:
    """Where they lie in a cache."""
    return cache / _FOLDER


def is_whole(folder: Path) -> bool:
    """Whether a folder counts: its record is written last."""
    return (folder / RECORD).exists() and (folder / _IMAGE).exists()


def restore_aged(site: Site, *, ledger: Ledger) -> AgedImage:
    """Copy the aged file system of these levels onto the site's device, which must be all zeros; made now where the cache lacks it.

    RequirementMissing where the cache has no room for it, VisitFailed where the file system does not age.
    """
    filesystem = filesystem_for(site.levels.type)
    versions = {**filesystem.versions(commands=site.commands), **filesystem.mkfs_defaults()}
    key = _key(site, versions)
    folder = aged_directory(cache_directory()) / key
    # Held while it is copied, so that nobody removes it meanwhile.
    with file_lock(lock_of(folder)):
        if not is_whole(folder):
            _require_room(folder.parent, site.device.size_bytes)
            with work_place(folder) as fresh:
                made = _aged(site, folder.name, fresh / _IMAGE, versions=versions, ledger=ledger)
                codec.write(fresh / RECORD, made)
                put_in_place(fresh, folder)
        device = os.open(site.device.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            fill_from(folder / _IMAGE, device)
            os.fsync(device)
        finally:
            os.close(device)
        # When it was used last, for whoever looks for what nobody uses.
        os.utime(folder / RECORD)
        return codec.read(AgedImage, folder / RECORD)


def _key(site: Site, versions: Mapping[str, str]) -> str:
    levels, profile, kernel = site.levels, age_of(site.levels) or "", os.uname()
    return digest(
        {
            "levels": replace(levels, features=without_age(levels.features), barrier=None),
            "size": site.device.size_bytes,
            "sectors": site.device.sector_bytes,
            "profile": [profile, asdict(AGE_PROFILES[profile]), AGEING_VERSION, _SEED],
            "versions": dict(versions),
            "kernel": [kernel.release, kernel.version, kernel.machine, os.sysconf("SC_PAGE_SIZE")],
        }
    )


def _aged(site: Site, key: str, image: Path, *, versions: Mapping[str, str], ledger: Ledger) -> AgedImage:
    """Make one and keep it as `image`, whose folder also holds what it is made on."""
    profile, size_bytes = age_of(site.levels) or "", site.device.size_bytes
    # The device's switch is the visit's own affair.
    levels = replace(site.levels, features=without_age(site.levels.features), barrier=None)
    started = time.monotonic()
    with disk_on_sparse_image(
        levels,
        size_bytes,
        commands=site.commands,
        directory=image.parent,
        ledger=ledger,
        sector_bytes=site.device.sector_bytes,
    ) as disk:
        disk.make()
        disk.mount()
        try:
            state = age(levels.type, disk.site.target, profile, _SEED)
        except OSError as error:
            words = (
                f"filesystem.aged: {levels.type} of {format_size(size_bytes)} does not age as {profile!r} files do: {error.strerror}; "
                "use a larger image or another profile"
            )
            raise VisitFailed(AGED_STEP, because("not-aged", words, errno=error.errno or 0)) from error
        disk.unmount()
        device = disk.site.device
        if device.image is None:
            raise ValueError(f"{device.path} has no image")
        _keep(device.image, image, size_bytes)
    return AgedImage(
        key=key,
        identity=str(uuid.uuid4()),
        profile=profile,
        size_bytes=size_bytes,
        seed=_SEED,
        rounds=state.rounds,
        settled=state.settled,
        files=state.files,
        seconds=time.monotonic() - started,
        kernel=os.uname().release,
        versions=dict(versions),
    )


def _keep(source: Path, image: Path, size_bytes: int) -> None:
    target = create_blank(image, size_bytes)
    try:
        fill_from(source, target)
        os.fsync(target)
    finally:
        os.close(target)


def _require_room(folder: Path, size_bytes: int) -> None:
    room = os.statvfs(folder)
    free_bytes = room.f_bavail * room.f_frsize
    if free_bytes < size_bytes // _ROOM_SHARE:
        raise RequirementMissing(
            f"{folder} has {format_size(free_bytes)} free; an aged file system of {format_size(size_bytes)} takes up to "
            f"{format_size(size_bytes // _ROOM_SHARE)} there: free some room, or set BEDPLATE_CACHE"
        )


BALLAST_FOLDER = "ballast"

# So near is near enough, both ways; files come and go until then.
_NEAR_BALLAST = 0.002

_ALLOWED = 0.01
_STEPS_MOST = 40
_SMALLEST_BYTES = MIB


@dataclass(frozen=True)
class Filling:
    """What a file system has room for and what of it is in use, in bytes, as df counts."""

    used_bytes: int
    room_bytes: int

    @property
    def share(self) -> float:
        """In use / room."""
        return self.used_bytes / self.room_bytes


def filling_of(mount_point: Path) -> Filling:
    """By statvfs, when everything was written back."""
    write_back(mount_point)
    space = os.statvfs(mount_point)
    used = (space.f_blocks - space.f_bfree) * space.f_frsize
    return Filling(used, used + space.f_bavail * space.f_frsize)


@dataclass
class Ballast:
    """Below one mount point; `share` is how full the file system is to be with the database."""

    mount_point: Path
    share: float
    _sizes: list[int] = field(default_factory=list)

    def before_load(self, expected_bytes: int) -> None:
        """Fill it, but for as much as the database takes; VerifyFailed where it is fuller than that by itself."""
        (self.mount_point / BALLAST_FOLDER).mkdir(mode=0o700)
        room = filling_of(self.mount_point).room_bytes
        target = self.share - expected_bytes / room
        if target <= 0:
            raise VerifyFailed(
                f"filesystem.fill: {percent(self.share)} of {format_size(room)} is less than the {format_size(expected_bytes)} that the visit "
                "needs by itself; use a smaller device, or more data"
            )
        self._approach(target)

    def after_load(self) -> ReadBack:
        """Come and go until it is as full as was asked; VerifyFailed, with what it is, where it does not get there."""
        self._approach(self.share)
        found = filling_of(self.mount_point).share
        # In whole percents, as two visits of one configuration differ in the pages of a log.
        read = ReadBack(
            FILL_FACT,
            percent(self.share),
            percent(found),
            "statvfs",
            abs(found - self.share) <= _ALLOWED,
        )
        if not read.matches:
            way = "less data or a larger device" if found > self.share else "another type or another fill"
            raise VerifyFailed(
                f"{FILL_FACT}: asked {read.asked}, it came to {percent(found, digits=1)} (statvfs); use {way}"
            )
        return read

    def _approach(self, target: float) -> None:
        for _ in range(_STEPS_MOST):
            now = filling_of(self.mount_point)
            lacking = round(target * now.room_bytes) - now.used_bytes
            if abs(lacking) <= _NEAR_BALLAST * now.room_bytes:
                return
            if lacking > 0:
                # By halves: what one file takes of metadata besides is then made good by the next.
                if not self._add(max(_SMALLEST_BYTES, lacking // 2)):
                    return
            elif self._sizes:
                self._take_away()
            else:
                return

    def _add(self, size_bytes: int) -> bool:
        """False where the file system has no room for it."""
        file = os.open(self._path(len(self._sizes)), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(file, 0, size_bytes)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            os.ftruncate(file, 0)
            return False
        finally:
            os.close(file)
        self._sizes.append(size_bytes)
        return True

    def _take_away(self) -> None:
        self._sizes.pop()
        path = self._path(len(self._sizes))
        # XFS gives back what a deleted file had some time later, and what was cut off it at once.
        os.truncate(path, 0)
        path.unlink()

    def _path(self, number: int) -> Path:
        return self.mount_point / BALLAST_FOLDER / f"{number:03d}"
