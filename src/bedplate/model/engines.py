"""The engines, by their names in a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

POSTGRESQL = "postgresql"
LMDB = "lmdb"
SQLITE = "sqlite"

# The file system itself: sequential I/O has no engine between.
NO_ENGINE = "none"

MARIADB = "mariadb"


@dataclass(frozen=True)
class DataDirectory:
    """An engine's files.

    `settings` are those that decide what a commit survives, as its files say or its defaults are; `said_by` has the file of each
    that is not a default. `places` are the directories whose file systems a commit depends on, by what stands there.
    `unread` are sentences: what could not be read, and why. `knows_settings`: whether all of them could. `untold` is what no
    file says of any such engine. `made_with` has keys of the engine's table in a plan, as its files were made; `more` are settings beside those that
    decide, as far as a plan can have them, and `left_out` sentences about what no plan takes over. `measured_by` is the type of workload that measures it; empty: the one that runs where a plan names none.
    """

    engine: str
    version: str
    settings: Mapping[str, str] = field(default_factory=dict)
    said_by: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    knows_settings: bool = True
    untold: tuple[str, ...] = ()
    made_with: Mapping[str, str | bool] = field(default_factory=dict)
    more: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    measured_by: str = ""


@dataclass(frozen=True)
class KnownFiles:
    """The role `data_directory` of an engine.

    `recognise` finds its files in a directory, or those of a file; None where there are none. `processes` are the names of its server's
    processes (`comm`), each of which works in its data directory.
    """

    recognise: Callable[[Path], DataDirectory | None]
    processes: frozenset[str] = frozenset()


# Level `engine` of a dataset of this workload: its name in the registry.
ENGINE = "engine"
