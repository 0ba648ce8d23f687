"""What an engine calls a part of one of its files: the role `page_names` of its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.visit.cut_engine import Subject
    from bedplate.visit.engine_server import ServerSite


class PageNames(Protocol):
    """Known from the file's name and from what was written, and from what the engine itself calls its files."""

    def called(self, site: ServerSite, subject: Subject) -> Mapping[str, str]:  # noqa: ARG002 -- of a server's relations
        """What the engine calls its files on recovered data, by their paths below the data directory; of those that say it themselves none."""
        return {}

    def name(
        self, path: str, offset: int, written: bytes, called: Mapping[str, str], subject: Subject
    ) -> str | None:
        """Of `written`, which went to `offset` of the file at `path` below the data directory; None where there is no name.

        The settings of the `subject` say how large its pages are.
        """
        ...
