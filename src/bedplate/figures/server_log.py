"""What figures take from a server's log: its checkpoints, and what it complains of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from bedplate import registry

TIMED = "timed"
REQUESTED = "requested"
END_OF_RECOVERY = "end of recovery"


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint in wall-clock seconds since the epoch; no end where the log has none."""

    kind: str
    start_wall_s: float
    end_wall_s: float | None


@dataclass(frozen=True)
class Complaint:
    """An error line of the server: when, how bad (`ERROR`, `FATAL`, `PANIC`, `CRASH`), what."""

    wall_s: float
    severity: str
    text: str


@dataclass(frozen=True)
class ServerLog:
    """What the log says, in the order of the log; of the complaints the first thousand."""

    checkpoints: tuple[Checkpoint, ...]
    complaints: tuple[Complaint, ...]


# The role `server_log` of an engine that has a server: reads it; OSError if it cannot be read. Foreign lines are passed over.
ServerLogReader: TypeAlias = Callable[[Path], ServerLog]


def server_log_of(engine: str) -> ServerLogReader | None:
    """That of an engine, None where there is no log to read."""
    reader: ServerLogReader | None = registry.engine_part_or_none(engine, "server_log")
    return reader
