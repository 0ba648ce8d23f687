"""Aged file systems: each is made once, kept in the cache by everything that made it, and copied onto the device of each visit.

    <cache>/aged/KEY/
        image         the aged file system, unmounted; holes where it is zeros
        aged.json     what made it: a folder without it is none

Made on a sparse image in the cache. It holds no data, as files are allocated and not written, so what is kept and copied are tens of MiB
of metadata; a device that is all zeros behind them is then the same device, byte for byte.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Mapping  # noqa: TC003 -- the codec reads it
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from bedplate.errors import RequirementMissing, VisitFailed
from bedplate.filesystem.ageing import age
from bedplate.filesystem.comparison import fact
from bedplate.filesystem.refusals import site_on_sparse_image
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.cache import cache_directory
from bedplate.host.devices.image_file import create_blank, fill_from
from bedplate.host.file_lock import file_lock
from bedplate.host.whole_folder import lock_of, put_in_place, sweep_work_folders, work_folder
from bedplate.model import codec
from bedplate.model.cell import digest
from bedplate.model.filesystem import AGE_PROFILES, AGEING_VERSION, age_of, without_age
from bedplate.model.reason import because
from bedplate.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bedplate.filesystem.site import Site
    from bedplate.host.ledger import Ledger
    from bedplate.model.visit import ReadBack

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
    folder.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(lock_of(folder)):
        if not is_whole(folder):
            sweep_work_folders(folder.parent, but=work_folder(folder))
            _make(site, folder, versions=versions, ledger=ledger)
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


def _make(site: Site, folder: Path, *, versions: Mapping[str, str], ledger: Ledger) -> None:
    _require_room(folder.parent, site.device.size_bytes)
    fresh = work_folder(folder)
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    try:
        made = _aged(site, folder.name, fresh / _IMAGE, versions=versions, ledger=ledger)
        codec.write(fresh / RECORD, made)
        put_in_place(fresh, folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _aged(site: Site, key: str, image: Path, *, versions: Mapping[str, str], ledger: Ledger) -> AgedImage:
    """Make one and keep it as `image`, whose folder also holds what it is made on."""
    profile, size_bytes = age_of(site.levels) or "", site.device.size_bytes
    filesystem = filesystem_for(site.levels.type)
    # The device's switch is the visit's own affair.
    levels = replace(site.levels, features=without_age(site.levels.features), barrier=None)
    started = time.monotonic()
    with site_on_sparse_image(
        filesystem,
        levels,
        size_bytes,
        commands=site.commands,
        directory=image.parent,
        ledger=ledger,
        sector_bytes=site.device.sector_bytes,
    ) as made:
        filesystem.mkfs(made)
        filesystem.mount(made)
        try:
            state = age(levels.type, made.target, profile, _SEED)
        except OSError as error:
            words = (
                f"filesystem.aged: {levels.type} of {format_size(size_bytes)} does not age as {profile!r} files do: {error.strerror}; "
                "use a larger image or another profile"
            )
            raise VisitFailed(AGED_STEP, because("not-aged", words, errno=error.errno or 0)) from error
        filesystem.unmount(made)
        if made.device.image is None:
            raise ValueError(f"{made.device.path} has no image")
        _keep(made.device.image, image, size_bytes)
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
