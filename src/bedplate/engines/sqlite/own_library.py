"""The library of an amalgamation or a commit: compiled once, with SQLite's own defaults, and linked into drivers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engines.sqlite.amalgamation import LIBRARY_SETTINGS, read_amalgamation
from bedplate.engines.sqlite.library import LIBSQLITE3
from bedplate.engines.sqlite.tree import generated_files
from bedplate.errors import RequirementMissing
from bedplate.host.cache import cache_directory
from bedplate.host.command import Commands
from bedplate.host.native_driver import compiled_library

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.campaign.engine_preparation import OwnLibrary
    from bedplate.host.native_driver import Library
    from bedplate.model.source_commit import SourceTree

# What the library itself wants of the C library.
_LINKED_WITH = ("-lm", "-ldl")


class SqliteSource:
    """An amalgamation, or a commit that one is generated from, by the level of a cell; a change of the source is another level."""

    settings: tuple[str, ...] = LIBRARY_SETTINGS

    def ensure(self, level: str, path: str | None, tree: SourceTree | None = None) -> Library:
        """Compiled now where the cache lacks it; RequirementMissing where its source is gone, or was changed."""

        def files() -> Mapping[str, bytes]:
            if tree is not None:
                return generated_files(tree)
            if path is None:
                raise RequirementMissing(
                    f"SQLite {level} is not in the cache, and the plan names no path of it"
                )
            try:
                found, files = read_amalgamation(Path(path))
            except OSError as error:
                raise RequirementMissing(f"SQLite {level}: {path} cannot be read: {error.strerror}") from None
            except ValueError as error:
                raise RequirementMissing(f"SQLite {level}: {error}") from None
            if found != level:
                raise RequirementMissing(
                    f"{path} is SQLite {found}, and the plan was read with {level}; start again"
                )
            return files

        return compiled_library(
            LIBSQLITE3,
            # Of a commit its digits: a subject is no name of a file.
            name=f"sqlite-{level.partition(' ')[0]}",
            files=files,
            linker_words=_LINKED_WITH,
            cache_directory=cache_directory() / "engines",
            commands=Commands(),
        )


OWN_LIBRARY: OwnLibrary = SqliteSource()
