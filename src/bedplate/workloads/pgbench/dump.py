"""`dump` of a pgbench workload: an archive of one's own database, by its checksum."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedplate.engines.postgresql.own_data.archive import read_archive, restored_bytes
from bedplate.workloads.pgbench.own_database import DUMP, SHA256, SIZE, named_source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import ValidationInfo

    from bedplate.model.levels import Levels, Scalar

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
