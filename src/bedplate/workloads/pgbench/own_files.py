"""`dump` of a pgbench workload: an archive of one's own database, by its checksum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedplate.engines.postgresql.own_data import (
    CATALOGUES,
    demand_listed,
    obstacles_to_copy,
    read_archive,
    read_control_file,
    restored_bytes,
    size_of,
    state_of,
)
from bedplate.engines.postgresql.settings import in_force
from bedplate.engines.postgresql.versions import major_of
from bedplate.errors import BedplateError
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels
from bedplate.model.levels import Levels, Scalar
from bedplate.plan.words import joined
from bedplate.units import GIB, KIB, MIB, format_size, parse_size
from bedplate.workloads.pgbench.model import COPY, DUMP, SHA256, SIZE, named_source

if TYPE_CHECKING:
    from pydantic import ValidationInfo

_READABLE = ("none", "gzip", "lz4", "zstd")

COMPRESSION = "source_compression"
SCRIPTS = ("prepare", "settle")


@dataclass(frozen=True)
class Dump:
    """An archive as a plan names it. `major` is of the pg_dump that wrote it, `extensions` are what its list needs, with blanks between."""

    name: str
    sha256: str
    size_bytes: int
    compression: str
    major: int
    extensions: str = ""

    def levels(self, scripts: Mapping[str, str]) -> Mapping[str, Scalar]:
        """Those of its dataset: `scripts` are texts by what they are for."""
        return {
            DUMP: Path(self.name).name,
            SHA256: self.sha256,
            SIZE: self.size_bytes,
            # What nearly every archive is goes without saying.
            **({} if self.compression == "gzip" else {COMPRESSION: self.compression}),
            **{f"{name}_text": text for name, text in scripts.items()},
        }


def dump(value: Any, info: ValidationInfo) -> Dump:
    """An archive by its path, from the plan's directory or absolute; ValueError in a sentence."""
    source = named_source(value, info, "an archive of pg_dump")
    found = source.noted(Dump)
    if found is None:
        try:
            archive = read_archive(source.path)
        except OSError as error:
            raise ValueError(f"it cannot be read: {error.strerror}") from None
        found = Dump(
            value,
            archive.sha256,
            archive.size_bytes,
            archive.compression,
            archive.major,
            " ".join(archive.extensions),
        )
    if found.compression not in _READABLE:
        raise ValueError(
            f"it is compressed with {found.compression}, which bedplate's pg_restore does not read; dump with --compress=gzip"
        )
    source.keep(found, found.sha256)
    return found


def scripts_of_dataset(levels: Levels) -> Mapping[str, str]:
    """The texts that run once behind a restore, in their order, by what they are for."""
    texts = ((name, levels.text(f"{name}_text")) for name in SCRIPTS)
    return {name: text for name, text in texts if text is not None}


def database_bytes(levels: Levels) -> float:
    """The size of one's own database: of a data directory as it is, of an archive a guess; 0 of pgbench's tables."""
    size_bytes = levels.integer(SIZE)
    if size_bytes is None or DUMP not in levels:
        return float(size_bytes or 0)
    return restored_bytes(size_bytes, levels.text(COMPRESSION) or "gzip")


DATABASE = "database"

# Levels of a dataset that say what its files are, and no key of a plan may say otherwise.
_VERSION, _BLOCK, _WAL_BLOCK, _WAL_SEGMENT, _CHECKSUMS, _FILES = (
    f"{name}_fixed"
    for name in ("version", "block_bytes", "wal_block_bytes", "wal_segment_bytes", "data_checksums", "files")
)

# Data have checksums by default since then.
_CHECKSUMS_SINCE = 18

# Of guc_tables.c; the server takes none that is less than two segments.
_WAL_LIMITS: Mapping[str, int] = {"min_wal_size": 80 * MIB, "max_wal_size": GIB}


@dataclass(frozen=True)
class OwnDirectory:
    """A data directory as a plan names it. `sha256` is of its control file, and of its label where it is a backup.

    `files` is the state of all that is copied; a study that was begun before there was one has none.
    """

    name: str
    sha256: str
    size_bytes: int
    major: int
    block_size_bytes: int
    wal_block_size_bytes: int
    wal_segment_bytes: int
    data_checksums: bool
    files: str | None = None

    def levels(self, database: str) -> Mapping[str, Scalar]:
        """Those of its dataset."""
        return {
            COPY: Path(self.name).name,
            DATABASE: database,
            SHA256: self.sha256,
            SIZE: self.size_bytes,
            _VERSION: self.major,
            _BLOCK: self.block_size_bytes,
            _WAL_BLOCK: self.wal_block_size_bytes,
            _WAL_SEGMENT: self.wal_segment_bytes,
            _CHECKSUMS: self.data_checksums,
            **({} if self.files is None else {_FILES: self.files}),
        }


def own_directory(value: Any, info: ValidationInfo) -> OwnDirectory:
    """A data directory by its path, from the plan's directory or absolute; ValueError in a sentence."""
    source = named_source(value, info, "a data directory")
    found = source.noted(OwnDirectory)
    if found is None:
        control = read_control_file(source.path)
        expected = CATALOGUES.get(control.major)
        if expected is None:
            known = ", ".join(map(str, CATALOGUES))
            raise ValueError(f"its server is of version {control.major}; bedplate builds {known}")
        if control.catalogue != expected:
            raise ValueError(
                f"its catalogue has the number {control.catalogue}, and that of PostgreSQL {control.major} is {expected}: it is of a "
                "beta, or of another server"
            )
        demand_listed(source.path, control.system_identifier)
        try:
            obstacles = joined(obstacles_to_copy(source.path))
            size_bytes, files = size_of(source.path), state_of(source.path)
        except OSError as error:
            raise ValueError(f"it cannot be read: {error.strerror}") from None
        if obstacles:
            raise ValueError(obstacles)
        found = OwnDirectory(
            name=value,
            sha256=control.digest,
            size_bytes=size_bytes,
            major=control.major,
            block_size_bytes=control.block_size_bytes,
            wal_block_size_bytes=control.wal_block_size_bytes,
            wal_segment_bytes=control.wal_segment_bytes,
            data_checksums=control.data_checksums,
            files=files,
        )
    source.keep(found, found.sha256)
    return found


def demand_unchanged(data: Path, levels: Levels) -> None:
    """BedplateError where a data directory is not in the state that its plan was read in; what is restored changes for nobody."""
    if COPY not in levels:
        return
    try:
        is_same = read_control_file(data).digest == levels.text(SHA256)
        files_are_same = _FILES not in levels or state_of(data) == levels.text(_FILES)
    except ValueError as error:
        raise BedplateError(f"copy = {levels[COPY]}: {error}") from error
    except OSError as error:
        raise BedplateError(f"copy = {levels[COPY]} cannot be read: {error.strerror}") from error
    changed = f"copy = {levels[COPY]} is not what it was when the plan was read"
    if not is_same:
        raise BedplateError(f"{changed}: a server ran on it since; begin another study")
    if not files_are_same:
        raise BedplateError(
            f"{changed}: files were written, added or removed (by size and time); begin another study"
        )


def against_the_files(cell: Cell, dataset: Levels) -> Iterator[str]:
    """What a cell asks for and a data directory is not, each with the line that fits; nothing of other datasets."""
    if COPY not in dataset:
        return
    what = f"copy = {dataset[COPY]}: it"
    yield from _of_build(what, cell.build, dataset)
    yield from _of_cluster(what, cell.cluster, int(dataset[_VERSION]), dataset)


def _of_build(subject: str, build: BuildLevels, dataset: Levels) -> Iterator[str]:
    major = major_of(build.version)
    if major != dataset[_VERSION]:
        yield f'{subject} is of PostgreSQL {dataset[_VERSION]}, not {major}; version = "{dataset[_VERSION]}" in [postgresql] fits it'
    asked = {
        "block_size": (build.block_size_bytes, _BLOCK),
        "wal_block_size": (build.wal_block_size_bytes, _WAL_BLOCK),
    }
    for key, (wanted, level) in asked.items():
        there = int(dataset[level])
        if wanted != there:
            fits = f'{key} = "{there // KIB} kB"'
            yield f"{subject} has a {key} of {format_size(there)}, not {format_size(wanted)}; {fits} in [postgresql] fits it"


def _of_cluster(subject: str, cluster: ClusterLevels, major: int, dataset: Levels) -> Iterator[str]:
    wanted = major >= _CHECKSUMS_SINCE if cluster.data_checksums is None else cluster.data_checksums
    if wanted != dataset[_CHECKSUMS]:
        has = "has" if dataset[_CHECKSUMS] else "has no"
        yield f"{subject} {has} checksums; data_checksums = {str(dataset[_CHECKSUMS]).lower()} in [postgresql] fits it"
    least = 2 * int(dataset[_WAL_SEGMENT])
    for name, default in _WAL_LIMITS.items():
        asked = in_force(cluster, name)
        try:
            there = default if asked is None else parse_size(asked)
        except ValueError:
            continue
        if there < least:
            fits = f'{name} = "{least // MIB}MB"'
            yield f"{subject} has WAL segments of {format_size(least // 2)}; {fits} or more in [postgresql.settings] fits it"
