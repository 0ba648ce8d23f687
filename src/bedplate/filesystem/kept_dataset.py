"""Datasets that are loaded once on a file system and build, kept as images in the cache, and copied onto the device of each visit.

    <cache>/datasets/KEY/
        image         the device with the database on it, its server shut down, unmounted; holes where it is zeros
        kept.json     what made it: a folder without it is none

The load runs on the scratch device of the first visit that needs it, with the memory of its cell and without a throttle. A device that was all zeros is then
the same device, byte for byte, in every visit.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bedplate.errors import RequirementMissing
from bedplate.filesystem.adapter import Site, fact
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.cache import lock_of, put_in_place, work_place
from bedplate.host.files import cache_directory, file_lock
from bedplate.host.pages import CachedFile
from bedplate.host.scratch_device import AttachedDevice, create_blank, fill_from, is_zeros, write_all
from bedplate.model import codec
from bedplate.model.cell import Cell, Dataset, digest
from bedplate.model.filesystem import deciding
from bedplate.model.levels import Scalar
from bedplate.model.visit import ReadBack, VisitRequest
from bedplate.units import KIB, MIB, format_size

RESTORE_STEP = "restore"
RECORD = "kept.json"
_FOLDER = "datasets"
_IMAGE = "image"
# Raised when the way changes in which one is made.
_VERSION = 2
_CHUNK_BYTES = 256 * KIB
_ROOM_BYTES = 256 * MIB


@dataclass(frozen=True)
class KeptDataset:
    """A loaded dataset in the cache. `key` is of everything that made it, `identity` is drawn each time one is made.

    `levels` are those of the cell that it was loaded in, `cached` is what the page cache held of the data directory at the load's end.
    """

    key: str
    identity: str
    dataset: Dataset
    levels: Mapping[str, Scalar]
    size_bytes: int
    kept_bytes: int
    seconds: float
    kernel: str
    versions: Mapping[str, str]
    cached: tuple[CachedFile, ...]

    def facts(self) -> Iterator[ReadBack]:
        """For the record of a visit; as UUIDs they make no other configuration."""
        place = f"the cache's {_FOLDER}/{self.key}/{RECORD}"
        for name in ("key", "identity"):
            yield fact(f"dataset.restored.{name}", getattr(self, name), place)


def datasets_directory(cache: Path) -> Path:
    """Where they lie in a cache."""
    return cache / _FOLDER


def is_whole(folder: Path) -> bool:
    """Whether a folder counts: its record is written last."""
    return (folder / RECORD).exists() and (folder / _IMAGE).exists()


def restore_dataset(
    site: Site,
    request: VisitRequest,
    *,
    versions: Mapping[str, str],
    protocol: str,
    load: Callable[[Site, Cell], tuple[CachedFile, ...]],
) -> KeptDataset:
    """Put the dataset onto the site's device, which must be all zeros and not mounted.

    `versions` are the tools' that make the file system, `protocol` the workload's. Where the cache lacks it, `load` makes the file system there, loads the dataset in the given cell, and unmounts. What it left is
    kept, and what it says was cached then. RequirementMissing where the cache has no room for it.
    """
    cell = deciding(request.cell)
    versions = {**versions, **filesystem_for(site.levels.type).mkfs_defaults()}
    key = _key(request, cell, site.device, {**versions, "protocol": protocol})
    folder = datasets_directory(cache_directory()) / key
    # Held while it is copied, so that nobody removes it meanwhile.
    with file_lock(lock_of(folder)):
        if is_whole(folder):
            _fill(folder / _IMAGE, site.device.path)
            # When it was used last, for whoever looks for what nobody uses.
            os.utime(folder / RECORD)
            return codec.read(KeptDataset, folder / RECORD)
        started = time.monotonic()
        cached = load(site, cell)
        with work_place(folder) as fresh:
            kept_bytes = _keep(site.device.path, fresh / _IMAGE, site.device.size_bytes)
            made = KeptDataset(
                key=key,
                identity=str(uuid.uuid4()),
                dataset=request.dataset,
                levels=dict(cell.levels),
                size_bytes=site.device.size_bytes,
                kept_bytes=kept_bytes,
                seconds=time.monotonic() - started,
                kernel=os.uname().release,
                versions=dict(versions),
                cached=cached,
            )
            codec.write(fresh / RECORD, made)
            put_in_place(fresh, folder)
        _forget(site.device.path)
        return made


def _key(request: VisitRequest, cell: Cell, device: AttachedDevice, versions: Mapping[str, str]) -> str:
    """In the form of a UUID, which no effective configuration has."""
    kernel = os.uname()
    made_of = {
        "version": _VERSION,
        "levels": dict(cell.levels),
        "type": cell.filesystem.type,
        "dataset": request.dataset.id,
        "build": cell.build.engine if request.build is None else request.build.digest,
        "size": device.size_bytes,
        "sectors": device.sector_bytes,
        "versions": dict(versions),
        "kernel": [kernel.release, kernel.version, kernel.machine, os.sysconf("SC_PAGE_SIZE")],
    }
    return str(uuid.UUID(hex=digest(made_of, length=32)))


def _fill(image: Path, device_path: str) -> None:
    device = os.open(device_path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        fill_from(image, device)
        os.fsync(device)
        os.posix_fadvise(device, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(device)


def _forget(device_path: str) -> None:
    """What was read of the device is cached as `_fill` leaves it: not at all."""
    device = os.open(device_path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.posix_fadvise(device, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(device)


def _keep(device_path: str, image: Path, size_bytes: int) -> int:
    """Copy a device without its zeros; the bytes that are kept. RequirementMissing where there is no room for more."""
    target = create_blank(image, size_bytes)
    kept = 0
    try:
        with open(device_path, "rb", buffering=0) as device:  # noqa: PTH123 -- a device's path is a text
            buffer = bytearray(_CHUNK_BYTES)
            for offset in range(0, size_bytes, _CHUNK_BYTES):
                read = device.readinto(buffer) or 0
                data = memoryview(buffer)[:read]
                if is_zeros(data):
                    continue
                if not kept % (64 * _CHUNK_BYTES):
                    _require_room(image.parent)
                write_all(target, data, offset)
                kept += read
        os.fsync(target)
    finally:
        os.close(target)
    return kept


def _require_room(folder: Path) -> None:
    room = os.statvfs(folder)
    free_bytes = room.f_bavail * room.f_frsize
    if free_bytes < _ROOM_BYTES:
        raise RequirementMissing(
            f"{folder} has {format_size(free_bytes)} free, too little for the image of a loaded dataset: free some room (`bedplate release --cache --days 0` removes those that are kept), set "
            'BEDPLATE_CACHE, or use dataset = "loaded"'
        )
