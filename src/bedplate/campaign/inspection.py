"""What a server stands on, and what that promises: read only, without starting anything, as any user.

The class is that of `visit/declaration.py`, as of a visit. A visit counts flushes; here they are those that a file system
with these options on such a queue is known to send, and the reasons say so.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate import registry
from bedplate.errors import PlanError
from bedplate.filesystem.standing import standing_of
from bedplate.host.devices.stack import CacheKind, DeclaredCache, gets_flushes, worst_cache
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
)
from bedplate.model.durability import OF_FLUSHES, UNKNOWN, UNSAFE, worse
from bedplate.model.filesystem import TRAITS
from bedplate.model.reason import Reason, because
from bedplate.model.visit import Durability, FlushCount, ReadBack
from bedplate.near_names import of_near_paths
from bedplate.visit.declaration import declare

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bedplate.filesystem.standing import MountedPlace
    from bedplate.model.data_directory import DataDirectory, KnownFiles

_PATTERNS = ("appending", "logging", "overwriting")


@dataclass(frozen=True)
class Inspected:
    """A path with what it stands on: `places` by what is there (`data`, `WAL`, tablespaces), the first the path's own.

    `directory` is None where no engine's files are known there. `cache` is that of the worst disk. `unknown` are sentences: what
    could not be read or told, and why.
    """

    path: str
    directory: DataDirectory | None
    places: Mapping[str, MountedPlace]
    durability: Durability
    cache: DeclaredCache
    unknown: tuple[str, ...]

    @property
    def standing(self) -> MountedPlace:
        """What the path itself stands on."""
        return next(iter(self.places.values()))

    @property
    def fitting(self) -> str | None:
        """The class with the cache that the disks declare; None where they do not say which they have."""
        of_kind = {
            CacheKind.VOLATILE: self.durability.volatile_cache,
            CacheKind.PROTECTED: self.durability.protected_cache,
            CacheKind.MEMORY: UNSAFE,
        }
        classes = (self.durability.volatile_cache, self.durability.protected_cache)
        return of_kind.get(self.cache.kind, classes[0] if classes[0] == classes[1] else None)


def inspect(path: Path, *, virtualisation: str | None = None) -> Inspected:
    """A data directory, a mount point, any file, or a block device; PlanError where it is not there, or no path at all."""
    unknown: list[str] = []
    try:
        own = standing_of(path, virtualisation=virtualisation)
        directory = _recognised(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise PlanError(f"{path} cannot be looked at: {why}{of_near_paths(path, error)}") from None
    is_closed = path.is_dir() and not os.access(path, os.R_OK | os.X_OK)
    if is_closed:
        unknown.append(f"{path}: this user may not look into it, so what it holds is not known; sudo may")
    places = {"data": own}
    for what, place in (directory.places if directory else {}).items():
        if what != "data":
            try:
                places[what] = standing_of(Path(place), virtualisation=virtualisation)
            except OSError as error:
                unknown.append(f"{what} in {place}: {error.strerror or error}")
    if directory is not None:
        unknown += directory.unread
    knows_settings = directory.knows_settings if directory else not is_closed
    found = [_declared(place, directory, knows_settings=knows_settings) for place in places.values()]
    durability = found[0]
    for other in found[1:]:
        durability = worse(durability, other)
    layers = tuple(layer for place in places.values() for layer in place.layers)
    in_memory = any(place.in_memory for place in places.values())
    return Inspected(
        path=str(path),
        directory=directory,
        places=places,
        durability=durability,
        cache=DeclaredCache(CacheKind.MEMORY, "the file system is memory itself")
        if in_memory
        else worst_cache(layers),
        unknown=tuple(dict.fromkeys(unknown)),
    )


def servers(proc: Path = Path("/proc")) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The data directories of the servers that run here, and sentences about those that cannot be looked at."""
    found: dict[Path, None] = {}
    # A server has a process for each session and worker; what is said of its first one is enough.
    elsewhere: dict[Path, str] = {}
    unseen: list[str] = []
    called = frozenset[str]().union(*(files.processes for files in _known_files()))
    for folder in sorted(proc.glob("[0-9]*"), key=lambda each: int(each.name)):
        try:
            if (folder / "comm").read_text(errors="replace").strip() not in called:
                continue
            directory = (folder / "cwd").readlink()
            same = (folder / "ns/mnt").readlink() == (proc / "self/ns/mnt").readlink()
        except PermissionError:
            unseen.append(
                f"process {folder.name} is a server whose directory only its owner and root may see"
            )
            continue
        except OSError:
            continue  # it has ended
        if same:
            found[directory] = None
        else:
            elsewhere.setdefault(
                directory,
                f"process {folder.name} is a server in another mount namespace (a container): inspect {directory} there",
            )
    # Of processes that cannot be looked at nothing tells which belong together.
    return tuple(found), (*elsewhere.values(), *unseen[:3])


def _recognised(path: Path) -> DataDirectory | None:
    return next((found for files in _known_files() if (found := files.recognise(path)) is not None), None)


def _known_files() -> Iterator[KnownFiles]:
    return iter(registry.engine_parts("data_directory").values())


def _declared(standing: MountedPlace, directory: DataDirectory | None, *, knows_settings: bool) -> Durability:
    """The class of an engine with these settings there; of no engine, that of a file that is synced."""
    unknown = list(_not_known(standing, knows_settings=knows_settings))
    if unknown:
        return Durability(UNKNOWN, UNKNOWN, "declared", tuple(unknown))
    engine = directory.engine if directory else next(iter(registry.ENGINES))
    settings = directory.settings if directory else {}
    flushes = standing.flushes is True and gets_flushes(standing.layers) is not False
    counts = tuple(FlushCount("data", pattern, 1, int(flushes)) for pattern in _PATTERNS)
    found = declare(
        Cell(
            DeviceLevels(),
            KernelLevels(),
            FilesystemLevels(standing.type, journal=standing.journal),
            BuildLevels(engine),
            ClusterLevels(),
        ),
        TRAITS[standing.type],
        (
            ReadBack("filesystem.data", None, standing.data, "mountinfo", matches=None),
            ReadBack("filesystem.barrier", None, flushes, "mountinfo", matches=None),
        ),
        counts,
        settings,
        journal_in_memory=False,
    )
    # Counts are none here, and what `declare` says of them is nothing of the place.
    reasons = [reason for reason in found.reasons if reason.code not in OF_FLUSHES]
    return replace(found, reasons=(*reasons, *([] if flushes else [_no_flush(standing)])))


def _not_known(standing: MountedPlace, *, knows_settings: bool) -> Iterator[Reason]:
    if standing.in_memory:
        yield because(
            "file-system-in-memory", "the file system is memory itself: a power cut takes all of it"
        )
    elif standing.type not in TRAITS:
        words = (
            f"what fsync does on {standing.type} is not known here"
            if standing.type
            else "nothing is mounted of it"
        )
        yield because("file-system-not-known", words)
    elif standing.flushes is None:
        yield because("flushes-not-known", f"no table shows whether {standing.type} sends flushes")
    elif standing.journal == "external":
        yield because(
            "journal-elsewhere",
            "the journal is on another device: a visit counts which of the two is flushed",
        )
    if not knows_settings:
        yield because("settings-not-known", "settings that decide are not known")


def _no_flush(standing: MountedPlace) -> Reason:
    if standing.flushes:
        words = "the queue is set to write through, so that no flush is sent"
    else:
        words = f"{standing.type} sends no flush as it is mounted"
    return because("no-flush-sent", f"{words}: a volatile cache may lose what fsync promised")
