"""`dump` of a pgbench workload: an archive of one's own database, by its checksum.

A study keeps no data. In the place of the archive it keeps a note of it (`plan/dumps/….json`), which is read where the plan is
the one that a study keeps.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedplate.engines.postgresql.archive import read_archive, restored_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import ValidationInfo

    from bedplate.model.levels import Levels, Scalar

_DETAILS = re.compile(r"(DETAIL|HINT|CONTEXT|QUERY|STATEMENT|LINE \d+|LOCATION):")
_QUOTED = re.compile(r'"[^"]*"')
_READABLE = ("none", "gzip")
_NAME_CHARACTERS_MAX = 4000
# Levels of a dataset, and the input of a visit: copies of the database, by the layout of the cluster.
DUMP, SHA256, SIZE, COMPRESSION = "dump", "source_sha256", "source_bytes", "source_compression"
SCRIPTS = ("prepare", "settle")


@dataclass(frozen=True)
class Dump:
    """An archive as a plan names it. `major` is of the pg_dump that wrote it."""

    name: str
    sha256: str
    size_bytes: int
    compression: str
    major: int

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
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= _NAME_CHARACTERS_MAX:
        raise ValueError("allowed is the path of an archive of pg_dump")
    context = info.context or {}
    directory = Path(context["directory"])
    note = f"dumps/{hashlib.sha256(value.encode()).hexdigest()[:16]}.json"
    found = _noted(directory / note)
    try:
        path = (directory / value).resolve()
        if found is None:
            archive = read_archive(path)
            found = Dump(value, archive.sha256, archive.size_bytes, archive.compression, archive.major)
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror}") from None
    except RuntimeError:
        raise ValueError("it cannot be read: a link leads to itself") from None
    if found.compression not in _READABLE:
        raise ValueError(
            f"it is compressed with {found.compression}, which bedplate's pg_restore does not read; dump with --compress=gzip"
        )
    context["files"][note] = json.dumps(asdict(found), indent=1) + "\n"
    context["archives"][found.sha256] = str(path)
    return found


def _noted(note: Path) -> Dump | None:
    """What a study has of it; None beside a plan that is no study's."""
    try:
        return Dump(**json.loads(note.read_text(encoding="utf-8")))
    except OSError:
        return None
    except (ValueError, TypeError):
        raise ValueError(f"the study's note of it ({note.name}) is damaged") from None


def without_data(text: str) -> str:
    """What pgbench printed, without values and names of one's own database: a study keeps it.

    A server's error quotes names and values, and its details stand on lines behind it.
    """
    kept = []
    in_details = False
    for line in text.splitlines():
        in_details = bool(_DETAILS.match(line)) or (in_details and not line.startswith("pgbench"))
        if not in_details:
            kept.append(_QUOTED.sub('"…"', line))
    return "\n".join(kept) + ("\n" if kept else "")


def scripts_of_dataset(levels: Levels) -> Mapping[str, str]:
    """The texts that run once behind a restore, in their order, by what they are for."""
    texts = ((name, levels.text(f"{name}_text")) for name in SCRIPTS)
    return {name: text for name, text in texts if text is not None}


def restored_bytes_of(levels: Levels) -> float:
    """A guess at the size of the database; 0 of a dataset without an archive."""
    size_bytes = levels.integer(SIZE)
    return 0.0 if size_bytes is None else restored_bytes(size_bytes, levels.text(COMPRESSION) or "gzip")
