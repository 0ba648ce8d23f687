"""How the two programs of an own engine are called in a visit, and how they ended (docs/ENGINES.md)."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bedplate.engines.external.model import PROMISE
from bedplate.engines.external.prepare import (
    FILE,
    PLANTED_LIBRARY,
    PROGRAMS_KEY,
    EngineDescription,
    read_description,
)
from bedplate.errors import BedplateError, KilledFromOutside, RequirementMissing
from bedplate.host.command import Account
from bedplate.host.shut_in import DATA, PROGRAMS, SIGNALS_FROM, Confinement
from bedplate.model.cell import Cell
from bedplate.model.durability import UNKNOWN, FilesystemPromise, declared, lowered_to
from bedplate.model.levels import Levels, Scalar, as_in_a_plan
from bedplate.model.reason import because
from bedplate.model.visit import Durability, ReadBack
from bedplate.text_encoding import decode_text
from bedplate.units import MIB
from bedplate.visit.cuts import WRITER_NOT_ENDED, Subject
from bedplate.visit.declaration import DurabilityOfCells, EngineDurability
from bedplate.visit.recording import ToolEnded, VisitContext

# How long a writer may take until its first line; and after SIGTERM, before it is killed.
PREPARATION_LIMIT_S = 300.0

PATIENCE_S = 10.0
LONGEST_WORDS = 400

_FULL_BYTES = 16 * MIB


@dataclass(frozen=True)
class AuthorPrograms:
    """Those of a cell: the folder of their copy, what stands in it about them, and the cell's settings."""

    folder: Path
    description: EngineDescription
    settings: Levels

    @classmethod
    def of_visit(cls, context: VisitContext) -> AuthorPrograms:
        """By the cell's own engine.toml."""
        text = context.request.cell.cluster.configuration or ""
        folder = Path(context.native_drivers[PROGRAMS_KEY])
        return cls(folder, read_description(text), context.engine_settings)

    @classmethod
    def of_recording(cls, subject: Subject) -> AuthorPrograms:
        """By the folder that was recorded with; RequirementMissing where it is gone."""
        folder = Path(str(subject.drivers[PROGRAMS_KEY]))
        try:
            text = decode_text((folder / FILE).read_bytes())
        except FileNotFoundError:
            raise RequirementMissing(
                f"the programs of the engine are not in {folder} any more; run the plan that names their folder"
            ) from None
        return cls(folder, read_description(text), subject.settings)

    @property
    def options(self) -> tuple[str, ...]:
        """What both programs are told of the settings."""
        return tuple(options(self.description.options_for(self.settings)))

    def writer(
        self, data: Path, account: Account, *, clients: int, seed: int, duration_s: float
    ) -> Confinement:
        """The call of the writer, confined."""
        asked = Levels(clients=clients, seed=seed, duration=max(1, round(duration_s)))
        argv = (*self._planted, f"{PROGRAMS}/{self.description.writer}", DATA, *options(asked), *self.options)
        return Confinement(argv, data, self.folder, account)

    @property
    def _planted(self) -> tuple[str, ...]:
        """What begins the writer with the fault that its folder has; nothing without one."""
        if self.description.plant is None:
            return ()
        return ("env", f"LD_PRELOAD={PROGRAMS}/{PLANTED_LIBRARY}", f"BEDPLATE_PLANT={self.description.plant}")

    def checker(self, data: Path, account: Account) -> Confinement:
        """The call of the checker, confined."""
        argv = (f"{PROGRAMS}/{self.description.checker}", DATA, *self.options)
        return Confinement(argv, data, self.folder, account)

    def require_success(self, tool_end: ToolEnded, *, was_told: bool, data: Path, room: str) -> None:
        """BedplateError for a writer that failed; `room` is what gives a full disk more. One that got SIGTERM may end by it.

        KilledFromOutside for one that SIGKILL ended.
        """
        if tool_end.status == 0 or (
            was_told and tool_end.status in (SIGNALS_FROM + signal.SIGTERM, -signal.SIGTERM)
        ):
            return
        if tool_end.status in (SIGNALS_FROM + signal.SIGKILL, -signal.SIGKILL):
            raise KilledFromOutside(f"the writer of {self.description.name}")
        left = os.statvfs(data)
        is_full = left.f_bavail * left.f_frsize < _FULL_BYTES
        raise BedplateError(
            f"the writer of {self.description.name} {how_it_ended(tool_end.status)}: {tool_end.said}",
            *((room,) if is_full else ()),
        )

    def version(self, errors: Path) -> str:
        """The first line that the writer printed to standard error; without one its name."""
        lines = errors.read_text(encoding="utf-8", errors="replace").splitlines() if errors.exists() else []
        first = " ".join(lines[0].split())[:LONGEST_WORDS] if lines else ""
        return first or self.description.name


def printed_no_line(name: str) -> BedplateError:
    """Of a writer whose time to prepare is over."""
    return BedplateError(
        f"the writer of {name} printed no line within {PREPARATION_LIMIT_S:g} s and was killed: it prints `begin` once it has "
        "prepared, and `ack CLIENT NUMBER` behind each commit"
    )


def does_not_end(name: str, patience_s: float = PATIENCE_S) -> BedplateError:
    """Of a writer that was told to."""
    words = f"the writer of {name} did not end within {patience_s:.0f} s after SIGTERM and was killed"
    return BedplateError(because(WRITER_NOT_ENDED, words))


def options(settings: Mapping[str, Scalar]) -> Iterator[str]:
    """`--NAME=VALUE`."""
    return (f"--{name}={as_in_a_plan(level)}" for name, level in settings.items())


def how_it_ended(status: int) -> str:
    """`ended with status 1`, `was ended by SIGSEGV`."""
    number = -status if status < 0 else status - SIGNALS_FROM
    try:
        return f"was ended by {signal.Signals(number).name}"
    except ValueError:
        return f"ended with status {status}"


_NO_PROMISE = because(
    "no-promise", f"{FILE} promises nothing for these settings, so that there is nothing to hold cuts against"
)


class ExternalDurability(EngineDurability):
    """By the engine.toml of a cell."""

    def __init__(self, configuration: str) -> None:
        self._description = read_description(configuration)

    def opened(self, settings: Levels) -> Sequence[ReadBack]:
        """The options of both programs, and what is promised for them."""
        told = self._description.options_for(settings)
        promise = self._description.promise(settings)
        source = FILE if promise is None else f"{FILE}: {promise.source}"
        return [
            *(
                ReadBack(f"engine.{name}", settings.get(name), level, "the call of the writer", matches=None)
                for name, level in told.items()
            ),
            ReadBack(PROMISE, None, promise.durability if promise else UNKNOWN, source, matches=None),
        ]

    def declare(
        self,
        settings: Levels,
        server_settings: Mapping[str, str],  # noqa: ARG002 -- there is no server
        filesystem: FilesystemPromise,
    ) -> Durability:
        """The author's class, and never a better one than the file system's; unknown without a promise."""
        promise = self._description.promise(settings)
        if promise is None:
            return lowered_to(declared(filesystem), UNKNOWN, UNKNOWN, _NO_PROMISE)
        words = f"its author promises {promise.durability} ({promise.source})"
        reason = because("promised-by-author", words)
        return lowered_to(declared(filesystem), promise.durability, promise.durability, reason)


class _OfCells:
    """The promises of the engine that a cell has."""

    def of(self, cell: Cell) -> EngineDurability:
        return ExternalDurability(cell.cluster.configuration or "")


DURABILITY: DurabilityOfCells = _OfCells()
