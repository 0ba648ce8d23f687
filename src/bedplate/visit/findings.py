"""What a visit has found out so far, and the step it is at."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bedplate.errors import (
    BedplateError,
    CommandFailed,
    DeviceInUse,
    DeviceRefused,
    MachineUnfit,
    RequirementMissing,
    VisitFailed,
)
from bedplate.model.levels import Levels
from bedplate.model.reason import Reason, because, reasons_of
from bedplate.model.visit import CheckOutcome, Durability, FlushCount, ReadBack, Timing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from bedplate.model.free_space import FreeSpace
    from bedplate.model.levels import Scalar


@dataclass
class Findings:
    """What a visit has found out so far; it becomes the record, however far the visit came.

    `tool_versions` are those of `versions` that decide a figure: of the libraries and tools that did the work.
    """

    comparisons: list[ReadBack] = field(default_factory=list)
    effective_digest: str | None = None
    flush_counts: tuple[FlushCount, ...] = ()
    durability: Durability | None = None
    device_names: list[str] = field(default_factory=list)
    device_facts: Levels = field(default_factory=Levels)
    sizes: dict[str, int] = field(default_factory=dict)
    free_space: list[FreeSpace] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    tool_versions: dict[str, str] = field(default_factory=dict)
    filesystem_check: str | None = None
    filesystem_check_outcome: CheckOutcome | None = None
    runs: list[str] = field(default_factory=list)
    run_problems: list[Reason] = field(default_factory=list)


class Steps:
    """Names the step under way, times it, and turns its error into the visit's."""

    def __init__(self, emit: Callable[[Mapping[str, Scalar]], None]) -> None:
        self.timings: list[Timing] = []
        self.current = "start"
        self._emit = emit

    @contextlib.contextmanager
    def step(self, name: str, *, of_machine: bool = False) -> Iterator[None]:
        """One step of the life; a BedplateError inside becomes VisitFailed with its name.

        `of_machine`: what the step lacks, or what a tool or the kernel refuses it, every visit would lack: MachineUnfit. A device that
        somebody else holds is the machine's at every step.
        """
        self.current = name
        self._emit({"event": "step", "step": name})
        started = time.monotonic()
        try:
            yield
        except (VisitFailed, MachineUnfit):
            raise
        except BedplateError as error:
            is_refused = isinstance(error, RequirementMissing | DeviceRefused | CommandFailed)
            if isinstance(error, DeviceInUse) or (of_machine and is_refused):
                raise MachineUnfit(*reasons_of(error)) from error
            raise VisitFailed(name, *reasons_of(error)) from error
        except OSError as error:
            what = f"{error.filename}: " if error.filename else ""
            reason = because("system-call-failed", f"{what}{error.strerror or error}", errno=error.errno)
            if of_machine:
                raise MachineUnfit(reason) from error
            raise VisitFailed(name, reason) from error
        finally:
            self.timings.append(Timing(name, time.monotonic() - started))
