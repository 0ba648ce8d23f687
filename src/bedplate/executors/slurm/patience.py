"""Waiting for a controller that does not answer, up to the study's own deadline."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bedplate.errors import RequirementMissing
from bedplate.executors.slurm.controller import ControllerSilent
from bedplate.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bedplate.executors.slurm.controller import JobState, Slurm


class Patience:
    """Asks for the user's jobs, and knows since when nobody answered.

    `note` tells the user that it is waited. `meanwhile` ends the sentence of giving up: what of the study is as it was.
    """

    def __init__(
        self, slurm: Slurm, *, deadline_s: float, note: Callable[[str], None], meanwhile: str
    ) -> None:
        self._slurm = slurm
        self._deadline_s = deadline_s
        self._note = note
        self._meanwhile = meanwhile
        self._since: float | None = None

    @property
    def is_tried(self) -> bool:
        """Whether the controller was silent when it was last asked for anything."""
        return self._since is not None

    def begin(self) -> None:
        """The controller was silent to another question."""
        self._since = time.monotonic()

    def listing(self) -> Mapping[str, JobState] | None:
        """Slurm's word by the jobs' names; None while the controller is silent, RequirementMissing for too long."""
        try:
            found = self._slurm.jobs()
        except ControllerSilent as error:
            now = time.monotonic()
            if self._since is None:
                self._since = now
                self._note(f"the controller does not answer, it is waited for: {error.reasons[0]:.160}")
            if now - self._since > self._deadline_s:
                raise RequirementMissing(
                    f"the controller has not answered for {format_duration(now - self._since)}{self._meanwhile}"
                ) from error
            return None
        if self._since is not None:
            self._note("the controller answers again")
        self._since = None
        return found
