"""Answers that a study's earlier visits found: every cell computes on the same data, so all must agree."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.model.visit import RECORD_FILE, Outcome, RunRecord
from bedplate.study.checksums import VisitFiles
from bedplate.study.stored import visit_directories

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

# Facts of a timed item (`answer_check.py` of TPC-H): what was asked, and the digest of what came.
_ASKED = "answer_key"
_ANSWER = "answer"


class KnownAnswers:
    """Digests of answers by what was asked, from completed runs only; the first one found stays."""

    def __init__(self) -> None:
        self._digests: dict[str, str] = {}
        self._sources: dict[str, str] = {}

    @classmethod
    def of_study(cls, visits: Path) -> KnownAnswers:
        """Those of all visits below a study's `visits`; a damaged visit teaches nothing."""
        found = cls()
        for directory in visit_directories(visits):
            with contextlib.suppress(StudyError):
                files = VisitFiles(directory)
                for name in () if files.damage else files.names(RECORD_FILE):
                    found._learn(files.record(RunRecord, name), directory / name)
        return found

    @property
    def digests(self) -> Mapping[str, str]:
        """All of them."""
        return dict(self._digests)

    @property
    def sources(self) -> Mapping[str, str]:
        """Which run of which visit found each of them, in words."""
        return dict(self._sources)

    def learn(self, records: Iterable[Path]) -> None:
        """Add the answers of runs that completed."""
        for path in records:
            with contextlib.suppress(StudyError):
                self._learn(codec.read(RunRecord, path), path)

    def _learn(self, record: RunRecord, path: Path) -> None:
        if record.outcome is not Outcome.COMPLETED:
            return
        for item in record.items:
            asked, answer = item.facts.get(_ASKED), item.facts.get(_ANSWER)
            if isinstance(asked, str) and isinstance(answer, str) and asked not in self._digests:
                self._digests[asked] = answer
                self._sources[asked] = _source(path, record.spec.name)


def _source(path: Path, run: str) -> str:
    """The run of a record below `visits`: <cell>/<dataset>/<repetition>.<attempt>/runs/<run>/record.json."""
    repetition, _, attempt = path.parents[2].name.partition(".")
    again = f", attempt {attempt}" if attempt not in {"", "1"} else ""
    return f"run {run} of {path.parents[4].name}, repetition {repetition}{again}"
