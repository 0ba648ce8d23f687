"""The frame of publications whose every file is one document that stands for itself: XML, JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Generic, TypeVar

from bedplate.imported.published import Publication, PublishedRun, PublishedSource, as_problems, shown
from bedplate.model.reason import Reason

Document = TypeVar("Document")


@dataclass(frozen=True)
class DocumentAdapter(Generic[Document]):
    """An adapter for documents whose names end in `suffix`.

    `document` reads a file, and gives None with a problem where it is no such document. `runs` are those of one; what cannot be taken
    from it is a problem, too.
    """

    name: str
    words: str
    suffix: str
    document: Callable[[PublishedSource, PurePosixPath, list[Reason]], Document | None]
    runs: Callable[[Document, PublishedSource, PurePosixPath, list[Reason]], Iterator[PublishedRun]]

    def recognises(self, source: PublishedSource) -> bool:
        """Some file is such a document."""
        return any(self.document(source, file, []) is not None for file in self._files(source))

    def read(self, source: PublishedSource) -> Publication:
        """Every run of every document."""
        problems: list[Reason] = []
        found: list[PublishedRun] = []
        for file in self._files(source):
            with as_problems(shown(file), problems):
                document = self.document(source, file, problems)
                if document is not None:
                    found += tuple(self.runs(document, source, file, problems))
        return Publication(tuple(found), tuple(problems))

    def _files(self, source: PublishedSource) -> tuple[PurePosixPath, ...]:
        return tuple(file for file in source.files if file.suffix == self.suffix)
