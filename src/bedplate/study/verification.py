"""Every file of every finished visit, compared with its checksum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.study.checksums import VisitFiles, changed_top_files
from bedplate.study.layout import StudyLayout
from bedplate.study.records import StudyFacts
from bedplate.study.schedule import read_schedule
from bedplate.study.stored import read_visit, visit_directories, visits_by_place
from bedplate.study.version import require_known_format

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Verified:
    """`sealed` visits have checksums, of `files` files; `unsealed` ones have none. `problems` name what is wrong."""

    sealed: int
    unsealed: int
    files: int
    size_bytes: int
    problems: tuple[str, ...]


def verify_study(directory: Path) -> Verified:
    """Read all that can be compared; StudyError if there is no study, or its own files are damaged."""
    layout = StudyLayout(directory)
    require_known_format(layout)
    scheduled = visits_by_place(read_schedule(layout))
    sealed = unsealed = files = size_bytes = 0
    problems: dict[str, None] = dict.fromkeys(changed_top_files(layout, codec.read(StudyFacts, layout.facts)))
    for path in visit_directories(layout.visits):
        try:
            found = VisitFiles(path)
            found.verify()
            problems.update(dict.fromkeys((*found.damage, *found.remarks)))
            sealed += found.has_checksums
            unsealed += not found.has_checksums
            files += found.count
            size_bytes += found.size_bytes
            read_visit(path, scheduled)
        except StudyError as error:
            problems.update(dict.fromkeys(error.reasons))
    return Verified(sealed, unsealed, files, size_bytes, tuple(problems))
